#!/usr/bin/env python3
"""How whole stacks are, and what they cost: `--call-graph auto`, `fp` and `dwarf`, and perf's `fp` and `dwarf`.

  benches/whole-stacks.py [--shares] [--cost] [--perfprop FILE] [--seconds S] [--turns N] [--hertz HZ] [--only NAME,...]

The first table has the shares of stacks that are complete, cut and unknown. perf's are judged by perfprop, by the name of
the outermost frame. The second one has the CPU time of recording and naming one sample, and the ratio to the cheapest of the
fixed ways that give whole stacks (at least 95 % complete), the median over turns. A turn runs all ways one after the other.
Programs are compiled here by cc, c++ and rustc, or are Debian's; one that is missing is left out and said.
"""
import argparse, json, os, re, resource, shutil, statistics, subprocess, tempfile, time

BUSY = r"""
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
static _Thread_local volatile long sink;
static _Thread_local unsigned long seed;
static time_t end;
static inline unsigned next(void) { seed = seed * 6364136223846793005UL + 1442695040888963407UL; return seed >> 33; }
__attribute__((noinline)) long leaf(long n) { for (COUNTER i = 0; i < n % 50000; i++) sink += i; return n; }
__attribute__((noinline)) long b(int depth);
__attribute__((noinline)) long a(int depth) {
    long r = depth > 0 ? b(depth - 1 - next() % 2) : leaf(next()); sink += r; return r + 1; }
__attribute__((noinline)) long b(int depth) {
    long r = depth > 0 ? a(depth - 1 - next() % 2) : leaf(next()); sink += r; return r + 2; }
static void *run(void *number) {
    seed = (unsigned long)number;
    while (time(0) < end) for (int i = 0; i < 100; i++) sink += a(next() % 40);
    return 0;
}
int main(int count, char **words) {
    pthread_t other;
    end = time(0) + atoi(words[1]);
    pthread_create(&other, 0, run, (void *)1);
    run((void *)2);
    pthread_join(other, 0);
    return 0;
}
"""

CPP = r"""
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>
static long work(unsigned seed) {
    std::map<std::string, long> words;
    for (int i = 0; i < 2000; i++) words[std::to_string(seed = seed * 1103515245 + 12345)] += i;
    std::vector<std::pair<long, std::string>> sorted;
    for (auto &[word, count] : words) sorted.emplace_back(count, word);
    std::sort(sorted.begin(), sorted.end());
    return sorted.size();
}
int main(int, char **arguments) {
    auto end = std::chrono::steady_clock::now() + std::chrono::seconds(std::atoi(arguments[1]));
    std::vector<std::thread> threads;
    for (unsigned n = 0; n < 3; n++)
        threads.emplace_back([=] { volatile long sum = 0; while (std::chrono::steady_clock::now() < end) sum = sum + work(n); });
    for (auto &thread : threads) thread.join();
}
"""

RUST = r"""
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
#[inline(never)]
fn words(seed: &mut u64) -> BTreeMap<String, u64> {
    let mut words = BTreeMap::new();
    for i in 0..2000 { *seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1); *words.entry(format!("{:x}", *seed >> 44)).or_insert(0) += i; }
    words
}
#[inline(never)]
fn descend(depth: u32, seed: &mut u64) -> u64 {
    if depth == 0 { words(seed).values().sum() } else { std::hint::black_box(descend(depth - 1, seed)) + 1 }
}
fn main() {
    let seconds = std::env::args().nth(1).unwrap().parse().unwrap();
    let (begin, mut seed, mut sum) = (Instant::now(), 1, 0u64);
    while begin.elapsed() < Duration::from_secs(seconds) { sum = sum.wrapping_add(descend(20, &mut seed)); }
    println!("{sum}");
}
"""

PYTHON = r"""
import json, sys, time
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
def deep(n): return 0 if n == 0 else deep(n - 1) + 1
end = time.time() + int(sys.argv[1])
while time.time() < end:
    fib(18), deep(900), json.loads(json.dumps({str(i): [i, str(i)] for i in range(500)})), sorted(range(3000), key=lambda i: -i)
"""

SQL = """.timeout {milliseconds}
CREATE TABLE t(a INTEGER, b TEXT);
WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c WHERE x<{rows}) INSERT INTO t SELECT x, hex(x*x) FROM c;
SELECT count(DISTINCT substr(b, 3)), max(b), sum(a) FROM t;
SELECT a%97, count(*), max(b) FROM t GROUP BY 1 ORDER BY 3 LIMIT 3;
"""


