// What it knows: counts, held-out AUC as answers come in, the certificate, weights, contradictions.

import { get } from "./api.js";
import { $, make, nameOf, svg, visible } from "./dom.js";

const three = (value) => value.toFixed(3);
const count = (value) => value.toLocaleString("en");

export async function showKnowledge() {
  const state = await get("state");
  $("enough").textContent = state.enough.sentence;
  const held = state.held_out;
  const rows = [
    ["answers", `${count(state.n_answers)} (${count(state.n_same)} same, ${count(state.n_different)} different${state.n_triplets ? `, ${count(state.n_triplets)} triplets` : ""})`],
    ["implied by them", count(state.n_implied)],
    ["could not say", count(state.n_skipped)],
    ["contradictions", count(state.contradictions.length)],
    ["doubtful answers", count(state.doubtful.length)],
    ["held-out AUC", held ? `${three(held.before)} → ${three(held.after)}${held.margin === null ? "" : ` ± ${three(held.margin)}`} (${held.n_pairs} pairs)` : `too few yet (${state.n_held_out} held out)`],
    ["certificate", state.certificate ? `${state.certificate.converged ? "optimal" : "not converged"}, gap ${state.certificate.gap.toExponential(1)}` : "after five answers"],
  ];
  if (state.annotators.filter(Boolean).length > 1) rows.push(["annotators", state.annotators.map(visible).join(", ")]);
  if (state.error) rows.push(["error", visible(state.error)]);
  $("counts").replaceChildren(...rows.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]));
  $("counts").dataset.answers = state.n_answers;
  $("counts").dataset.consolidated = state.n_consolidated;
  $("counts").dataset.map = state.map_answers;
  curve(state.curve);
  weights(state.weights);
  disputes(state);
  return state;
}

function curve(points) {
  const box = $("curve");
  box.replaceChildren();
  box.parentElement.hidden = points.length < 2;
  if (points.length < 2) return;
  const width = box.clientWidth || 300, height = 110, left = 30, bottom = 18;
  box.setAttribute("viewBox", `0 0 ${width} ${height}`);
  const low = Math.min(0.5, ...points.map((p) => Math.min(p.before, p.after)));
  const last = points[points.length - 1].n_answers;
  const X = (p) => left + ((width - left - 6) * p.n_answers) / last;
  const Y = (value) => 6 + ((height - bottom - 6) * (1 - Math.max(low, Math.min(1, value)))) / (1 - low);
  const line = (value) => points.map((p, k) => `${k ? "L" : "M"}${X(p).toFixed(1)} ${Y(value(p)).toFixed(1)}`).join("");
  const upper = line((p) => p.after + (p.margin ?? 0));
  const lower = [...points].reverse().map((p) => `L${X(p).toFixed(1)} ${Y(p.after - (p.margin ?? 0)).toFixed(1)}`).join("");
  box.append(
    svg("path", { class: "axis", d: `M${left} 6V${height - bottom}H${width - 6}`, fill: "none" }),
    svg("text", { x: left - 4, y: 14, "text-anchor": "end" }, "1"),
    svg("text", { x: left - 4, y: height - bottom, "text-anchor": "end" }, low.toFixed(1)),
    svg("text", { x: width - 6, y: height - 4, "text-anchor": "end" }, `${last} answers`),
    svg("path", { class: "band", d: `${upper}${lower}Z` }),
    svg("path", { class: "before", d: line((p) => p.before) }),
    svg("path", { class: "after", d: line((p) => p.after) }));
  const end = points[points.length - 1];
  $("curve-caption").textContent = `Held-out AUC as answers came in: learned ${three(end.after)} (line, 95 % interval), ordinary ${three(end.before)} (dashed).`;
}

function weights(found) {
  $("weights").replaceChildren(...(found.length ? [
    make("h3", {}, "Columns that count more or less"),
    make("table", {}, make("tbody", {}, ...found.map(({ name, ratio }) =>
      make("tr", {}, make("th", { scope: "row" }, visible(name)), make("td", { class: "number" }, `× ${ratio < 0.1 ? ratio.toPrecision(1) : ratio.toFixed(2)}`))))),
  ] : []));
}

function disputes({ contradictions, doubtful }) {
  const said = (answer) => (answer.same === null ? Object.entries(answer.by).map(([who, what]) => `${visible(who) || "someone"}: ${what}`).join(", ")
    : answer.kind === "triplet" ? "the first is nearer" : answer.same ? "same" : "different");
  const line = (answer) => make("li", {}, `${answer.rows.map(nameOf).join(" | ")} – ${said(answer)}`);
  const parts = [];
  if (contradictions.length) {
    parts.push(make("h3", {}, "Answers that contradict each other; they will be asked again"));
    parts.push(...contradictions.slice(0, 10).map((found) => make("ul", {}, ...found.answers.map(line))));
  }
  if (doubtful.length) parts.push(make("h3", {}, "Answers that do not fit the others"), make("ul", {}, ...doubtful.map(line)));
  $("disputes").className = "disputes";
  $("disputes").replaceChildren(...parts);
}
