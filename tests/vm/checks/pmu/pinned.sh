# Six counters take r8, so of seven pinned ones the last never runs; the kernel opens it all the same.
. checks/lib.sh

perfprop stat -j -e r8:D,r8:uD,r8:kD,instructions:D,instructions:uD,instructions:kD -o /tmp/six -- loop 1
check 'six pinned events count' 6 "$(grep -c '"status":"counted"' /tmp/six)"
check 'a pinned event counts all' "$((3 * 20000000 + 9)).0" "$(value r8:uD counter-value /tmp/six)"
perfprop stat -j -e r8:D,r8:uD,r8:kD,instructions:D,instructions:uD,instructions:kD,r8:ukD -o /tmp/seven -- loop 1
check 'the seventh is never counted' 'not counted' "$(value r8:ukD status /tmp/seven)"
check 'and has no number' null "$(value r8:ukD counter-value /tmp/seven)"
