// Holds what all views need: elements, data that is loaded when it is asked for, addresses, keys, the theme.
"use strict";
(() => {
  const data = { index: null, commits: null, regressions: null, series: new Map(), measured: new Map() };
  perfprop.data = data;

  // An element. What is no attribute of a kind below is set as one; texts become text and nothing else.
  perfprop.make = (tag, attributes = {}, ...children) => {
    const isSvg = tag === "svg" || tag === "path";
    const made = isSvg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
      else if (value === true) made.setAttribute(name, "");
      else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value);
    }
    made.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
    return made;
  };
  const make = perfprop.make;

  // What the data's scripts call.
  perfprop.commits = (_, all) => {
    data.commits = all;
    all.byHash = new Map(all.list.map((one, place) => [one[1], place]));
    all.byRevision = new Map(all.list.map((one, place) => [one[0], place]));
  };
  perfprop.regressions = (_, all) => { data.regressions = all; };
  perfprop.series = (stem, all) => { data.series.set(stem, all); };
  perfprop.measured = (number, all) => { data.measured.set(number, all); };

  // Runs a script of the site, once. Files can't be read in another way where there is no server.
  const loading = new Map();
  perfprop.load = (file) => {
    if (!loading.has(file)) {
      loading.set(file, new Promise((resolve, reject) => {
        const failed = () => {
          loading.delete(file);
          reject(new Error(file + " can't be loaded: publish the site again, or reload this page"));
        };
        document.head.append(make("script", { src: file, onload: resolve, onerror: failed }));
      }));
    }
    return loading.get(file);
  };
  perfprop.loadCommits = () => perfprop.load("data/commits.js");
  perfprop.loadSeries = async (stem) => {
    await perfprop.load("data/series-" + stem + ".js");
    return data.series.get(stem);
  };
  // What was measured of the commit at a place of the list.
  perfprop.loadMeasured = async (place) => {
    const number = Math.floor(place / data.commits.each);
    await perfprop.load("data/commits-" + number + ".js");
    const all = data.measured.get(number);
    const one = all.commits[place % data.commits.each];
    if (!one || one.hash !== data.commits.list[place][1]) throw new Error("the site was published anew: reload this page");
    return { series: all.series, ...one };
  };

  // Addresses: #/VIEW/NAME?KEY=VALUE.
  perfprop.address = () => {
    // What isn't an address leads to a place of the first page.
    const [path, query] = (location.hash.startsWith("#/") ? location.hash.slice(2) : "").split("?", 2);
    const decode = (part) => {
      try {
        return decodeURIComponent(part);
      } catch {
        return part;
      }
    };
    const [view, ...names] = path.split("/").map(decode);
    return { view, names, query: new URLSearchParams(query ?? "") };
  };
  perfprop.to = (view, names = [], query = {}) => {
    const given = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "");
    const text = new URLSearchParams(given).toString();
    return "#/" + [view, ...names].filter((part) => part !== "").map(encodeURIComponent).join("/") + (text ? "?" + text : "");
  };
  // The address of the same view with other choices: no new place to come back to.
  perfprop.choose = (query) => {
    const { view, names } = perfprop.address();
    history.replaceState(history.state, "", perfprop.to(view, names, query));
  };

  // Series by what tells them apart.
  perfprop.differing = (series) => {
    const all = data.index.differing;
    return all.map(([name, values], place) => [name, series[3][place] === null ? null : values[series[3][place]]]);
  };
  perfprop.where = (series) => {
    const chosen = perfprop.choosers().map(([name]) => name);
    const word = ([name, value]) => name === "machine" ? value ?? "no machine" : value === "added" ? value : name + " " + (value ?? "not set");
    // What was added lacks several names, and is told once.
    return [...new Set(perfprop.differing(series).filter(([name]) => chosen.includes(name)).map(word))].join(", ");
  };
  perfprop.toSeries = (series, line, more = {}) => {
    const query = Object.fromEntries(perfprop.differing(series).filter(([name]) => perfprop.choosers().some(([chosen]) => chosen === name)));
    return perfprop.to("series", [series[1]], { ...query, lines: line === null ? null : String(line), ...more });
  };
  // What of machines and environments is offered to choose from: what follows from the others is left out.
  let choosers = null;
  perfprop.choosers = () => {
    if (choosers) return choosers;
    const { differing, series } = data.index;
    const ordered = differing.map((one, place) => [...one, place]).sort((a, b) => (b[0] === "machine") - (a[0] === "machine"));
    choosers = [];
    for (const one of ordered) {
      const seen = new Map();
      const follows = series.every((of) => {
        const key = choosers.map(([, , place]) => of[3][place]).join();
        if (!seen.has(key)) seen.set(key, of[3][one[2]]);
        return seen.get(key) === of[3][one[2]];
      });
      if (!follows) choosers.push(one);
    }
    return choosers;
  };
  // A benchmark with its parameters, as lists have it.
  perfprop.entryName = (series, params) => series[1] + (params.length ? "(" + params.join(", ") + ")" : "");

  let saying = 0;
  perfprop.say = (text) => {
    const said = document.getElementById("said");
    said.textContent = text;
    clearTimeout(saying);
    saying = setTimeout(() => { said.textContent = ""; }, 4000);
  };

  // A text to copy, with a button.
  perfprop.copied = (text) => {
    const copy = async () => {
      try {
        await navigator.clipboard.writeText(text);
        perfprop.say("copied");
      } catch {
        perfprop.say("the browser doesn't let pages copy: select the text");
      }
    };
    return make("span", { class: "copy" }, make("code", {}, text), make("button", { type: "button", onclick: copy }, "Copy"));
  };

  // The theme: the system's unless another is chosen.
  const THEMES = ["auto", "dark", "light"];
  const stored = () => {
    try {
      return localStorage.getItem("perfprop-theme");
    } catch {
      return null;
    }
  };
  let theme = THEMES.includes(stored()) ? stored() : "auto";
  const setTheme = () => {
    if (theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    document.getElementById("theme").textContent = "Theme: " + theme;
  };
  const nextTheme = () => {
    theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
    try {
      localStorage.setItem("perfprop-theme", theme);
    } catch {
      // It lasts as long as the page.
    }
    setTheme();
    current?.themed?.();
  };
  setTheme();
  document.getElementById("theme").addEventListener("click", nextTheme);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => current?.themed?.());
  const help = document.getElementById("help");
  document.getElementById("help-open").addEventListener("click", () => help.showModal());

  // Views: each is a function of the address that makes {element, title, keys?, themed?, shown?, left?}, now or later.
  perfprop.views = {};
  let current = null, turn = 0, hasCome = false;
  const mark = (view) => {
    for (const [id, of] of [["to-grid", ""], ["to-regressions", "regressions"]]) {
      const link = document.getElementById(id);
      if (of === view) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
  };
  const failure = (error) => ({
    title: "Not found",
    element: make("section", {}, make("h1", {}, "This can't be shown"), make("p", {}, error.message), make("p", {}, make("a", { href: "#/" }, "All benchmarks"))),
  });
  const show = async () => {
    if (current && location.hash !== "" && !location.hash.startsWith("#/")) return;
    const own = ++turn;
    const address = perfprop.address();
    const view = Object.hasOwn(perfprop.views, address.view) ? perfprop.views[address.view] : null;
    let next;
    try {
      if (!view) throw new Error("the site has no page of this address");
      next = view(address);
      if (next instanceof Promise) next = await next;
    } catch (error) {
      next = failure(error);
    }
    // Somebody went on while it was loaded.
    if (own !== turn) return;
    current?.left?.();
    current = next;
    document.getElementById("main").replaceChildren(next.element);
    document.title = next.title ? next.title + " · " + data.index.title : data.index.title;
    mark(address.view);
    const from = hasCome;
    hasCome = true;
    if (next.shown) next.shown(from);
    else scrollTo(0, 0);
    if (from && !next.keepsFocus) document.getElementById("main").focus({ preventScroll: true });
    document.documentElement.dataset.view = address.view || "grid";
  };
  perfprop.index = (_, all) => {
    data.index = all;
    document.getElementById("to-regressions").textContent = "Regressions (" + perfprop.numbers.count(all.allRises) + ")";
    addEventListener("hashchange", show);
    show();
  };

  // Keys. What is typed into a field is the field's.
  const back = () => {
    if (perfprop.address().view === "") return;
    if (history.length > 1 && history.state?.isOfSite) history.back();
    else location.hash = "#/";
  };
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || help.open) return;
    const isField = /^(input|select|textarea)$/.test(event.target.localName) && event.target.type !== "checkbox";
    if (isField) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    const keys = { "?": () => help.showModal(), t: nextTheme, r: () => { location.hash = "#/regressions"; }, Escape: back };
    const act = (current?.keys && Object.hasOwn(current.keys, event.key) ? current.keys[event.key] : null) ?? (Object.hasOwn(keys, event.key) ? keys[event.key] : null);
    if (!act) return;
    if (act(event) !== false) event.preventDefault();
  });
  // A place that was reached within the site has one to go back to.
  addEventListener("hashchange", () => {
    if (!history.state) history.replaceState({ isOfSite: true }, "");
  });
})();
