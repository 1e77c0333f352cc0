# A machine without a PMU says so, and still counts software events.
. checks/lib.sh

perfprop stat --strict -e cycles -- true 2> /tmp/text
check 'cycles end with status 125 where all must be counted' 125 $?
has 'cycles end with E02 where all must be counted' /tmp/text '^\(perfprop: \)*E02 .*cycles'

perfprop stat -e cycles -- sh -c 'exit 7' 2> /tmp/text
check 'the command runs and its exit code is passed on' 7 $?
has 'cycles are not supported' /tmp/text '<not supported>  *cycles'

perfprop stat -j -o /tmp/ours -- loop 1
check 'without -e the exit status is 0' 0 $?
for event in task-clock page-faults; do
  check "$event counts without a PMU" counted "$(value $event status /tmp/ours)"
done
holds 'task-clock is not 0' "$(value task-clock counter-value /tmp/ours) > 0"
