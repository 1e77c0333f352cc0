# More events than counters: the kernel takes turns, and the scaled counts are right within their errors.
. checks/lib.sh

events=cycles,instructions,r11,r8,cycles:u,instructions:u,r11:u,r8:u,r11:uk,r8:uk
perfprop stat -j -e cycles,instructions,cycles:u,instructions:u -o /tmp/alone -- loop 9
perfprop stat -j -e "$events" -o /tmp/ours -- loop 9
perfprop stat -e "$events" -- loop 9 2> /tmp/text
perf stat -x, -e "$events" -o /tmp/perf -- loop 9

for event in $(echo $events | tr , ' '); do
  truth=$(value "$(echo $event | sed 's/r11/cycles/; s/r8/instructions/; s/:uk//')" counter-value /tmp/alone)
  total=$(value $event counter-value /tmp/ours)
  ratio=$(value $event pcnt-running /tmp/ours)
  perfs=$(perfs $event /tmp/perf)
  echo "   $event: run $ratio %, scaled $total, alone $truth, perf $perfs"
  holds "$event takes turns" "$ratio > 40 && $ratio < 85"
  near "$event is scaled to what it counts alone" $truth $total 0.005
  near "$event is what perf scales it to" "$perfs" $total 0.01
  holds "$event has an error" "$(value $event ci-lo /tmp/ours) < $total && $total < $(value $event ci-hi /tmp/ours)"
  has "$event shows its error" /tmp/text " $event  *±[<0-9. ]*%  *[4-8][0-9.]*% run"
done

# Each event in a group of its own takes turns with all others: the kernel gives 7 counters to N.
some=cycles,instructions,r11,r8,cycles:u,instructions:u,r11:u,r8:u,cycles:k,instructions:k,r11:k,r8:k,r11:uk
for count in 8 10 13; do
  single=$(echo $some | cut -d, -f1-$count | sed 's/,/},{/g')
  perfprop stat -j -e "{$single}" -o /tmp/single -- loop 9
  ratio=$(sed 's/.*"pcnt-running":\([0-9.]*\).*/\1/' /tmp/single | awk '{ sum += $1 } END { print sum / NR / 100 }')
  echo "   $count events alone: run ratio $ratio, 7/$count is $(awk "BEGIN { print 7 / $count }")"
  near "$count events run 7/$count of the time" "$(awk "BEGIN { print 7 / $count }")" "$ratio" 0.04
done

# The last group has room: instructions and cycles are counted there once more, apart from the events.
perfprop record -I 100 -e $events -o /tmp/anchored -- loop 9 2> /tmp/text
has 'the recording has anchors' /tmp/anchored '"anchors":\[{"anchor_of":1,"group":1,"status":"counted"},{"anchor_of":0,"group":1,"status":"counted"}\]'
anchor=$(grep '"type":"end"' /tmp/anchored | grep -o '{"count":[0-9]*,"enabled":[0-9]*,"running":[0-9]*}' |
  sed -n '11s/[^0-9,]//gp' | awk -F, '{ print $1 * $2 / $3 }')
near 'an anchor is scaled to what the event counts alone' "$(value instructions counter-value /tmp/alone)" "$anchor" 0.005
check 'an anchor is not listed' 10 "$(grep -c . /tmp/ours)"

# Nobody asked for cycles, which have a counter that takes nothing else: they are counted beside, all the time.
instructions=instructions,instructions:u,instructions:k,instructions:uk,r8,r8:u,r8:k,r8:uk
perfprop record -I 100 -e $instructions -o /tmp/added -- loop 9 2> /tmp/text
has 'cycles are counted beside' /tmp/added '"added":{"name":"cycles"'
added=$(grep '"type":"end"' /tmp/added | grep -o '{"count":[0-9]*,"enabled":[0-9]*,"running":[0-9]*}' |
  sed -n '$s/[^0-9,]//gp')
near 'what is counted beside counts all of it' "$(value cycles counter-value /tmp/alone)" "${added%%,*}" 0.005
check 'it is on a counter all the time' "$(echo "$added" | cut -d, -f2)" "$(echo "$added" | cut -d, -f3)"
perfprop stat -j -e $instructions -o /tmp/text -- loop 9
check 'what is counted beside is not listed' 8 "$(grep -c . /tmp/text)"
