#!/usr/bin/env bash
# CPU time and latency of perfprop beside perf, in turns in one run: medians and their ratios. As root, with
# perf installed and target/release/perfprop built.
#
#   benches/beside-perf.sh [PAIRS [NAME...]]      NAME: record, stat, first, list, attach, top,
#                                             threads, tracepoints (11 pairs each)
#
# CPU is the run time in /proc/PID/task/*/schedstat, summed over the tool's own threads, so that the
# measured program's time is left out.
set -euo pipefail
cd "$(dirname "$0")/.."
pairs=${1:-3}
chosen=" ${*:2} "
perfprop=${CARGO_TARGET_DIR:-$PWD/target}/release/perfprop
ulimit -n "$(ulimit -Hn)"
six=task-clock,page-faults,context-switches,cpu-migrations,minor-faults,major-faults
events=$six,cpu-clock,alignment-faults
events=$events,sched:sched_switch,sched:sched_waking,sched:sched_process_fork,sched:sched_process_exec
events=$events,syscalls:sys_enter_openat,syscalls:sys_enter_read,syscalls:sys_enter_write,syscalls:sys_enter_close
scratch=$(mktemp -d)
threads=
trap 'kill $threads 2> /dev/null || true; rm -rf "$scratch"' EXIT

# work SECONDS: many short programs that read many folders.
work() { echo "end=\$((\$(date +%s) + $1)); while [ \"\$(date +%s)\" -lt \$end ]; do ls -R /usr/share/doc; done > /dev/null"; }

