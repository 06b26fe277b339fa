// The question: two or three rows, keys and buttons to answer.

import { get, newId, post } from "./api.js";
import { $, make, say, visible } from "./dom.js";

const PROMPTS = { pair: "Are these two the same?", triplet: "Which of the two on the right is more like the one on the left?" };
const ANSWERS = { pair: ["same", "different"], triplet: ["first", "second"] };
const BUTTONS = { pair: [["Same", "S"], ["Different", "D"]], triplet: [["The first", "S"], ["The second", "D"]] };

const WIDE = 50, LONG = 600; // characters of a text below its name, and of one that is scrolled in its card

let current = null;
let busy = false;
let annotator = "";
let onShow = () => {};

export async function startQuestions(setup, shown) {
  annotator = setup.annotator;
  onShow = shown;
  for (const button of document.querySelectorAll("#panel-ask [data-answer]")) button.addEventListener("click", () => reply(button.dataset.answer));
  $("undo").addEventListener("click", undo);
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || $("panel-ask").hidden) return;
    if (event.target.matches("input, select, textarea, canvas")) return;
    const key = event.key.toLowerCase();
    if (key === " " && event.target.matches("button, [role=tab]")) return;
    const action = { s: () => reply("first"), d: () => reply("second"), " ": () => reply("skip"), u: undo }[key];
    if (!action) return;
    event.preventDefault();
    action();
  });
  show(await get("question", { annotator }));
}

async function reply(which) {
  if (!current || busy) return;
  const { id, kind, rows, why } = current;
  const answer = which === "skip" ? "skip" : ANSWERS[kind][which === "first" ? 0 : 1];
  await send(() => post("answer", { id, kind, rows, why, answer, annotator }));
}

async function undo() {
  if (busy) return;
  const id = newId();
  await send(() => post("undo", { id, annotator }), (found) => say(found.undone ? "Taken back." : "There is nothing to take back."));
}

// One request at a time; a request that failed is repeated with the same id, which the log counts once.
async function send(request, done = () => {}) {
  busy = true;
  try {
    for (let attempt = 0; ; attempt++) {
      try {
        const found = await request();
        show(found);
        done(found);
        return;
      } catch (error) {
        if (!(error instanceof TypeError) || attempt === 4) throw error;
        say("The server does not answer; trying again.");
        await new Promise((resolve) => setTimeout(resolve, 300 * 2 ** attempt));
      }
    }
  } catch (error) {
    say(`Not saved: ${error.message}`);
  } finally {
    busy = false;
  }
}

function show({ question, items, reason }) {
  current = question;
  const box = $("items");
  for (const button of document.querySelectorAll("#panel-ask [data-answer]")) button.disabled = !question;
  if (!question) {
    $("prompt").textContent = "No more questions";
    $("why").textContent = reason;
    box.replaceChildren();
    onShow([]);
    return;
  }
  $("prompt").textContent = PROMPTS[question.kind];
  $("why").textContent = `Asked because: ${visible(question.why)}`;
  document.querySelectorAll("#panel-ask .primary").forEach((button, k) => {
    const [text, key] = BUTTONS[question.kind][k];
    button.replaceChildren(`${text} `, make("kbd", {}, key));
  });
  box.replaceChildren(...items.map((item, k) => itemBox(item, items, k)));
  box.dataset.rows = question.rows.join(",");
  box.dataset.id = question.id;
  onShow(question.rows);
}

// Names of columns may be broken after an underscore, a point or a stroke.
function breakable(name) {
  return name.split(/(?<=[_./-])/).flatMap((part, k) => (k ? [make("wbr"), part] : [part]));
}

export function itemBox(item, others = [], position = 0) {
  const values = (name) => others.map((other) => other.fields.find((field) => field.name === name)?.text);
  const fields = item.fields.flatMap((field) => {
    const differs = others.length > 1 && new Set(values(field.name)).size > 1;
    const rest = field.n_hidden ? ` … and ${field.n_hidden.toLocaleString("en")} more characters` : "";
    const wide = field.text.length > WIDE ? "wide" : null; // a text has the whole width below its name
    const text = make("dd", { class: wide }, make("span", { class: differs ? "differs" : null }, visible(field.text) || "–"), rest);
    if (differs) text.title = "differs";
    return [make("dt", { class: wide }, ...breakable(visible(field.name))), text];
  });
  const places = ["left", "right", "far right"];
  const long = item.fields.some((field) => field.text.length > LONG) ? " long" : "";
  return make("article", { class: `item${long}`, tabindex: "0", "aria-label": others.length ? `${places[position]}: ${visible(item.id)}` : visible(item.id) },
    make("h3", {}, visible(item.id)),
    item.has_picture ? make("img", { src: `/api/picture/${item.row}`, alt: `picture of ${visible(item.id)}`, onerror: (event) => event.target.remove() }) : null,
    make("dl", {}, ...fields));
}
