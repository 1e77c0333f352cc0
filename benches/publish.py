#!/usr/bin/env python3
"""Times `perfprop history publish` for 2,000 commits and 50 benchmarks, and the page in Chromium; prints medians.

    cargo build --release && benches/publish.py [PERFPROP [COMMITS [BENCHMARKS]]]

Wants what tests/site/run wants. Where `asv` (pip install 'asv==0.6.6' 'virtualenv') is on the PATH, `asv publish` of the same
results is timed, too, in turns with perfprop.
"""

import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "site"))
sys.dont_write_bytecode = True

from browser import Browser  # noqa: E402
from results import plain  # noqa: E402

ROUNDS = 3
PAGES = 5


def timed(command, folder):
    """The elapsed time and the CPU time of a command; the second depends less on what else the machine does."""
    begin, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.monotonic() - begin, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def said(name, values, unit="s"):
    print(f"{name:44} {statistics.median(values):8.2f} {unit}   ({min(values):.2f} to {max(values):.2f})", flush=True)


def published(program, folder):
    """Times of publishing anew and over the same site, and of asv."""
    command = [program, "history", "publish", "--results", "../results"]
    anew, over, asv = [], [], []
    if shutil.which("asv"):
        subprocess.run([program, "history", "export", "--asv", folder / "asv", "--results", "../results"], cwd=folder / "project", check=True, stderr=subprocess.DEVNULL)
        (folder / "asv" / "benchmarks").mkdir()
    for _ in range(ROUNDS):
        shutil.rmtree(folder / "site", ignore_errors=True)
        anew.append(timed([*command, folder / "site"], folder / "project"))
        over.append(timed([*command, folder / "site"], folder / "project"))
        if shutil.which("asv"):
            asv.append(timed(["asv", "publish"], folder / "asv"))
    for name, times in [("publish to a new folder", anew), ("publish over the same site", over), ("asv publish of the same results", asv)]:
        if times:
            said(name, [elapsed for elapsed, _ in times])
            said("  CPU time", [cpu for _, cpu in times])
    if asv:
        ratio = lambda which: statistics.median(one[which] for one in asv) / statistics.median(one[which] for one in anew)
        print(f"{'asv over perfprop':44} {ratio(0):8.1f}, CPU time {ratio(1):.1f}")


def opened(site):
    """Times of the page from its address to when it can be used."""
    files = ["index.html", "site.css", "uPlot.min.css", "numbers.js", "page.js", "grid.js", "plot.js", "views.js", "data/index.js"]
    print(f"{'the first page':44} {sum((site / name).stat().st_size for name in files) / 1000:8.0f} kB")
    print(f"{'the whole site':44} {sum(path.stat().st_size for path in site.rglob('*') if path.is_file()) / 1e6:8.1f} MB")
    ready, painted, plot = [], [], []
    with Browser() as browser:
        browser.size(1280)
        for _ in range(PAGES):
            browser.open("about:blank")
            browser.open(f"file://{site}/index.html")
            browser.wait("performance.getEntriesByName('first-contentful-paint').length", "a picture")
            # All that a key or a click needs is there when the last script has run.
            ready.append(browser.run("return performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd") / 1000)
            painted.append(browser.run("return performance.getEntriesByName('first-contentful-paint')[0].startTime") / 1000)
            script = """const done = arguments[0], begin = performance.now();
                document.querySelector('.cell').click();
                const look = () => perfprop.plot && document.querySelector('.plot canvas') ? requestAnimationFrame(() => done(performance.now() - begin)) : requestAnimationFrame(look);
                look();"""
            plot.append(browser.ask("/execute/async", {"script": script, "args": []}) / 1000)
    said("from the address to a page that answers", ready)
    said("from the address to the first picture", painted)
    said("from a click to the plot", plot)


def main():
    program = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "target" / "release" / "perfprop").resolve()
    commits, benchmarks = [int(text) for text in sys.argv[2:]] or [2000, 50]
    with tempfile.TemporaryDirectory(prefix="perfprop-publish-") as scratch:
        folder = pathlib.Path(scratch)
        plain(folder, commits, benchmarks)
        results = sum(path.stat().st_size for path in (folder / "results").rglob("*.json")) / 1e6
        print(f"{commits} commits, {benchmarks} benchmarks, {results:.0f} MB of results")
        published(program, folder)
        opened(folder / "site")


if __name__ == "__main__":
    main()