# run_time PID: its CPU microseconds so far.
run_time() { cat /proc/"$1"/task/*/schedstat 2> /dev/null | awk '{ sum += $1 } END { print int(sum / 1e3) }'; }

# The CPU microseconds of a command's own threads, as far as they were seen 20 times a second.
cpu() {
  "$@" > /dev/null 2>&1 &
  local pid=$! now last=0
  while now=$(run_time $pid || true); [ -d /proc/$pid/task ]; do
    [ "${now:-0}" -gt "$last" ] && last=$now
    sleep 0.05
  done
  wait $pid || true
  echo "$last"
}

now() { echo "${EPOCHREALTIME/[^0-9]/}"; }

# The wall microseconds of a command.
# The clock is read by this shell, as a process for it would take longer than what is measured here.
wall() { local start=${EPOCHREALTIME/[^0-9]/}; "$@" > /dev/null 2>&1 || true; echo $((${EPOCHREALTIME/[^0-9]/} - start)); }

# The wall microseconds until the first line of numbers.
first() {
  local start line
  start=$(now)
  while read -r line && [[ $line != *,* ]]; do :; done < <("$@" 2>&1)
  echo $(($(now) - start))
}

# The microseconds of CPU time, user and system, of a command that starts no other.
used() {
  local TIMEFORMAT='%U %S'
  { time "$@" > /dev/null 2>&1; } 2>&1 | awk '{ print int(($1 + $2) * 1e6) }'
}

# The wall microseconds from a signal, sent while counters are closed, to the end of a command.
ending() {
  local pid start
  : > "$scratch/counts"
  "$@" 2> "$scratch/counts" &
  pid=$!
  until [ -s "$scratch/counts" ]; do sleep 0.02; done
  start=$(now)
  kill -TERM $pid 2> /dev/null || true
  wait $pid || true
  echo $(($(now) - start))
}

median() { sort -n | awk '{ all[NR] = $1 } END { print all[int((NR + 1) / 2)] }'; }

# compare NAME MEASURE OURS beside PERFS: a line with both medians and their ratio.
compare() {
  local name=$1 measure=$2 ours=() theirs=() a='' b='' i; shift 2
  while [ "$1" != beside ]; do ours+=("$1"); shift; done; shift
  theirs=("$@")
  for ((i = 0; i < pairs; i++)); do
    a+="$($measure "${ours[@]}")"$'\n'; b+="$($measure "${theirs[@]}")"$'\n'
  done
  a=$(printf %s "$a" | median); b=$(printf %s "$b" | median)
  awk -v n="$name" -v a="$a" -v b="$b" 'BEGIN { printf "%-46s %9.1f ms %9.1f ms  ratio %.2f\n", n, a / 1e3, b / 1e3, (b > 0) ? a / b : 0 }'
}

record() {
  compare 'CPU, 16 events every 10 ms for 10 s' cpu "$perfprop" record -I 10 -o /dev/null -e "$events" -- sh -c "$(work 10)" \
    beside perf stat -I 10 -x, -o /dev/null -e "$events" -- sh -c "$(work 10)"
}
stat_true() {
  compare 'wall, stat -- true' wall "$perfprop" stat -e task-clock,page-faults -- true beside perf stat -e task-clock,page-faults -- true
}
first_reading() {
  compare 'wall, first reading at 10 ms' first "$perfprop" stat -I 10 -x, -e "$six" -- sleep 0.2 beside perf stat -I 10 -x, -e "$six" -- sleep 0.2
}
list() { compare 'wall, list' wall "$perfprop" list beside perf list; }

# start_threads COUNT: a program with so many threads that wait.
start_threads() {
  cc -O1 -pthread -o "$scratch/threads" benches/threads.c
  "$scratch/threads" "$1" > "$scratch/ready" &
  threads=$!
  until grep -q ready "$scratch/ready"; do sleep 0.1; done
}

# A row for each thread. perf opens a descriptor for each row: with 5000 threads 10000 of them.
threads() {
  local pairs=11 count every options
  for count in 1000 2000 5000; do
    start_threads $count
    for every in '1000 5' '100 20'; do
      options="--per-thread -p $threads -e task-clock,context-switches -I ${every% *} --interval-count ${every#* }"
      # shellcheck disable=SC2086
      compare "CPU, a row for each of $count threads, -I ${every% *}" used "$perfprop" stat $options beside perf stat $options
    done
    kill $threads
  done
}

tracepoints() {
  local pairs=11 all='syscalls:sys_enter_*' some
  some=$(perf list tracepoint 2> /dev/null | grep -o 'syscalls:sys_enter_[a-z0-9_]*' | sed -n 1,17p | paste -sd,)
  compare 'wall, 17 tracepoints on true' wall "$perfprop" stat -e "$some" -- true beside perf stat -e "$some" -- true
  compare 'wall, all sys_enter on true' wall "$perfprop" stat -e "$all" -- true beside perf stat -e "$all" -- true
  pairs=1
  compare 'wall from TERM to the end, while closing' ending "$perfprop" stat -e "$all" -- true beside perf stat -e "$all" -- true
}

attach() {
  start_threads 5000
  compare 'wall, 5000 threads attached, 1 event' wall "$perfprop" stat -e page-faults --timeout 1 -p $threads \
    beside perf stat -e page-faults --timeout 10 -p $threads
  compare 'wall, 5000 threads attached, 3 events' wall "$perfprop" stat -e task-clock,page-faults,context-switches --timeout 1 -p $threads \
    beside perf stat -e task-clock,page-faults,context-switches --timeout 10 -p $threads
  compare 'wall, 5000 threads attached, a row for each' wall "$perfprop" stat --per-thread -e task-clock,page-faults --timeout 1 -p $threads \
    beside perf stat --per-thread -e task-clock,page-faults --timeout 10 -p $threads
  kill $threads
}

# The screens of `top` on a terminal of 80x24, 20 s after the first 3: part of a core, and what is written.
top() {
  local pid time bytes
  script -q -f -c "stty cols 80 rows 24; exec $perfprop top -I 1000 -e $six --screen events --on-quit kill -- sh -c '$(work 30)'" "$scratch/screen" < /dev/null > /dev/null &
  sleep 3
  pid=$(pgrep -n -f "^$perfprop top ")
  time=$(run_time "$pid"); bytes=$(wc -c < "$scratch/screen")
  sleep 20
  time=$(($(run_time "$pid") - time)); bytes=$(($(wc -c < "$scratch/screen") - bytes))
  kill -TERM "$pid"
  wait
  awk -v t=$time -v b=$bytes 'BEGIN { printf "%-46s %8.2f %% of a core, %.2f kB/s written\n", "top, 6 events a second at 80x24", t / 2e5, b / 2e4 }'
}

# wanted NAME COMMAND
wanted() { if [ "$chosen" = '  ' ] || [[ $chosen == *" $1 "* ]]; then $2; fi; }

printf '%-46s %12s %12s\n' "median of $pairs pairs; of 5 times as many for wall" perfprop perf
wanted record record
wanted top top
pairs=$((pairs * 5))
wanted stat stat_true
wanted first first_reading
wanted list list
wanted attach attach
wanted threads threads
wanted tracepoints tracepoints
