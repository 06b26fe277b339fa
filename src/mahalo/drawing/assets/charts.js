"use strict";
// Draws charts as SVG. Texts reach the page as text nodes only, and nothing is fetched.

// -- axes --------------------------------------------------------------------------------------------------------

function svgNode(name, attributes = {}, parent = null, text = null) {
  const created = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) created.setAttribute(key, value);
  if (text !== null) created.textContent = text;
  if (parent) parent.append(created);
  return created;
}

function formatNumber(value) {
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
  const transform = log ? Math.log10 : (value) => value;
  const [a, b] = [transform(domain[0]), transform(domain[1])];
  return (value) => range[0] + ((transform(value) - a) / (b - a || 1)) * (range[1] - range[0]);
}

// Draws axes; returns the scales and edges of the plotting area.
function frame(box, { height, x, y, left = 52, right = 14, top = 22, bottom = 44 }) {
  const width = Math.max(260, box.clientWidth);
  const drawing = svgNode("svg", { viewBox: `0 0 ${width} ${height}`, height, "aria-hidden": "true" }, box);
  const X = scale(x.domain, [left, width - right], x.log);
  const Y = scale(y.domain, [height - bottom, top], y.log);
  const floor = height - bottom;
  svgNode("path", { class: "axis", d: `M${left} ${floor}H${width - right}` }, drawing);
  const xTicks = x.ticks || (x.log ? logTicks(...x.domain, width / 75) : linearTicks(...x.domain, width / 90));
  for (const tick of xTicks) {
    svgNode("path", { class: "axis", d: `M${X(tick)} ${floor}v4` }, drawing);
    svgNode("text", { x: X(tick), y: floor + 17, "text-anchor": "middle" }, drawing, (x.format || formatNumber)(tick));
  }
  const yTicks = y.ticks || (y.log ? logTicks(...y.domain, 6) : linearTicks(...y.domain, 5));
  for (const tick of yTicks) {
    svgNode("path", { class: "axis", d: `M${left} ${Y(tick)}H${width - right}`, "stroke-opacity": 0.55 }, drawing);
    svgNode("text", { x: left - 7, y: Y(tick) + 4, "text-anchor": "end" }, drawing, (y.format || formatNumber)(tick));
  }
  if (x.title) svgNode("text", { x: (left + width - right) / 2, y: height - 6, "text-anchor": "middle" }, drawing, x.title);
  if (y.title) svgNode("text", { x: 2, y: 12 }, drawing, y.title);
  return { drawing, X, Y, width, left, right: width - right, top, floor };
}

