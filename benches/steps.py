#!/usr/bin/env python3
"""Scores step detection beside Apache Otava and asv, on series whose steps are known; counts false alarms; measures times.

    benches/steps.py                 all tables of docs/steps.md
    benches/steps.py score|noise|time|SEEDS ...

Wants Otava, asv and the generators of otava-test-data, in a virtual environment:

    pip install 'apache-otava==0.8.*' 'asv==0.6.6' 'otava-test-data==0.1.9'

Settings. Otava: compute_change_points with its defaults (windows of 50, p < 0.001, any size of change). asv: detect_steps
with its defaults, which has its compiled part. perfprop: the methods best and potts with their defaults. A found step is
right if a labelled one is within 5 points; each label and each step is matched once, nearest pairs first. A pattern's
precision, recall and F1 are those of all of its series together. Seeds are 0, 1, 2, ...: 3 of them, unless a number is given.
"""

import json
import multiprocessing
import os
import pathlib
import subprocess
import sys
import time
from collections import defaultdict

import numpy
from asv.step_detect import detect_steps
from otava.analysis import compute_change_points
from otava_test_data.generators import advanced, basic
from otava_test_data.generators.combiner import add_noise, combine

ROOT = pathlib.Path(__file__).resolve().parent.parent
LENGTHS = [50, 100, 200, 500, 1000, 5000]
SIGMAS = [0.0, 2.0, 5.0, 10.0]
NEAR = 5
METHODS = ["best", "potts", "otava", "asv"]


def correlated(length, sigma, keeps, seed):
    """Noise that keeps a part from each value to the next, with the standard deviation sigma."""
    random = numpy.random.default_rng(seed + 10_000)
    fresh = random.normal(0, sigma * (1 - keeps**2) ** 0.5, length + 100)
    noise = numpy.zeros(length + 100)
    for at in range(1, length + 100):
        noise[at] = keeps * noise[at - 1] + fresh[at]
    return noise[100:]


