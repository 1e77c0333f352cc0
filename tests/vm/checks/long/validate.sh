# `check --validate`: what takes turns is held against what had a counter all the time, and intervals of totals hold the truth.
. checks/lib.sh

# of EVENT MEMBER: a member of what is said of an event.
of() { tr '{' '\n' < /tmp/json | grep -A 4 -F "\"event\":\"$1\"" | tr ',' '\n' | sed -n "s/^\"$2\":\"\{0,1\}\([^\"}]*\).*/\1/p" | head -n 1; }
# all SCOPE MEMBER: a member of what is said of the totals or the report intervals of all events, which stands behind these.
all() { sed "s/.*\"events\":\[.*\],\"totals\"/\"totals\"/; s/.*\"$1\":{\([^}]*\)}.*/\1/; s/.*\"$2\":\([0-9.]*\).*/\1/" /tmp/json; }

events=cycles,instructions,r11,r8,cycles:u,instructions:u,r11:u,r8:u,cycles:k,instructions:k,r11:k,r8:k
perfprop check --validate -j -e $events > /tmp/json 2> /dev/null
verdict=$?
echo "   of report intervals $(all intervals coverage) hold the truth; ended with $verdict"
echo "   totals: $(all totals held) held, $(all totals missed) missed, $(all totals unclear) unclear"
holds 'ten runs of twelve events can be judged' "$(all totals held) + $(all totals missed) >= 100"
holds 'intervals of totals hold the truth' "$(all totals held) >= 9 * $(all totals missed)"
holds 'intervals of reports hold the truth' "$(all intervals coverage) >= 0.9"
for event in instructions:u instructions; do
  check "$event of the mix are known" false "$(of $event wrong)"
done
echo "   instructions:u off by $(of instructions:u deviation)"
check 'cycles are not known' '' "$(of cycles wrong)"

# What fits at once takes no turns.
perfprop check --validate -r 2 -e cycles:u,instructions:u -- loop 1 > /tmp/text 2> /dev/null
check 'what fits at once can not be validated' 2 $?
has 'and is told' /tmp/text 'no event takes turns: cycles:u,instructions:u: they all fit on the counters at once'
