// Take it home: the files, and the lines that load them.

import { post } from "./api.js";
import { $, make, visible } from "./dom.js";

export function startHome() {
  $("export").addEventListener("click", async () => {
    const button = $("export"), box = $("exported");
    button.disabled = true;
    box.textContent = "Learning from all answers and writing; the report takes a moment…";
    try {
      const { folder, files, python, command, notes } = await post("export", {});
      box.replaceChildren(
        make("p", {}, `Written to ${visible(folder)}:`),
        make("ul", {}, ...files.map((name) => make("li", {}, make("a", { href: `/api/file/${encodeURIComponent(name)}`, download: name }, name)))),
        ...notes.map((note) => make("p", { class: "quiet" }, visible(note))),
        make("h3", {}, "In Python"), make("pre", { tabindex: "0" }, python), make("h3", {}, "On the command line"), make("pre", { tabindex: "0" }, command));
    } catch (error) {
      box.textContent = `Not written: ${error.message}`;
    } finally {
      button.disabled = false;
    }
  });
}
