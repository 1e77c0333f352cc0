# `check` says what this machine has, which groups events make and how long they run, and who forbids what.
. checks/lib.sh

perfprop check > /tmp/text
check 'check of a machine with a PMU ends with 0' 0 $?
sed 's/^/   /' /tmp/text
has 'check measures 7 counters' /tmp/text 'counters  *armv8_pmuv3 counts 7 events at once (6 x$'
has 'the seventh of them counts cycles alone' /tmp/text '^  *instructions, 1 x cycles)'
has 'check finds the guest' /tmp/text 'hypervisor  *QEMU guest'
has 'check finds the interval of multiplexing' /tmp/text 'mux interval  *4 ms'
has 'check says that hardware events count' /tmp/text '^Software and hardware events can be counted here'

events=cycles,instructions,r11,r8,cycles:u,instructions:u,r11:u,r8:u,r11:uk,r8:uk
perfprop check -j -e $events > /tmp/json
check 'check of ten events ends with 0' 0 $?
perfprop stat -j -e $events -o /tmp/ours -- loop 9
# Each event's expected ratio, by its group.
for event in cycles instructions:u r8:uk; do
  ratio=$(sed 's/.*"groups"://' /tmp/json | tr '{' '\n' | grep -F "\"$event\"" | sed 's/.*"run-ratio":\([0-9.]*\).*/\1/')
  near "$event runs as long as check expects" "$(awk "BEGIN { print $ratio * 100 }")" "$(value $event pcnt-running /tmp/ours)" 0.15
done

perfprop check -e '{instructions,instructions:u,instructions:k,r8,r8:u,r8:k,cycles,r11}' > /tmp/text
check 'check of a group that is too large ends with 1' 1 $?
has 'check of a group that is too large says E04' /tmp/text '^\(perfprop: \)*E04 .* 7 fit'
perfprop check -e cycles,branches > /tmp/text
check 'check of an event that is not there ends with 1' 1 $?
has 'check of an event that is not there says E02' /tmp/text 'not on this machine: ENOENT (E02)'

level=$(cat /proc/sys/kernel/perf_event_paranoid)
echo 3 > /proc/sys/kernel/perf_event_paranoid
su user -c '/guest/perfprop check -e cycles:u,page-faults' > /tmp/text
check 'check as a plain user at level 3 ends with 1' 1 $?
has 'check as a plain user at level 3 names the level' /tmp/text 'FAIL  perf_event_paranoid  3, keeps this user from everything'
has 'check as a plain user at level 3 names the remedy' /tmp/text 'fix: sudo sysctl kernel.perf_event_paranoid=2'
echo 2 > /proc/sys/kernel/perf_event_paranoid
su user -c '/guest/perfprop check -e cycles:u,page-faults' > /tmp/text
check 'check as a plain user at the level that it named ends with 0' 0 $?
su user -c '/guest/perfprop stat -e page-faults -p 1' 2> /tmp/text
has 'a process of another user is E12' /tmp/text '^\(perfprop: \)*E12 .*pid 1 '
echo 1 > /proc/sys/kernel/perf_event_paranoid
su user -c '/guest/perfprop check -e context-switches,cycles:k' > /tmp/text
check 'the level named for the kernel is enough for it' 0 $?
echo 0 > /proc/sys/kernel/perf_event_paranoid
su user -c '/guest/perfprop stat -e context-switches -a -- true' 2> /tmp/text
check 'the level named for whole CPUs is enough for them' 0 $?
su user -c '/guest/perfprop check' > /tmp/text
has 'the ids of tracepoints are not readable' /tmp/text 'warn  tracefs'
mount -o remount,mode=755,gid=1000 /sys/kernel/tracing
su user -c '/guest/perfprop check -e sched:sched_switch' > /tmp/text
check 'tracepoints count after the remount that check names' 0 $?
mount -o remount,mode=700,gid=0 /sys/kernel/tracing
echo "$level" > /proc/sys/kernel/perf_event_paranoid
