# Events of named regions, counted all the time and in turns with others.
. checks/lib.sh

# of REGION COLUMN FILE: a column of a region in the CSV that a program writes.
of() {
  awk -F, -v region="$1" -v column="$2" \
    'NR == 1 { for (i = 1; i <= NF; i++) place[$i] = i } $1 == region { printf "%.6g", $place[column] }' "$3"
}

# What ran before may hold counters for a moment, so that these take turns: then it is run again.
for _ in 1 2 3; do
  PERFPROP_REGION_EVENTS=instructions:u,cycles:u PERFPROP_REGION_CSV=/tmp/regions two_lengths
  [ "$(of long instructions:u_error /tmp/regions)" != 0 ] || break
done
short=$(of short instructions:u_mean /tmp/regions)
long=$(of long instructions:u_mean /tmp/regions)
near 'three times the steps are three times the instructions' "(3 * $short)" "$long" 0.01
check 'events that have a counter all the time are exact' 0 "$(of long instructions:u_error /tmp/regions)"
check 'no call is missing' 0 "$(of long instructions:u_missing_calls /tmp/regions)"
perf stat -x, -e instructions:u -o /tmp/perf -- two_lengths
whole=$(perfs instructions:u /tmp/perf)
near 'regions have nearly all instructions of the program' "$whole" "40 * ($short + $long)" 0.1

# As many other events as take all counters, so that those of the regions take turns with them.
events=cycles,instructions,r11,r8,cycles:u,instructions:u,r11:u,r8:u,r11:uk,r8:uk
PERFPROP_REGION_CSV=/tmp/turns perfprop stat -e $events --region-events instructions:u,cycles:u -- two_lengths > /tmp/text 2>&1
error=$(of long instructions:u_error /tmp/turns)
found=$(of long instructions:u_mean /tmp/turns)
holds 'events that take turns have an error' "$error > 0"
near 'what was counted in turns is scaled to what is counted alone' "$long" "$found" 0.005
has 'stat prints events of regions' /tmp/text 'instructions:u in regions of'
has 'a region has a line there' /tmp/text ' long$'
