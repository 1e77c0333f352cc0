#!/usr/bin/env python3
"""What relations gain on real programs whose events share a few emulated counters, as Markdown tables.

  benches/emulated.py [RUNS]       with sqlite3, python3, xz, gcc and valgrind; 5 runs by default

Errors of intervals are the sum of |estimate - truth| over the sum of the truth, in `stat -I 4000 -j`, of intervals in which the
event had a slice (one takes a tenth of a second and more). Those of totals are mean absolute errors, of `stat -r RUNS --truth`.
"""
import json, os, re, statistics, subprocess, sys, tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
PERFPROP = os.environ.get("PERFPROP") or os.path.join(os.environ.get("CARGO_TARGET_DIR", os.path.join(HERE, "../target")), "release/perfprop")
RUNS = int(sys.argv[1]) if len(sys.argv) > 1 else 5
SUMS = {"MEMORY_ACCESSES": "LOADS + STORES", "L1_LOAD_MISSES": "L2_HITS + L2_LOAD_MISSES"}
EVENTS = [event for whole, parts in SUMS.items() for event in [whole, *parts.split(" + ")]]


def programs(folder):
    """Commands of some 10^8 to 10^9 instructions each."""
    with open(f"{folder}/main.c", "w") as file:
        file.write("#include <stdio.h>\n")
        file.writelines(f"int f{n}(int *a, int b) {{ int s = {n}; for (int i = 0; i < b; i++) s += a[i % {n + 3}] * i ^ b; return s; }}\n" for n in range(150))
        file.write("int main(void) { return 0; }\n")
    with open(f"{folder}/words", "w") as file:
        file.writelines(f"{n * 7919 % 60013} word{n % 613} {n * n % 1009}\n" for n in range(30000))
    script = "d={}\nfor i in range(200000): d[i*7919%50021]=d.get(i%50021,0)+i\nprint(sum(sorted(d.values())[:99]))"
    return {
        "sqlite3": ["sqlite3", ":memory:", f".read {HERE}/../screenshots/work.sql"],
        "python3": ["/usr/bin/python3", "-S", "-c", script],
        "xz": ["xz", "-k", "-c", "-T1", "-6", f"{folder}/words"],
        "gcc": ["gcc", "-O1", "-c", f"{folder}/main.c", "-o", f"{folder}/main.o"],
    }


def stat(folder, counters, options, command):
    with open(os.devnull, "w") as null:
        args = [PERFPROP, "stat", "--source", "emulate", "--counters", str(counters), "--relations", f"{folder}/sums.json"]
        args += ["-e", ",".join(EVENTS), "-o", f"{folder}/out", *options, "--", *command]
        subprocess.run(args, stdout=null, stderr=null, check=True)
    with open(f"{folder}/out") as file:
        return file.read()


def intervals(text):
    """The sums of |estimate - truth|, scaled and corrected, and of the truth, and how many intervals held it, of how many."""
    sums = {event: [0.0] * 5 for event in EVENTS}
    truth = {event: 0.0 for event in EVENTS}
    lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    # Time is instructions here: the true count of each interval is what the truth rose by.
    for line in lines:
        event = line["event"]
        true, truth[event] = line["run-truth"] - truth[event], line["run-truth"]
        number = lambda key: None if line.get(key) in (None, "<not counted>") else float(line[key])
        scaled = number("counter-value")
        if scaled is None:
            continue
        corrected = number("corrected-value")
        best = scaled if corrected is None else corrected
        key = "ci" if corrected is None else "corrected-ci"
        low, high = number(f"{key}-lo"), number(f"{key}-hi")
        held = low is not None and low - 1 <= true <= high + 1
        for place, value in enumerate([abs(scaled - true), abs(best - true), true, held, low is not None]):
            sums[event][place] += value
    return sums


def totals(text):
    """The mean errors of scaled and corrected totals in per cent, by event."""
    found = {}
    for line in text.splitlines():
        # TRUTH, SCALED, its ± and IN ±, CORRECTED, its ± and IN ±, EVENT.
        cells = re.split(" {2,}", line.strip())
        if len(cells) == 8 and cells[-1] in EVENTS:
            percent = [float(cell.strip("%<")) if cell.endswith("%") else None for cell in (cells[1], cells[4])]
            found[cells[-1]] = [percent[0], percent[1] if percent[1] is not None else percent[0]]
    return found


def main():
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/sums.json", "w") as file:
            json.dump([{"id": whole, "relation": f"{whole} = {parts}", "tolerance": "0.01%"} for whole, parts in SUMS.items()], file)
        print("| program | counters | event | intervals: scaled | corrected | ratio | truth within ± | totals: scaled | corrected | ratio |")
        print("|---|--:|---|--:|--:|--:|--:|--:|--:|--:|")
        ratios = {}
        for name, command in programs(folder).items():
            for counters in (2, 4):
                all_sums = {event: [0.0] * 5 for event in EVENTS}
                for _ in range((RUNS + 1) // 2):
                    for event, sums in intervals(stat(folder, counters, ["-I", "4000", "-j"], command)).items():
                        all_sums[event] = [a + b for a, b in zip(all_sums[event], sums)]
                of_totals = totals(stat(folder, counters, ["-r", str(RUNS), "--truth"], command))
                for event in EVENTS:
                    scaled, corrected, true, held, known = all_sums[event]
                    total = of_totals.get(event, [None, None])
                    part = lambda a, b: None if not a or b is None else b / a
                    cell = lambda value, form: "—" if value is None else form.format(value)
                    if scaled:
                        ratios.setdefault(counters, []).append(corrected / scaled)
                    cells = [name, str(counters), event, cell(true and 100 * scaled / true, "{:.1f} %"), cell(true and 100 * corrected / true, "{:.2f} %")]
                    cells += [cell(part(scaled, corrected), "{:.2f}"), f"{held:.0f} of {known:.0f}"]
                    cells += [cell(total[0], "{:.2f} %"), cell(total[1], "{:.2f} %"), cell(part(*total), "{:.2f}")]
                    print("| " + " | ".join(cells) + " |", flush=True)
        for counters, found in ratios.items():
            print(f"\nIntervals of tied events on {counters} counters: median ratio {statistics.median(found):.2f}, largest {max(found):.2f}")


main()
