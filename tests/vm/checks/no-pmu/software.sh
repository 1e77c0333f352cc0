# A machine without a PMU says so, and still counts software events.
. checks/lib.sh

perfprop stat -e cycles -- true 2> /tmp/text
check 'cycles end with status 125' 125 $?
has 'cycles end with E02' /tmp/text '^E02 .*cycles'

perfprop stat -j -o /tmp/ours -- loop 1
check 'without -e the exit status is 0' 0 $?
for event in task-clock page-faults; do
  check "$event counts without a PMU" counted "$(value $event status /tmp/ours)"
done
holds 'task-clock is not 0' "$(value task-clock counter-value /tmp/ours) > 0"
