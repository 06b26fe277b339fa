// The map: all rows on a canvas, between the ordinary and the learned distance.

import { get, positions } from "./api.js";
import { $, make, say, svg, visible } from "./dom.js";

// The "muted" scheme of Paul Tol: distinct for all common kinds of colour blindness.
const COLOURS = ["#4477aa", "#cc6677", "#117733", "#ddaa33", "#aa4499", "#44aa99", "#999933", "#882255", "#88ccee", "#c06020", "#6a6ad0", "#7a9a30"];
const MOST_COLOURS = COLOURS.length;
const HOVER_RADIUS = 12;
const INSET = 0.96; // of the whole map, so that no point lies across the border

const canvas = $("map");
const context = canvas.getContext("2d");
const view = { x: 0, y: 0, scale: 1 };
let n = 0;
let before = new Float32Array(0), after = new Float32Array(0), shown = new Float32Array(0), target = new Float32Array(0);
let image = null;
let codes = null, names = [], marked = [], hovered = -1, highlighted = -1;
let blend = 1, frame = 0, animation = null, size = 0, lasso = null, lassoOn = false, selected = null, cursor = -1;
let chooseRow = () => {};
export const frames = { drawn: 0, milliseconds: 0 };

export async function startMap(setup, onChoose) {
  n = setup.n_rows;
  chooseRow = onChoose;
  if (setup.has_labels) {
    $("colour").prepend(make("option", { value: "label" }, "label"));
    $("colour").value = "label";
  }
  $("colour").addEventListener("change", colour);
  $("blend").addEventListener("input", () => { blend = $("blend").value / 100; retarget(150); });
  $("reset").addEventListener("click", () => { Object.assign(view, { x: 0, y: 0, scale: 1 }); selected = null; draw(); });
  $("lasso").addEventListener("click", () => { lassoOn = !lassoOn; $("lasso").setAttribute("aria-pressed", lassoOn); });
  canvas.addEventListener("pointermove", move);
  canvas.addEventListener("pointerdown", press);
  canvas.addEventListener("pointerup", release);
  canvas.addEventListener("pointerleave", () => hover(-1));
  canvas.addEventListener("wheel", wheel, { passive: false });
  canvas.addEventListener("keydown", key);
  new ResizeObserver(resize).observe(canvas);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  await Promise.all([refreshMap(), colour()]);
}

export async function refreshMap() {
  const all = await positions();
  if (all.length !== 4 * n) {
    $("map-status").textContent = "The map is being drawn.";
    return;
  }
  before = all.subarray(0, 2 * n);
  after = all.subarray(2 * n);
  $("map-status").textContent = `${n.toLocaleString("en")} rows`;
  retarget(shown.length ? 700 : 0);
}

export function markRows(rows) {
  marked = rows;
  draw();
}

export async function colour() {
  const found = await get("colours", { by: $("colour").value });
  ({ codes, names } = found);
  legend();
  draw();
}

function legend() {
  const many = names.length > MOST_COLOURS;
  const used = names.slice(0, many ? 60 : names.length);
  const entries = used.map((name, code) => {
    const mark = svg("svg", { viewBox: "0 0 10 10", "aria-hidden": "true" }, svg("circle", { cx: 5, cy: 5, r: 5, fill: many ? "var(--point)" : COLOURS[code] }));
    const text = visible(name);
    const point = () => { highlighted = code; draw(); };
    const leave = () => { highlighted = -1; draw(); };
    return make("li", { onpointerenter: point, onpointerleave: leave }, mark, text);
  });
  if (many) entries.push(make("li", { class: "quiet" }, `${names.length} in all: point at one, or at a row, to see it`));
  $("legend").replaceChildren(...entries);
}

// -- positions -----------------------------------------------------------------------------------------------------

function retarget(milliseconds) {
  if (!before.length) return;
  target = new Float32Array(2 * n);
  for (let k = 0; k < 2 * n; k++) target[k] = before[k] + blend * (after[k] - before[k]);
  if (!shown.length || !milliseconds || matchMedia("(prefers-reduced-motion: reduce)").matches) {
    shown = target.slice();
    animation = null;
    draw();
    return;
  }
  animation = { from: shown.slice(), start: performance.now(), milliseconds };
  draw();
}

function advance(now) {
  if (!animation) return;
  const t = Math.min(1, (now - animation.start) / animation.milliseconds);
  const eased = t * t * (3 - 2 * t);
  for (let k = 0; k < 2 * n; k++) shown[k] = animation.from[k] + eased * (target[k] - animation.from[k]);
  if (t === 1) animation = null;
}

const toX = (k) => (INSET * shown[2 * k] * view.scale + view.x + 1) * size / 2;
const toY = (k) => (-INSET * shown[2 * k + 1] * view.scale + view.y + 1) * size / 2;

