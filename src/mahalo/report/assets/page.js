// Colour scheme, sorting and downloads of tables. Follows charts.js in the same script element.

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
  drawCharts(data.charts);
  const selectRow = data.map ? mapsWithNeighbors(data.map) : () => {};
  for (const table of document.querySelectorAll("table.sortable")) makeSortable(table);
  for (const button of document.querySelectorAll("button.download")) {
    button.addEventListener("click", () => download(document.getElementById(button.dataset.table)));
  }
  for (const button of document.querySelectorAll("button.show")) {
    button.addEventListener("click", () => {
      document.getElementById("map").scrollIntoView();
      selectRow(Number(button.dataset.row));
    });
  }
});

// Draws the maps and the browser of neighbours, each of which selects rows in the other.
function mapsWithNeighbors(chart) {
  let show = () => {};
  const selectRow = linkedMaps(chart, (k) => show(k));
  show = neighborBrowser(chart, (k) => selectRow(k < 0 ? -1 : chart.rows[k]));
  return selectRow;
}

// -- tables ------------------------------------------------------------------------------------------------------

const valueOf = (cell) => (cell.dataset.value !== undefined ? cell.dataset.value : cell.textContent);

function makeSortable(table) {
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
