# Call stacks sampled by a real counter's overflow.
. checks/lib.sh

perfprop stat -j -e instructions:u -o /tmp/total -- loop 9
total=$(value instructions:u counter-value /tmp/total)
perfprop record -g -c 10000000 -e instructions:u -o /tmp/sampled.jsonl -- loop 9 2> /tmp/text
check 'record -g ends well' 0 $?
samples=$(sed -n 's/.* \([0-9]*\) samples with call stacks.*/\1/p' /tmp/text)
near 'a sample every ten million instructions' "$(awk "BEGIN { print $total / 10000000 }")" "$samples" 0.02
perfprop export --counts --to folded -o /tmp/folded /tmp/sampled.jsonl
check 'every sample is exported' "$samples" "$(awk '{ sum += $NF } END { print sum }' /tmp/folded)"
has 'the program is named' /tmp/folded '^loop'
perfprop record -F 1000 --call-graph dwarf -e cycles -o /tmp/cycles.jsonl -- loop 9 2> /tmp/text
has 'cycles are sampled at a frequency' /tmp/text '[1-9][0-9]* samples with call stacks'
# Ten events that are sampled and counted on seven counters: each sample stands for the time its event was off, too. They ran
# a third of the time. An overflow that is noticed when the event's turn has ended, as it may be here, gives no sample.
perfprop record -g -c 2500000 -e instructions:u,cycles:u,r1,r2,r3,r4,r9,r10,r12,r13 -o /tmp/turns.jsonl -- sh -c 'loop 90; loop 90; loop 90; loop 90' 2> /tmp/text
check 'record -g of events that take turns ends well' 0 $?
perfprop stat -j -e instructions:u,cycles:u -o /tmp/total -- sh -c 'loop 90; loop 90; loop 90; loop 90'
has 'recordings keep run shares' /tmp/turns.jsonl '"shares":\[{'
for event in instructions:u cycles:u; do
  perfprop export --event-filter $event --to folded -o /tmp/folded /tmp/turns.jsonl
  near "samples of $event add up to its count" "$(value $event counter-value /tmp/total)" \
    "$(awk '{ sum += $NF } END { print sum }' /tmp/folded)" 0.25
done
