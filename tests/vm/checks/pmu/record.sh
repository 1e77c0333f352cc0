# A recording, and its replay, say what stat says.
. checks/lib.sh

events=cycles:u,instructions:u
perfprop stat -j -e $events -o /tmp/stat -- loop 5
perfprop record -I 100 -e $events -o /tmp/recording -- loop 5 2> /tmp/text
perfprop replay --speed 0 /tmp/recording > /tmp/replay 2> /tmp/text
check 'replay ends well' 0 $?

recorded=$(sed -n 's/.*"type":"end".*"totals":.*"count":\([0-9]*\),.*/\1/p' /tmp/recording)
check 'the recorded instructions are those of stat' "$(value instructions:u counter-value /tmp/stat)" "$recorded.0"
for event in cycles:u instructions:u; do
  mean=$(awk -v event=$event '$1 == event { mean = $2 } END { print mean }' /tmp/replay | sed 's/k$/e3/; s/M$/e6/; s/G$/e9/')
  near "the replayed rate of $event is that of stat" "$(value $event mean-per-cpu-sec /tmp/stat)" "$mean" 0.01
done
