#!/usr/bin/env python3
"""Says how often intervals of a region's events hold the truth, with calls or with stays on the counters as samples.

Wants numpy, and the traces of complete counts in PERFPROP_TRACES (../shared/traces). The kernel counts the region's group in slices
of 4 ms, 1 of 2 or 1 of 3. The region is open all the time, or for 7 of 21 ms. What a row of a trace (1 ms) counted is spread over its
tenths with a standard deviation of 22 %.
"""

import glob
import gzip
import os
import statistics

import numpy

EVENTS = "loads stores l1d_load_miss br_cond br_misp l2_access l2_miss llc_miss".split()
STEP_MS, SLICE_MS, OPEN_MS, RUN_MS = 0.1, 4, 7, 1000
NUMBERS = numpy.random.default_rng(1)


def traces():
    for path in sorted(glob.glob(os.environ.get("PERFPROP_TRACES", "../shared/traces") + "/*.csv.gz")):
        with gzip.open(path, "rt") as file:
            names = file.readline().strip().split(",")
            if set(EVENTS) <= set(names):
                yield numpy.loadtxt(file, delimiter=",")[:, [names.index(event) for event in EVENTS]]


def student(freedom):
    z, f = statistics.NormalDist().inv_cdf(0.975), freedom
    series = z + (z**3 + z) / 4 / f + (5 * z**5 + 16 * z**3 + 3 * z) / 96 / f**2
    return {1: 12.706, 2: 4.303}.get(freedom, series)


def half_width(counts, times, enabled):
    """As regions/src/event_totals.rs has it; None of a single sample."""
    counts, times = counts[times > 0], times[times > 0]
    n, running = len(counts), times.sum()
    if n < 2:
        return None
    variance = max(0, ((counts**2 / times).sum() - counts.sum() ** 2 / running) / (n - 1))
    return (variance * enabled * (enabled - running) / running) ** 0.5 * student(n - 1)


def intervals(rows, turns, call_ms, is_open_always):
    """The scaled count, the truth, and half the interval by calls and by stays."""
    steps = len(rows) * 10
    time = numpy.arange(steps) * STEP_MS
    counts = numpy.repeat(rows / 10, 10) * NUMBERS.gamma(20, 1 / 20, steps)
    counted = ((time + NUMBERS.uniform(0, SLICE_MS * turns)) // SLICE_MS) % turns == 0
    stay = numpy.cumsum(numpy.diff(counted.astype(int), prepend=0) > 0)
    is_open = numpy.full(steps, True) if is_open_always else (time // OPEN_MS) % 3 == 0
    of_call = round(call_ms / STEP_MS)
    calls = is_open.sum() // of_call
    part = lambda values: values[is_open][: calls * of_call].reshape(calls, of_call)
    sums, times = (part(counts) * part(counted)).sum(1), part(counted).sum(1) * STEP_MS
    enabled = calls * of_call * STEP_MS
    if times.sum() == 0:
        return None
    of_stay = [numpy.bincount(part(stay)[:, -1], weights=weights) for weights in (sums, times)]
    scaled = sums.sum() * enabled / times.sum()
    return scaled, part(counts).sum(), half_width(sums, times, enabled), half_width(*of_stay, enabled)


def row(all_rows, *how):
    found = [intervals(rows[start : start + RUN_MS, event], *how)
             for rows in all_rows for start in range(0, len(rows) - RUN_MS, RUN_MS) for event in range(len(EVENTS))]
    found = [one for one in found if one and one[1] > 0 and None not in one]
    cover = [numpy.mean([abs(one[0] - one[1]) <= one[place] for one in found]) for place in (2, 3)]
    width = [numpy.median([one[place] / one[1] for one in found]) for place in (2, 3)]
    return f"{cover[0]:.2f}, ±{width[0]:.1%} | {cover[1]:.2f}, ±{width[1]:.1%}"


def main():
    all_rows = list(traces())
    print("| a call takes | the region is open | counted | calls as samples | stays as samples |\n|---|---|---|---|---|")
    for call_ms in (0.1, 1, 10):
        for turns, is_open_always in ((2, True), (3, True), (2, False), (3, False)):
            opened = "always" if is_open_always else f"{OPEN_MS} of {3 * OPEN_MS} ms"
            print(f"| {call_ms} ms | {opened} | 1 of {turns} slices | {row(all_rows, turns, call_ms, is_open_always)} |", flush=True)


main()
