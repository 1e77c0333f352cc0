#!/usr/bin/env python3
"""Times the solvers of cost models beside scikit-learn's in one run, and the fit of a folder of 200 files.

Wants numpy and scikit-learn (pip install scikit-learn, in a virtual environment). Run: benches/cost.py
"""

import json
import pathlib
import statistics
import subprocess
import tempfile
import time

import numpy
from sklearn.linear_model import Lasso, LinearRegression, Ridge

ROOT = pathlib.Path(__file__).resolve().parent.parent
ROWS, COLUMNS, RUNS, FILES = 100_000, 50, 5, 200
PEERS = {
    "ridge": lambda: Ridge(alpha=1.0, fit_intercept=False),
    "lasso": lambda: Lasso(alpha=0.01, fit_intercept=False),
    "nnls": lambda: LinearRegression(positive=True, fit_intercept=False),
}


def solvers(folder):
    random = numpy.random.default_rng(1)
    matrix = numpy.asfortranarray(random.random((ROWS, COLUMNS)))
    truth = numpy.where(numpy.arange(COLUMNS) % 3 == 0, 0.0, random.random(COLUMNS))
    target = matrix @ truth + 0.1 * random.standard_normal(ROWS)
    file = folder / "equations"
    with open(file, "wb") as out:
        target.tofile(out)
        matrix.T.copy().tofile(out)
    command = ["cargo", "bench", "--quiet", "--bench", "solvers", "--", str(file), str(ROWS), str(COLUMNS)]
    lines = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    print(f"{ROWS} x {COLUMNS}, medians of {RUNS}: the time of perfprop over that of scikit-learn, and the largest difference of a coefficient")
    for line in lines:
        ours = json.loads(line)
        times = []
        for _ in range(RUNS):
            start = time.perf_counter()
            model = PEERS[ours["solver"]]().fit(matrix, target)
            times.append(time.perf_counter() - start)
        apart = max(abs(numpy.array(ours["coefficients"]) - model.coef_))
        print(f"{ours['solver']:>6}  {ours['seconds'] / statistics.median(times):.2f}  {apart:.1e}")


def a_folder(folder):
    """200 files: a clock, and others whose models want what it finds."""
    files = folder / "fits"
    files.mkdir()
    random = numpy.random.default_rng(2)
    for place in range(FILES):
        model = "timer" if place == 0 else f"timer + c{place} * n"
        with open(files / f"f{place:03}.jsonl", "w") as out:
            print(json.dumps({"perfprop_workload": 1, "name": f"f{place}", "sizes": ["n"], "model": model}), file=out)
            for n in numpy.geomspace(10, 10_000, 12):
                samples = [float(x) for x in 20 + (0 if place == 0 else 3 * n) * (1 + 0.01 * random.random(30))]
                print(json.dumps({"sizes": {"n": float(n)}, "samples": {"time": samples}}), file=out)
    subprocess.run(["cargo", "build", "--release", "--quiet", "--bin", "perfprop"], cwd=ROOT, check=True)
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        subprocess.run([ROOT / "target/release/perfprop", "fit", files], check=True, capture_output=True)
        times.append(time.perf_counter() - start)
    print(f"a folder of {FILES} files: {statistics.median(times):.2f} s")


def main():
    with tempfile.TemporaryDirectory() as name:
        solvers(pathlib.Path(name))
        a_folder(pathlib.Path(name))


if __name__ == "__main__":
    main()
