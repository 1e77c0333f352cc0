#!/usr/bin/env python3
"""Counts how often `bench::paired` and tango-bench find that a closure takes 1 % longer, within a second each, in one run.

    benches/paired.py [RUNS]      both, in turns; 10 runs unless a number is given

tango-bench compares two builds of one benchmark; both are built in a folder below target/, from crates.io. It has found a difference
where it prints an asterisk.
"""

import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "target/tango"
STEPS = 20_000
MANIFEST = """[package]
name = "tango"
version = "0.1.0"
edition = "2021"
[workspace]
[dev-dependencies]
tango-bench = "=0.6.0"
[[bench]]
name = "work"
harness = false
"""
BUILD = """fn main() {
    println!("cargo:rustc-link-arg-benches=-rdynamic");
    println!("cargo:rerun-if-env-changed=STEPS");
}
"""
WORK = """use std::hint::black_box;

use tango_bench::{IntoBenchmarks, benchmark_fn, tango_benchmarks, tango_main};

fn work(steps: u64) -> u64 {
    (0..steps).fold(1, |value, step| black_box(value ^ step).rotate_left(5))
}

fn benches() -> impl IntoBenchmarks {
    let steps: u64 = env!("STEPS").parse().unwrap();
    [benchmark_fn("work", move |b| b.iter(move || work(black_box(steps))))]
}

tango_benchmarks!(benches());
tango_main!();
"""


def built(steps):
    """tango's program for so many steps."""
    for name, text in {"Cargo.toml": MANIFEST, "build.rs": BUILD, "src/lib.rs": "", "benches/work.rs": WORK}.items():
        path = FOLDER / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
    environment = {"STEPS": str(steps), "CARGO_TARGET_DIR": str(FOLDER / "target")}
    command = ["cargo", "bench", "--no-run", "--bench", "work"]
    said = subprocess.run(command, cwd=FOLDER, env=os.environ | environment, check=True, capture_output=True, text=True).stderr
    program = re.search(r"\((target/release/deps/work-\S+|\S+/release/deps/work-\S+)\)", said).group(1)
    copy = FOLDER / f"work-{steps}"
    copy.write_bytes((FOLDER / program).read_bytes())
    copy.chmod(0o755)
    return copy


def tango(new, old):
    """The change in percent, and whether it was found."""
    out = subprocess.run([new, "compare", old, "-t", "1"], check=True, capture_output=True, text=True).stdout
    percent, star = re.search(r"([+-]\d+\.\d+)%(\*?)", out).groups()
    return float(percent), bool(star)


def ours(more):
    command = ["cargo", "bench", "--quiet", "--bench", "paired", "--", "--one", str(more)]
    percent, found = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
    return float(percent), found == "apart"


def main():
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    programs = {more: built(STEPS + more) for more in (0, STEPS // 100)}
    for more in (STEPS // 100, 0):
        rows = {"perfprop": [], "tango-bench": []}
        for _ in range(runs):
            rows["perfprop"].append(ours(more))
            rows["tango-bench"].append(tango(programs[more], programs[0]))
        print(f"{100 * more / STEPS:.0f} % more:")
        for name, found in rows.items():
            percents = sorted(percent for percent, _ in found)
            print(f"  {name:12} found in {sum(is_found for _, is_found in found)} of {runs}, {percents[0]:+.2f} % to {percents[-1]:+.2f} %")


if __name__ == "__main__":
    main()