// -- drawing -------------------------------------------------------------------------------------------------------

function resize() {
  const ratio = window.devicePixelRatio || 1;
  size = Math.min(canvas.clientWidth, canvas.clientHeight);
  canvas.width = Math.round(canvas.clientWidth * ratio);
  canvas.height = Math.round(canvas.clientHeight * ratio);
  draw();
}

function draw() {
  if (!frame) frame = requestAnimationFrame(paint);
}

function paint(now) {
  frame = 0;
  const began = performance.now();
  advance(now);
  const style = getComputedStyle(document.documentElement);
  const ratio = window.devicePixelRatio || 1;
  if (shown.length && canvas.width && canvas.height) {
    paintPoints(style);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.translate((canvas.clientWidth - size) / 2, (canvas.clientHeight - size) / 2);
    paintMarks(style);
  }
  frames.drawn++;
  frames.milliseconds += performance.now() - began;
  if (animation) draw();
}

// Points are blended into an array of pixels: a hundred thousand calls of the canvas would take many times as long.
function paintPoints(style) {
  const ratio = window.devicePixelRatio || 1, { width, height } = canvas;
  if (!image || image.width !== width || image.height !== height) image = context.createImageData(width, height);
  const pixels = image.data, ground = rgb(style.getPropertyValue("--panel"));
  new Uint32Array(pixels.buffer).fill(new Uint32Array(new Uint8Array([...ground, 255]).buffer)[0]);
  const radius = (n > 20000 ? 1 : n > 3000 ? 1.5 : 2.5) * Math.min(2, Math.sqrt(view.scale)) * ratio;
  const side = Math.max(1, Math.round(2 * radius));
  const left = ((canvas.clientWidth - size) / 2) * ratio - side / 2, top = ((canvas.clientHeight - size) / 2) * ratio - side / 2;
  const many = names.length > MOST_COLOURS;
  const only = highlighted >= 0 ? highlighted : many && hovered >= 0 && codes ? codes[hovered] : -1;
  const shades = many ? [rgb(style.getPropertyValue("--accent"))] : COLOURS.map(rgb);
  const plain = rgb(style.getPropertyValue("--point"));
  const isOn = (code) => (only >= 0 ? code === only : !many && code >= 0);
  const anyOn = codes !== null && codes.some(isOn);
  for (const on of [false, true]) { // points of colour lie above the others
    const alpha = on || !anyOn ? 0.85 : 0.45;
    for (let k = 0; k < n; k++) {
      const code = codes ? codes[k] : -1;
      if (isOn(code) !== on) continue;
      const x = Math.round(toX(k) * ratio + left), y = Math.round(toY(k) * ratio + top);
      if (x < 0 || y < 0 || x + side > width || y + side > height) continue;
      blendSquare(pixels, width, x, y, side, on ? shades[many ? 0 : code % MOST_COLOURS] : plain, alpha);
    }
  }
  context.putImageData(image, 0, 0);
}

function blendSquare(pixels, width, x, y, side, colour, alpha) {
  for (let row = y; row < y + side; row++) {
    for (let at = 4 * (row * width + x), end = at + 4 * side; at < end; at += 4) {
      pixels[at] += alpha * (colour[0] - pixels[at]);
      pixels[at + 1] += alpha * (colour[1] - pixels[at + 1]);
      pixels[at + 2] += alpha * (colour[2] - pixels[at + 2]);
    }
  }
}

// The numbers of a colour such as "#4477aa".
function rgb(text) {
  const number = parseInt(text.trim().slice(1), 16);
  return [number >> 16, (number >> 8) & 255, number & 255];
}

function paintMarks(style) {
  const ring = (k, width, colour, radius = 8) => {
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.beginPath();
    context.arc(toX(k), toY(k), radius, 0, 2 * Math.PI);
    context.stroke();
  };
  const ink = style.getPropertyValue("--ink");
  if (marked.length > 1) {
    context.strokeStyle = ink;
    context.lineWidth = 1.5;
    context.setLineDash([4, 3]);
    context.beginPath();
    for (const k of marked.slice(1)) { context.moveTo(toX(marked[0]), toY(marked[0])); context.lineTo(toX(k), toY(k)); }
    context.stroke();
    context.setLineDash([]);
  }
  for (const k of marked) ring(k, 2.5, ink);
  if (selected) for (const k of selected) ring(k, 1, style.getPropertyValue("--accent"), 4);
  if (hovered >= 0) ring(hovered, 2, style.getPropertyValue("--accent"));
  if (lasso) {
    context.strokeStyle = style.getPropertyValue("--accent");
    context.beginPath();
    lasso.forEach(([x, y], i) => (i ? context.lineTo(x, y) : context.moveTo(x, y)));
    context.stroke();
  }
}

