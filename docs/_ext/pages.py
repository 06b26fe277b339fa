"""What this site adds to sphinx: pages that list themselves, links to examples, an order for the gallery."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

DOCS = Path(__file__).parents[1]
LISTS = ("index", "howto", "explanation", "reproducing")  # the pages that list others
REST = "<every other page>"

# What to read first; examples that are not named follow by title.
FIRST = (
    "labels_to_knn",
    "pairs_grid_search",
    "triplets_and_linear_forms",
    "choosing_gamma",
    "rbf_unseen",
    "string_kernel",
    "text_basis",
    "adapt_embeddings",
    "texts_to_search",
    "query_feedback",
    "find_duplicates",
    "clustering_with_pairs",
    "save_and_search",
    "hard_constraints",
    "wrong_labels",
)


class FromSimpleToSpecial:
    """Sort key of sphinx-gallery: those of FIRST as listed, then the others."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, filename: str) -> tuple[int, str]:
        name = Path(filename).stem
        return (FIRST.index(name) if name in FIRST else len(FIRST), name)


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("source-read", list_the_rest)
    app.connect("source-read", link_to_gallery)
    app.connect("autodoc-skip-member", skip_what_others_document)
    return {"parallel_read_safe": True}


def list_the_rest(app: Sphinx, docname: str, source: list[str]) -> None:
    """A page that no list names is listed where REST stands, by its file name."""
    if REST in source[0]:
        source[0] = source[0].replace(REST, "\n".join(unlisted()))


def unlisted() -> list[str]:
    named = {name for page in LISTS for name in listed(DOCS / f"{page}.md")}
    return sorted({path.stem for path in DOCS.glob("*.md")} - named - {"index"})


def listed(page: Path) -> list[str]:
    """The names in the lists (`toctree`) of a page."""
    blocks = re.findall(r"^```\{toctree\}\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    return [name for block in blocks for name in re.findall(r"^(?:.+ <)?([\w/]+)>?$", block, flags=re.M)]


def link_to_gallery(app: Sphinx, docname: str, source: list[str]) -> None:
    """On a code host an example is a file; here it is a page with what it prints and draws."""
    source[0] = re.sub(r"\]\(\.\./examples/(\w+)\.py\)", r"](gallery/\1.rst)", source[0])
    source[0] = source[0].replace("](../examples/README.rst)", "](gallery/index.rst)")


def skip_what_others_document(app: Sphinx, what: str, name: str, member: Any, skip: bool, options: Any) -> bool | None:
    """scikit-learn's own methods are in its own reference."""
    made_in = getattr(getattr(member, "fget", member), "__module__", None) or ""
    return True if made_in.startswith("sklearn.") else None
