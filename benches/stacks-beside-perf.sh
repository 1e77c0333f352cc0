#!/bin/sh
# The CPU time that live call stacks cost, beside `perf record` and `perf script` together, and the samples that are
# lost: both sample the same program, two busy threads with changing stacks, at the same rate for the same time in
# turns. The ratio is that of the CPU time a sample; its median over the turns is what counts.
#   benches/stacks-beside-perf.sh [perfprop] [seconds] [turns] [hertz]
set -eu

perfprop=${1:-target/release/perfprop}
seconds=${2:-5}
turns=${3:-3}
hertz=${4:-4000}

folder=$(mktemp -d)
trap 'kill $pids 2>/dev/null || true; rm -rf "$folder"' EXIT
pids=

cat > "$folder/busy.c" <<'C'
#include <pthread.h>
#include <stdlib.h>
static _Thread_local volatile long sink;
static _Thread_local unsigned seed;
#define rand() rand_r(&seed)
__attribute__((noinline)) long leaf(long n) { for (long i = 0; i < n % 5000; i++) sink += i; return n; }
#define STEP(name, next) __attribute__((noinline)) long name(int depth) { \
    if (depth == 0) return leaf(rand()); long r = next(depth - 1 - rand() % (depth > 4 ? 2 : 1)); sink += r; return r + 1; }
long c(int depth);
STEP(a, c)
STEP(b, a)
__attribute__((noinline)) long c(int depth) {
    if (depth <= 0) return leaf(rand());
    long r = rand() % 2 ? a(depth - 1) : b(depth - 1); sink += r; return r + 2; }
static void *run(void *number) { seed = (unsigned)(long)number; for (;;) sink += c(rand() % 40); return 0; }
int main(void) { pthread_t other; pthread_create(&other, 0, run, (void *)1); run((void *)2); }
C
cc -g -O1 -fno-omit-frame-pointer -fno-optimize-sibling-calls -pthread -o "$folder/busy" "$folder/busy.c"
"$folder/busy" & pids=$!
targets=$pids

# Milliseconds of CPU time, user and system, of a command and what it waited for.
cpu_ms() {
    python3 - "$@" <<'P'
import os, resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
usage = resource.getrusage(resource.RUSAGE_CHILDREN)
print(round((usage.ru_utime + usage.ru_stime) * 1000))
P
}

# Samples and lost ones of a recording.
of_recording() {
    python3 - "$1" <<'P'
import json, os, sys
samples, lost = 0, 0
for line in open(sys.argv[1]):
    line = json.loads(line)
    if line["type"] == "stacks":
        samples += len(line["after_ns"])
        lost = line["losses"]["lost"] + line["losses"]["dropped"]
print(samples, lost, os.path.getsize(sys.argv[1]))
P
}

printf '%-6s %10s %10s %10s %12s %12s %9s %9s %12s\n' \
    graph perf-ms script-ms perfprop-ms perf-samples our-samples perf-lost our-lost bytes/sample
for graph in fp dwarf; do
    turn=0
    : > "$folder/ratios"
    while [ "$turn" -lt "$turns" ]; do
        turn=$((turn + 1))
        record=$(cpu_ms perf record -q -F "$hertz" --call-graph "$graph" -o "$folder/perf.data" -p "$targets" -- sleep "$seconds")
        script=$(cpu_ms perf script -i "$folder/perf.data")
        stats=$(perf report --stats -i "$folder/perf.data" 2>/dev/null)
        theirs=$(echo "$stats" | awk '/SAMPLE events/ { n = $3 } END { print n + 0 }')
        their_lost=$(echo "$stats" | awk '/LOST_SAMPLES events|LOST events/ { n += $3 } END { print n + 0 }')
        ours=$(cpu_ms "$perfprop" record -F "$hertz" --call-graph "$graph" -o "$folder/ours.jsonl" -p "$targets" -- sleep "$seconds")
        set -- $(of_recording "$folder/ours.jsonl")
        printf '%-6s %10s %10s %10s %12s %12s %9s %9s %12s   ratio %s\n' "$graph" "$record" "$script" "$ours" "$theirs" "$1" \
            "$their_lost" "$2" "$(($3 / ($1 > 0 ? $1 : 1)))" \
            "$(python3 -c "print('%.2f' % (($ours / max(1, $1)) / (($record + $script) / max(1, $theirs))))" | tee -a "$folder/ratios")"
    done
    sort -n "$folder/ratios" | awk -v graph="$graph" '{ all[NR] = $1 } END { print graph ": median ratio", all[int((NR + 1) / 2)] }'
done
