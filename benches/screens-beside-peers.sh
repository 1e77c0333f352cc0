#!/usr/bin/env bash
# What the screens of perfprop cost beside btop, htop and perf top, where those are installed: CPU time, bytes
# written a second, and the time to the first paint, each on a terminal of 80x24 that `script` gives.
#
#   benches/screens-beside-peers.sh [SECONDS]       PERFPROP: the program, target/release/perfprop by default
#
# CPU is the run time in /proc/PID/task/*/schedstat, so that the measured program's time is left out.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-10}
perfprop=${PERFPROP:-$PWD/target/release/perfprop}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

run_time() { cat /proc/"$1"/task/*/schedstat 2> /dev/null | awk '{ sum += $1 } END { print int(sum / 1e3) }'; }
now() { date +%s%N | cut -c 1-16; }

# measure NAME COMMAND...: a line of CPU microseconds a second, bytes a second, milliseconds to the first paint.
measure() {
  local name=$1 out=$scratch/$1 begin painted pid cpu bytes
  shift
  : > "$out"
  begin=$(now)
  TERM=xterm-256color script -q -f -c "stty rows 24 cols 80; echo \$\$ > $scratch/pid; exec $*" "$out" \
    < <(sleep $((seconds + 4))) > /dev/null 2>&1 &
  local terminal=$!
  # The alternate screen, and then something in it.
  until [ "$(wc -c < "$out")" -gt 600 ] || [ $(($(now) - begin)) -gt 3000000 ]; do sleep 0.005; done
  painted=$((($(now) - begin) / 1000))
  sleep 1
  pid=$(cat "$scratch/pid")
  cpu=$(run_time "$pid") bytes=$(wc -c < "$out")
  sleep "$seconds"
  cpu=$((($(run_time "$pid") - cpu) / seconds)) bytes=$((($(wc -c < "$out") - bytes) / seconds))
  kill "$pid" 2> /dev/null || true
  wait $terminal 2> /dev/null || true
  printf '%-10s %8d us CPU/s %8d bytes/s %6d ms to the first paint\n' "$name" "$cpu" "$bytes" "$painted"
  echo "$name $cpu $bytes $painted" >> "$scratch/all"
}

six=task-clock,page-faults,context-switches,cpu-migrations,minor-faults,major-faults
measure perfprop "$perfprop" top --on-quit kill -I 1000 -e $six -a
command -v htop > /dev/null && measure htop htop -d 10
command -v btop > /dev/null && measure btop btop --utf-force
command -v perf > /dev/null && measure perf-top perf top -e cpu-clock -d 1
awk 'NR == 1 { cpu = $2; bytes = $3; paint = $4; next }
  { printf "perfprop beside %s: CPU x%.2f, bytes x%.2f, first paint x%.2f\n", $1, cpu / $2, bytes / $3, paint / $4 }
  ' "$scratch/all"
