#!/usr/bin/env python3
"""Measures what a build costs: CPU seconds of each dependency, of perfprop, and the size of the binary.

    benches/build.py                 prints the table of docs/building.md, and the times until a binary is there

Builds in a scratch folder. A dependency's cost is that of the crates that nothing else needs: what would be saved
without it. CPU seconds hardly depend on what else the machine does; wall seconds do.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# The crates whose dependencies are counted.
OWN = ["perfprop-core", "perfprop"]

# Called by cargo in place of rustc: appends the crate's name and its CPU seconds to a file.
WRAPPER = """#!/usr/bin/env python3
import os, resource, subprocess, sys
status = subprocess.call(sys.argv[1:], close_fds=False)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
name = next((b for a, b in zip(sys.argv, sys.argv[1:]) if a == "--crate-name"), "")
if os.environ.get("CARGO_PKG_NAME"):
    name = os.environ["CARGO_PKG_NAME"]
with open(os.environ["BUILD_COSTS"], "a") as costs:
    costs.write(f"{name} {used.ru_utime + used.ru_stime:.2f}\\n")
sys.exit(status)
"""


def cargo(*arguments: str, **environment: str) -> float:
    """Runs cargo; returns the wall seconds."""
    start = time.monotonic()
    subprocess.run(["cargo", *arguments], cwd=ROOT, check=True, env={**os.environ, **environment})
    return time.monotonic() - start


def graph() -> tuple[str, dict[str, set[str]], dict[str, str]]:
    """The package that is built, what each package needs to be built, and packages' names."""
    command = ["cargo", "metadata", "--format-version", "1", "--filter-platform", host()]
    found = json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout)
    names = {package["id"]: package["name"] for package in found["packages"]}
    needs = {
        node["id"]: {dep["pkg"] for dep in node["deps"] if any(kind["kind"] != "dev" for kind in dep["dep_kinds"])}
        for node in found["resolve"]["nodes"]
    }
    return found["resolve"]["root"], needs, names


def host() -> str:
    version = subprocess.run(["rustc", "-vV"], check=True, capture_output=True, text=True).stdout
    return next(line.split()[1] for line in version.splitlines() if line.startswith("host:"))


def closure(start: str, needs: dict[str, set[str]]) -> set[str]:
    """A package and all that it needs."""
    found, todo = set(), [start]
    while todo:
        if (package := todo.pop()) not in found:
            found.add(package)
            todo.extend(needs[package])
    return found


def table(costs: dict[str, float]) -> list[tuple[str, float, int]]:
    """Each direct dependency: CPU seconds and number of the crates that it alone needs. The rest is shared."""
    root, needs, names = graph()
    own = {package for package in closure(root, needs) if names[package] in OWN}
    all_of = {dependency: closure(dependency, needs) for package in own for dependency in needs[package] - own}
    rows, alone = [], set()
    for dependency, its in all_of.items():
        others = set().union(*(them for other, them in all_of.items() if other != dependency))
        only = its - others
        alone |= only
        rows.append((names[dependency], sum(costs[name] for name in {names[p] for p in only}), len(only)))
    # What another direct dependency needs as well, such as memchr, saves nothing by itself.
    rows = [row for row in rows if row[2] > 0]
    shared = set().union(*all_of.values()) - alone
    rows.append(("shared by several", sum(costs[name] for name in {names[p] for p in shared}), len(shared)))
    return sorted(rows, key=lambda row: -row[1])


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        wrapper, log, target = Path(scratch, "rustc"), Path(scratch, "costs"), str(Path(scratch, "target"))
        wrapper.write_text(WRAPPER)
        wrapper.chmod(0o755)
        wall = cargo("build", "--release", "--quiet", RUSTC_WRAPPER=str(wrapper), BUILD_COSTS=str(log), CARGO_TARGET_DIR=target)
        costs: dict[str, float] = defaultdict(float)
        for line in log.read_text().splitlines():
            if len(parts := line.split()) == 2:
                costs[parts[0]] += float(parts[1])
        size = Path(target, "release", "perfprop").stat().st_size / 1e6
        own = ", ".join(f"{costs[name]:.0f} of {name}" for name in OWN)
        print(f"clean release build: {wall:.0f} s, {sum(costs.values()):.0f} CPU seconds, {own}")
        print(f"release binary: {size:.1f} MB\n")
        print("| dependency | CPU s | crates |\n|---|---|---|")
        for name, seconds, crates in table(costs):
            print(f"| {name} | {seconds:.1f} | {crates} |")
        if "--touch" in sys.argv:
            cargo("build", "--quiet", CARGO_TARGET_DIR=target)
            for file in ["core/src/units.rs", "src/charts/mod.rs"]:
                (ROOT / file).touch()
                seconds = cargo("build", "--quiet", CARGO_TARGET_DIR=target)
                print(f"\ndebug binary after a change of {file}: {seconds:.0f} s")


if __name__ == "__main__":
    main()
