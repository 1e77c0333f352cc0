#!/usr/bin/env python3
"""off_cpu.py - time on no CPU by thread, of `perfprop record --off-cpu` and of `perf sched timehist` in the same run.

  benches/off_cpu.py [-n RUNS] [PERFPROP]

Needs root, gcc and perf. Prints for each thread of a program that sleeps and waits for locks and pipes the ratio of perfprop's
time to perf's (medians over the runs), and how much longer a program of nothing but switches takes under each of them.
"""
import argparse, json, os, re, statistics, subprocess, sys, tempfile, time

PROGRAM = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <time.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int ends[2];
static void rest(long ms) { struct timespec t = {ms / 1000, ms % 1000 * 1000000L}; nanosleep(&t, 0); }
static void *locker(void *none) { pthread_setname_np(pthread_self(), "locker");
  for (int i = 0; i < 40; i++) { pthread_mutex_lock(&lock); rest(15); pthread_mutex_unlock(&lock); rest(1); } return none; }
static void *sleeper(void *none) { pthread_setname_np(pthread_self(), "sleeper"); for (int i = 0; i < 100; i++) rest(10); return none; }
static void *reader(void *none) { pthread_setname_np(pthread_self(), "reader"); char c; while (read(ends[0], &c, 1) == 1) {} return none; }
int main(void) {
  pthread_t threads[4];
  if (pipe(ends)) return 1;
  pthread_create(&threads[0], 0, locker, 0); pthread_create(&threads[1], 0, locker, 0);
  pthread_create(&threads[2], 0, sleeper, 0); pthread_create(&threads[3], 0, reader, 0);
  for (int i = 0; i < 50; i++) { rest(20); if (write(ends[1], "x", 1) != 1) return 1; }
  close(ends[1]);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
  return 0;
}
"""

def ours(file):
    """Nanoseconds on no CPU by thread."""
    tasks, event, times = [], None, {}
    for line in open(file):
        line = json.loads(line)
        if line["type"] == "sampled":
            event = [sampled["name"] for sampled in line["events"]].index("off-cpu")
        if line["type"] == "stacks":
            tasks += [task["tid"] for task in line.get("tasks", [])]
            # A column of equal numbers is one number.
            width = max((len(line[name]) for name in ("task", "event", "weight") if isinstance(line.get(name), list)), default=1)
            columns = [line.get(name, []) for name in ("task", "event", "weight")]
            columns = [column if isinstance(column, list) else [column] * width for column in columns]
            for task, of, weight in zip(*columns):
                if of == event: times[tasks[task]] = times.get(tasks[task], 0) + weight
    return times

def perfs(data):
    """The same by perf, and the names."""
    times, names = {}, {}
    text = subprocess.run(["perf", "sched", "timehist", "-i", data], capture_output=True, text=True).stdout
    for line in text.splitlines():
        found = re.match(r"\s*[\d.]+ \[\d+\]\s+(.+?)\[(\d+)(?:/\d+)?\]\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)", line)
        if found:
            name, tid, wait = found[1], int(found[2]), float(found[3])
            times[tid], names[tid] = times.get(tid, 0) + wait * 1e6, name
    return times, names

def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("-n", type=int, default=3, help="runs")
    options.add_argument("perfprop", nargs="?", default="target/release/perfprop")
    options = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = lambda name: os.path.join(folder, name)
        with open(place("waits.c"), "w") as file: file.write(PROGRAM)
        subprocess.run(["gcc", "-O1", "-g", "-fno-omit-frame-pointer", "-pthread", "-o", place("waits"), place("waits.c")], check=True)
        ratios = {}
        for _ in range(options.n):
            perf = subprocess.Popen(["perf", "sched", "record", "-o", place("sched.data")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(1)
            subprocess.run([options.perfprop, "record", "-q", "--off-cpu", "-o", place("run.jsonl"), "--", place("waits")], check=True, stderr=subprocess.DEVNULL)
            perf.send_signal(2); perf.wait()
            own, (theirs, names) = ours(place("run.jsonl")), perfs(place("sched.data"))
            for tid, spent in own.items():
                if theirs.get(tid, 0) > 1e8: ratios.setdefault(names[tid], []).append(spent / theirs[tid])
        print("| thread | perfprop's time on no CPU over perf's |\n|---|---|")
        for name, values in sorted(ratios.items()):
            print(f"| {name} | {statistics.median(values):.3f} ({min(values):.3f} to {max(values):.3f}) |")
        switches = ["perf", "bench", "sched", "pipe", "-l", "50000"]
        under = {"nothing": [], "perfprop record -g": [options.perfprop, "record", "-q", "-g", "-o", place("a.jsonl"), "--"],
                 "perfprop record --off-cpu --call-graph fp": [options.perfprop, "record", "-q", "--off-cpu", "--call-graph", "fp", "-o", place("f.jsonl"), "--"],
                 "perfprop record --off-cpu": [options.perfprop, "record", "-q", "--off-cpu", "-o", place("b.jsonl"), "--"],
                 "perf record -g -e context-switches -c 1": ["perf", "record", "-q", "-g", "-e", "context-switches", "-c", "1", "-o", place("c.data"), "--"],
                 "perf sched record": ["perf", "sched", "record", "-o", place("d.data"), "--"]}
        spent = {name: [] for name in under}
        for _ in range(options.n):
            for name, words in under.items():
                text = subprocess.run(words + switches, capture_output=True, text=True).stdout
                spent[name].append(float(re.search(r"([\d.]+) usecs/op", text)[1]))
        print("\n| 100,000 switches under | time over that alone |\n|---|---|")
        for name, values in spent.items():
            print(f"| {name} | {statistics.median(values) / statistics.median(spent['nothing']):.2f} |")

if __name__ == "__main__": sys.exit(main())
