// Draws linked maps of the same rows before and after learning, with their classes and pairs. Follows charts.js.

const SHAPES = [
  "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0Z", "M-3.5-3.5h7v7h-7Z", "M0-4.6L4.3 3.2h-8.6Z", "M0-4.8L4.2 0L0 4.8L-4.2 0Z",
  "M0 4.6L4.3-3.2h-8.6Z",
];
const MAP_SIZE = 400;

// The colour and the shape of a class; without colours of their own, classes are coloured in the order they are chosen in.
function symbolOf(code, coloured, chosen) {
  if (code >= 0 && coloured) return [`k${code % 10}`, SHAPES[(code + Math.floor(code / 10)) % SHAPES.length]];
  const position = [...chosen].indexOf(code);
  return [position < 0 ? "none" : `k${position % 10}`, SHAPES[0]];
}

function describeRow({ ids, codes, classes, notes }, k) {
  const label = codes[k] < 0 ? "no label" : classes[codes[k]];
  return `${ids[k]}${classes.length ? ` · ${label}` : ""}${notes[k] ? ` · ${notes[k]}` : ""}`;
}

// Draws one map into a box; returns the functions that change what it shows.
function drawMap(box, chart, symbol) {
  const { codes, pairs, similar, neighbors } = chart;
  const side = box.dataset.side;
  const coordinates = chart[side];
  const radius = MAP_SIZE / 2 - 12;
  const at = (k) => [MAP_SIZE / 2 + coordinates[2 * k] * radius, MAP_SIZE / 2 - coordinates[2 * k + 1] * radius];
  const drawing = svgNode("svg", { viewBox: `0 0 ${MAP_SIZE} ${MAP_SIZE}`, "aria-hidden": "true" }, box);
  const lines = similar.map((isSimilar, j) => {
    const kind = isSimilar ? "similar" : "dissimilar";
    return svgNode("path", { class: `pair-line ${kind}-line`, d: line([at(pairs[2 * j]), at(pairs[2 * j + 1])]) }, drawing);
  });
  const scaled = codes.length > 600 ? " scale(.72)" : "";
  const points = codes.map((code, k) => {
    const [kind, shape] = symbol(code);
    const [x, y] = at(k);
    return svgNode("path", { class: `point ${kind}`, d: shape, transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})${scaled}` }, drawing);
  });
  const ring = svgNode("circle", { class: "ring", r: 9, visibility: "hidden" }, drawing);
  const width = neighbors.before.length / codes.length;
  return {
    mark(k) {
      ring.setAttribute("visibility", k < 0 ? "hidden" : "visible");
      if (k >= 0) { ring.setAttribute("cx", at(k)[0]); ring.setAttribute("cy", at(k)[1]); }
      lines.forEach((node, j) => {
        node.classList.toggle("faded", k >= 0 && pairs[2 * j] !== k && pairs[2 * j + 1] !== k);
      });
    },
    markNeighbors(k) {
      for (const point of box.querySelectorAll(".near")) point.classList.remove("near");
      if (k >= 0) for (const near of neighbors[side].slice(k * width, (k + 1) * width)) points[near].classList.add("near");
    },
    light(members, on) { for (const k of members) points[k].classList.toggle("lit", on); },
    setClasses(shown) {
      points.forEach((point, k) => point.setAttribute("class", `point ${symbol(codes[k])[0]}${shown(k) ? "" : " off"}`));
    },
    showPairs(kind, on) {
      for (const node of box.querySelectorAll(`.${kind}-line`)) node.classList.toggle("hidden", !on);
    },
    nearest(event, shown) {
      const area = drawing.getBoundingClientRect();
      const x = ((event.clientX - area.left) * MAP_SIZE) / area.width;
      const y = ((event.clientY - area.top) * MAP_SIZE) / area.height;
      let best = -1, smallest = 18 ** 2;
      for (let k = 0; k < codes.length; k++) {
        if (!shown(k)) continue;
        const [px, py] = at(k);
        const sqDistance = (px - x) ** 2 + (py - y) ** 2;
        if (sqDistance < smallest) { best = k; smallest = sqDistance; }
      }
      return best;
    },
  };
}

// Draws both maps; returns a function that selects a row by its number. `onSelect` gets its position, −1 for none.
function linkedMaps(chart, onSelect) {
  const { codes, classes, rows, coloured } = chart;
  const chosen = new Set();
  const status = document.getElementById("map-status");
  const tip = document.getElementById("tip");
  const views = [];
  let pinned = -1, lit = -1;
  const positionOf = new Map(rows.map((row, k) => [row, k]));
  const members = classes.map(() => []);
  codes.forEach((code, k) => { if (code >= 0) members[code].push(k); });
  const symbol = (code) => symbolOf(code, coloured, chosen);
  const shown = (k) => chosen.size === 0 || chosen.has(codes[k]);

  // Without colours of their own, the class of the row that is pointed at lights up.
  function lightClass(code) {
    if (coloured || code === lit) return;
    for (const view of views) {
      if (lit >= 0) view.light(members[lit], false);
      if (code >= 0) view.light(members[code], true);
    }
    lit = code;
  }

  function highlight(k) {
    for (const view of views) view.mark(k);
    lightClass(k < 0 ? -1 : codes[k]);
    status.textContent = k < 0 ? status.dataset.hint : describeRow(chart, k);
  }

  function pin(k) {
    pinned = k;
    highlight(k);
    for (const view of views) view.markNeighbors(k);
    onSelect(k);
  }

  function applyFilter() {
    lit = -1;
    for (const view of views) view.setClasses(shown);
    refreshChips();
    pin(pinned >= 0 && shown(pinned) ? pinned : -1);
  }

  for (const box of document.querySelectorAll(".map")) {
    const view = drawMap(box, chart, symbol);
    views.push(view);
    box.addEventListener("pointermove", (event) => {
      const k = view.nearest(event, shown);
      tip.hidden = k < 0;
      if (k >= 0) {
        tip.textContent = describeRow(chart, k);
        tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, window.innerWidth - tip.offsetWidth - 8))}px`;
        tip.style.top = `${event.clientY + 16}px`;
      }
      highlight(k >= 0 ? k : pinned);
    });
    box.addEventListener("pointerleave", () => { tip.hidden = true; highlight(pinned); });
    box.addEventListener("click", (event) => pin(view.nearest(event, shown)));
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
  for (const box of document.querySelectorAll("[data-pairs]")) {
    box.addEventListener("change", () => { for (const view of views) view.showPairs(box.dataset.pairs, box.checked); });
  }
  const refreshChips = classes.length ? classFilter(classes, { chosen, symbol, applyFilter, lightClass }) : () => {};
  highlight(-1);
  return (row) => {
    if (!positionOf.has(row)) { pin(-1); return; }
    chosen.clear();
    applyFilter();
    pin(positionOf.get(row));
  };
}

// Makes a button for every class; returns a function that shows which are chosen.
function classFilter(classes, { chosen, symbol, applyFilter, lightClass }) {
  const box = document.getElementById("classes");
  const chips = classes.map((name, code) => {
    const chip = document.createElement("button");
    chip.type = "button";
    chip.className = "chip";
    chip.setAttribute("aria-pressed", "false");
    const [kind, shape] = symbol(code);
    svgNode("path", { class: kind, d: shape }, svgNode("svg", { viewBox: "-6 -6 12 12", "aria-hidden": "true" }, chip));
    const text = document.createElement("span");
    text.textContent = name;
    chip.append(text);
    chip.addEventListener("click", () => {
      if (!chosen.delete(code)) chosen.add(code);
      applyFilter();
    });
    chip.addEventListener("pointerenter", () => lightClass(code));
    chip.addEventListener("pointerleave", () => lightClass(-1));
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
  return () => chips.forEach((chip, code) => {
    chip.setAttribute("aria-pressed", String(chosen.has(code)));
    chip.querySelector("path").setAttribute("class", symbol(code)[0]);
  });
}
