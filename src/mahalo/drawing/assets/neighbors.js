// Lists the nearest rows of one row before and after learning, side by side. Follows maps.js.

// Fills an ordered list. An entry is the position of a row, its rank here and its rank by the other distance.
function neighborList(list, entries, { chart, own, word, farther, select }) {
  const { ids, codes, classes } = chart;
  list.replaceChildren(...entries.map(({ position, rank, other }) => {
    const item = document.createElement("li");
    const name = document.createElement("button");
    name.type = "button";
    name.className = "show";
    name.textContent = ids[position];
    name.addEventListener("click", () => select(position));
    const change = document.createElement("span");
    change.className = other > entries.length ? "rank changed" : "rank";
    const arrow = other === rank ? "" : (other > rank) === farther ? "▼ " : "▲ ";
    change.textContent = other === rank ? "same rank" : `${arrow}${word} ${other.toLocaleString("en")}`;
    item.append(name);
    if (classes.length) {
      const label = document.createElement("span");
      label.className = codes[position] >= 0 && codes[own] >= 0 && codes[position] !== codes[own] ? "label differs" : "label";
      label.textContent = codes[position] < 0 ? "no label" : classes[codes[position]];
      item.append(label);
    }
    item.append(change);
    return item;
  }));
}

// Returns a function that shows the neighbours of the row at a position, −1 for none; `select` selects another row.
function neighborBrowser(chart, select) {
  const { neighbors, ids, codes, classes } = chart;
  const box = document.getElementById("neighbors");
  const width = neighbors.before.length / ids.length;
  const find = document.getElementById("find-row");
  find.addEventListener("input", () => {
    const wanted = find.value.trim().toLowerCase();
    const names = ids.map((id) => id.toLowerCase());
    const exact = names.indexOf(wanted);
    const found = exact >= 0 ? exact : names.findIndex((name) => name.includes(wanted));
    document.getElementById("find-none").hidden = !wanted || found >= 0;
    select(wanted ? found : -1);
  });
  return (k) => {
    box.hidden = k < 0;
    if (k < 0) return;
    const entriesOf = (side, ranks) => {
      const others = neighbors[ranks].slice(k * width, (k + 1) * width);
      return neighbors[side].slice(k * width, (k + 1) * width).map((position, j) => ({ position, rank: j + 1, other: others[j] }));
    };
    const before = entriesOf("before", "rank_after");
    const after = entriesOf("after", "rank_before");
    const list = (side) => box.querySelector(`[data-neighbors="${side}"]`);
    neighborList(list("before"), before, { chart, own: k, word: "now", farther: true, select });
    neighborList(list("after"), after, { chart, own: k, word: "was", farther: false, select });
    const entered = after.filter(({ other }) => other > width).length;
    const ofClass = (entries) => entries.filter(({ position }) => codes[position] === codes[k]).length;
    const labelled = codes[k] < 0 ? "" : ` Of its class, ${classes[codes[k]]}: ${ofClass(before)} before, ${ofClass(after)} after.`;
    document.getElementById("neighbors-of").textContent = describeRow(chart, k);
    document.getElementById("neighbors-summary").textContent = `${entered} of the ${width} nearest rows are new after learning.${labelled}`;
  };
}
