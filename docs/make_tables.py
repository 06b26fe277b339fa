"""Write the table about adapted embeddings into docs/embeddings.md: `python docs/make_tables.py`.

The figures are those of `python -m benchmarks adapting --json docs/adapting.json`.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

HERE = Path(__file__).parent
NUMBERS = HERE / "adapting.json"
METHODS = {
    "frozen": "frozen",
    "LDA, shrunk": "LDA, shrunk",
    "LDA, cosine": "the same, by cosine",
    "contrastive adapter": "linear adapter, contrastive loss",
    "EmbeddingAdapter": "**EmbeddingAdapter**",
}
MEASURES = ("P@1", "P@10", "MAP")


def main() -> None:
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
        print(path.relative_to(HERE.parent))


def pages() -> dict[Path, str]:
    """The page as it should be."""
    numbers = read_numbers()
    tables = {
        HERE / "embeddings.md": full_table(numbers["retrieval"], numbers["draws"]),
    }
    return {path: _replaced(path.read_text(encoding="utf-8"), table) for path, table in tables.items()}


def read_numbers() -> dict:
    """`retrieval`: labels an intent → method → measure → mean over draws; `draws`: how many of them."""
    benchmarks = json.loads(NUMBERS.read_text(encoding="utf-8"))["benchmarks"]
    return next(b for b in benchmarks if b["name"] == "adapting")["numbers"]


def full_table(retrieval: dict, draws: dict[str, int]) -> str:
    shots = [name for name in ("5", "10", "20", "all") if name in retrieval]
    head = [f"{n} labels an intent" if n != "all" else "all labels" for n in shots]
    lines = [_row("", *head, "intents never seen"), _row(*["---"] * (len(shots) + 2))]
    for method, shown in METHODS.items():
        cells = (_figures(retrieval[name].get(method)) for name in (*shots, "unseen"))
        lines.append(_row(shown, *cells))
    lines.append(_row("draws", *(str(draws[name]) for name in (*shots, "unseen"))))
    return "\n".join(lines)


def _figures(scores: dict[str, float] | None) -> str:
    return "" if scores is None else " / ".join(_short(scores[measure]) for measure in MEASURES)


def _short(value: float) -> str:
    return f"{value:.3f}".removeprefix("0")


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _replaced(page: str, table: str) -> str:
    """The page with the table between its two marks."""
    start, end = "<!-- adapting:start -->", "<!-- adapting:end -->"
    return re.sub(f"{start}.*?{end}", lambda _: f"{start}\n{table}\n{end}", page, flags=re.S)


if __name__ == "__main__":
    main()
