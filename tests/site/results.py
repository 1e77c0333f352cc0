"""Makes a repository and results of its commits, as if benchmarks of each had been measured.

    tests/site/results.py DIR [COMMITS [BENCHMARKS]]     DIR/project and DIR/results

Noise is drawn from the seed 1. Every third benchmark has a step up of 8 to 40 %, every fifth one down. What is hard to show is in
it: names and subjects with markup and escapes, parameters, a second machine, commits that can't be built, skipped benchmarks,
commits that weren't measured, and profiles.
"""

import json
import pathlib
import random
import subprocess
import sys

SAMPLES = 10
BEGIN = 1_600_000_000
HOSTILE = "</script><img src=x onerror=alert(1)>\x1b[2J"
WORDS = "parse sort match index render pack hash merge split walk encode filter".split()
FRAMES = ["main", "read_input", "parse_line", "sort_rows", "compare", "write_out", "alloc"]


def repository(folder, commits):
    """A repository of so many commits, and their hashes, the oldest first."""
    folder.mkdir(parents=True)
    git = ["git", "-C", str(folder)]
    subprocess.run([*git, "init", "--quiet", "--initial-branch=main"], check=True)
    lines = []
    for number in range(commits):
        subject = f"{HOSTILE} in a subject" if number == commits // 2 else f"Change {WORDS[number % len(WORDS)]}, part {number}"
        lines += ["commit refs/heads/main", f"committer a <a@example.org> {BEGIN + 21_600 * number} +0000"]
        lines += [f"data {len(subject.encode())}", subject, "M 644 inline file", f"data {len(str(number))}", str(number)]
    subprocess.run([*git, "fast-import", "--quiet"], input="\n".join(lines) + "\n", text=True, check=True)
    log = subprocess.run([*git, "log", "--reverse", "--format=%H", "main"], capture_output=True, text=True, check=True)
    return log.stdout.split()


