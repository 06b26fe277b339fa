// Doubtful labels, one by one: keep, change or drop.

import { get, newId, post } from "./api.js";
import { $, make, say, visible } from "./dom.js";
import { itemBox } from "./question.js";

let annotator = "", classes = [];

export function startLabels(setup) {
  ({ annotator, classes } = setup);
  $("tab-labels").hidden = !setup.has_labels;
  $("correct").addEventListener("click", async () => {
    try {
      const { file, folder } = await post("correct", {});
      $("corrected").replaceChildren("Written: ", make("a", { href: `/api/file/${encodeURIComponent(file)}`, download: file }, `${folder}/${file}`));
    } catch (error) {
      say(error.message);
    }
  });
}

export async function showLabels() {
  show(await get("doubtful"));
}

function show({ status, rows, n_changed: changed, n_dropped: dropped }) {
  const open = rows.filter((row) => !row.decision);
  $("labels-status").textContent = status === "done"
    ? `${rows.length} labels look wrong; ${open.length} still to decide. ${changed} changed, ${dropped} dropped.`
    : status === "looking" ? "Looking for labels that do not fit their neighbours…" : visible(status);
  $("labels").replaceChildren(...(open.length ? [card(open[0])] : status === "done" ? [make("p", {}, "All doubtful labels are decided.")] : []));
}

function card(row) {
  const other = make("select", { id: "new-label", "aria-label": "New label" }, ...[...new Set([row.suggested, ...classes])].map((name) => make("option", { value: name }, visible(name))));
  const decide = async (decision, label = "") => {
    try {
      show(await post("label", { id: newId(), row: row.row, decision, label, annotator }));
    } catch (error) {
      say(`Not saved: ${error.message}`);
    }
  };
  return make("div", {}, itemBox(row),
    make("p", {}, "Labelled ", make("strong", {}, visible(row.given)), "; its neighbours say ", make("strong", {}, visible(row.suggested)), ` (doubt ${row.score.toFixed(2)}).`),
    make("div", { class: "answers", role: "group", "aria-label": "Decision" },
      make("button", { type: "button", onclick: () => decide("keep") }, "Keep"),
      make("button", { type: "button", class: "primary", onclick: () => decide("change", other.value) }, "Change to"), other,
      make("button", { type: "button", onclick: () => decide("drop") }, "Drop the row")));
}
