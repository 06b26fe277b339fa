"""What the sections of a page share: the findings, numbers for the script to draw, and how rows are called."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

from .findings import Findings, Missing
from .markup import Cell, bar, escaped, number, percent

__all__ = ["Sheet", "advice", "part", "share_cell", "told"]

_LONGEST_NAME = 70  # characters of a row's name that tables show
_SHORT_NAME = 16  # characters of a name that is not broken


class Sheet:
    """Findings, and what sections leave for the script: charts by name, and the points of the maps."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self.charts: dict[str, Any] = {}
        self.map: dict[str, Any] | None = None

    def row_cell(self, ends: list[int]) -> Cell:
        """Rows by name, at most four of them, each to be shown on the map if it is there."""
        ids = [self.findings.ids[i] for i in ends[:4]]
        more = f" and {len(ends) - 4} more" if len(ends) > 4 else ""
        text = " – ".join(ids) + more
        return Cell(text, text, "\N{NO-BREAK SPACE}– ".join(self._link(i) for i in ends[:4]) + more)

    def _link(self, row: int) -> str:
        name = self.findings.ids[row]
        shown = escaped(name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…")
        short = " short" if len(name) <= _SHORT_NAME else ""
        if row not in self._mapped:
            return f'<span class="row{short}" title="{escaped(name)}">{shown}</span>'
        title = f"On the map: {escaped(name)}"
        return f'<button type="button" class="show{short}" data-row="{row}" title="{title}">{shown}</button>'

    @cached_property
    def _mapped(self) -> set[int]:
        return set(self.map["rows"]) if self.map else set()

    def label(self, row: int) -> str:
        codes = self.findings.codes
        return "no label" if codes is None or codes[row] < 0 else self.class_name(int(codes[row]))

    def class_name(self, code: int) -> str:
        labels = self.findings.labels
        assert labels is not None
        return str(labels.classes[code])


def told(part: Callable[[Sheet], str], sheet: Sheet, element: str = "p") -> str:
    """What a part of a section says, or why it is missing."""
    try:
        return part(sheet)
    except Missing as why:
        return f'<{element} class="missing">Not shown: {escaped(why)}</{element}>'


def advice(text: str) -> str:
    return f'<p class="advice">{text}</p>'


def share_cell(share: float, widest: float, kind: str) -> Cell:
    """A share with a bar, as long as its cell for the widest of all."""
    text = percent(share)
    return Cell(text, f"{share:.6g}", f"{text} {bar(share / widest if widest > 0 else 0.0, kind)}")


def part(gap: float) -> str:
    """A relative gap in words."""
    if not gap > 1e-15:
        return "rounding"
    return percent(gap, 0) if gap >= 0.1 else f"{number(float(f'{100 * gap:.1g}'))} %"
