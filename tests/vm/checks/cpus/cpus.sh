# What is sampled and counted on several CPUs.
. checks/lib.sh

check 'the guest has two CPUs' 2 "$(grep -c ^processor /proc/cpuinfo)"
perfprop stat -j -e instructions:u -o /tmp/total -- sh -c 'loop 9; loop 9'
total=$(value instructions:u counter-value /tmp/total)
# An event of a task is opened on each CPU, and is on a counter on one of them at a time.
for method in auto fp; do
  perfprop record --call-graph $method -c 10000000 -e instructions:u -o /tmp/sampled.jsonl -- sh -c 'loop 9; loop 9' 2> /tmp/text
  check "record --call-graph $method ends well" 0 $?
  perfprop export --to folded -o /tmp/folded /tmp/sampled.jsonl
  near "samples of $method add up to the count" "$total" "$(awk '{ sum += $NF } END { print sum }' /tmp/folded)" 0.1
done
perfprop stat -j -A -a -e instructions:u -o /tmp/each -- loop 9
check 'each CPU has a row' 2 "$(grep -c '"event":"instructions:u"' /tmp/each)"
