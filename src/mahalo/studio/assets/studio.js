// The page: panels, and news from the server.

import { get } from "./api.js";
import { $, say, visible } from "./dom.js";
import { startHome } from "./home.js";
import { showKnowledge } from "./knowledge.js";
import { showLabels, startLabels } from "./labels.js";
import { colour, frames, markRows, refreshMap, startMap } from "./map.js";
import { refreshNeighbors, showNeighbors, startNeighbors } from "./neighbors.js";
import { startQuestions } from "./question.js";

const tabs = [...document.querySelectorAll("[role=tab]")];

function select(tab) {
  for (const other of tabs) {
    const chosen = other === tab;
    other.setAttribute("aria-selected", chosen);
    other.tabIndex = chosen ? 0 : -1;
    $(other.getAttribute("aria-controls")).hidden = !chosen;
  }
  if (tab.id === "tab-labels") showLabels();
  if (tab.id === "tab-neighbors") refreshNeighbors();
}

function startTabs() {
  for (const tab of tabs) tab.addEventListener("click", () => select(tab));
  $("tabs").addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const usable = tabs.filter((tab) => !tab.hidden);
    const next = usable[(usable.indexOf(document.activeElement) + step + usable.length) % usable.length];
    select(next);
    next.focus();
    event.preventDefault();
  });
}

// Many events become one refresh, and never two at a time.
function refresher(work) {
  let running = false, again = false;
  return async function refresh() {
    if (running) { again = true; return; }
    running = true;
    try {
      await work();
    } catch (error) {
      say(error.message);
    }
    running = false;
    if (again) { again = false; setTimeout(refresh, 200); }
  };
}

async function start() {
  startTabs();
  const setup = await get("setup");
  $("source").textContent = `${visible(setup.source)}, ${setup.n_rows.toLocaleString("en")} rows${setup.annotator ? `, answered by ${visible(setup.annotator)}` : ""}`;
  const browse = (row) => { select($("tab-neighbors")); showNeighbors({ row }); };
  startNeighbors(setup, (row) => markRows([row]));
  startLabels(setup);
  startHome();
  const questions = startQuestions(setup, markRows);
  const map = startMap(setup, browse).catch((error) => say(error.message));
  const know = refresher(showKnowledge), draw = refresher(refreshMap), paint = refresher(colour);
  await questions;
  await Promise.all([map, know()]);
  const events = new EventSource("/api/events");
  events.addEventListener("answers", know);
  events.addEventListener("failure", know);
  events.addEventListener("metric", () => { know(); refreshNeighbors(); if ($("colour").value !== "label") paint(); });
  events.addEventListener("map", draw);
  events.addEventListener("doubtful", () => { showLabels(); if ($("colour").value === "doubt") paint(); });
  events.addEventListener("error", () => { if (events.readyState !== EventSource.OPEN) say("The server does not answer."); });
  events.addEventListener("hello", () => { say(""); know(); draw(); });
  window.studio = { frames };
  document.body.dataset.ready = "true";
}

start().catch((error) => say(error.message));
