# Who gives groups their turns: the kernel, at its own interval or a shorter one, or perfprop.
. checks/lib.sh

interval=/sys/bus/event_source/devices/armv8_pmuv3/perf_event_mux_interval_ms
events=cycles,instructions,r11,r8,cycles:u,instructions:u,r11:u,r8:u,r11:uk,r8:uk
before=$(cat $interval)

# A shorter interval holds while perfprop runs, and only then.
perfprop stat -j --mux 1 -e $events -o /tmp/mux -- sh -c "cat $interval; exec loop 9" > /tmp/during 2> /tmp/text
check '--mux sets the interval' 1 "$(cat /tmp/during)"
check '--mux sets it back' "$before" "$(cat $interval)"
has '--mux says so' /tmp/text "every 1 ms on armv8_pmuv3.*set back to $before ms"
perfprop stat --mux 1 -e $events -- loop 9 2> /tmp/text &
killed=$!
sleep 1
check '--mux holds in the middle' 1 "$(cat $interval)"
perfprop stat --mux 2 -e $events -- true 2> /tmp/taken
check 'a second --mux is refused' 125 $?
has 'which is E16' /tmp/taken '^\(perfprop: \)*E16 .*another perfprop'
kill -9 $killed
wait $killed 2> /dev/null
sleep 1
check '--mux is set back after SIGKILL' "$before" "$(cat $interval)"
perfprop stat --mux 1 -e $events -- nosuchcommand 2> /tmp/text
check '--mux is set back after an error' "$before" "$(cat $interval)"
chmod 444 $interval
su user -c "/guest/perfprop stat --mux 1 -e cycles:u,instructions:u -- true" 2> /tmp/text
check '--mux without permission ends with 125' 125 $?
has 'and names the command' /tmp/text "sudo tee $interval"
chmod 644 $interval

# Truth: what events count that have a counter for themselves, in groups that fit.
phases='loop 2; dd if=/dev/zero of=/dev/null bs=1 count=60000 2> /dev/null; loop 1; md5sum /bin/busybox > /dev/null'
perfprop stat -j -e cycles,instructions,cycles:u,instructions:u -o /tmp/alone -- sh -c "$phases; $phases; $phases"

# The event of /tmp/alone that counts the same.
same() { echo "$1" | sed 's/^r0*11/cycles/; s/^r0*8/instructions/; s/:uk$//'; }

# worst FILE EVENTS: the largest part by which a scaled total is off, of events whose truth is known.
worst() {
  for event in $(echo "$2" | tr , ' '); do
    truth=$(value "$(same $event)" counter-value /tmp/alone)
    [ -z "$truth" ] || echo "$truth $(value $event counter-value "$1")"
  done | awk '{ off = $2 / $1 - 1; off = off < 0 ? -off : off; if (off > worst) worst = off } END { print worst + 0 }'
}

for list in $events; do
  count=$(echo $list | tr , '\n' | wc -l)
  perfprop stat -j --schedule user -e $list -o /tmp/user -- sh -c "$phases; $phases; $phases"
  single=$(echo $list | sed 's/,/},{/g')
  perfprop stat -j --schedule kernel -e "{$single}" -o /tmp/single -- sh -c "$phases; $phases; $phases"
  ratios=$(sed 's/.*"pcnt-running":\([0-9.]*\).*/\1/' /tmp/user | sort -n | sed -n '1p;$p' | tr '\n' ' ')
  user=$(worst /tmp/user $list) kernel=$(worst /tmp/single $list)
  echo "   $count events: run $ratios%, off by $user at most; ungrouped by the kernel $kernel"
  check "$count events are all counted" $count "$(grep -c '"status":"counted"' /tmp/user)"
  holds "$count events have fair turns" "$(echo $ratios | sed 's/ /\/(/; s/$/)/') > 0.8 / $(( (count + 6) / 7 ))"
  # The phases are short, and a turn costs more in the guest than on a machine.
  holds "$count events are scaled to within 3 %" "$user < 0.03"
  holds "$count events: nearer than ungrouped by the kernel, where that is far off" "$kernel < 0.02 || $user < $kernel"
done

# What perfprop counts in turns is a recording like all others.
perfprop record -I 100 --schedule user -e $events -o /tmp/recording -- loop 9 2> /tmp/text
perfprop replay --speed 0 /tmp/recording > /tmp/replay 2> /tmp/text
check 'a recording in turns of perfprop replays' 0 $?

# What fits at once takes no turns, whoever would give them.
perfprop stat -j --schedule user -e cycles:u,instructions:u -o /tmp/two -- loop 3
check 'what fits at once is exact' "$((3 * 3 * 20000000 + 9)).0" "$(value instructions:u counter-value /tmp/two)"

perfprop check -e $events > /tmp/text
sed -n '/take turns/,$s/^/   /p' /tmp/text
has 'check expects an error of each schedule' /tmp/text '--schedule user  *±'
has 'check says what auto takes' /tmp/text '--schedule auto takes'
