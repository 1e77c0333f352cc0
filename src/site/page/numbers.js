// Writes numbers as text, in the same way as the program does.
"use strict";
window.perfprop = {};

perfprop.numbers = (() => {
  const none = "—";
  const signed = (text) => text.replace("-", "−");

  // Three significant digits, and four below 10,000; and so many more.
  const digits = (value, more = 0) => {
    const size = Math.abs(value);
    if (size === 0) return "0";
    if (size >= 999.5) return signed(value.toFixed(more));
    if (size < 0.001) return signed(value.toExponential(1 + more));
    const decimals = size >= 99.95 ? 0 : size >= 9.995 ? 1 : size >= 0.9995 ? 2 : 3;
    return signed(value.toFixed(decimals + more));
  };

  const scaled = (value, units, more) => {
    const unit = units.find(([size]) => Math.abs(value) >= size * 0.9995) ?? units[units.length - 1];
    return digits(value / unit[0], more) + unit[1];
  };

  const si = (value, more) => {
    if (Math.abs(value) < 9999.5) return Number.isInteger(value) ? signed(String(value)) : digits(value, more);
    return scaled(value, [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]], more);
  };

  const time = (nanoseconds, more) => nanoseconds === 0 ? "0\u00a0s" : scaled(nanoseconds, [[1e9, "\u00a0s"], [1e6, "\u00a0ms"], [1e3, "\u00a0µs"], [1, "\u00a0ns"]], more);

  // A unit that is longer than any is cut.
  const short = (unit) => unit.length > 24 ? unit.slice(0, 23) + "…" : unit;

  // A number of a benchmark with its unit.
  const value = (number, unit, more) => {
    if (number === null || number === undefined || !Number.isFinite(number)) return none;
    if (unit === "seconds") return time(number * 1e9, more);
    if (unit === "nanoseconds") return time(number, more);
    return unit ? si(number, more) + " " + short(unit) : si(number, more);
  };

  // Numbers of an axis, with so many digits that no two look alike.
  const ticks = (all, unit) => {
    const texts = (more) => all.map((one) => one === null ? "" : value(one, unit, more));
    const differ = (list) => new Set(list.filter((text) => text)).size === all.filter((one) => one !== null).length;
    return [0, 1, 2, 3, 4, 5].map(texts).find(differ) ?? texts(0);
  };

  const percent = (part) => {
    const size = Math.abs(part) * 100;
    if (!Number.isFinite(size)) return none;
    return size > 99.95 ? size.toFixed(0) + "%" : size.toFixed(1) + "%";
  };

  const part = (before, after) => before === null || after === null ? null : (after - before) / Math.abs(before);
  const sign = (part) => part < 0 ? "−" : part > 0 ? "+" : "";
  const changeBy = (part) => {
    if (part === null || !Number.isFinite(part)) return none;
    return Math.abs(part) < 0.0005 ? "0.0%" : sign(part) + percent(part);
  };
  const change = (before, after) => changeBy(part(before, after));

  const interval = (low, high, unit) => low === null || high === null ? "" : value(low, unit) + " to " + value(high, unit);
  // The interval of a median, and what it is of. Of a single run, it is what an estimator said.
  const certainty = (low, high, samples, unit) => {
    const ends = interval(low, high, unit);
    if (!samples) return ends || "not known";
    return (ends || "not known") + (ends && samples === 1 ? ", as estimated of 1 run" : ", " + many(samples, "sample"));
  };
  const chance = (value) => value === null ? none : value < 1e-9 ? "<1e-9" : value.toExponential(1).replace("-", "−");
  const date = (milliseconds) => new Date(milliseconds).toISOString().slice(0, 10);
  const count = (number) => String(number).replace(/\B(?=(\d{3})+$)/g, ",");
  const many = (number, word) => count(number) + " " + word + (number === 1 ? "" : "s");

  return { none, value, ticks, percent, part, change, changeBy, interval, certainty, chance, date, count, many };
})();
