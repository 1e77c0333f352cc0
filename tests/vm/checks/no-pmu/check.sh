# `check` on a machine without a PMU: software events can be counted, and hardware events are said to be missing.
. checks/lib.sh

perfprop check > /tmp/text
check 'check of a machine without a PMU ends with 0' 0 $?
sed 's/^/   /' /tmp/text
has 'check says that the guest has no PMU' /tmp/text 'warn  cycles  *no: this guest is given no PMU (ENOENT)'
has 'check measures no counters' /tmp/text 'warn  counters  *none'
has 'check says what can be counted' /tmp/text '^Software events can be counted here, hardware events cannot'

perfprop check -e cycles > /tmp/text
check 'check of cycles without a PMU ends with 1' 1 $?
perfprop stat --strict -e cycles -- true 2> /tmp/text
has 'without a PMU it is E02, and that this is a guest' /tmp/text '^\(perfprop: \)*E02 .*a QEMU guest, no core PMU'

perfprop check --validate > /tmp/text 2> /tmp/notes
check 'there is nothing to validate without a PMU' 2 $?
has 'check --validate says what was tried' /tmp/text '^  E02 .*no hardware counters for cycles,instructions'
has 'check --validate names a way without a PMU' /tmp/text 'check --validate --source emulate --counters 2'
perfprop check --validate -e task-clock,page-faults -- true > /tmp/text
has 'software events never take turns' /tmp/text 'no event takes turns: task-clock,page-faults: the kernel counts these all the time'
