// Shows a commit, all regressions, and a profile.
"use strict";
(() => {
  const { make, numbers, data } = perfprop;

  // Cells of a row of what was measured of a commit.
  const SERIES = 0, LINE = 1, VALUE = 2, LOW = 3, HIGH = 4, SAMPLES = 5, BEFORE = 6, REASON = 7, PREVIOUS = 8;

  const paramsOf = (series, line) => {
    const at = data.index.series.indexOf(series);
    return data.index.entries.find((entry) => entry[0] === at && entry[1] === line)?.[2] ?? [];
  };

  const size = (row) => row[PREVIOUS] === null ? -1 : Math.abs(numbers.part(row[BEFORE], row[VALUE]) ?? 0);

  // A row of the table: what is new first.
  const benchmarkRow = (stems, byStem, hash, revision) => (row) => {
    const series = byStem.get(stems[row[SERIES]]);
    if (!series) return null;
    const [, , unit] = series, isNew = row[PREVIOUS] !== null, isUp = row[VALUE] > row[BEFORE];
    const between = isNew ? revision - row[PREVIOUS] - 1 : 0;
    const words = isNew ? "new level" + (between ? ", by this or one of the " + numbers.many(between, "commit") + " before it" : "") : "";
    const where = perfprop.where(series);
    return make("tr", { class: isNew ? "changed" + (isUp ? "" : " lower") : null },
      make("td", {}, make("a", { href: perfprop.toSeries(series, row[LINE], { at: hash }) }, perfprop.entryName(series, paramsOf(series, row[LINE]))), where ? make("span", { class: "dim" }, " " + where) : null),
      make("td", { class: "number", "data-head": "Value" }, row[VALUE] === null ? perfprop.reasons[row[REASON]] ?? "no number" : numbers.value(row[VALUE], unit)),
      make("td", { class: "number dim", "data-head": "99 % interval" }, row[VALUE] === null ? "" : numbers.certainty(row[LOW], row[HIGH], row[SAMPLES], unit)),
      make("td", { class: "number", "data-head": "Level before" }, row[BEFORE] === null ? "" : numbers.value(row[BEFORE], unit)),
      make("td", { class: "number " + (isNew ? isUp ? "worse" : "better" : ""), "data-head": "Change" }, row[VALUE] === null || row[BEFORE] === null ? "" : numbers.change(row[BEFORE], row[VALUE])),
      make("td", { class: isUp ? "worse" : "better" }, words));
  };

  const benchmarkTable = (measured, hash, revision) => {
    const byStem = new Map(data.index.series.map((series) => [series[0], series]));
    const rows = [...measured.rows].sort((a, b) => size(b) - size(a) || a[SERIES] - b[SERIES] || a[LINE] - b[LINE]);
    const made = rows.map(benchmarkRow(measured.series, byStem, hash, revision)).filter((row) => row);
    const head = (text, isNumber) => make("th", { scope: "col", class: isNumber ? "number" : null }, text);
    const table = make("table", { id: "values" },
      make("thead", {}, make("tr", {}, head("Benchmark"), head("Value", true), head("99 % interval", true), head("Level before", true), head("Change", true), head(""))),
      make("tbody", {}, ...made));
    const changed = rows.filter((row) => row[PREVIOUS] !== null).length;
    return { table, changed, count: made.length };
  };

  const profileList = (hash, profiles) => profiles.length === 0 ? null : make("div", {}, make("h2", {}, "Profiles"),
    make("ul", {}, ...profiles.map(([benchmark, event, machine, file]) => make("li", {}, make("a", { href: perfprop.to("profile", [hash, file.replace("profiles/", "")]) }, benchmark + (event ? ", " + event : "") + (machine ? " on " + machine : ""))))));

  // The state of a commit that has no number.
  const FAILED = 1;
  const failure = (hash) => make("div", { id: "failed" },
    make("p", { class: "worse" }, "This commit couldn't be built, or none of its benchmarks could be run."),
    make("p", {}, "Results don't keep why. With the build and the benchmarks of then, this builds it again in the repository, and names the log: ", perfprop.copied("perfprop history run " + hash)));

  const findCommit = async (hash) => {
    await perfprop.loadCommits();
    let place = data.commits.byHash.get(hash);
    if (place === undefined && hash.length >= 4) place = data.commits.list.findIndex((one) => one[1].startsWith(hash));
    if (place === undefined || place < 0) throw new Error("nothing is known of a commit " + hash);
    return place;
  };

  perfprop.views.commit = async ({ names }) => {
    const place = await findCommit(names[0] ?? "");
    const [revision, hash, date, subject, state] = data.commits.list[place];
    const measured = await perfprop.loadMeasured(place);
    const { table, changed, count } = benchmarkTable(measured, hash, revision);
    const beside = (by, text) => {
      const other = data.commits.list[place + by];
      return other ? make("a", { href: perfprop.to("commit", [other[1]]) }, text + " " + other[1].slice(0, 8) + (other[4] === FAILED ? " (not built or run)" : "")) : make("span", { class: "dim" }, by < 0 ? "the oldest of these commits" : "the newest of these commits");
    };
    const go = (by) => {
      const other = data.commits.list[place + by];
      if (other) location.replace(perfprop.to("commit", [other[1]]));
    };
    const between = place > 0 ? revision - data.commits.list[place - 1][0] - 1 : 0;
    const earlier = place > 0 ? data.commits.list[place - 1][1].slice(0, 12) : null;
    const element = make("section", {},
      make("h1", {}, make("span", { class: "hash" }, hash.slice(0, 12)), " " + subject),
      make("p", { class: "dim" }, numbers.date(date)),
      make("p", {}, perfprop.copied("git show " + hash)),
      between ? make("p", {}, numbers.many(between, "commit") + " before it not measured: ", perfprop.copied("git log " + earlier + ".." + hash.slice(0, 12))) : null,
      state === FAILED ? failure(hash) : null,
      make("p", { class: "bar" }, beside(-1, "←"), beside(1, "→")),
      profileList(hash, measured.profiles),
      make("h2", {}, state !== 0 && count ? "No number of " + numbers.many(count, "benchmark") : changed ? numbers.many(changed, "new level") + " of " + numbers.many(count, "benchmark") : count ? "No new level of " + numbers.many(count, "benchmark") : "No benchmarks"),
      count ? table : null);
    return { element, title: hash.slice(0, 8), keys: { ArrowLeft: () => go(-1), ArrowRight: () => go(1), k: () => go(-1), j: () => go(1) } };
  };

  perfprop.views.regressions = async ({ query }) => {
    if (data.index.allRises > data.index.rises.length) await perfprop.load("data/regressions.js");
    const all = data.regressions ?? data.index.rises;
    const search = make("input", { type: "search", "aria-label": "Search regressions", placeholder: "Search (press /)" });
    const body = make("div");
    const draw = () => {
      const words = search.value.toLowerCase().split(/\s+/);
      const table = perfprop.riseTable(all);
      const rows = [...table.tBodies[0].rows];
      rows.filter((row) => !words.every((word) => row.textContent.toLowerCase().includes(word))).forEach((row) => row.remove());
      body.replaceChildren(table.tBodies[0].rows.length ? table : make("p", {}, "None"));
    };
    search.value = query.get("q") ?? "";
    search.addEventListener("input", () => {
      perfprop.choose({ q: search.value });
      draw();
    });
    draw();
    const element = make("section", {},
      make("h1", {}, numbers.many(all.length, "regression")),
      make("p", { class: "dim" }, "Steps up of more than " + perfprop.threshold() + " from which the benchmark never came back, the newest first. Chance: how likely noise alone makes a step as clear somewhere in the series. " + perfprop.tooFew("a step")),
      make("div", { class: "bar" }, search, make("a", { href: "regressions.xml" }, "Atom feed")), body);
    return { element, title: "Regressions", keys: { "/": () => search.focus() } };
  };

  perfprop.views.profile = async ({ names }) => {
    const place = await findCommit(names[0] ?? "");
    const [, hash, , subject] = data.commits.list[place];
    const measured = await perfprop.loadMeasured(place);
    const found = measured.profiles.find(([, , , file]) => file === "profiles/" + names[1]);
    if (!found) throw new Error("the site has no such profile of this commit");
    const [benchmark, event, machine, file] = found;
    const element = make("section", {},
      make("h1", {}, benchmark + (event ? ", " + event : "")),
      make("p", {}, make("a", { class: "hash", href: perfprop.to("commit", [hash]) }, hash.slice(0, 12)), " " + subject + (machine ? ", on " + machine : "")),
      make("p", {}, "A click zooms, Esc zooms out, / searches. ", make("a", { href: file }, "The picture alone")),
      make("div", { class: "flame", tabindex: "0", role: "group", "aria-label": "Flame graph, which may be wider than the window" }, make("object", { data: file, type: "image/svg+xml", "aria-label": "Flame graph of " + benchmark }, make("a", { href: file }, "The flame graph"))));
    return { element, title: benchmark + " at " + hash.slice(0, 8) };
  };
})();