def place(length, seed):
    """A place for a step, between a quarter and three quarters."""
    return int(numpy.random.default_rng(seed + 20_000).integers(length // 4, 3 * length // 4))


def with_changes(length, seed):
    """Series with a change of level, without noise."""
    tenth = max(10, length // 10)
    step = basic.step_function(length, 100.0, 120.0, place(length, seed))
    down = basic.step_function(length, 120.0, 100.0, place(length, seed))
    outliers = advanced.multiple_outliers(length, 0.0, 50.0, n_outliers=max(1, length // 50), seed=seed)
    outliers.change_points = []
    banding = advanced.banding(length, 0.0, 5.0, seed=seed)
    variance = advanced.variance_change(length, 0.0, 2.0, 6.0, place(length, seed + 1), seed=seed)
    variance.change_points = []
    fixed = basic.regression_fix(length, regression_duration=tenth)
    rapid = advanced.multiple_changes(length, [100.0, 115.0, 105.0, 120.0], [tenth, 2 * tenth, 3 * tenth])
    yield "step up", step
    yield "step down", down
    yield "small step", basic.step_function(length, 100.0, 110.0, place(length, seed))
    yield "regression and fix", fixed
    yield "several changes", advanced.multiple_changes(length)
    yield "rapid changes", rapid
    yield "step and outliers", combine(step, outliers)
    yield "regression, fix, outliers", combine(fixed, outliers)
    yield "step and banding", combine(step, banding)
    yield "step and change of variance", combine(step, variance)


def without(length, seed):
    """Series without a change of level, without noise."""
    yield "constant", basic.constant(length)
    yield "outlier", basic.outlier(length)
    yield "several outliers", advanced.multiple_outliers(length, n_outliers=max(1, length // 50), seed=seed)
    yield "banding", advanced.banding(length, seed=seed)
    drift = basic.constant(length)
    drift.data = drift.data + numpy.linspace(0, 30, length)
    yield "drift", drift
    yield "phase of a wave", advanced.phase_change(length)


def cases(lengths, seeds):
    """Pattern, has steps, series, labels."""
    for length in lengths:
        for seed in range(seeds):
            for sigma in SIGMAS:
                for has, family in [(True, with_changes), (False, without)]:
                    for name, series in family(length, seed):
                        if series.generator_name != "constant" and sigma == 0 and seed > 0:
                            continue
                        if name == "constant" and sigma > 0:
                            yield "normal noise", False, basic.noise_normal(length, 100.0, sigma, seed).data, []
                            yield "uniform noise", False, basic.noise_uniform(length, 100 - sigma, 100 + sigma, seed).data, []
                            noise = correlated(length, sigma, 0.5, seed)
                            yield "correlated noise", False, 100 + noise, []
                            variance = advanced.variance_change(length, 100.0, sigma, 4 * sigma, place(length, seed), seed)
                            yield "change of variance", False, variance.data, []
                            several = advanced.multiple_variance_changes(length, sigmas=[sigma, 4 * sigma, sigma, 5 * sigma], seed=seed)
                            yield "several changes of variance", False, several.data, []
                            continue
                        labels = series.get_change_point_indices() if has else []
                        for kind in ["normal", "uniform"] if sigma > 0 else ["normal"]:
                            data = add_noise(series, sigma, kind, seed + 1).data if sigma > 0 else series.data
                            yield name, has, data, labels
                        if has and name == "step up" and sigma > 0:
                            for keeps in [0.3, 0.6]:
                                yield f"step, noise with rho {keeps}", True, series.data + correlated(length, sigma, keeps, seed), labels


def otava(values):
    return [point.index for point in compute_change_points(values)[0]]


def asv(values):
    return [step[0] for step in detect_steps(values)[1:]]


def theirs(task):
    """Steps and seconds of one of the others."""
    method, values = task
    values = [float(value) for value in values]
    start = time.process_time()
    found = {"otava": otava, "asv": asv}[method](values)
    return found, time.process_time() - start


def ours(method, all_values):
    """Steps and seconds of perfprop, all series in one process."""
    lines = "".join(json.dumps({"method": method, "values": list(map(float, values))}) + "\n" for values in all_values)
    command = os.environ.get("STEPS", "cargo bench --quiet -p perfprop-steps --bench steps").split()
    out = subprocess.run(command, cwd=ROOT, input=lines, check=True, capture_output=True, text=True).stdout
    return [(line["steps"], line["seconds"]) for line in map(json.loads, out.splitlines())]


def found_by(method, all_values, pool):
    if method in ("best", "potts"):
        return ours(method, all_values)
    return pool.map(theirs, [(method, values) for values in all_values], chunksize=8)


def matches(found, labels):
    """How many found steps are right."""
    pairs = sorted((abs(a - b), a, b) for a in found for b in labels if abs(a - b) <= NEAR)
    used_found, used_labels = set(), set()
    for _, a, b in pairs:
        if a not in used_found and b not in used_labels:
            used_found.add(a)
            used_labels.add(b)
    return len(used_found)


def ratio(a, b):
    return a / b if b else 1.0


def score(pool, seeds):
    methods = os.environ.get("METHODS", " ".join(METHODS)).split()
    all_cases = list(cases(LENGTHS, seeds))
    tables = {}
    for method in methods:
        found = found_by(method, [case[2] for case in all_cases], pool)
        table = defaultdict(lambda: [0, 0, 0, 0, 0.0])
        for (name, has, _, labels), (steps, seconds) in zip(all_cases, found):
            right = matches(steps, labels)
            for place, part in enumerate([right, len(steps), len(labels), 1, seconds]):
                table[has, name][place] += part
        tables[method] = table
    print(f"{len(all_cases)} series of {min(LENGTHS)} to {max(LENGTHS)} values")
    print("\n| pattern | series | " + " | ".join(f"{method}: precision, recall, F1" for method in methods) + " |")
    print("|---|---:|" + "---|" * len(methods))
    mean = defaultdict(list)
    for has, name in tables[methods[0]]:
        if not has:
            continue
        cells = []
        for method in methods:
            right, steps, labels, series, _ = tables[method][has, name]
            precision, recall = ratio(right, steps), ratio(right, labels)
            mean[method].append(ratio(2 * right, steps + labels))
            cells.append(f"{precision:.3f} {recall:.3f} **{mean[method][-1]:.3f}**")
        print(f"| {name} | {series} | " + " | ".join(cells) + " |")
    print("| mean F1 | | " + " | ".join(f"**{sum(mean[method]) / len(mean[method]):.3f}**" for method in methods) + " |")
    print("\n| pattern without a change of level | series | " + " | ".join(f"{method}: false steps" for method in methods) + " |")
    print("|---|---:|" + "---:|" * len(methods))
    for has, name in tables[methods[0]]:
        if not has:
            print(f"| {name} | {tables[methods[0]][has, name][3]} | " + " | ".join(str(tables[method][has, name][1]) for method in methods) + " |")
    print("| CPU seconds of all | | " + " | ".join(f"{sum(row[4] for row in tables[method].values()):.3f}" for method in methods) + " |")


def noises(length, seed):
    random = numpy.random.default_rng(seed)
    yield "normal", random.normal(0, 1, length)
    yield "Laplace", random.laplace(0, 1, length)
    yield "t with 3 degrees", random.standard_t(3, length)
    yield "uniform", random.uniform(0, 1, length)
    for keeps in [0.3, 0.5, 0.7]:
        yield f"correlated, rho {keeps}", correlated(length, 1.0, keeps, seed)


def noise(pool, seeds):
    """The share of series of noise with a step, and with a step up."""
    del pool
    print("\n| noise | " + " | ".join(f"{length} values" for length in LENGTHS) + " |")
    print("|---|" + "---:|" * len(LENGTHS))
    count = max(1000, seeds)
    rows = defaultdict(list)
    for length in LENGTHS:
        several = defaultdict(list)
        for seed in range(count if length < 5000 else count // 2):
            for name, values in noises(length, seed):
                several[name].append(values)
        for name, values in several.items():
            found = [steps for steps, _ in ours("best", values)]
            rows[name].append(f"{100 * sum(map(bool, found)) / len(found):.1f} %")
    for name, cells in rows.items():
        print(f"| {name} | " + " | ".join(cells) + " |")


def timed(pool, seeds):
    """Times, each the least of three."""
    del pool, seeds
    print("\n| values | best | potts | asv | Otava |\n|---:|---:|---:|---:|---:|")
    for length in [100, 1000, 10_000, 100_000, 1_000_000]:
        random = numpy.random.default_rng(1)
        values = random.normal(0, 1, length) + 3 * (numpy.arange(length) >= length // 2)
        seconds = [min(ours(method, [values])[0][1] for _ in range(3)) for method in ["best", "potts"]]
        if length <= 10_000:
            seconds += [min(theirs((method, values))[1] for _ in range(3)) for method in ["asv", "otava"]]
        cells = [f"{1000 * each:.2f} ms" for each in seconds] + ["-"] * (4 - len(seconds))
        print(f"| {length} | " + " | ".join(cells) + " |", flush=True)


def main():
    wanted = [word for word in sys.argv[1:] if not word.isdigit()] or ["score", "noise", "time"]
    seeds = next((int(word) for word in sys.argv[1:] if word.isdigit()), 3)
    with multiprocessing.Pool(2) as pool:
        for word in wanted:
            {"score": score, "noise": noise, "time": timed}[word](pool, seeds)


if __name__ == "__main__":
    main()
