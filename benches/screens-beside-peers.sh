#!/usr/bin/env bash
# What the screens of perfprop cost, each on a terminal that `script` gives: first beside btop, htop and perf top, where
# those are installed, then against the bounds that they are to keep.
#
#   benches/screens-beside-peers.sh [SECONDS]       PERFPROP: the program, target/release/perfprop by default
#
# CPU is the run time in /proc/PID/task/*/schedstat, so that the measured program's time is left out. Frames are
# counted by the synchronized updates that they are wrapped in. Exits with 1 if a bound is missed.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-10}
perfprop=${PERFPROP:-$PWD/target/release/perfprop}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
out=$scratch/out
mkfifo "$scratch/keys"

now() { date +%s%N | cut -c 1-16; }
written() { wc -c < "$out"; }
frames() { grep -ao '?2026h' "$out" | wc -l || true; }
run_time() { cat "/proc/$pid/task/"$1"/schedstat" 2> /dev/null | awk '{ sum += $1 } END { print int(sum / 1e3) }'; }

# open COLUMNS ROWS COMMAND...: starts it on such a terminal; pid is its own, begin the time of its start.
open() {
  local size="rows $2 cols $1"
  shift 2
  : > "$out"
  begin=$(now)
  TERM=xterm-256color script -q -f -c "stty $size; echo \$\$ > $scratch/pid; exec $*" "$out" \
    < "$scratch/keys" > /dev/null 2>&1 &
  terminal=$!
  exec 3> "$scratch/keys"
}
# The alternate screen, and then something in it; gives the milliseconds until then.
painted() {
  until [ "$(written)" -gt 600 ] || [ $(($(now) - begin)) -gt 3000000 ]; do sleep 0.002; done
  first=$((($(now) - begin) / 1000))
  pid=$(cat "$scratch/pid")
}
close() { kill "$pid" 2> /dev/null || true; exec 3>&-; wait "$terminal" 2> /dev/null || true; }

# watch THREADS: microseconds of CPU, bytes and frames a second, of a second from now on.
watch() {
  sleep 1
  cpu=$(run_time "$1") bytes=$(written) drawn=$(frames)
  sleep "$seconds"
  cpu=$((($(run_time "$1") - cpu) / seconds)) bytes=$((($(written) - bytes) / seconds))
  drawn=$((($(frames) - drawn) / seconds))
}

measure() { # NAME COMMAND...
  open 80 24 "${@:2}"; painted; watch '*'; close
  printf '%-10s %8d us CPU/s %8d bytes/s %6d ms to the first paint\n' "$1" "$cpu" "$bytes" "$first"
  echo "$1 $cpu $bytes $first" >> "$scratch/all"
}

missed=0
bound() { # WHAT VALUE MOST UNIT
  local word=holds
  if [ "$2" -gt "$3" ]; then word=MISSED missed=1; fi
  printf '%-58s %8d of %6d %-9s %s\n' "$1" "$2" "$3" "$4" "$word"
}

# How long the name of a screen takes to be drawn after its key, in microseconds: the median, and the worst.
latencies() {
  local times=() key since start
  for key in 5 1 3 1 2 1 5 3 2 1 5 1 3 1 2; do
    local names=([1]=Events [2]=Detail [3]=Relations [5]=Groups)
    sleep "0.2$key" # not in step with the intervals
    since=$(written) start=$(now)
    printf %s "$key" >&3
    until tail -c "+$((since + 1))" "$out" | grep -aq "${names[$key]}" || [ $(($(now) - start)) -gt 1000000 ]; do :; done
    times+=($(($(now) - start)))
  done
  mapfile -t times < <(printf '%s\n' "${times[@]}" | sort -n)
  median=${times[7]} worst=${times[14]}
}

six=task-clock,page-faults,context-switches,cpu-migrations,minor-faults,major-faults
measure perfprop "$perfprop" top --on-quit kill -I 1000 -e $six -a
own=($cpu $bytes $first)
command -v htop > /dev/null && measure htop htop -d 10
command -v btop > /dev/null && measure btop btop --utf-force
command -v perf > /dev/null && measure perf-top perf top -e cpu-clock -d 1
awk 'NR == 1 { cpu = $2; bytes = $3; paint = $4; next }
  { printf "perfprop beside %s: CPU x%.2f, bytes x%.2f, first paint x%.2f\n", $1, cpu / $2, bytes / $3, paint / $4 }
  ' "$scratch/all"

echo
bound "6 events, 1 s, Events at 80x24: written" "${own[1]}" 2000 bytes/s
bound "the same: first paint" "${own[2]}" 30 ms
names=$("$perfprop" list --names 2> /dev/null)
hundred=$(grep -E '^(sched|irq|timer|workqueue|syscalls):' -m 94 <<< "$names" | tr '\n' ',' || true)$six
if [ "$(tr ',' '\n' <<< "$hundred" | wc -l)" -lt 100 ]; then
  echo "skipped: this machine has no hundred events (tracepoints need root)"
  exit $missed
fi
for screen in events detail relations groups; do
  open 200 60 "$perfprop" top --on-quit kill --estimator scale --screen $screen -I 100 -e "$hundred" -a
  painted; watch "$(cat "$scratch/pid")"; close
  bound "100 events, 10 frames a second, $screen at 200x60" "$cpu" 20000 "us CPU/s"
  bound "the same: a frame ($drawn a second), with its round" $((cpu / (drawn > 0 ? drawn : 1))) 2000 "us CPU"
done
cc -O1 -pthread -o "$scratch/threads" benches/threads.c
"$scratch/threads" 500 > "$scratch/ready" &
threads=$!
until grep -q ready "$scratch/ready"; do sleep 0.01; done
# The list of 500 threads.
open 120 40 "$perfprop" top --on-quit kill --estimator scale --screen threads -I 100 -e $six -p $threads
painted; watch '*'; close
bound "6 events, 500 threads, 10 frames a second, threads" "$cpu" 30000 "us CPU/s"
kill $threads
open 80 24 "$perfprop" top --on-quit kill --estimator scale -I 100 -e "$hundred" -a
painted; sleep 1; latencies; close
bound "100 events, 10 frames a second: key to redraw, median" "$median" 50000 us
bound "the same: the worst of 15" "$worst" 50000 us
open 120 40 "$perfprop" replay screenshots/threads.jsonl --speed 0
painted; sleep 1; watch '*'; close
bound "a recording at its end: written" "$bytes" 0 bytes/s
bound "the same: frames" "$drawn" 0 "a second"
exit $missed
