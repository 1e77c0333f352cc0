# Events that all have a counter: exact, and what perf says.
. checks/lib.sh

perfprop stat -e cycles,instructions -- busybox md5sum /bin/busybox > /dev/null 2> /tmp/text
has 'cycles of md5sum are exact' /tmp/text '[0-9]  *cycles  *exact'
has 'instructions of md5sum are exact' /tmp/text '[0-9]  *instructions  *exact'

perfprop stat -j -e cycles:u,instructions:u -o /tmp/ours -- loop 5
perf stat -x, -e cycles:u,instructions:u -o /tmp/perf -- loop 5
instructions=$(value instructions:u counter-value /tmp/ours)
check 'instructions of the loop are those written in it' "$((3 * 5 * 20000000 + 9)).0" "$instructions"
check 'instructions are those that perf counts' "$(perfs instructions:u /tmp/perf).0" "$instructions"
cycles=$(value cycles:u counter-value /tmp/ours)
near 'cycles are near those that perf counts' "$(perfs cycles:u /tmp/perf)" "$cycles" 0.001
