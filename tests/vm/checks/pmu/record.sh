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
  count=$(awk -v event=$event '$2 == event { gsub(",", "", $1); print $1 }' /tmp/replay)
  near "the replayed count of $event is that of stat" "$(value $event counter-value /tmp/stat)" "$count" 0.01
done
