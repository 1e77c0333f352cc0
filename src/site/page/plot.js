// Shows all points of a benchmark: medians with intervals, steps, commits without numbers; a click leads to the commit.
"use strict";
(() => {
  const { make, numbers, data } = perfprop;
  const COLORS = 8;
  const FONT = "12px system-ui, sans-serif";
  const SCALES = { data: "from the data", zero: "from zero", log: "logarithmic" };
  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const lineColor = (line) => color("--line-" + line % COLORS);

  // The series of a name that fits what the address says of machines and environments.
  const find = (name, query) => {
    const all = data.index.series.filter((series) => series[1] === name);
    // What isn't set isn't in the address.
    const fit = (series) => perfprop.differing(series).reduce((sum, [key, value]) => sum + (query.has(key) ? 2 * (query.get(key) === (value ?? "")) : value === null), 0);
    if (!all.length) throw new Error("the site has no benchmark " + name);
    return { all, chosen: all.reduce((best, one) => fit(one) > fit(best) ? one : best) };
  };

  const chosenLines = (query, count) => {
    const named = (query.get("lines") ?? "").split(",").filter((text) => /^\d+$/.test(text)).map(Number).filter((line) => line < count);
    return new Set(named.length ? named : query.get("lines") === "none" ? [] : Array.from({ length: Math.min(count, COLORS) }, (_, line) => line));
  };

  // What the commit at a place of the series is.
  const commitAt = (series, place) => {
    const at = data.commits.byRevision.get(series.revisions[place]);
    const [revision, hash, date, subject] = data.commits.list[at];
    return { revision, hash, date, subject };
  };

  // The names of the tags of a revision.
  const tagsOf = (revision) => data.commits.tags.filter(([at]) => at === revision).map(([, , name]) => name);

  // What is known of a place, for the lines that are shown.
  const describe = (series, place, lines) => {
    const { revision, hash, date, subject } = commitAt(series, place);
    const told = [...lines].map((number) => {
      const line = series.lines[number];
      const reason = line.reasons.find(([at]) => at === place);
      const name = series.lines.length > 1 ? line.label + ": " : "";
      if (reason) return make("div", {}, name + "no number: " + perfprop.reasons[reason[1]]);
      const samples = line.samples[place];
      const begins = line.steps.findIndex(([first], at) => at > 0 && first === place);
      return make("div", {}, name, make("b", {}, numbers.value(line.values[place], series.unit)),
        ", 99 % interval " + numbers.certainty(line.low[place], line.high[place], samples, series.unit),
        begins > 0 ? make("span", { class: line.steps[begins][2] > line.steps[begins - 1][2] ? "worse" : "better" }, ", new level " + numbers.change(line.steps[begins - 1][2], line.steps[begins][2])) : null);
    });
    const before = place > 0 ? revision - series.revisions[place - 1] - 1 : 0;
    return [
      make("div", {}, make("a", { class: "hash", href: perfprop.to("commit", [hash]) }, hash.slice(0, 12)), " " + numbers.date(date) + " " + subject, ...tagsOf(revision).map((name) => make("span", { class: "dim" }, " tag " + name))),
      ...told,
      before > 0 ? make("div", { class: "dim" }, numbers.many(before, "commit") + " before it not measured") : null,
    ].filter((one) => one);
  };

  const isSeen = (state, plot, place) => state.xs[place] >= plot.scales.x.min && state.xs[place] <= plot.scales.x.max;

  // Draws what uPlot doesn't: intervals, steps with their levels, places without numbers, stretches that weren't measured.
  const drawn = (state) => {
    const { series } = state;
    const within = (plot, draw) => {
      const { ctx, bbox } = plot;
      ctx.save();
      ctx.beginPath();
      ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
      ctx.clip();
      draw(ctx, bbox, devicePixelRatio, (place) => plot.valToPos(state.xs[place], "x", true), (value) => plot.valToPos(value, "y", true));
      ctx.restore();
    };
    const whiskers = (plot) => within(plot, (ctx, bbox, pixel, x, y) => {
      const seen = [...state.xs.keys()].filter((place) => isSeen(state, plot, place));
      // Bars, as lines would look like those of the grid; ends have a cap where there is room.
      const half = pixel * Math.max(0.5, Math.min(4, 0.35 * bbox.width / pixel / seen.length));
      for (const number of state.lines) {
        const line = series.lines[number];
        ctx.fillStyle = ctx.strokeStyle = lineColor(number);
        ctx.lineWidth = pixel;
        ctx.beginPath();
        for (const place of seen) {
          if (line.values[place] === null || line.low[place] === null) continue;
          const low = state.scale === "log" && line.low[place] <= 0 ? plot.scales.y.min : line.low[place];
          const [left, top, bottom] = [x(place) - half, y(line.high[place]), y(low)];
          ctx.globalAlpha = half < 2 * pixel ? 0.4 : 0.18;
          ctx.fillRect(left, top, 2 * half, bottom - top);
          if (half < 2 * pixel) continue;
          for (const end of [top, bottom]) {
            ctx.moveTo(left, end);
            ctx.lineTo(left + 2 * half, end);
          }
        }
        ctx.globalAlpha = 0.7;
        ctx.stroke();
      }
    });
    const gaps = (ctx, bbox, pixel, x) => {
      const bottom = bbox.top + bbox.height;
      ctx.fillStyle = color("--range");
      for (let place = 1; place < state.xs.length; place++) {
        if (series.revisions[place] - series.revisions[place - 1] < 2) continue;
        const [left, right] = [x(place - 1) + 3 * pixel, x(place) - 3 * pixel];
        if (right > left) ctx.fillRect(left, bottom - 3 * pixel, right - left, 3 * pixel);
      }
      ctx.strokeStyle = color("--worse");
      ctx.lineWidth = 1.5 * pixel;
      ctx.beginPath();
      const size = 3.5 * pixel;
      for (const number of state.lines) {
        for (const [place] of series.lines[number].reasons) {
          const [across, down] = [x(place), bottom - 9 * pixel];
          ctx.moveTo(across - size, down - size);
          ctx.lineTo(across + size, down + size);
          ctx.moveTo(across - size, down + size);
          ctx.lineTo(across + size, down - size);
        }
      }
      ctx.stroke();
    };
    const steps = (plot) => within(plot, (ctx, bbox, pixel, x, y) => {
      gaps(ctx, bbox, pixel, x);
      ctx.font = 12 * pixel + "px system-ui, sans-serif";
      ctx.textBaseline = "bottom";
      ctx.textAlign = "left";
      const taken = [];
      for (const number of state.lines) {
        ctx.strokeStyle = lineColor(number);
        ctx.lineWidth = 2 * pixel;
        let before = null;
        for (const [first, last, level] of series.lines[number].steps) {
          const [left, right, down] = [x(first), x(last), y(level)];
          ctx.beginPath();
          if (before !== null) ctx.moveTo(left, before);
          ctx.lineTo(left, down);
          ctx.lineTo(right, down);
          ctx.stroke();
          before = down;
          const text = numbers.value(level, series.unit), width = ctx.measureText(text).width;
          const [begin, end] = [Math.max(left, bbox.left), Math.min(right, bbox.left + bbox.width)];
          if (width + 8 * pixel > end - begin) continue;
          const top = down - 5 * pixel - 14 * pixel < bbox.top ? down + 18 * pixel : down - 4 * pixel;
          const place = [begin + 2 * pixel, top - 14 * pixel, begin + width + 6 * pixel, top];
          if (taken.some((other) => place[0] < other[2] && other[0] < place[2] && place[1] < other[3] && other[1] < place[3])) continue;
          taken.push(place);
          ctx.fillStyle = color("--card");
          ctx.globalAlpha = 0.8;
          ctx.fillRect(place[0], place[1], place[2] - place[0], place[3] - place[1]);
          ctx.globalAlpha = 1;
          ctx.fillStyle = color("--text");
          ctx.fillText(text, begin + 4 * pixel, top);
        }
      }
    });
    // Tags, as dotted lines with their names where there is room.
    const tags = (plot) => within(plot, (ctx, bbox, pixel) => {
      ctx.font = 11 * pixel + "px system-ui, sans-serif";
      ctx.textBaseline = "top";
      ctx.textAlign = "left";
      ctx.lineWidth = pixel;
      ctx.setLineDash([2 * pixel, 3 * pixel]);
      ctx.strokeStyle = ctx.fillStyle = color("--dim");
      let end = bbox.left;
      for (const [revision, date, name] of data.commits.tags) {
        const at = plot.valToPos(state.axis === "date" ? date : revision, "x", true);
        if (at < bbox.left || at > bbox.left + bbox.width) continue;
        ctx.beginPath();
        ctx.moveTo(at, bbox.top);
        ctx.lineTo(at, bbox.top + bbox.height);
        ctx.stroke();
        const text = name.length > 24 ? name.slice(0, 23) + "…" : name;
        if (at < end) continue;
        ctx.fillText(text, at + 3 * pixel, bbox.top + 2 * pixel);
        end = at + ctx.measureText(text).width + 9 * pixel;
      }
    });
    return { whiskers, steps, tags };
  };

  // The ends of the axis of values: all medians and levels that are seen. Intervals find a little room beyond them, as those of few
  // runs are far longer than what a plot is looked at for.
  const ends = (state) => (plot, least, most) => {
    if (least === null || most === null) return [0, 1];
    const seen = [...state.xs.keys()].filter((place) => isSeen(state, plot, place));
    const { lines } = state.series;
    for (const number of state.lines) {
      for (const [first, last, level] of lines[number].steps) {
        if (state.xs[last] < plot.scales.x.min || state.xs[first] > plot.scales.x.max) continue;
        [least, most] = [Math.min(least, level), Math.max(most, level)];
      }
    }
    const span = Math.max(most - least, 0.02 * Math.max(Math.abs(least), Math.abs(most))) || 1;
    let [low, high] = [least, most];
    for (const number of state.lines) {
      const line = lines[number];
      for (const place of seen) {
        if (line.low[place] === null || line.values[place] === null) continue;
        low = Math.min(low, Math.max(line.low[place], least - 0.15 * span));
        high = Math.max(high, Math.min(line.high[place], most + 0.15 * span));
      }
    }
    if (state.scale === "log" && least > 0) return uPlot.rangeLog(Math.max(low, least / 2), high, 10, false);
    if (high - low < span) [low, high] = [(low + high - span) / 2, (low + high + span) / 2];
    const room = 0.08 * (high - low);
    if (state.scale === "zero") return [Math.min(0, low - (low < 0 ? room : 0)), Math.max(0, high + room)];
    // Where nothing is negative there is no axis below zero, but for half a point.
    return [least >= 0 ? Math.max(-room / 2, low - room) : low - room, high + room];
  };

  // How wide the longest of texts is.
  const widest = (plot, texts) => {
    plot.ctx.save();
    plot.ctx.font = FONT;
    const widths = texts.map((text) => plot.ctx.measureText(text).width);
    plot.ctx.restore();
    return Math.ceil(Math.max(24, ...widths));
  };

  const options = (state, width, onMove) => {
    const { series } = state;
    const { whiskers, steps, tags } = drawn(state);
    const dated = (x) => {
      if (state.axis === "date") return numbers.date(x);
      if (x < series.revisions[0] || x > series.revisions[series.revisions.length - 1]) return "";
      // The last one that was measured by then.
      let place = series.revisions.findIndex((revision) => revision > x);
      place = place < 0 ? series.revisions.length - 1 : Math.max(0, place - 1);
      return numbers.date(commitAt(series, place).date);
    };
    const axis = { stroke: color("--dim"), grid: { stroke: color("--line"), width: 1 }, ticks: { stroke: color("--line"), width: 1 }, font: FONT };
    const points = (number) => ({ show: true, space: 0, size: state.xs.length > 400 ? 3 : 6, fill: lineColor(number), stroke: lineColor(number), width: 0 });
    return {
      width, height: Math.round(Math.min(460, Math.max(240, innerHeight * 0.5))),
      scales: { x: { time: false, range: (_, low, high) => low === high ? [low - 1, high + 1] : [low - 0.02 * (high - low), high + 0.02 * (high - low)] }, y: { distr: state.scale === "log" ? 3 : 1, range: ends(state) } },
      legend: { show: false },
      padding: [null, 40, null, null],
      cursor: { drag: { x: true, y: false, dist: 6 }, points: { size: 9 } },
      axes: [
        { ...axis, grid: { show: false }, space: 90, incrs: state.axis === "date" ? undefined : [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000, 200000, 500000, 1000000], values: (_, xs) => xs.map((x) => x === null ? "" : dated(x)) },
        { ...axis, size: (plot, values) => 24 + widest(plot, values ?? []), values: (_, ys) => numbers.ticks(ys, ["seconds", "nanoseconds"].includes(series.unit) ? series.unit : "") },
      ],
      series: [{}, ...state.shown.map((number) => ({ label: series.lines[number].label, stroke: lineColor(number), paths: () => null, points: points(number) }))],
      hooks: { drawAxes: [tags, whiskers], draw: [steps], setCursor: [(plot) => onMove(plot.cursor.idx)] },
    };
  };

  // The plot itself, with its keys.
  const makePlot = (state, panel) => {
    const box = make("div", { class: "plot", tabindex: "0", role: "group", "aria-label": "Plot of " + state.series.name + "; arrows move from commit to commit, Enter opens one" });
    let plot = null, at = null;
    const tell = (place) => {
      if (place === null || place === undefined) return;
      at = place;
      panel.replaceChildren(...describe(state.series, place, state.lines));
    };
    const draw = () => {
      const zoom = plot && plot.scales.x.min !== null && state.isZoomed ? [plot.scales.x.min, plot.scales.x.max] : null;
      plot?.destroy();
      state.shown = [...state.lines];
      state.xs = state.axis === "date" ? state.dates : state.series.revisions;
      const rows = state.shown.map((number) => state.axis === "date" ? state.order.map((place) => state.series.lines[number].values[place]) : state.series.lines[number].values);
      const xs = state.axis === "date" ? state.order.map((place) => state.dates[place]) : state.xs;
      const toPlace = (index) => state.axis === "date" && index !== null && index !== undefined ? state.order[index] : index;
      plot = new uPlot(options(state, Math.max(200, box.clientWidth), (index) => tell(toPlace(index))), [xs, ...rows], box);
      if (zoom && state.axis === state.zoomedAxis) plot.setScale("x", { min: zoom[0], max: zoom[1] });
      plot.over.addEventListener("mousedown", (event) => { state.pressed = event.clientX; });
      plot.over.addEventListener("mouseup", (event) => { if (Math.abs(event.clientX - state.pressed) >= 6) { state.isZoomed = true; state.zoomedAxis = state.axis; } });
      plot.over.addEventListener("dblclick", () => { state.isZoomed = false; });
      plot.over.addEventListener("click", (event) => { if (Math.abs(event.clientX - state.pressed) < 6 && event.detail < 2) openLater(); });
      perfprop.plot = plot;
    };
    // A double click resets the zoom, so a click waits for the second one while it is zoomed.
    let waiting = null;
    const open = () => { if (at !== null) location.hash = perfprop.to("commit", [commitAt(state.series, at).hash]); };
    const openLater = () => {
      clearTimeout(waiting);
      if (!state.isZoomed) open();
      else waiting = setTimeout(open, 300);
    };
    const cancel = () => clearTimeout(waiting);
    const go = (place) => {
      const last = state.series.revisions.length - 1;
      const to = Math.min(last, Math.max(0, place));
      const line = state.series.lines[state.shown[0] ?? 0];
      const top = line.values[to] === null ? plot.over.clientHeight / 2 : plot.valToPos(line.values[to], "y");
      plot.setCursor({ left: plot.valToPos(state.xs[to], "x"), top });
      tell(to);
    };
    box.addEventListener("dblclick", cancel);
    const sized = new ResizeObserver(() => plot?.setSize({ width: Math.max(200, box.clientWidth), height: plot.height }));
    const reset = () => {
      state.isZoomed = false;
      draw();
    };
    return {
      box, draw, tell, open, go, reset,
      move: (by) => go(at === null ? (by > 0 ? 0 : state.series.revisions.length - 1) : at + by),
      start: () => { draw(); sized.observe(box); },
      end: () => { sized.disconnect(); cancel(); plot?.destroy(); plot = null; },
    };
  };

  // A table of steps: where each begins, and by how much it differs.
  const stepTable = (series, lines) => {
    const rows = [...lines].flatMap((number) => series.lines[number].steps.map(([first, last, level], at) => {
      const line = series.lines[number], change = at ? line.changes[at - 1] : null;
      const { hash, subject } = commitAt(series, first);
      const isUp = at > 0 && level > line.steps[at - 1][2];
      const between = at ? series.revisions[first] - series.revisions[line.steps[at - 1][1]] : 1;
      return make("tr", {},
        series.lines.length > 1 ? make("td", {}, line.label) : null,
        make("td", { class: "number", "data-head": "Level" }, numbers.value(level, series.unit)),
        make("td", { class: "number " + (at ? isUp ? "worse" : "better" : ""), "data-head": "Change" }, at ? numbers.change(line.steps[at - 1][2], level) : "first"),
        make("td", { class: "number", "data-head": "95 % interval" }, change ? numbers.interval(change[1], change[2], series.unit) : ""),
        make("td", { class: "number", "data-head": "Chance" }, change ? numbers.chance(change[3]) : ""),
        make("td", { "data-head": "From" }, make("a", { class: "hash", href: perfprop.to("commit", [hash]) }, hash.slice(0, 8)), " " + subject + (between > 1 ? " (or one of the " + numbers.many(between - 1, "commit") + " before it, which have no number)" : "")));
    }));
    const head = (text, isNumber) => make("th", { scope: "col", class: isNumber ? "number" : null }, text);
    return make("table", {}, make("thead", {}, make("tr", {}, series.lines.length > 1 ? head("Line") : null, head("Level", true), head("Change", true), head("95 % interval of the change", true), head("Chance", true), head("From commit"))), make("tbody", {}, ...rows));
  };

  // All numbers as text, made when it is opened.
  const allNumbers = (series, lines) => {
    const details = make("details", {}, make("summary", {}, "All numbers as a table"));
    details.addEventListener("toggle", () => {
      if (!details.open || details.children.length > 1) return;
      const head = (text) => make("th", { scope: "col" }, text);
      const row = (place) => {
        const { hash, date, subject } = commitAt(series, place);
        const cell = (number) => {
          const line = series.lines[number], reason = line.reasons.find(([at]) => at === place);
          return make("td", { class: "number", "data-head": line.label }, reason ? perfprop.reasons[reason[1]] : numbers.value(line.values[place], series.unit));
        };
        return make("tr", {}, make("td", {}, make("a", { class: "hash", href: perfprop.to("commit", [hash]) }, hash.slice(0, 8))), make("td", { class: "number date" }, numbers.date(date)), ...[...lines].map(cell), make("td", {}, subject));
      };
      details.append(make("table", {}, make("thead", {}, make("tr", {}, head("Commit"), head("Date"), ...[...lines].map((number) => head(series.lines[number].label)), head("Subject"))), make("tbody", {}, ...series.revisions.map((_, place) => row(place)))));
    });
    return details;
  };

  const legend = (state, changed) => {
    const box = (line, number) => {
      const input = make("input", { type: "checkbox", checked: state.lines.has(number) });
      input.addEventListener("change", () => {
        if (input.checked) state.lines.add(number);
        else state.lines.delete(number);
        state.lines = new Set([...state.lines].sort((a, b) => a - b));
        changed();
      });
      const swatch = make("span", { class: "swatch" });
      swatch.style.background = "var(--line-" + number % COLORS + ")";
      return make("label", {}, input, swatch, line.params.map((value, place) => (state.series.paramNames[place] ?? "") + "=" + value).join(", ") || line.label);
    };
    const all = (isOn) => make("button", { type: "button", onclick: () => {
      state.lines = new Set(isOn ? state.series.lines.keys() : []);
      for (const input of element.querySelectorAll("input")) input.checked = isOn;
      changed();
    } }, isOn ? "All" : "None");
    const element = make("div", { class: "legend", role: "group", "aria-label": "Lines" }, ...state.series.lines.map(box), all(true), all(false));
    return element;
  };

  // Choices among series of the same name: machines and environments.
  const whereChooser = (all, chosen, query) => {
    if (all.length < 2) return null;
    const options = all.map((series, place) => make("option", { value: place, selected: series === chosen }, perfprop.where(series)));
    const select = make("select", {}, ...options);
    select.addEventListener("change", () => {
      const kept = { axis: query.get("axis"), scale: query.get("scale") };
      location.replace(perfprop.toSeries(all[select.value], null, { ...kept, lines: query.get("lines") }));
    });
    return make("label", {}, "Measured on", select);
  };

  perfprop.views.series = async ({ names, query }) => {
    const { all, chosen } = find(names[0] ?? "", query);
    const [series] = await Promise.all([perfprop.loadSeries(chosen[0]), perfprop.loadCommits(), perfprop.load("uPlot.iife.min.js")]);
    const dates = series.revisions.map((_, place) => commitAt(series, place).date);
    const state = {
      series, dates, order: dates.map((_, place) => place).sort((a, b) => dates[a] - dates[b]), xs: [], shown: [], pressed: 0, isZoomed: false, zoomedAxis: "",
      lines: chosenLines(query, series.lines.length), axis: query.get("axis") === "date" ? "date" : "order",
      scale: Object.hasOwn(SCALES, query.get("scale") ?? "") ? query.get("scale") : "data",
    };
    const panel = make("div", { class: "under", id: "under", "aria-live": "polite" }, make("span", { class: "dim" }, "Point at a commit, or press an arrow. A click or Enter opens it, a drag zooms, a double click resets."));
    const plot = makePlot(state, panel);
    const tables = make("div");
    const fill = () => tables.replaceChildren(make("h2", {}, "Steps"), stepTable(series, state.lines), allNumbers(series, state.lines));
    const remember = () => perfprop.choose({
      ...Object.fromEntries(perfprop.differing(chosen).filter(([key]) => perfprop.choosers().some(([name]) => name === key))),
      lines: series.lines.length > 1 ? [...state.lines].join(",") || "none" : null, axis: state.axis === "date" ? "date" : null, scale: state.scale === "data" ? null : state.scale,
    });
    const changed = () => {
      remember();
      plot.draw();
      fill();
    };
    const axis = make("button", { type: "button" }), scale = make("button", { type: "button" });
    const label = () => {
      axis.textContent = "Commits: " + (state.axis === "date" ? "by date" : "in their order");
      scale.textContent = "Values: " + SCALES[state.scale];
    };
    const turnAxis = () => {
      state.axis = state.axis === "date" ? "order" : "date";
      state.isZoomed = false;
      label();
      remember();
      plot.draw();
    };
    const turnScale = () => {
      const isPositive = [...state.lines].every((number) => series.lines[number].values.every((value) => value === null || value > 0));
      const possible = Object.keys(SCALES).filter((name) => name !== "log" || isPositive);
      state.scale = possible[(possible.indexOf(state.scale) + 1) % possible.length];
      label();
      remember();
      plot.draw();
    };
    axis.addEventListener("click", turnAxis);
    scale.addEventListener("click", turnScale);
    label();
    fill();
    const told = series.params.filter(([, value]) => value).map(([name, value]) => name + " " + value).join(", ");
    const element = make("section", {},
      make("h1", {}, series.name),
      make("p", { class: "dim" }, [series.unit ? "in " + series.unit : "", told].filter((text) => text).join("; ")),
      make("div", { class: "bar" }, whereChooser(all, chosen, query), axis, scale, make("button", { type: "button", onclick: plot.reset }, "Whole history")),
      series.lines.length > 1 ? legend(state, changed) : null,
      plot.box, panel, tables);
    const at = query.get("at") ? series.revisions.indexOf(data.commits.list[data.commits.byHash.get(query.get("at"))]?.[0]) : -1;
    return {
      element, title: series.name,
      shown: () => {
        scrollTo(0, 0);
        plot.start();
        if (at >= 0) plot.go(at);
      },
      themed: plot.draw,
      left: plot.end,
      keys: {
        ArrowRight: () => plot.move(1), ArrowLeft: () => plot.move(-1), j: () => plot.move(1), k: () => plot.move(-1),
        Enter: (event) => /^(a|button|summary)$/.test(event.target.localName) ? false : plot.open(),
        d: turnAxis, y: turnScale, 0: plot.reset,
      },
    };
  };
})();
