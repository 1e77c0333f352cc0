# Groups that fit are counted together; one that is larger than the PMU gives no invented numbers.
. checks/lib.sh

perfprop stat -j -e '{cycles:u,instructions:u}' -o /tmp/pair -- loop 1
check 'a group of two counts' '60000009.0' "$(value instructions:u counter-value /tmp/pair)"

# counts_nothing NAME STATUS FILE: refused, or without a number for any event.
counts_nothing() {
  numbers=$(grep -c '"counter-value":[0-9]' "$3")
  if [ "$2" = 125 ]; then has "$1" "$3" 'E04'; else check "$1" 0 "$numbers"; fi
}
eight='{instructions,instructions:u,instructions:k,r8,r8:u,r8:k,cycles,r11}'
perfprop stat -j -e "$eight" -- loop 1 2> /tmp/eight
counts_nothing 'a group of eight is no numbers' $? /tmp/eight
sleep 1
check 'the command of a refused group ends quietly' 0 "$(grep -c fatal /tmp/eight)"

sh -c 'sleep 1; exec loop 9' &
perfprop stat -j -e "$eight" -p $! 2> /tmp/attached
counts_nothing 'a group of eight in a running process is no numbers' $? /tmp/attached

nine='{instructions,instructions:u,instructions:k,r8,r8:u,r8:k,cycles,r11,r11:u}'
for group in "$eight" "$nine"; do
  perfprop stat -j -a -e "$group" -- loop 1 2> /tmp/machine
  counts_nothing 'a group that is too large is no numbers for the whole machine' $? /tmp/machine
done

perfprop stat -j -e "$eight:W" -o /tmp/weak -- loop 5
check 'a weak group that is too large is counted singly' 8 "$(grep -c '"status":"counted"' /tmp/weak)"
near 'and scaled' "$((3 * 5 * 20000000 + 9))" "$(value r8:u counter-value /tmp/weak)" 0.005

perfprop stat -e '{cycles,branches}' -- loop 1 2> /tmp/torn
check 'a group with a member that is absent ends with status 125' 125 $?
has 'and names it' /tmp/torn '^\(perfprop: \)*E04 .*{cycles,branches}.*: branches: not supported'
