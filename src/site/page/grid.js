// Shows all benchmarks as small plots, those that regressed first.
"use strict";
(() => {
  const { make, numbers, data } = perfprop;
  const HEIGHT = 48, DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  const FIRST = 300;
  const digit = (character) => DIGITS.indexOf(character);
  // What an entry has at which place.
  const SERIES = 0, LINE = 1, PARAMS = 2, LATEST = 3, IS_NEWEST = 4, BEFORE = 5, AFTER = 6, REVISION = 7, RISE = 8, POINTS = 9, STEPS = 10, REASON = 11, IS_SHORT = 12;
  perfprop.reasons = { 1: "failed", 2: "skipped", 3: "another version of the benchmark", 4: "the commit couldn't be built or run" };

  const height = (character) => HEIGHT - 2 - digit(character) / 63 * (HEIGHT - 4);

  // A small plot: a stroke from the lowest to the highest value of each stretch, and the steps.
  const plot = (entry) => {
    const width = data.index.stretches;
    let points = "", steps = "", place = 0;
    for (let at = 0; at < entry[POINTS].length; at++, place++) {
      if (entry[POINTS][at] === ".") continue;
      const low = height(entry[POINTS][at]), high = height(entry[POINTS][++at]);
      points += "M" + (place + 0.5) + " " + (low + 1).toFixed(1) + "V" + (high - 1).toFixed(1);
    }
    for (let at = 0; at + 2 < entry[STEPS].length; at += 3) {
      const [left, right, level] = [digit(entry[STEPS][at]), digit(entry[STEPS][at + 1]) + 1, height(entry[STEPS][at + 2])];
      steps += (at && left === digit(entry[STEPS][at - 2]) + 1 ? "L" : "M") + left + " " + level.toFixed(1) + "H" + right;
    }
    return make("svg", { viewBox: "0 0 " + width + " " + HEIGHT, preserveAspectRatio: "none", "aria-hidden": "true" },
      make("path", { class: "points", d: points, "stroke-width": 0.8 }), make("path", { class: "steps", d: steps }));
  };

  const cell = (entry) => {
    const series = data.index.series[entry[SERIES]];
    const where = perfprop.where(series);
    const params = entry[PARAMS].map((value, place) => (series[4][place] ?? "") + "=" + value).join(", ");
    const of = [params, where].filter((text) => text).join(" · ");
    const hasStep = entry[BEFORE] !== null;
    const isUp = hasStep && entry[AFTER] > entry[BEFORE];
    const step = hasStep ? numbers.change(entry[BEFORE], entry[AFTER]) : entry[IS_SHORT] ? "too few for a step" : "no step";
    const missing = entry[REASON] ? "newest: " + perfprop.reasons[entry[REASON]] : entry[IS_NEWEST] ? "" : "not of the newest commit";
    const latest = entry[LATEST] === null ? "no number" : numbers.value(entry[LATEST], series[2]);
    return make("a", { class: entry[RISE] === null ? "cell" : "cell regressed", href: perfprop.toSeries(series, entry[LINE]) },
      make("div", { class: "name" }, series[1]),
      of ? make("div", { class: "of" }, of) : null,
      plot(entry),
      make("div", { class: "foot" },
        make("span", { class: "number" }, latest),
        make("span", { class: "number " + (entry[RISE] !== null || isUp ? "worse" : hasStep ? "better" : "dim"), title: entry[RISE] === null ? "the last step" : "the largest regression" }, entry[RISE] === null ? step : "regressed " + numbers.changeBy(entry[RISE]))),
      missing ? make("div", { class: "of" }, missing) : null);
  };

  // The regressions of each commit: the largest, and how many others there are.
  const OTHERS = 14;
  const byCommit = (rises) => {
    const groups = new Map();
    for (const rise of rises) {
      const key = rise[5] + " " + rise[6];
      if (groups.has(key)) groups.get(key)[OTHERS]++;
      else groups.set(key, [...rise, 0]);
    }
    return [...groups.values()];
  };

  // Rows of regressions, as the first page and the list of all have them.
  perfprop.riseTable = (rises) => {
    const row = ([at, line, before, after, chance, last, , hashBefore, hash, date, subject, commits, best, half, others = 0]) => {
      const by = numbers.change(before, after), left = numbers.change(before, best);
      const series = data.index.series[at];
      const entry = data.index.entries.find((one) => one[SERIES] === at && one[LINE] === line);
      const where = perfprop.where(series);
      const which = commits === 1 ? hash.slice(0, 8) : hashBefore.slice(0, 8) + ".." + hash.slice(0, 8);
      return make("tr", {},
        make("td", { class: "number date", "data-head": "When" }, date === null ? "" : numbers.date(date)),
        make("td", {}, make("a", { href: perfprop.toSeries(series, line, { at: hash }) }, perfprop.entryName(series, entry?.[PARAMS] ?? [])), where ? make("span", { class: "dim" }, " " + where) : null,
          others ? make("span", {}, " and ", make("a", { href: perfprop.to("commit", [hash]) }, numbers.count(others) + " more")) : null),
        make("td", { class: "number", "data-head": "Level" }, numbers.value(before, series[2]) + " → " + numbers.value(after, series[2])),
        make("td", { class: "number worse", "data-head": "Change" }, by + (half === null ? "" : " ±" + numbers.percent(half)), left === by ? null : make("span", { class: "dim" }, " of which " + left + " is left")),
        make("td", { class: "number", "data-head": "Chance" }, numbers.chance(chance)),
        make("td", { "data-head": commits === 1 ? "Commit" : "One of " + numbers.count(commits) + " commits" }, make("a", { class: "hash", href: perfprop.to("commit", [hash]) }, which), " " + subject));
    };
    const head = (text, isNumber) => make("th", { scope: "col", class: isNumber ? "number" : null }, text);
    return make("table", { class: "rises" },
      make("thead", {}, make("tr", {}, head("When", true), head("Benchmark"), head("Level", true), head("Change", true), head("Chance", true), head("Commit"))),
      make("tbody", {}, ...rises.map(row)));
  };

  // Which steps are regressions.
  perfprop.threshold = () => (100 * data.index.threshold).toFixed(1).replace(/\.0$/, "") + " %" + (data.index.hasThresholds ? " (or than a benchmark's own threshold)" : "");

  // How many series can't have a step, as they have too few numbers.
  perfprop.tooFew = (what) => {
    const { short, least, entries } = data.index;
    if (!short) return "";
    const which = short === entries.length ? (short === 1 ? "The only series has" : "All " + numbers.count(short) + " series have") : numbers.count(short) + " of " + numbers.count(entries.length) + " series " + (short === 1 ? "has" : "have");
    return which + " fewer than " + least + " numbers, too few to find " + what + ".";
  };

  // What is known of regressions, in sentences.
  const regressed = (index) => {
    if (index.allRises) return perfprop.tooFew("a step");
    if (index.short === index.entries.length) return perfprop.tooFew("a regression");
    return ["No step up of more than " + perfprop.threshold() + " stayed.", perfprop.tooFew("one")].join(" ");
  };

  const ORDERS = {
    regressed: ["regressed first", null],
    change: ["largest last step", (a, b) => Math.abs(numbers.part(b[BEFORE], b[AFTER]) ?? 0) - Math.abs(numbers.part(a[BEFORE], a[AFTER]) ?? 0)],
    newest: ["newest step", (a, b) => (b[REVISION] ?? -1) - (a[REVISION] ?? -1)],
    name: ["name", (a, b) => a[SERIES] - b[SERIES] || a[LINE] - b[LINE]],
  };

  // The names of parameters with the values that entries have of them.
  const parameters = () => {
    const all = new Map();
    for (const entry of data.index.entries) {
      const names = data.index.series[entry[SERIES]][4];
      entry[PARAMS].forEach((value, place) => {
        const name = names[place] ?? "";
        if (!all.has(name)) all.set(name, new Set());
        all.get(name).add(value);
      });
    }
    return [...all].filter(([, values]) => values.size > 1);
  };

  const fits = (entry, query) => {
    const series = data.index.series[entry[SERIES]];
    const text = (perfprop.entryName(series, entry[PARAMS]) + " " + perfprop.where(series)).toLowerCase();
    const words = (query.get("q") ?? "").toLowerCase().split(/\s+/);
    if (!words.every((word) => text.includes(word))) return false;
    for (const [name, value] of perfprop.differing(series)) {
      if (query.has(name) && query.get(name) !== (value ?? "")) return false;
    }
    return entry[PARAMS].every((value, place) => {
      const key = "param." + (series[4][place] ?? "");
      return !query.has(key) || query.get(key) === value;
    });
  };

  let made = null, scrolled = 0, opened = null;

  const build = () => {
    const { index } = data;
    const grid = make("div", { class: "grid", id: "grid" });
    const count = make("span", { class: "dim", id: "count", role: "status" });
    const more = make("p");
    const search = make("input", { type: "search", id: "search", placeholder: "Search (press /)", "aria-label": "Search benchmarks" });
    const fields = [["q", search]];
    const chooser = (key, label, values, all) => {
      const options = values.map(([value, text]) => make("option", { value }, text));
      const select = make("select", {}, all === null ? null : make("option", { value: "" }, all), ...options);
      fields.push([key, select]);
      return make("label", {}, label, select);
    };
    const named = (values) => [...values].map((value) => [value ?? "", value ?? "not set"]);
    const bar = make("div", { class: "bar", role: "search" }, search,
      ...perfprop.choosers().map(([name, values]) => chooser(name, name, named(values), "all")),
      ...parameters().map(([name, values]) => chooser("param." + name, name || "parameter", named(values), "all")),
      chooser("order", "Order", Object.entries(ORDERS).map(([key, [text]]) => [key, text]), null), count);
    const draw = (query, all) => {
      const order = Object.hasOwn(ORDERS, query.get("order") ?? "") ? ORDERS[query.get("order")][1] : null;
      const shown = index.entries.filter((entry) => fits(entry, query));
      if (order) shown.sort(order);
      const first = all ? shown : shown.slice(0, FIRST);
      grid.replaceChildren(...first.map(cell));
      count.textContent = numbers.count(shown.length) + " of " + numbers.many(index.entries.length, "plot");
      more.replaceChildren(...(first.length < shown.length ? [make("button", { type: "button", onclick: () => draw(query, true) }, "Show all " + numbers.count(shown.length))] : []));
    };
    const changed = () => {
      const query = new URLSearchParams();
      for (const [key, field] of fields) if (field.value !== "" && !(key === "order" && field.value === "regressed")) query.set(key, field.value);
      perfprop.choose(Object.fromEntries(query));
      draw(query, false);
    };
    bar.addEventListener("input", changed);
    const set = (query) => {
      for (const [key, field] of fields) field.value = query.get(key) ?? (key === "order" ? "regressed" : "");
      draw(query, false);
    };
    const [from, to] = index.range;
    const range = from ? ", from " + from[0] + " (" + numbers.date(from[1]) + ") to " + to[0] + " (" + numbers.date(to[1]) + ") " + to[2] : "";
    const failed = index.failed ? " (" + numbers.count(index.failed) + " couldn't be built or run)" : "";
    const element = make("section", {},
      make("h1", {}, "Benchmarks"),
      make("p", { class: "dim" }, numbers.many(index.measured, "commit") + " of " + numbers.count(index.history) + " measured" + failed + range),
      make("h2", {}, index.allRises ? numbers.many(index.allRises, "regression") : index.short === index.entries.length ? "No regressions known" : "No regressions"),
      index.allRises ? perfprop.riseTable(byCommit(index.rises).slice(0, 5)) : null,
      make("p", { class: index.allRises ? "dim" : null, id: "regressed" }, regressed(index)),
      index.allRises ? make("p", {}, make("a", { href: "#/regressions" }, "All regressions")) : null,
      make("h2", {}, "All benchmarks"),
      bar,
      make("p", { class: "dim" }, "Each plot has its own height. The strokes go from the lowest to the highest value, the lines are steps."),
      grid, more);
    return { element, grid, search, set };
  };

  // Moves the focus among cells; up and down by rows.
  const move = (by, isRow) => {
    const cells = [...made.grid.children];
    if (!cells.length) return;
    const at = cells.indexOf(document.activeElement);
    const columns = Math.max(1, cells.findIndex((one) => one.offsetTop > cells[0].offsetTop));
    const to = at < 0 ? 0 : Math.min(cells.length - 1, Math.max(0, at + by * (isRow ? columns : 1)));
    cells[to].focus();
  };

  perfprop.views[""] = (address) => {
    made ??= build();
    made.set(address.query);
    return {
      element: made.element,
      title: "",
      keepsFocus: true,
      shown: (hasCome) => {
        scrollTo(0, scrolled);
        if (hasCome && opened) [...made.grid.children].find((one) => one.getAttribute("href") === opened)?.focus({ preventScroll: true });
      },
      left: () => {
        scrolled = leaving;
        opened = made.grid.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
      },
      keys: {
        "/": () => made.search.focus(),
        j: () => move(1, false), k: () => move(-1, false),
        ArrowRight: () => move(1, false), ArrowLeft: () => move(-1, false),
        ArrowDown: () => made.grid.contains(document.activeElement) ? move(1, true) : false,
        ArrowUp: () => made.grid.contains(document.activeElement) ? move(-1, true) : false,
      },
    };
  };
  // Where the page was before the address changed.
  let leaving = 0;
  addEventListener("scroll", () => { if (document.documentElement.dataset.view === "grid") leaving = scrollY; }, { passive: true });
})();
