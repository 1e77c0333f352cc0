#!/usr/bin/env bash
# Folding 60 MB of `perf script` text, beside inferno-collapse-perf on one thread: in turns in one run, medians of
# CPU and wall time, and memory. Needs target/release/perfprop (or another, in PERFPROP), GNU time and a script to
# repeat; inferno is built from the registry if it isn't there.
#
#   benches/fold-beside-inferno.sh SCRIPT [PAIRS]
set -euo pipefail
cd "$(dirname "$0")/.."
script=${1:?give the text of perf script}
pairs=${2:-5}
perfprop=${PERFPROP:-$PWD/target/release/perfprop}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
inferno=$(command -v inferno-collapse-perf || true)
if [ -z "$inferno" ]; then
  inferno=${INFERNO_ROOT:-${TMPDIR:-/tmp}/perfprop-inferno}/bin/inferno-collapse-perf
  [ -x "$inferno" ] || cargo install --quiet inferno --version 0.12.8 --root "$(dirname "$(dirname "$inferno")")"
fi

# The text as often as makes 60 MB, and ten times that for the memory.
repeat() { local i; for ((i = 0; i < $1; i++)); do cat "$script"; done; }
size=$(stat -c %s "$script")
times=$((60000000 / size + 1))
repeat $times > "$work/text"

# "user+system milliseconds, wall milliseconds, KiB" of a command.
measure() { /usr/bin/time -o "$work/time" -f '%U %S %e %M' "$@" > "$work/out" 2> "$work/err"; awk '{ print ($1 + $2) * 1000, $3 * 1000, $4 }' "$work/time"; }
median() { sort -n | awk '{ all[NR] = $1 } END { print all[int((NR + 1) / 2)] }'; }

for ((i = 0; i < pairs; i++)); do
  measure "$perfprop" export --from perf-script --to folded "$work/text" >> "$work/ours"
  cp "$work/out" "$work/ours.folded"
  measure "$inferno" -n 1 "$work/text" >> "$work/theirs"
done
cmp "$work/ours.folded" "$work/out" && echo 'the same lines'
for column in 1:'CPU ms' 2:'wall ms' 3:KiB; do
  a=$(awk "{ print \$${column%%:*} }" "$work/ours" | median)
  b=$(awk "{ print \$${column%%:*} }" "$work/theirs" | median)
  awk -v n="${column#*:}" -v a="$a" -v b="$b" 'BEGIN { printf "%-8s perfprop %8d  inferno %8d  inferno / perfprop %.2f\n", n, a, b, (a > 0) ? b / a : 0 }'
done
repeat $((times * 10)) | /usr/bin/time -o "$work/time" -f %M "$perfprop" export --from perf-script --to folded -o /dev/null
echo "memory for ten times the text: $(cat "$work/time") KiB"