def compiled(folder, name, source, *command):
    """The program, or why there is none."""
    path = os.path.join(folder, f"{name}.{ {'rustc': 'rs', 'c++': 'cc'}.get(command[0], 'c') }")
    with open(path, "w") as file:
        file.write(source)
    program = os.path.join(folder, name)
    if not shutil.which(command[0]):
        return None
    subprocess.run([*command, "-o", program, path], check=True)
    return program


def small_c_program(folder):
    """A make file that builds 60 files at each call."""
    root = os.path.join(folder, "built")
    os.makedirs(root, exist_ok=True)
    for number in range(60):
        with open(os.path.join(root, f"f{number}.c"), "w") as file:
            file.write("#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n")
            for function in range(30):
                file.write(f"int f{number}_{function}(const char *text, int n) {{ int s = 0; char b[64]; for (int i = 0; i < n; i++) "
                           f"{{ snprintf(b, sizeof b, \"%d\", i * {function}); s += atoi(b) + (int)strlen(text); }} return s; }}\n")
    with open(os.path.join(root, "main.c"), "w") as file:
        file.write("int main(void) { return 0; }\n")
    with open(os.path.join(root, "Makefile"), "w") as file:
        file.write("O = $(patsubst %.c,%.o,$(wildcard *.c))\nall: program\nprogram: $(O)\n\tgcc -o $@ $^\n"
                   "%.o: %.c\n\tgcc -O1 -c -o $@ $<\nclean:\n\trm -f *.o program\n")
    return root


def programs(folder, seconds):
    """Names and commands; a command of None says what is missing."""
    length = str(seconds)
    # gcc gives a leaf that needs no stack no frame, whatever it is told.
    frame_pointers, in_leaves = ["-fno-omit-frame-pointer", "-DCOUNTER=long"], ["-fno-omit-frame-pointer", "-DCOUNTER=volatile long"]
    c = ["cc", "-g", "-O1", "-pthread", "-fno-optimize-sibling-calls"]
    built = {
        "c-frame-pointers": compiled(folder, "c-frame-pointers", BUSY, *c, *in_leaves),
        "c-but-leaves": compiled(folder, "c-but-leaves", BUSY, *c, *frame_pointers),
        "c-without": compiled(folder, "c-without", BUSY, *c, "-fomit-frame-pointer", "-DCOUNTER=long"),
        "c++-threads": compiled(folder, "c++-threads", CPP, "c++", "-g", "-O2", "-pthread"),
        "rust": compiled(folder, "rust", RUST, "rustc", "-O", "-g"),
    }
    if built["rust"]:
        built["rust-stripped"] = os.path.join(folder, "rust-stripped")
        subprocess.run(["strip", "-o", built["rust-stripped"], built["rust"]], check=True)
    commands = {name: program and [program, length] for name, program in built.items()}
    script, statements = os.path.join(folder, "script.py"), os.path.join(folder, "statements.sql")
    with open(script, "w") as file:
        file.write(PYTHON)
    with open(statements, "w") as file:
        file.write(SQL.format(milliseconds=1000, rows=250_000 * seconds))
    # Debian's, whatever other one comes first in PATH.
    commands["python3"] = os.path.exists("/usr/bin/python3") and ["/usr/bin/python3", script, length]
    commands["sqlite3"] = shutil.which("sqlite3") and ["sqlite3", ":memory:", f".read {statements}"]
    if shutil.which("make") and shutil.which("gcc"):
        commands["make -j2"] = ["make", "-s", "-j2", "-B", "-C", small_c_program(folder)]
    return commands


