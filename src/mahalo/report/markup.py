"""Small pieces of HTML. Whatever comes from the caller passes through `escaped`, or through `as_json` into a script."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Cell", "Column", "as_json", "bar", "chart", "escaped", "number", "percent", "section", "table"]


_LONG = 30  # characters in a cell that want a wide column


def escaped(text: Any) -> str:
    """Text as it reads, for HTML and its attributes; characters that nobody can see are replaced."""
    plain = "".join(c if c.isprintable() or c == " " else "\N{REPLACEMENT CHARACTER}" for c in str(text))
    return html.escape(plain)


def as_json(values: Any) -> str:
    """JSON that can stand inside a script element, whatever the strings in it are."""
    text = json.dumps(values, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    risky = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
    for character, code in risky.items():
        text = text.replace(character, code)
    return text.encode("utf-8", "replace").decode()


# -- numbers as people read them ---------------------------------------------------------------------------------


def number(value: float) -> str:
    """Three digits, with an exponent only where there is no other way."""
    if value == float("inf"):
        return "∞"
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 1e6 or size < 1e-4:
        mantissa, _, exponent = f"{value:.1e}".partition("e")
        power = str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
        return f"{_minus(mantissa.removesuffix('.0'))} × 10{power}"
    if size >= 100:
        return _minus(f"{value:,.0f}")
    return _minus(f"{float(f'{value:.3g}'):g}")


def percent(share: float, digits: int = 1) -> str:
    return _minus(f"{100 * share:.{digits}f}") + " %"


def _minus(text: str) -> str:
    return text.replace("-", "−")


# -- tables ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Column:
    name: str
    numeric: bool = False
    title: str = ""


@dataclass(frozen=True)
class Cell:
    """What is shown, what it is sorted and downloaded by, and markup of ours to show in its stead."""

    text: str
    value: Any = None
    markup: str = ""

    def drawn(self, numeric: bool) -> str:
        value = f' data-value="{escaped(self.value)}"' if self.value is not None else ""
        kind = ' class="number"' if numeric else ""
        return f"<td{kind}{value}>{self.markup or escaped(self.text)}</td>"


def table(caption: str, columns: Sequence[Column], rows: Iterable[Sequence[Cell]], *, name: str = "") -> str:
    """A table; with a name one that can be sorted by its columns and downloaded under it."""
    rows = list(rows)
    long = [any(len(row[k].text) > _LONG for row in rows) for k in range(len(columns))]
    head = "".join(_head(column, bool(name), wide) for column, wide in zip(columns, long, strict=True))
    body = "".join(
        "<tr>" + "".join(cell.drawn(c.numeric) for c, cell in zip(columns, row, strict=True)) + "</tr>\n"
        for row in rows
    )
    download = (
        f'<button type="button" class="quiet download" data-table="{escaped(name)}">Download as CSV</button>'
        if name
        else ""
    )
    box = 'class="scroll"' if name else 'class="scroll whole"'
    identity = f' id="{escaped(name)}" class="sortable"' if name else ""
    return (
        f'<div class="tablebox"><div {box} tabindex="0" role="region" aria-label="{escaped(caption)}">'
        f"<table{identity}><caption><span>{escaped(caption)}</span></caption><thead><tr>{head}</tr></thead>"
        f"<tbody>\n{body}</tbody></table></div>{download}</div>\n"
    )


def _head(column: Column, sortable: bool, wide: bool) -> str:
    kind = ' class="number"' if column.numeric else ' class="long"' if wide else ""
    title = f' title="{escaped(column.title)}"' if column.title else ""
    name = escaped(column.name)
    inside = f'<button type="button" class="sort">{name}</button>' if sortable else name
    order = ' aria-sort="none"' if sortable else ""
    return f'<th scope="col"{kind}{title}{order}>{inside}</th>'


def bar(share: float, kind: str) -> str:
    """A bar of this share of its cell, drawn in attributes: no style is inline."""
    width = 100 * min(max(share, 0.0), 1.0)
    return (
        f'<svg class="bar {kind}" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect class="track" width="100" height="8"/><rect width="{width:.1f}" height="8"/></svg>'
    )


# -- blocks ------------------------------------------------------------------------------------------------------


def section(name: str, title: str, *parts: str) -> str:
    inside = "\n".join(part for part in parts if part)
    head = f'<h2 id="{name}-title">{title}</h2>'
    return f'<section id="{name}" aria-labelledby="{name}-title">\n{head}\n{inside}\n</section>\n'


def chart(name: str, label: str, caption: str = "") -> str:
    """A place for a drawing of the script, with what it shows in words."""
    below = f"<figcaption>{caption}</figcaption>" if caption else ""
    box = f'<div class="chart" data-chart="{name}" role="img" aria-label="{escaped(label)}"></div>'
    return f"<figure>{box}{below}</figure>"
