// The neighbour browser: the ten nearest rows before and after, and clicks that become triplets.

import { get, newId, post } from "./api.js";
import { $, make, nameOf, say, visible } from "./dom.js";

let annotator = "";
let last = null;
let onRow = () => {};

export function startNeighbors(setup, shown) {
  annotator = setup.annotator;
  onRow = shown;
  $("find-typed").hidden = !setup.takes_text;
  $("find").addEventListener("submit", async (event) => {
    event.preventDefault();
    const { rows } = await get("search", { text: $("find-text").value });
    $("found").replaceChildren(...(rows.length ? rows.map((row) =>
      make("li", {}, make("button", { type: "button", class: "small", onclick: () => showNeighbors({ row: row.row }) }, nameOf(row)))) : [make("li", { class: "quiet" }, "No row has this name or text.")]));
    if (rows.length === 1) await showNeighbors({ row: rows[0].row });
  });
  $("find-typed").addEventListener("click", () => showNeighbors({ text: $("find-text").value }));
}

export async function showNeighbors(query) {
  last = query;
  try {
    const found = await get("neighbors", query);
    $("neighbors").replaceChildren(
      make("p", {}, make("strong", {}, found.row ? nameOf(found.row) : visible(found.text)), found.row?.label ? ` · ${visible(found.row.label)}` : ""),
      make("div", { class: "sides" }, side("Before learning", found.before, null), side("After learning", found.after, found.row)));
    if (found.row) onRow(found.row.row);
  } catch (error) {
    say(error.message);
  }
}

export function refreshNeighbors() {
  if (last && !$("panel-neighbors").hidden) showNeighbors(last);
}

function side(title, rows, judged) {
  return make("div", {}, make("h3", {}, title), make("ol", {}, ...rows.map((row, k) => {
    const rank = k + 1, other = row.other_rank;
    const learned = title.startsWith("After");
    const was = learned ? `was ${other}` : `now ${other}`;
    const kind = learned ? (other > 10 ? "new" : other > rank ? "up" : other < rank ? "down" : "") : "";
    return make("li", {}, `${nameOf(row)} `, row.label ? make("span", { class: "quiet" }, `${visible(row.label)} `) : null,
      other === rank ? null : make("span", { class: `quiet ${kind}` }, `(${was}) `), ...(judged ? buttons(judged, row) : []));
  })));
}

function buttons(row, neighbor) {
  const judge = async (belongs) => {
    try {
      await post("neighbor", { id: newId(), row: row.row, neighbor: neighbor.row, belongs, annotator });
      say(belongs ? "Noted: this one belongs." : "Noted: this one does not belong.");
    } catch (error) {
      say(`Not saved: ${error.message}`);
    }
  };
  const name = visible(neighbor.id);
  return [
    make("button", { type: "button", class: "small", "aria-label": `${name} belongs`, onclick: () => judge(true) }, "belongs"), " ",
    make("button", { type: "button", class: "small", "aria-label": `${name} does not belong`, onclick: () => judge(false) }, "does not"),
  ];
}