// -- pointing ------------------------------------------------------------------------------------------------------

function place(event) {
  const box = canvas.getBoundingClientRect();
  return [event.clientX - box.left - (canvas.clientWidth - size) / 2, event.clientY - box.top - (canvas.clientHeight - size) / 2];
}

function nearest([x, y]) {
  let best = -1, smallest = HOVER_RADIUS ** 2;
  for (let k = 0; k < shown.length / 2; k++) {
    const sq = (toX(k) - x) ** 2 + (toY(k) - y) ** 2;
    if (sq < smallest) { best = k; smallest = sq; }
  }
  return best;
}

let pressed = null;

function press(event) {
  pressed = { at: place(event), x: view.x, y: view.y, moved: false };
  canvas.setPointerCapture(event.pointerId);
  if (lassoOn) lasso = [pressed.at];
}

function move(event) {
  const at = place(event);
  if (pressed && lasso) {
    lasso.push(at);
    draw();
  } else if (pressed) {
    const [dx, dy] = [at[0] - pressed.at[0], at[1] - pressed.at[1]];
    pressed.moved ||= Math.hypot(dx, dy) > 4;
    if (pressed.moved) Object.assign(view, { x: pressed.x + (2 * dx) / size, y: pressed.y + (2 * dy) / size });
    draw();
  } else hover(nearest(at), at);
}

function release(event) {
  if (lasso) {
    selected = inside(lasso);
    lasso = null;
    lassoOn = false;
    $("lasso").setAttribute("aria-pressed", "false");
    say(`${selected.length.toLocaleString("en")} rows in the lasso.`);
    if (selected.length) describe(selected);
  } else if (pressed && !pressed.moved) {
    const k = nearest(place(event));
    if (k >= 0) chooseRow(k);
  }
  pressed = null;
  draw();
}

function inside(polygon) {
  const path = new Path2D();
  polygon.forEach(([x, y], i) => (i ? path.lineTo(x, y) : path.moveTo(x, y)));
  path.closePath();
  context.setTransform(1, 0, 0, 1, 0, 0);
  const found = [];
  for (let k = 0; k < n; k++) if (context.isPointInPath(path, toX(k), toY(k))) found.push(k);
  return found;
}

async function describe(rows) {
  const some = await Promise.all(rows.slice(0, 5).map((row) => get(`item/${row}`)));
  const more = rows.length > 5 ? ` and ${(rows.length - 5).toLocaleString("en")} more` : "";
  $("map-status").textContent = `In the lasso: ${some.map((item) => visible(item.id)).join(", ")}${more}`;
}

let asked = -1;

async function hover(k, at) {
  if (k === hovered) return;
  hovered = k;
  draw();
  const tip = $("tip");
  tip.hidden = true;
  if (k < 0) return;
  asked = k;
  await new Promise((resolve) => setTimeout(resolve, 80));
  if (asked !== k || hovered !== k) return;
  const item = await get(`item/${k}`).catch(() => null);
  if (!item || hovered !== k) return;
  const label = codes && codes[k] >= 0 ? ` · ${visible(names[codes[k]])}` : "";
  const text = item.fields.map((field) => field.text).filter((value) => value.length > 12).join(" · ").slice(0, 160);
  tip.textContent = `${visible(item.id)}${label}${text ? ` · ${visible(text)}` : ""}`;
  $("map-status").textContent = tip.textContent;
  if (!at) return;
  tip.hidden = false;
  tip.style.left = `${Math.min(at[0] + 14, Math.max(0, canvas.clientWidth - tip.offsetWidth - 4))}px`;
  tip.style.top = `${at[1] + 14}px`;
}

function zoom(factor, [x, y] = [size / 2, size / 2]) {
  const scale = Math.max(1, Math.min(60, view.scale * factor));
  const change = scale / view.scale, cx = (2 * x) / size - 1, cy = (2 * y) / size - 1;
  Object.assign(view, { x: cx - (cx - view.x) * change, y: cy - (cy - view.y) * change, scale });
  draw();
}

function wheel(event) {
  event.preventDefault();
  zoom(Math.exp(-event.deltaY / 400), place(event));
}

function key(event) {
  const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  if (step && n) {
    cursor = cursor < 0 ? (marked[0] ?? 0) : (cursor + step + n) % n;
    hover(cursor);
  } else if (event.key === "Enter" && cursor >= 0) chooseRow(cursor);
  else if (event.key === "+" || event.key === "=") zoom(1.3);
  else if (event.key === "-") zoom(1 / 1.3);
  else if (event.key === "Escape") { cursor = -1; selected = null; hover(-1); draw(); }
  else return;
  event.preventDefault();
}