def cpu(command):
    """Seconds of CPU time of a command and all that it waited for, and what it printed on both outputs."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout + done.stderr


def shares(title):
    """Complete, cut and unknown, as the header of Profile has them."""
    found = {word: part for part, word in re.findall(r"(<?[0-9.]+)% (complete|cut|unknown)", title)}
    return [found.get(word, "0") for word in ("complete", "cut", "unknown")]


def header(perfprop, source, text=None):
    command = [perfprop, "replay", source, "--screen", "profile", "--dump", "txt", "--size", "200x20"]
    shown = subprocess.run(command, capture_output=True, text=True, input=text, errors="replace").stdout
    return next((line for line in shown.splitlines() if "Profile ─" in line), "")


def share_table(options, folder, commands):
    file = os.path.join(folder, "recording")
    print(f"{'program':<18} {'way':<12} {'complete %':>10} {'cut %':>8} {'unknown %':>9}")
    for name, command in commands.items():
        for way in ("perf fp", "perf dwarf", "fp", "dwarf", "auto"):
            tool, graph = way.split() if " " in way else ("perfprop", way)
            if tool == "perf":
                if not shutil.which("perf"):
                    continue
                record = ["perf", "record", "-q", "-F", options.hertz, "-e", "cpu-clock", "--call-graph", graph, "-o", file]
                subprocess.run([*record, "--", *command], capture_output=True)
                # As the options of perf ask for: kernel symbols need no more than what is there.
                text = subprocess.run(["perf", "script", "-i", file], capture_output=True, text=True, errors="replace").stdout
                title = header(options.perfprop, "-", text)
            else:
                record = [options.perfprop, "record", "-F", options.hertz, "-e", "cpu-clock", "--call-graph", graph, "-o", file]
                subprocess.run([*record, "--", *command], capture_output=True)
                title = header(options.perfprop, file)
            complete, cut, unknown = shares(title)
            print(f"{name:<18} {way:<12} {complete:>10} {cut:>8} {unknown:>9}", flush=True)


def samples(file):
    count = 0
    with open(file) as lines:
        for line in lines:
            if line.startswith('{"type":"stacks"'):
                count += len(json.loads(line)["stack"])
    return count


def cost_table(options, folder, commands):
    """CPU microseconds a sample beyond what the same program takes: it runs beside, so that it isn't counted."""
    file = os.path.join(folder, "recording")
    fixed = ("fp", "dwarf", "dwarf,32768")
    print(f"us a sample, median of {options.turns}; in brackets the complete stacks in percent")
    print(f"{'program':<18}" + "".join(f"{way:>18}" for way in (*fixed, "auto")) + "   auto beside the cheapest that is whole")
    for name, command in commands.items():
        taken = {way: [] for way in (*fixed, "auto")}
        complete = {way: [] for way in taken}
        for _ in range(options.turns):
            for way in taken:
                program = subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL)
                time.sleep(0.3)
                record = [options.perfprop, "record", "-F", options.cost_hertz, "-e", "cpu-clock", "--call-graph", way, "-o", file]
                spent, _ = cpu([*record, "-p", str(program.pid), "--", "sleep", str(options.seconds)])
                os.killpg(program.pid, 9)
                # Now, or what it took would count with the next command.
                program.wait()
                taken[way].append(spent / max(1, samples(file)) * 1e6)
                complete[way].append(float(shares(header(options.perfprop, file))[0].lstrip("<") or 0))
        shown = "".join(f"{statistics.median(taken[way]):>10.1f} ({statistics.median(complete[way]):>5.1f})" for way in taken)
        whole = [way for way in fixed if statistics.median(complete[way]) >= 95]
        ratios = [auto / min(taken[way][turn] for way in whole or fixed) for turn, auto in enumerate(taken["auto"])]
        print(f"{name:<18}{shown}   {statistics.median(ratios):.2f}" + ("" if whole else " (none is whole)"), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shares", action="store_true")
    parser.add_argument("--cost", action="store_true")
    parser.add_argument("--perfprop", default="target/release/perfprop")
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--hertz", default="997")
    parser.add_argument("--cost-hertz", default="4000")
    parser.add_argument("--only")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        commands = programs(folder, options.seconds)
        for name in [name for name, command in commands.items() if not command]:
            print(f"left out: {name} can't be had here")
        wanted = options.only.split(",") if options.only else list(commands)
        commands = {name: command for name, command in commands.items() if command and name in wanted}
        if options.shares or not options.cost:
            share_table(options, folder, commands)
        if options.cost or not options.shares:
            # As long as all of them are looked at.
            commands = {name: command for name, command in programs(folder, options.seconds + 20).items() if name in commands}
            if "make -j2" in commands:
                # Only what begins later than the recording is recorded.
                commands["make -j2"] = ["sh", "-c", 'sleep 1; while :; do "$@"; done', "sh", *commands["make -j2"]]
            cost_table(options, folder, commands)


if __name__ == "__main__":
    main()
