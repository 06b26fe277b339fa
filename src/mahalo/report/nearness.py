"""Who is near whom: maps before and after, and rows that are near to all too many."""

from __future__ import annotations

import numpy as np

from .findings import Missing
from .markup import Cell, Column, chart, percent, section, table
from .sheet import Sheet, told

__all__ = ["hubs", "maps"]

_N_HUBS = 15
_SEARCHED = 12  # classes beyond which they are looked for by name


def maps(sheet: Sheet) -> str:
    return section("map", "Who is near whom", told(_both_maps, sheet))


def _both_maps(sheet: Sheet) -> str:
    f = sheet.findings
    before, after = f.maps
    some = f.shown
    sheet.map = {
        "before": _flat(before),
        "after": _flat(after),
        "rows": some.tolist(),
        "ids": [f.ids[i] for i in some],
        "codes": [-1] * len(some) if f.codes is None else f.codes[some].tolist(),
        "classes": [] if f.labels is None else [str(c) for c in f.labels.classes],
        "notes": _notes(sheet, some),
    }
    drawn = "at random" if f.labels is None else "at random in every class"
    less = f" {len(some):,} of the {f.n_rows:,} rows are shown, drawn {drawn}." if len(some) < f.n_rows else ""
    learned = " The metric on the right was learned from these rows." if f.learned_here else ""
    islands = "Groups of rows that form islands" if f.labels is None else "Classes that form islands"
    empty = "Point at a row to find it in both maps; click to keep it, or use the arrow keys."
    sides = "".join(
        f'<div class="map" data-side="{side}" tabindex="0" role="group" aria-label="Map of rows {title}; arrow keys '
        f'go from row to row"><h3>{title.capitalize()}</h3></div>'
        for side, title in (("before", "before learning"), ("after", "after learning"))
    )
    return (
        f"<p>Rows that are near each other lie together. {islands} on the right and not on the left are what learning "
        f"brought.{learned}{less}</p>{_filter(sheet)}"
        f'<div class="pair">{sides}</div><p id="said" role="status" data-empty="{empty}">{empty}</p>'
        '<p class="note">Both are t-SNE maps, made without looking at labels. Nearness on them means something; '
        "the size of gaps and islands does not.</p>"
    )


def _filter(sheet: Sheet) -> str:
    labels = sheet.findings.labels
    if labels is None:
        return ""
    search = (
        '<label>Find a class <input id="find-class" type="search" autocomplete="off"></label>'
        if len(labels.classes) > _SEARCHED
        else ""
    )
    return (
        f'<fieldset class="filter"><legend>{len(labels.classes)} classes: choose some to see only them</legend>'
        f'{search}<div id="classes" class="chips"></div></fieldset>'
    )


def _notes(sheet: Sheet, some: np.ndarray) -> list[str]:
    """What else the page says about a row."""
    notes = dict.fromkeys(some.tolist(), "")
    try:
        found = sheet.findings.doubtful_rows
        for row, score, code in zip(found.rows.tolist(), found.score, found.suggested, strict=True):
            if row in notes and score > 0.5:
                notes[row] = f"doubtful: looks like {sheet.class_name(code)}"
    except Missing:
        pass
    return list(notes.values())


def hubs(sheet: Sheet) -> str:
    return section("hubs", "Hubs", told(_hub_counts, sheet))


def _hub_counts(sheet: Sheet) -> str:
    f, hubs = sheet.findings, sheet.findings.hubs
    width = max(1, int(np.ceil((max(hubs.before.max(), hubs.after.max()) + 1) / 24)))
    sides = {"before": hubs.before, "after": hubs.after}
    sheet.charts["hubs"] = {"k": hubs.k} | {side: _distribution(counts, width) for side, counts in sides.items()}
    order = np.argsort(-hubs.after, kind="stable")[:_N_HUBS]
    columns = [
        Column("Row"),
        *([Column("Label")] if f.labels is not None else []),
        Column("After", True),
        Column("Before", True),
    ]
    rows = []
    for k in order:
        row = int(f.shown[k])
        cells = [sheet.row_cell([row])]
        cells += [Cell(sheet.label(row))] if f.labels is not None else []
        rows.append(
            [
                *cells,
                Cell(f"{hubs.after[k]:,}", int(hubs.after[k])),
                Cell(f"{hubs.before[k]:,}", int(hubs.before[k])),
            ]
        )
    busiest = [percent(hubs.share_of_busiest(counts)) for counts in (hubs.before, hubs.after)]
    never = [percent(hubs.never(counts)) for counts in (hubs.before, hubs.after)]
    words = (
        f"How often rows are among the {hubs.k} nearest of others: the busiest hundredth gives {busiest[0]} of answers "
        f"before, {busiest[1]} after"
    )
    return (
        f"<p>A hub is among the {hubs.k} nearest of very many rows and turns up in every search. The busiest "
        f"hundredth of the rows gives {busiest[1]} of all answers, {busiest[0]} before; {never[1]} of the rows are "
        f"nobody’s neighbour, {never[0]} before.</p>"
        '<div class="pair"><div>'
        + chart(
            "hubs",
            words,
            "A long tail to the right means hubs.",
        )
        + "</div><div>"
        + table(f"Rows that are most often among the {hubs.k} nearest", columns, rows, name="hubs-table")
        + "</div></div>"
    )


def _flat(plane: np.ndarray) -> list[float]:
    return plane.round(3).ravel().tolist()


def _distribution(counts: np.ndarray, width: int) -> dict[str, list[float]]:
    """Share of the rows at every count, in steps of `width`."""
    shares = np.bincount(counts // width) / len(counts)
    return {"counts": (width * np.arange(len(shares))).tolist(), "share": shares.round(5).tolist()}
