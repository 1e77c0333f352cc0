#!/usr/bin/env python3
"""Writes recordings of events that few machines count, with numbers that are made up: false sharing and TLB reach.

Two threads run all the time on four CPUs. Counts a second vary by up to 4 %.
"""

import json
import os

SECOND = 10**9
SECONDS = 13

PROGRAMS = {
    "false-sharing": [
        ("instructions", 800_000_000),
        ("cycles", 6_000_000_000),
        ("mem_load_l3_hit_retired.xsnp_fwd", 9_000_000),
        ("LLC-load-misses", 200_000),
    ],
    "tlb-reach": [
        ("instructions", 1_500_000_000),
        ("cycles", 6_000_000_000),
        ("dTLB-load-misses", 30_000_000),
        ("LLC-load-misses", 9_000_000),
    ],
}

NO = ["exclude_user", "exclude_kernel", "exclude_hv", "exclude_host", "exclude_idle", "pinned", "exclusive"]


def event(number, name):
    return {
        "name": name,
        "canonical": name,
        "kind": "hardware",
        "encoding": {"pmu_type": 4, "config": number + 1},
        "modifiers": {name: False for name in NO} | {"exclude_guest": True, "precise": 0},
        "unit": "count",
        "status": "counted",
        "scope": "all",
    }


def lines(program, events):
    yield {
        "type": "header",
        "version": 1,
        "perfprop": "0.1.0",
        "started": 0.0,
        "machine": {"host": "host", "kernel": "6.1.0", "arch": "x86_64", "cpu": "made by hand", "cpus": 4},
        "target": {"command": {"argv": ["./" + program], "pid": 700}},
        "events": [event(number, name) for number, (name, _) in enumerate(events)],
        "groups": [{"members": list(range(len(events))), "cohesion": "chosen"}],
        "relations": [],
        "estimator": "gp",
        "period_ns": SECOND,
        "interval_ns": SECOND,
    }
    for second in range(SECONDS):
        at, times = second * SECOND, [2 * second * SECOND] * len(events)
        counts = [
            sum(int(rate * (1 + 0.02 * ((past * 7 + number * 3) % 5 - 2))) for past in range(second))
            for number, (_, rate) in enumerate(events)
        ]
        yield {"type": "round", "at_ns": at, "lost_rounds": 0, "count": counts, "enabled_ns": times, "running_ns": times}
        yield {
            "type": "threads",
            "at_ns": at,
            "started": 1000 + second,
            "all_ns": 2 * at,
            "threads": [
                {
                    "pid": 700,
                    "tid": 700 + thread,
                    "name": program,
                    "began": 100,
                    "cpu_ns": at,
                    "delay_ns": 0,
                    "resident": 0 if thread else 1 << 30,
                    "switches": 4 * second,
                    "looks": [{"state": "R", "times": 1 + 19 * second}],
                }
                for thread in range(2)
            ],
        }
    totals = [{"count": count, "enabled": time, "running": time} for count, time in zip(counts, times)]
    yield {"type": "end", "at_ns": at, "exit": {"code": 0}, "cpu_time": None, "lost_rounds": 0, "totals": totals}


for program, events in PROGRAMS.items():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), program + ".jsonl")
    with open(path, "w", encoding="utf-8") as out:
        for line in lines(program, events):
            out.write(json.dumps(line, separators=(",", ":")) + "\n")