const line = (points) => points.map(([x, y], k) => `${k ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");

const CHARTS = {
  measures(box, { rows }) {
    const width = Math.max(260, box.clientWidth);
    const [left, right, step] = [116, 16, 46];
    const height = rows.length * step + 46;
    const drawing = svgNode("svg", { viewBox: `0 0 ${width} ${height}`, height, "aria-hidden": "true" }, box);
    const low = Math.min(...rows.flatMap((row) => [row.before - row.before_margin, row.after - row.after_margin, row.lda ?? 1]));
    const start = Math.max(0, Math.floor(low * 10) / 10);
    const X = scale([start, 1], [left, width - right]);
    for (const tick of linearTicks(start, 1, width / 110)) {
      svgNode("path", { class: "axis", d: `M${X(tick)} 22V${height - 22}` }, drawing);
      svgNode("text", { x: X(tick), y: height - 6, "text-anchor": "middle" }, drawing, formatNumber(tick));
    }
    rows.forEach((row, k) => {
      const y = 22 + step * (k + 0.5);
      svgNode("text", { x: 0, y: y + 4, class: "strong" }, drawing, row.name);
      for (const [side, dy] of [["before", -7], ["after", 7]]) {
        const margin = row[`${side}_margin`];
        const [a, b] = [X(Math.max(start, row[side] - margin)), X(Math.min(1, row[side] + margin))];
        svgNode("path", { class: side, "stroke-width": 3, "stroke-opacity": 0.45, d: `M${a} ${y + dy}H${b}` }, drawing);
        svgNode("circle", { class: `${side}-fill`, cx: X(row[side]), cy: y + dy, r: 5 }, drawing);
      }
      if (row.lda !== null) {
        svgNode("path", { class: "lda", d: `M${X(row.lda)} ${y - 6}l6 6l-6 6l-6 -6Z` }, drawing);
      }
    });
    svgNode("text", { x: left, y: 12 }, drawing, "before").classList.add("before-fill");
    svgNode("text", { x: left + 52, y: 12, class: "after-fill" }, drawing, "after");
    if (rows.some((row) => row.lda !== null)) {
      svgNode("path", { class: "lda", d: `M${left + 104} 2l6 6l-6 6l-6 -6Z` }, drawing);
      svgNode("text", { x: left + 116, y: 12 }, drawing, "LDA");
    }
  },

  gap(box, { gap, gamma, tol }) {
    const positive = gap.filter((value) => value > 0);
    const domain = [Math.min(tol, ...positive) / 2, Math.max(tol, ...positive) * 2];
    const area = frame(box, {
      height: 250,
      x: { domain: [0.5, gap.length + 0.5], title: "step of the solver",
           ticks: linearTicks(1, Math.max(2, gap.length), 6).filter((tick) => tick % 1 === 0 && tick > 0) },
      y: { domain, log: true, title: "relative gap" },
    });
    svgNode("path", { class: "level", d: `M${area.left} ${area.Y(tol)}H${area.right}` }, area.drawing);
    svgNode("text", { x: area.right, y: area.Y(tol) - 5, "text-anchor": "end" }, area.drawing, `tol = ${formatNumber(tol)}`);
    let stage = [];
    gap.forEach((value, k) => {
      if (value > 0) stage.push([area.X(k + 1), area.Y(value)]);
      if (k + 1 === gap.length || gamma[k + 1] !== gamma[k]) {
        svgNode("path", { class: "curve after", d: line(stage) }, area.drawing);
        stage = [];
      }
      if (value > 0) svgNode("circle", { class: "after-fill", cx: area.X(k + 1), cy: area.Y(value), r: gap.length > 60 ? 1.5 : 3 }, area.drawing);
    });
  },

  scores(box, { curves, chosen, prior_score }) {
    const points = curves.flatMap((curve) => curve.points);
    const best = curves.filter((curve) => curve.chosen).flatMap((curve) => curve.points);
    const scores = [...points.map(([, score]) => score), ...best.flatMap(([, score, margin]) => [score - margin, score + margin])];
    if (prior_score) scores.push(prior_score);
    const span = Math.max(...scores) - Math.min(...scores) || 0.1;
    const xs = points.map(([x]) => x);
    const area = frame(box, {
      height: 270,
      x: { domain: [Math.min(...xs) / 1.4, Math.max(...xs) * 1.4], log: true, title: "γ: weight of the constraints" },
      y: { domain: [Math.min(...scores) - span * 0.05, Math.max(...scores) + span * 0.12], title: "score on held-out rows" },
    });
    if (prior_score) {
      svgNode("path", { class: "level", d: `M${area.left} ${area.Y(prior_score)}H${area.right}` }, area.drawing);
      svgNode("text", { x: area.left + 4, y: area.Y(prior_score) - 5 }, area.drawing, "prior alone");
    }
    for (const curve of [...curves].sort((a, b) => a.chosen - b.chosen)) {
      const kind = curve.chosen ? "after" : "before";
      if (curve.chosen) {
        const upper = curve.points.map(([x, s, m]) => [area.X(x), area.Y(s + m)]);
        const lower = curve.points.map(([x, s, m]) => [area.X(x), area.Y(s - m)]).reverse();
        svgNode("path", { class: "area after-fill", d: line([...upper, ...lower]) + "Z" }, area.drawing);
      }
      svgNode("path", { class: `curve ${kind}`, "stroke-opacity": curve.chosen ? 1 : 0.45, d: line(curve.points.map(([x, s]) => [area.X(x), area.Y(s)])) }, area.drawing);
    }
    if (chosen) {
      svgNode("circle", { class: "after-fill", cx: area.X(chosen[0]), cy: area.Y(chosen[1]), r: 5 }, area.drawing);
      const late = area.X(chosen[0]) > area.width * 0.7;
      svgNode("text", { class: "after-fill", x: area.X(chosen[0]) + (late ? -8 : 8), y: area.Y(chosen[1]) - 9, "text-anchor": late ? "end" : "start" }, area.drawing, `chosen: γ = ${formatNumber(chosen[0])}`);
    }
  },

  histogramBefore: (box, spec) => histogram(box, spec),
  histogramAfter: (box, spec) => histogram(box, spec),

  spectrum(box, { directions, values, n_directions: n }) {
    const domain = [Math.min(0.6, ...values) / 1.3, Math.max(1.7, ...values) * 1.3];
    const area = frame(box, {
      height: 260,
      x: { domain: [0.4, n + 0.6], title: "direction, most stretched first", ticks: linearTicks(1, Math.max(n, 2), 6).filter((t) => t % 1 === 0 && t >= 1 && t <= n) },
      y: { domain, log: true, title: "eigenvalue relative to the prior" },
    });
    const level = area.Y(1);
    svgNode("path", { class: "level", d: `M${area.left} ${level}H${area.right}` }, area.drawing);
    values.forEach((value, k) => {
      const x = area.X(directions[k]);
      svgNode("path", { class: "after", "stroke-opacity": 0.4, d: `M${x} ${level}V${area.Y(value)}` }, area.drawing);
      svgNode("circle", { class: "after-fill", cx: x, cy: area.Y(value), r: n > 80 ? 1.8 : 3.5 }, area.drawing);
    });
  },

  hubs(box, { before, after, k }) {
    const most = Math.max(...before.counts, ...after.counts, 1);
    const area = frame(box, {
      height: 250,
      x: { domain: [0, most * 1.1 + 1], title: `times among the ${k} nearest of other rows` },
      y: { domain: [0, Math.max(...before.share, ...after.share) * 1.1], title: "share of rows", format: (v) => `${formatNumber(100 * v)} %` },
    });
    for (const [side, curve] of [["before", before], ["after", after]]) {
      let path = `M${area.X(0)} ${area.Y(0)}`;
      const width = curve.counts.length > 1 ? curve.counts[1] : 1;
      curve.counts.forEach((count, j) => { path += `V${area.Y(curve.share[j]).toFixed(1)}H${area.X(count + width).toFixed(1)}`; });
      svgNode("path", { class: `area ${side}-fill`, d: `${path}V${area.Y(0)}Z` }, area.drawing);
      svgNode("path", { class: `curve ${side}`, d: `${path}V${area.Y(0)}` }, area.drawing);
    }
    svgNode("text", { x: area.right, y: 34, "text-anchor": "end", class: "before-fill" }, area.drawing, "before");
    svgNode("text", { x: area.right, y: 50, "text-anchor": "end", class: "after-fill" }, area.drawing, "after");
  },
};

function histogram(box, { edges, similar, dissimilar, top, n_similar, n_dissimilar }) {
  const area = frame(box, {
    height: 240, left: 8,
    x: { domain: [0, edges[edges.length - 1]], title: "distance, in units of the median" },
    y: { domain: [0, top * 1.12], ticks: [] },
  });
  for (const [name, density] of [["dissimilar", dissimilar], ["similar", similar]]) {
    let path = `M${area.X(0)} ${area.Y(0)}`;
    density.forEach((value, k) => { path += `V${area.Y(value).toFixed(1)}H${area.X(edges[k + 1]).toFixed(1)}`; });
    svgNode("path", { class: `area ${name}`, d: `${path}V${area.Y(0)}Z` }, area.drawing);
    svgNode("path", { class: `curve ${name}-line`, d: path }, area.drawing);
  }
  const label = (y, kind, name, n) => svgNode("text", { x: area.right, y, "text-anchor": "end", class: kind }, area.drawing, `${n.toLocaleString("en")} ${name} pairs`);
  label(30, "similar", "similar", n_similar);
  label(46, "dissimilar", "dissimilar", n_dissimilar);
}

function drawCharts(charts) {
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
