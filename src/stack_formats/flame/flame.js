
"use strict";
(() => {
  const width = 1200, character = 7.23;
  const svg = document.getElementById("flame");
  const words = document.getElementById("words");
  const search = document.getElementById("search");
  const frames = [...svg.querySelectorAll("g.f")].map((g) => ({
    g, x: +g.dataset.x, w: +g.dataset.w, name: g.dataset.n,
    title: g.querySelector("title").textContent,
    rect: g.querySelector("rect"), text: g.querySelector("text"), y: +g.querySelector("rect").getAttribute("y"),
  }));
  if (!frames.length || !frames[0].w) return;
  let zoomed = frames[0], pattern = null;

  const middle = (name, room) => {
    const all = [...name];
    if (all.length <= room) return name;
    if (room < 3) return "";
    const before = Math.floor(room / 2);
    return all.slice(0, before).join("") + "…" + all.slice(all.length - (room - 1 - before)).join("");
  };

  const zoom = (to) => {
    zoomed = to;
    for (const frame of frames) {
      const slack = 1e-6;
      const isAbove = frame.y < to.y && frame.x <= to.x + slack && frame.x + frame.w >= to.x + to.w - slack;
      const isWithin = frame.y >= to.y && frame.x >= to.x - slack && frame.x + frame.w <= to.x + to.w + slack;
      const x = isAbove ? 0 : (frame.x - to.x) / to.w * width;
      const w = isAbove ? width : frame.w / to.w * width;
      const seen = isAbove || (isWithin && w >= 0.5);
      frame.g.style.display = seen ? "" : "none";
      if (!seen) continue;
      frame.g.classList.toggle("above", isAbove);
      frame.rect.setAttribute("x", x);
      frame.rect.setAttribute("width", Math.max(w - 0.4, 0.2));
      frame.text.setAttribute("x", x + 3);
      frame.text.textContent = middle(frame.name, Math.floor((w - 6) / character));
    }
    mark();
  };

  // The share of the zoom that lies in matching frames or below them, each part once.
  const mark = () => {
    let end = -1, share = 0;
    const matches = [];
    for (const frame of frames) {
      const matched = pattern !== null && pattern.test(frame.name);
      frame.g.classList.toggle("m", matched);
      if (matched && frame.x >= zoomed.x - 1e-6 && frame.x + frame.w <= zoomed.x + zoomed.w + 1e-6) matches.push(frame);
    }
    matches.sort((a, b) => a.x - b.x || b.w - a.w);
    for (const { x, w } of matches) {
      if (x + w <= end) continue;
      share += x + w - Math.max(x, end);
      end = x + w;
    }
    if (pattern !== null) words.textContent = matches.length + " frames match, " + (100 * share / zoomed.w).toFixed(1) + "% of what is shown";
  };

  const find = (text) => {
    try {
      pattern = text ? new RegExp(text, /[A-Z]/.test(text) ? "" : "i") : null;
    } catch (error) {
      words.textContent = "no regular expression: " + text;
      return;
    }
    if (pattern === null) words.textContent = "";
    mark();
  };

  const byGroup = new Map(frames.map((frame) => [frame.g, frame]));
  const frameOf = (target) => byGroup.get(target.closest("g.f"));
  svg.addEventListener("click", ({ target }) => {
    const frame = frameOf(target);
    if (frame) zoom(frame);
  });
  svg.addEventListener("mouseover", ({ target }) => {
    const frame = frameOf(target);
    if (frame) words.textContent = frame.title;
  });
  document.getElementById("reset").addEventListener("click", () => zoom(frames[0]));
  const isField = search.localName === "input";
  const ask = () => find(window.prompt("search (regular expression)", "") ?? "");
  if (isField) search.addEventListener("input", () => find(search.value));
  else search.addEventListener("click", ask);
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") zoom(frames[0]);
    if (event.key !== "/" || event.target === search) return;
    event.preventDefault();
    if (isField) search.focus();
    else ask();
  });
  zoom(zoomed);
})();
