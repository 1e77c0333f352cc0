#!/usr/bin/env bash
# CPU time and latency of perfprop beside perf, in turns in one run: ratios of medians. As root, with
# perf installed and target/release/perfprop built.
#
#   benches/beside-perf.sh [PAIRS]
#
# CPU is the run time in /proc/PID/task/*/schedstat, summed over the tool's own threads, so that the
# measured program's time is left out.
set -euo pipefail
cd "$(dirname "$0")/.."
pairs=${1:-3}
perfprop=$PWD/target/release/perfprop
events=task-clock,cpu-clock,page-faults,minor-faults,major-faults,context-switches,cpu-migrations,alignment-faults
events=$events,sched:sched_switch,sched:sched_waking,sched:sched_process_fork,sched:sched_process_exec
events=$events,syscalls:sys_enter_openat,syscalls:sys_enter_read,syscalls:sys_enter_write,syscalls:sys_enter_close
work='end=$(($(date +%s) + 10)); while [ "$(date +%s)" -lt $end ]; do ls -R /usr/share/doc; done > /dev/null'

# The CPU milliseconds of a command's own threads, as far as they were seen 20 times a second.
cpu() {
  "$@" > /dev/null 2>&1 &
  local pid=$! now last=0
  while now=$(cat /proc/$pid/task/*/schedstat 2> /dev/null | awk '{ sum += $1 } END { print int(sum / 1e6) }'); [ -d /proc/$pid/task ]; do
    [ "${now:-0}" -gt "$last" ] && last=$now
    sleep 0.05
  done
  wait $pid || true
  echo "$last"
}

# The wall milliseconds of a command.
wall() { local start; start=$(date +%s%N); "$@" > /dev/null 2>&1 || true; echo $((($(date +%s%N) - start) / 1000000)); }

median() { sort -n | awk '{ all[NR] = $1 } END { print all[int((NR + 1) / 2)] }'; }

# compare NAME MEASURE OURS beside PERFS: a line with both medians and their ratio.
compare() {
  local name=$1 measure=$2 ours=() theirs=() a= b= i; shift 2
  while [ "$1" != beside ]; do ours+=("$1"); shift; done; shift
  theirs=("$@")
  for ((i = 0; i < pairs; i++)); do
    a+="$($measure "${ours[@]}")"$'\n'; b+="$($measure "${theirs[@]}")"$'\n'
  done
  a=$(printf %s "$a" | median); b=$(printf %s "$b" | median)
  awk -v n="$name" -v a="$a" -v b="$b" 'BEGIN { printf "%-46s %6d ms %6d ms  ratio %.2f\n", n, a, b, (b > 0) ? a / b : 0 }'
}

printf '%-46s %9s %9s\n' "median of $pairs pairs" perfprop perf
compare 'CPU, 16 events every 10 ms for 10 s' cpu "$perfprop" record -I 10 -o /dev/null -e "$events" -- sh -c "$work" \
  beside perf stat -I 10 -x, -o /dev/null -e "$events" -- sh -c "$work"
pairs=$((pairs * 5))
compare 'wall, stat -- true' wall "$perfprop" stat -e task-clock,page-faults -- true beside perf stat -e task-clock,page-faults -- true
compare 'wall, list' wall "$perfprop" list beside perf list
