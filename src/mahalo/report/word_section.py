"""Words that a metric over texts stretches or shrinks."""

from __future__ import annotations

from itertools import zip_longest

from .findings import Findings
from .parts import Cell, Column, Table

_HINT = "Factor by which the metric stretches the vector of the word, relative to the median word"
_EMPTY = (Cell(""), Cell(""))


def word_table(findings: Findings) -> Table | None:
    """Return the words with the largest and the smallest weights, side by side; None for rows that are no texts."""
    words = findings.words
    if words is None:
        return None
    sides = [
        [(Cell(word), _weight(weight)) for word, weight in side.items()] for side in (words.stretched, words.shrunk)
    ]
    rows = [[*stretched, *shrunk] for stretched, shrunk in zip_longest(*sides, fillvalue=_EMPTY)]
    columns = [Column("Stretched"), Column("Weight", True, _HINT), Column("Shrunk"), Column("Weight", True, _HINT)]
    return Table(f"Words that matter, of {words.n_words:,} in these texts", columns, rows)


def _weight(weight: float) -> Cell:
    return Cell(f"{weight:.2f}", f"{weight:.6g}")
