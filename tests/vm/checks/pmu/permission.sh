# A user who may not count is told so.
. checks/lib.sh

echo 3 > /proc/sys/kernel/perf_event_paranoid
su user -c '/guest/perfprop stat -e cycles -- true' 2> /tmp/text
check 'without permission the exit status is 125' 125 $?
has 'without permission it is E01' /tmp/text '^E01 .*cycles.*perf_event_paranoid=3'
