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