class Benchmark:
    """A benchmark whose level changes at some commits."""

    def __init__(self, number, commits, rng):
        word = WORDS[number % len(WORDS)]
        self.name = f"{word}_{number:02d}" if number % 4 else f"{word}_{number:02d}.page-faults"
        self.is_time = bool(number % 4)
        self.level = 10 ** rng.uniform(-5, 0) if self.is_time else round(10 ** rng.uniform(3, 6))
        self.noise = rng.choice([0.002, 0.005, 0.01]) if self.is_time else 0.0
        self.steps = []
        if number % 3 == 0:
            self.steps.append((rng.randrange(commits // 3, commits * 9 // 10), 1 + rng.uniform(0.08, 0.4)))
        if number % 5 == 0:
            self.steps.append((rng.randrange(commits // 10, commits // 3), 1 - rng.uniform(0.05, 0.2)))

    def entry(self):
        unit = "seconds" if self.is_time else "page-faults"
        return {"name": self.name, "params": [], "param_names": [], "type": "time" if self.is_time else "track", "unit": unit, "version": "1", "code": self.name}

    def row(self, number, rng):
        level = self.level
        for at, factor in self.steps:
            level *= factor if number >= at else 1
        middle = level * (1 + self.noise * rng.gauss(0, 0.4))
        samples = sorted(middle * (1 + self.noise * abs(rng.gauss(0, 1))) for _ in range(SAMPLES))
        if not self.is_time:
            samples = [float(round(sample)) for sample in samples]
        median = (samples[4] + samples[5]) / 2
        one = lambda value: [float(f"{value:.4e}")]
        return [[median], [], "1", None, None, one(samples[1]), one(samples[8]), one(samples[2]), one(samples[7]), [1], [SAMPLES], [samples]]


COLUMNS = ["result", "params", "version", "started_at", "duration", "stats_ci_99_a", "stats_ci_99_b", "stats_q_25", "stats_q_75", "stats_number", "stats_repeat", "samples"]


def write(folder, machine, commit, date, rows, environment="build-1", more={}):
    """A file of results."""
    facts = {"machine": machine, "arch": "x86_64", "cpu": "a CPU", "num_cpu": "4", "os": "Linux", "ram": None}
    params = {**facts, **more}
    file = {"commit_hash": commit, "env_name": environment, "date": date, "params": params, "python": "", "requirements": {}, "env_vars": {},
            "result_columns": COLUMNS, "results": rows, "durations": {}, "version": 2}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{commit[:8]}-{environment}.json").write_text(json.dumps(file))
    (folder / "machine.json").write_text(json.dumps({**{name: value or "" for name, value in facts.items()}, "version": 1}))


def profile(folder, commit, benchmark, rng):
    """Folded stacks of a benchmark at a commit."""
    stacks = [f"{';'.join(FRAMES[:depth])} {rng.randrange(5, 400)}" for depth in range(1, len(FRAMES) + 1)]
    stacks += [f"main;write_out;{HOSTILE.replace(';', ':')} 40", "main;compare;alloc 120"]
    origin = {"commit": commit, "environment": "build-1", "benchmark": benchmark, "event": "cycles"}
    place = folder / "profiles" / f"{commit[:8]}-build-1"
    place.mkdir(parents=True, exist_ok=True)
    (place / f"{benchmark}.folded").write_text("# perfprop-profile " + json.dumps(origin) + "\n" + "\n".join(stacks) + "\n")


def plain(folder, commits, count):
    """Results of so many benchmarks for all commits, all plain: what a comparison of speed takes."""
    rng = random.Random(1)
    hashes = repository(folder / "project", commits)
    benchmarks = [Benchmark(number, commits, rng) for number in range(count)]
    for number, commit in enumerate(hashes):
        rows = {benchmark.name: benchmark.row(number, rng) for benchmark in benchmarks}
        write(folder / "results" / "m", "m", commit, 1000 * (BEGIN + 21_600 * number), rows)
    entries = {benchmark.name: benchmark.entry() for benchmark in benchmarks}
    (folder / "results" / "benchmarks.json").write_text(json.dumps({**entries, "version": 2}))
    return hashes


def hard(folder, commits, count, names=True):
    """The same with what is hard to show; without such names, if so asked, for a picture."""
    hashes = plain(folder, commits, count)
    rng = random.Random(2)
    results = folder / "results"
    path = results / "benchmarks.json"
    entries = json.loads(path.read_text())
    params = [["10", "1000", "100000"], ["'quick'", "'merge'"]]
    entries["sort_all"] = {"name": "sort_all", "params": params, "param_names": ["n", "how"], "type": "time", "unit": "seconds", "version": "1"}
    if names:
        entries[HOSTILE] = {"name": HOSTILE, "params": [], "param_names": [], "type": "track", "unit": HOSTILE, "version": "1"}
    entries["never"] = {"name": "never", "params": [], "param_names": [], "type": "time", "unit": "seconds", "version": "1"}
    path.write_text(json.dumps(entries))
    for number, commit in enumerate(hashes):
        file = results / "m" / f"{commit[:8]}-build-1.json"
        if commits // 4 < number < commits // 4 + 8 and number % 2:
            file.unlink()  # Not measured.
            continue
        read = json.loads(file.read_text())
        rows = read["results"]
        if number % 37 == 11:
            rows = {name: [None, [], "1"] for name in rows}  # It can't be built.
        else:
            up = 1.3 if number >= commits * 3 // 4 else 1
            values = [n * 1e-7 * how * up * (1 + 0.01 * rng.random()) for n in (10, 1000, 100000) for how in (1, 1.5)]
            rows["sort_all"] = [values, params, "1", None, None, [value * 0.99 for value in values], [value * 1.01 for value in values], None, None, [1] * 6, [5] * 6]
            rows[HOSTILE] = [[float(100 + number // (commits // 2 + 1) * 20)], [], "1"]
            rows["never"] = [None, [], "1"]
            if number % 29 == 3:
                rows[next(iter(rows))] = [[float("nan")], [], "1"]
        write(results / "m", "m", commit, read["date"], {name: row for name, row in rows.items() if name in entries})
        if number % 3 == 0 and rows.get("sort_all"):
            write(results / "second machine", "second machine", commit, read["date"], {name: rows[name] for name in list(rows)[:4]})
    profile(results / "m", hashes[-1], "sort_all", rng)
    profile(results / "m", hashes[commits * 3 // 4], "sort_all", rng)
    return hashes


def few(folder):
    """Results of five commits as a first user has them: three runs, two builds and what was added, a build that failed, and single
    runs. Returns the hashes, the third of which is that of the failed build."""
    hashes = repository(folder / "project", 5)
    entries = {"sort": {"name": "sort", "type": "time", "unit": "seconds", "version": "1"},
               "sort.page-faults": {"name": "sort.page-faults", "type": "track", "unit": "page-faults", "version": "1"}}
    entries = {name: {"params": [], "param_names": [], **entry} for name, entry in entries.items()}
    stats = lambda value, low, high, runs: [[value], [], "1", None, None, [low], [high], [value], [value], [1], [runs]]
    for number, commit in enumerate(hashes):
        date = 1000 * (BEGIN + 21_600 * number)
        for environment, build, level in [("build-1", "make", 0.04), ("build-2", "make CFLAGS=-O3", 0.03)]:
            time = level * (1 + 0.01 * number)
            rows = {"sort": stats(time, -20 * level, 22 * level, 3), "sort.page-faults": stats(100.0, 100.0, 100.0, 1)}
            if number == 2:
                rows = {name: [None, [], "1"] for name in rows}
            write(folder / "results" / "m", "m", commit, date, rows, environment, {"build": build})
        added = {"sort": stats(0.05, float("-inf"), float("inf"), 1), "sort.page-faults": stats(101.0, 90.0, 115.0, 1)}
        if number == 4:
            write(folder / "results" / "m", "m", commit, date, {name: row[:2] + [None] + row[3:] for name, row in added.items()}, "added")
    (folder / "results" / "benchmarks.json").write_text(json.dumps({**entries, "version": 2}))
    return hashes


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1])
    hard(folder, *[int(text) for text in sys.argv[2:] or ["300", "12"]])
