# A user who may not count is told so.
. checks/lib.sh

echo 3 > /proc/sys/kernel/perf_event_paranoid
su user -c '/guest/perfprop stat -e cycles -- true' 2> /tmp/text
check 'without permission the exit status is 125' 125 $?
has 'without permission it is E01' /tmp/text '^\(perfprop: \)*E01 .*cycles.*perf_event_paranoid=3'

echo 2 > /proc/sys/kernel/perf_event_paranoid
su user -c '/guest/perfprop stat -j -e cycles -o /tmp/user -- true' 2> /tmp/text
check 'with paranoid 2 user space is counted' counted "$(value cycles:u status /tmp/user)"
su user -c '/guest/perfprop stat -a -e cycles -- true' 2> /tmp/text
check 'and the whole machine is not' 125 $?
has 'which is E01' /tmp/text '^\(perfprop: \)*E01 '
echo 1 > /proc/sys/kernel/perf_event_paranoid
