"use strict";
// Draws, sorts, filters and downloads. Texts reach the page as text nodes only, and nothing is fetched.

// -- light and dark ----------------------------------------------------------------------------------------------

const root = document.documentElement;
const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");

function setTheme(dark) {
  root.dataset.theme = dark ? "dark" : "light";
  const button = document.getElementById("theme");
  if (button) {
    button.textContent = dark ? "Light" : "Dark";
    button.setAttribute("aria-label", `Switch to ${dark ? "light" : "dark"} colours`);
  }
}

setTheme(prefersDark.matches);
prefersDark.addEventListener("change", (event) => setTheme(event.matches));

document.addEventListener("DOMContentLoaded", () => {
  const data = JSON.parse(document.getElementById("data").textContent);
  setTheme(root.dataset.theme === "dark");
  document.getElementById("theme").addEventListener("click", () => setTheme(root.dataset.theme !== "dark"));
  drawAll(data.charts);
  const select = data.map ? linkedMaps(data.map) : () => {};
  for (const table of document.querySelectorAll("table.sortable")) sortable(table);
  for (const button of document.querySelectorAll("button.download")) {
    button.addEventListener("click", () => download(document.getElementById(button.dataset.table)));
  }
  for (const button of document.querySelectorAll("button.show")) {
    button.addEventListener("click", () => {
      document.getElementById("map").scrollIntoView();
      select(Number(button.dataset.row));
    });
  }
});

// -- drawing -----------------------------------------------------------------------------------------------------

function node(name, attributes = {}, parent = null, text = null) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== null) made.textContent = text;
  if (parent) parent.append(made);
  return made;
}

function brief(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e5 || size < 1e-3) {
    const digits = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };
    const [mantissa, exponent] = value.toExponential(0).split("e");
    const power = [...String(Number(exponent))].map((digit) => digits[digit]).join("");
    return (mantissa === "1" ? "" : `${mantissa} × `) + `10${power}`;
  }
  return String(Number(value.toPrecision(3))).replace("-", "−");
}

function linearTicks(low, high, wanted) {
  const raw = (high - low) / wanted;
  const unit = 10 ** Math.floor(Math.log10(raw));
  const step = unit * [1, 2, 5, 10].find((factor) => factor * unit >= raw);
  const ticks = [];
  for (let tick = Math.ceil(low / step - 1e-9) * step; tick <= high + step * 1e-9; tick += step) ticks.push(tick);
  return ticks;
}

function logTicks(low, high, wanted) {
  const first = Math.ceil(Math.log10(low) - 1e-9);
  const last = Math.floor(Math.log10(high) + 1e-9);
  const every = Math.max(1, Math.ceil((last - first + 1) / wanted));
  const ticks = [];
  for (let power = first; power <= last; power += every) ticks.push(10 ** power);
  if (ticks.length > 1) return ticks;
  return [1, 2, 5, 10, 20, 50].map((m) => m * 10 ** (first - 1)).filter((tick) => tick >= low && tick <= high);
}

function scale(domain, range, log) {
  const of = log ? Math.log10 : (value) => value;
  const [a, b] = [of(domain[0]), of(domain[1])];
  return (value) => range[0] + ((of(value) - a) / (b - a || 1)) * (range[1] - range[0]);
}

// A frame with axes; returns what places values in it.
function frame(box, { height, x, y, left = 52, right = 14, top = 22, bottom = 44 }) {
  const width = Math.max(260, box.clientWidth);
  const drawing = node("svg", { viewBox: `0 0 ${width} ${height}`, height, "aria-hidden": "true" }, box);
  const X = scale(x.domain, [left, width - right], x.log);
  const Y = scale(y.domain, [height - bottom, top], y.log);
  const floor = height - bottom;
  node("path", { class: "axis", d: `M${left} ${floor}H${width - right}` }, drawing);
  const across = x.ticks || (x.log ? logTicks(...x.domain, width / 75) : linearTicks(...x.domain, width / 90));
  for (const tick of across) {
    node("path", { class: "axis", d: `M${X(tick)} ${floor}v4` }, drawing);
    node("text", { x: X(tick), y: floor + 17, "text-anchor": "middle" }, drawing, (x.format || brief)(tick));
  }
  const up = y.ticks || (y.log ? logTicks(...y.domain, 6) : linearTicks(...y.domain, 5));
  for (const tick of up) {
    node("path", { class: "axis", d: `M${left} ${Y(tick)}H${width - right}`, "stroke-opacity": 0.55 }, drawing);
    node("text", { x: left - 7, y: Y(tick) + 4, "text-anchor": "end" }, drawing, (y.format || brief)(tick));
  }
  if (x.title) node("text", { x: (left + width - right) / 2, y: height - 6, "text-anchor": "middle" }, drawing, x.title);
  if (y.title) node("text", { x: 2, y: 12 }, drawing, y.title);
  return { drawing, X, Y, width, left, right: width - right, top, floor };
}

