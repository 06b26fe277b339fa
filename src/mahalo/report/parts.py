"""Parts of sections as plain data: charts, tables and their cells, for the templates to render."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..drawing.charts import ChartData
from .findings import Findings, Missing
from .formatting import percent

_LONG_CELL = 30  # characters beyond which a column is made wide
_LONGEST_NAME = 70  # characters of a row's name that tables show
_SHORT_NAME = 16  # characters of a name that is not broken into lines
_MOST_NAMES = 4  # rows that one cell names


@dataclass(frozen=True)
class NotShown:
    """Reason why a part of the page is missing."""

    reason: str


@dataclass(frozen=True)
class Section:
    """Section of the page: its anchor, which is also the name of its template, its title, and the makers of its parts.

    A maker returns what the template shows under the name of the part, or raises `Missing`.
    """

    name: str
    title: str
    makers: Mapping[str, Callable[[Findings], object]]

    def parts(self, findings: Findings) -> dict[str, object]:
        """Return the parts by name; a part that is missing is the reason for it, a `NotShown`."""
        return {name: _part_or_reason(make, findings) for name, make in self.makers.items()}


def _part_or_reason(make: Callable[[Findings], object], findings: Findings) -> object:
    try:
        return make(findings)
    except Missing as missing:
        return NotShown(str(missing))


@dataclass(frozen=True, eq=False)
class Chart:
    """Drawing by the script: its name, a description in words, a caption, and the numbers."""

    name: str
    description: str
    caption: str
    data: ChartData


def charts_of(part: object) -> Iterator[Chart]:
    """Return the charts among a part, its fields and their fields."""
    if isinstance(part, Chart):
        yield part
    elif dataclasses.is_dataclass(part):
        for field in dataclasses.fields(part):
            yield from charts_of(getattr(part, field.name))


# -- tables ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Column:
    """Column of a table; numeric ones are aligned right and sorted by number."""

    name: str
    numeric: bool = False
    hint: str = ""


@dataclass(frozen=True)
class Bar:
    """Bar behind a number: its length as a share of the cell, and the kind that gives its colour."""

    share: float
    kind: str

    @property
    def width(self) -> str:
        """Length in percent."""
        return f"{100 * min(max(self.share, 0.0), 1.0):.1f}"


@dataclass(frozen=True)
class RowName:
    """Name of a row; a button that shows it on the map, if it is there."""

    row: int
    name: str
    on_map: bool

    @property
    def text(self) -> str:
        """Name, cut to 70 characters."""
        return self.name if len(self.name) <= _LONGEST_NAME else self.name[: _LONGEST_NAME - 1] + "…"

    @property
    def is_short(self) -> bool:
        """Return whether the name stays on one line."""
        return len(self.name) <= _SHORT_NAME


@dataclass(frozen=True)
class Cell:
    """Cell of a table.

    Attributes
    ----------
    text : str
    value : str, int or None
        What the table is sorted by and what is downloaded; default: the text.
    rows : tuple of RowName
        Rows that are named instead of the text, with the text `more` after them.
    bar : Bar or None
    kind : str
        CSS class of the text, such as "better".
    strong : bool
    note : str
        Small text below.
    """

    text: str
    value: str | int | None = None
    rows: tuple[RowName, ...] = ()
    more: str = ""
    bar: Bar | None = None
    kind: str = ""
    strong: bool = False
    note: str = ""


@dataclass(frozen=True)
class Table:
    """Table; with a name it can be sorted by its columns and downloaded."""

    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    name: str = ""

    def is_wide(self, k: int) -> bool:
        """Return whether column k has long texts."""
        return any(len(row[k].text) > _LONG_CELL for row in self.rows)


def row_cell(findings: Findings, rows: Sequence[int]) -> Cell:
    """Return a cell that names rows, four at most."""
    names = tuple(RowName(i, findings.ids[i], i in findings.mapped_rows) for i in rows[:_MOST_NAMES])
    more = f" and {len(rows) - _MOST_NAMES} more" if len(rows) > _MOST_NAMES else ""
    text = " – ".join(row.name for row in names) + more
    return Cell(text, text, rows=names, more=more)


def share_cell(share: float, largest: float, kind: str) -> Cell:
    """Return a cell with a share in percent and a bar, as long as the cell for the largest share."""
    return Cell(percent(share), f"{share:.6g}", bar=Bar(share / largest if largest > 0 else 0.0, kind))