const line = (points) => points.map(([x, y], k) => `${k ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");

const CHARTS = {
  measures(box, { rows }) {
    const width = Math.max(260, box.clientWidth);
    const [left, right, step] = [116, 16, 46];
    const height = rows.length * step + 46;
    const drawing = node("svg", { viewBox: `0 0 ${width} ${height}`, height, "aria-hidden": "true" }, box);
    const low = Math.min(...rows.flatMap((row) => [row.before - row.beforeMargin, row.after - row.afterMargin, row.lda ?? 1]));
    const start = Math.max(0, Math.floor(low * 10) / 10);
    const X = scale([start, 1], [left, width - right]);
    for (const tick of linearTicks(start, 1, width / 110)) {
      node("path", { class: "axis", d: `M${X(tick)} 22V${height - 22}` }, drawing);
      node("text", { x: X(tick), y: height - 6, "text-anchor": "middle" }, drawing, brief(tick));
    }
    rows.forEach((row, k) => {
      const y = 22 + step * (k + 0.5);
      node("text", { x: 0, y: y + 4, class: "strong" }, drawing, row.name);
      for (const [side, dy] of [["before", -7], ["after", 7]]) {
        const margin = row[`${side}Margin`];
        const [a, b] = [X(Math.max(start, row[side] - margin)), X(Math.min(1, row[side] + margin))];
        node("path", { class: side, "stroke-width": 3, "stroke-opacity": 0.45, d: `M${a} ${y + dy}H${b}` }, drawing);
        node("circle", { class: `${side}-fill`, cx: X(row[side]), cy: y + dy, r: 5 }, drawing);
      }
      if (row.lda !== null) {
        node("path", { class: "lda", d: `M${X(row.lda)} ${y - 6}l6 6l-6 6l-6 -6Z` }, drawing);
      }
    });
    node("text", { x: left, y: 12 }, drawing, "before").classList.add("before-fill");
    node("text", { x: left + 52, y: 12, class: "after-fill" }, drawing, "after");
    if (rows.some((row) => row.lda !== null)) {
      node("path", { class: "lda", d: `M${left + 100} 2l6 6l-6 6l-6 -6Z` }, drawing);
      node("text", { x: left + 112, y: 12 }, drawing, "LDA");
    }
  },

  gap(box, { gap, gamma, tol }) {
    const known = gap.filter((value) => value > 0);
    const domain = [Math.min(tol, ...known) / 2, Math.max(tol, ...known) * 2];
    const place = frame(box, {
      height: 250,
      x: { domain: [0.5, gap.length + 0.5], title: "step of the solver",
           ticks: linearTicks(1, Math.max(2, gap.length), 6).filter((tick) => tick % 1 === 0 && tick > 0) },
      y: { domain, log: true, title: "relative gap" },
    });
    node("path", { class: "level", d: `M${place.left} ${place.Y(tol)}H${place.right}` }, place.drawing);
    node("text", { x: place.right, y: place.Y(tol) - 5, "text-anchor": "end" }, place.drawing, `asked for: ${brief(tol)}`);
    let stage = [];
    gap.forEach((value, k) => {
      if (value > 0) stage.push([place.X(k + 1), place.Y(value)]);
      if (k + 1 === gap.length || gamma[k + 1] !== gamma[k]) {
        node("path", { class: "curve after", d: line(stage) }, place.drawing);
        stage = [];
      }
      if (value > 0) node("circle", { class: "after-fill", cx: place.X(k + 1), cy: place.Y(value), r: gap.length > 60 ? 1.5 : 3 }, place.drawing);
    });
  },

  choosing(box, { series, chosen, level }) {
    const points = series.flatMap((one) => one.points);
    const best = series.filter((one) => one.best).flatMap((one) => one.points);
    const scores = [...points.map(([, score]) => score), ...best.flatMap(([, score, margin]) => [score - margin, score + margin])];
    if (level) scores.push(level);
    const span = Math.max(...scores) - Math.min(...scores) || 0.1;
    const xs = points.map(([x]) => x);
    const place = frame(box, {
      height: 270,
      x: { domain: [Math.min(...xs) / 1.4, Math.max(...xs) * 1.4], log: true, title: "γ: how much the constraints count" },
      y: { domain: [Math.min(...scores) - span * 0.05, Math.max(...scores) + span * 0.12], title: "score on held-out rows" },
    });
    if (level) {
      node("path", { class: "level", d: `M${place.left} ${place.Y(level)}H${place.right}` }, place.drawing);
      node("text", { x: place.left + 4, y: place.Y(level) - 5 }, place.drawing, "nothing learned");
    }
    for (const one of [...series].sort((a, b) => a.best - b.best)) {
      const kind = one.best ? "after" : "before";
      if (one.best) {
        const upper = one.points.map(([x, s, m]) => [place.X(x), place.Y(s + m)]);
        const lower = one.points.map(([x, s, m]) => [place.X(x), place.Y(s - m)]).reverse();
        node("path", { class: "area after-fill", d: line([...upper, ...lower]) + "Z" }, place.drawing);
      }
      node("path", { class: `curve ${kind}`, "stroke-opacity": one.best ? 1 : 0.45, d: line(one.points.map(([x, s]) => [place.X(x), place.Y(s)])) }, place.drawing);
    }
    if (chosen) {
      node("circle", { class: "after-fill", cx: place.X(chosen[0]), cy: place.Y(chosen[1]), r: 5 }, place.drawing);
      const late = place.X(chosen[0]) > place.width * 0.7;
      node("text", { class: "after-fill", x: place.X(chosen[0]) + (late ? -8 : 8), y: place.Y(chosen[1]) - 9, "text-anchor": late ? "end" : "start" }, place.drawing, `chosen: γ = ${brief(chosen[0])}`);
    }
  },

  histogramBefore: (box, spec) => histogram(box, spec),
  histogramAfter: (box, spec) => histogram(box, spec),

  spectrum(box, { values, n, floor }) {
    const shown = values.map((value) => Math.max(value, floor));
    const domain = [Math.min(0.6, ...shown) / 1.3, Math.max(1.7, ...shown) * 1.3];
    const at = (k) => (values.length > 1 ? 1 + (k * (n - 1)) / (values.length - 1) : 1);
    const place = frame(box, {
      height: 260,
      x: { domain: [0.4, n + 0.6], title: "direction, most stretched first", ticks: linearTicks(1, Math.max(n, 2), 6).filter((t) => t % 1 === 0 && t >= 1 && t <= n) },
      y: { domain, log: true, title: "eigenvalue; 1 = as it was" },
    });
    const one = place.Y(1);
    node("path", { class: "level", d: `M${place.left} ${one}H${place.right}` }, place.drawing);
    shown.forEach((value, k) => {
      node("path", { class: "after", "stroke-opacity": 0.4, d: `M${place.X(at(k))} ${one}V${place.Y(value)}` }, place.drawing);
      node("circle", { class: "after-fill", cx: place.X(at(k)), cy: place.Y(value), r: n > 80 ? 1.8 : 3.5 }, place.drawing);
    });
  },

  hubs(box, { before, after, k }) {
    const most = Math.max(...before.counts, ...after.counts, 1);
    const place = frame(box, {
      height: 250,
      x: { domain: [0, most * 1.1 + 1], title: `times among the ${k} nearest of other rows` },
      y: { domain: [0, Math.max(...before.share, ...after.share) * 1.1], title: "share of rows", format: (v) => `${brief(100 * v)} %` },
    });
    for (const [side, curve] of [["before", before], ["after", after]]) {
      let path = `M${place.X(0)} ${place.Y(0)}`;
      const width = curve.counts.length > 1 ? curve.counts[1] : 1;
      curve.counts.forEach((count, j) => { path += `V${place.Y(curve.share[j]).toFixed(1)}H${place.X(count + width).toFixed(1)}`; });
      node("path", { class: `area ${side}-fill`, d: `${path}V${place.Y(0)}Z` }, place.drawing);
      node("path", { class: `curve ${side}`, d: `${path}V${place.Y(0)}` }, place.drawing);
    }
    node("text", { x: place.right, y: 34, "text-anchor": "end", class: "before-fill" }, place.drawing, "before");
    node("text", { x: place.right, y: 50, "text-anchor": "end", class: "after-fill" }, place.drawing, "after");
  },
};

function histogram(box, { edges, alike, unalike, top, nAlike, nUnalike }) {
  const place = frame(box, {
    height: 240, left: 8,
    x: { domain: [0, edges[edges.length - 1]], title: "distance, in units of the median" },
    y: { domain: [0, top * 1.12], ticks: [] },
  });
  for (const [name, density] of [["unalike", unalike], ["alike", alike]]) {
    let path = `M${place.X(0)} ${place.Y(0)}`;
    density.forEach((value, k) => { path += `V${place.Y(value).toFixed(1)}H${place.X(edges[k + 1]).toFixed(1)}`; });
    node("path", { class: `area ${name}`, d: `${path}V${place.Y(0)}Z` }, place.drawing);
    node("path", { class: `curve ${name}-line`, d: path }, place.drawing);
  }
  const write = (y, kind, name, n) => node("text", { x: place.right, y, "text-anchor": "end", class: kind }, place.drawing, `${n.toLocaleString("en")} ${name} pairs`);
  write(30, "alike", "similar", nAlike);
  write(46, "unalike", "dissimilar", nUnalike);
}

function drawAll(charts) {
  for (const box of document.querySelectorAll("[data-chart]")) {
    const spec = charts[box.dataset.chart];
    let width = 0;
    const draw = () => {
      if (box.clientWidth === width) return;
      width = box.clientWidth;
      box.replaceChildren();
      CHARTS[box.dataset.chart](box, spec);
    };
    draw();
    new ResizeObserver(draw).observe(box);
  }
}

// -- linked maps -------------------------------------------------------------------------------------------------

const SHAPES = [
  "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0Z", "M-3.5-3.5h7v7h-7Z", "M0-4.6L4.3 3.2h-8.6Z", "M0-4.8L4.2 0L0 4.8L-4.2 0Z",
  "M0 4.6L4.3-3.2h-8.6Z",
];

function look(code) {
  return code < 0 ? ["none", SHAPES[0]] : [`k${code % 10}`, SHAPES[(code + Math.floor(code / 10)) % SHAPES.length]];
}

function linkedMaps({ before, after, codes, classes, rows, ids, notes }) {
  const sides = { before, after };
  const chosen = new Set();
  const said = document.getElementById("said");
  const tip = document.getElementById("tip");
  const views = [];
  let pinned = -1;
  const place = new Map(rows.map((row, k) => [row, k]));
  const shown = (k) => chosen.size === 0 || chosen.has(codes[k]);
  const label = (k) => (codes[k] < 0 ? "no label" : classes[codes[k]]);
  const describe = (k) => `${ids[k]}${classes.length ? ` · ${label(k)}` : ""}${notes[k] ? ` · ${notes[k]}` : ""}`;

  function highlight(k) {
    for (const view of views) view.mark(k);
    said.textContent = k < 0 ? said.dataset.empty : describe(k);
  }

  function pin(k) {
    pinned = k;
    highlight(k);
  }

  function applyFilter() {
    for (const view of views) view.points.forEach((point, k) => point.classList.toggle("off", !shown(k)));
    if (pinned >= 0 && !shown(pinned)) pin(-1);
  }

  for (const box of document.querySelectorAll(".map")) {
    const flat = sides[box.dataset.side];
    const size = 400;
    const drawing = node("svg", { viewBox: `0 0 ${size} ${size}`, "aria-hidden": "true" }, box);
    const at = (k) => [size / 2 + flat[2 * k] * (size / 2 - 12), size / 2 - flat[2 * k + 1] * (size / 2 - 12)];
    const points = codes.map((code, k) => {
      const [kind, shape] = look(code);
      const [x, y] = at(k);
      return node("path", { class: `point ${kind}`, d: shape, transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})${codes.length > 600 ? " scale(.72)" : ""}` }, drawing);
    });
    const ring = node("circle", { class: "ring", r: 9, visibility: "hidden" }, drawing);
    const mark = (k) => {
      ring.setAttribute("visibility", k < 0 ? "hidden" : "visible");
      if (k >= 0) { ring.setAttribute("cx", at(k)[0]); ring.setAttribute("cy", at(k)[1]); }
    };
    views.push({ points, mark });

    const nearest = (event) => {
      const area = drawing.getBoundingClientRect();
      const x = ((event.clientX - area.left) * size) / area.width;
      const y = ((event.clientY - area.top) * size) / area.height;
      let best = -1, least = 18 ** 2;
      for (let k = 0; k < codes.length; k++) {
        if (!shown(k)) continue;
        const [px, py] = at(k);
        const far = (px - x) ** 2 + (py - y) ** 2;
        if (far < least) { best = k; least = far; }
      }
      return best;
    };
    box.addEventListener("pointermove", (event) => {
      const k = nearest(event);
      tip.hidden = k < 0;
      if (k >= 0) {
        tip.textContent = describe(k);
        tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, window.innerWidth - tip.offsetWidth - 8))}px`;
        tip.style.top = `${event.clientY + 16}px`;
      }
      highlight(k >= 0 ? k : pinned);
    });
    box.addEventListener("pointerleave", () => { tip.hidden = true; highlight(pinned); });
    box.addEventListener("click", (event) => pin(nearest(event)));
    box.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (event.key === "Escape") pin(-1);
      if (!step) return;
      event.preventDefault();
      const n = codes.length;
      let k = pinned < 0 ? (step > 0 ? -1 : n) : pinned;
      for (let tries = 0; tries < n; tries++) {
        k = (k + step + n) % n;
        if (shown(k)) break;
      }
      pin(k);
    });
  }
  if (classes.length) classFilter(classes, codes, chosen, applyFilter);
  highlight(-1);
  return (row) => { if (place.has(row)) { chosen.clear(); for (const chip of document.querySelectorAll(".chip")) chip.setAttribute("aria-pressed", "false"); applyFilter(); pin(place.get(row)); } };
}

function classFilter(classes, codes, chosen, changed) {
  const box = document.getElementById("classes");
  const chips = classes.map((name, code) => {
    const chip = document.createElement("button");
    chip.type = "button";
    chip.className = "chip";
    chip.setAttribute("aria-pressed", "false");
    const [kind, shape] = look(code);
    node("path", { class: kind, d: shape }, node("svg", { viewBox: "-6 -6 12 12", "aria-hidden": "true" }, chip));
    const text = document.createElement("span");
    text.textContent = name;
    chip.append(text);
    chip.addEventListener("click", () => {
      if (!chosen.delete(code)) chosen.add(code);
      chip.setAttribute("aria-pressed", String(chosen.has(code)));
      changed();
    });
    box.append(chip);
    return chip;
  });
  const search = document.getElementById("find-class");
  if (search) {
    search.addEventListener("input", () => {
      const wanted = search.value.trim().toLowerCase();
      chips.forEach((chip, code) => { chip.hidden = !classes[code].toLowerCase().includes(wanted); });
    });
  }
}

// -- tables ------------------------------------------------------------------------------------------------------

const valueOf = (cell) => (cell.dataset.value !== undefined ? cell.dataset.value : cell.textContent);

function sortable(table) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, k) => {
    const numeric = head.classList.contains("number");
    head.querySelector("button").addEventListener("click", () => {
      const first = numeric ? "descending" : "ascending";
      const second = numeric ? "ascending" : "descending";
      const order = head.getAttribute("aria-sort") === first ? second : first;
      for (const other of heads) other.setAttribute("aria-sort", "none");
      head.setAttribute("aria-sort", order);
      const body = table.tBodies[0];
      const sign = order === "ascending" ? 1 : -1;
      const compare = (a, b) => (numeric ? Number(a) - Number(b) : a.localeCompare(b, "en", { numeric: true }));
      const sorted = [...body.rows].sort((a, b) => sign * compare(valueOf(a.cells[k]), valueOf(b.cells[k])));
      body.append(...sorted);
    });
  });
}

// A cell that a spreadsheet would run as a formula gets an apostrophe in front; numbers stay numbers.
function csvCell(text) {
  const safe = /^[=+\-@\t\r]/.test(text) && Number.isNaN(Number(text)) ? `'${text}` : text;
  return /[",\r\n;]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

function download(table) {
  const lines = [...table.rows].map((row) => [...row.cells].map((cell) => csvCell(valueOf(cell))).join(","));
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob(["\ufeff", lines.join("\r\n"), "\r\n"], { type: "text/csv" }));
  link.download = `${table.id}.csv`;
  link.click();
  URL.revokeObjectURL(link.href);
}
