"""Maps of the rows before and after learning, and hubs among them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..drawing.charts import HubChart, HubCurve, MapChart
from ..evaluation import HubCounts
from .findings import Findings, Missing
from .formatting import percent
from .parts import Cell, Chart, Column, Table, row_cell

_N_HUBS = 15
_MOST_COLOURED = 12  # classes beyond which they have no colours of their own and can be searched by name
_MOST_LINES = 400  # pairs on a map
_HUB_BINS = 24


@dataclass(frozen=True, eq=False)
class Maps:
    """Linked maps, with the numbers that the text beside them names."""

    chart: MapChart
    n_rows: int
    n_classes: int
    n_pairs: int
    pairs_are_noted: bool
    shows_training_rows: bool

    @property
    def n_shown(self) -> int:
        """Number of rows on the maps."""
        return len(self.chart.rows)

    @property
    def n_lines(self) -> dict[str, int]:
        """Numbers of similar and of dissimilar pairs drawn."""
        n_similar = int(self.chart.similar.sum())
        return {"similar": n_similar, "dissimilar": len(self.chart.similar) - n_similar}


def neighbourhood_maps(findings: Findings) -> Maps:
    """Return the maps of the rows before and after learning."""
    before, after = findings.maps
    shown, labels = findings.shown, findings.labels
    classes = [] if labels is None else [str(name) for name in labels.classes]
    pairs, similar = _pairs_on_map(findings)
    chart = MapChart(
        before=before.round(3),
        after=after.round(3),
        rows=shown,
        ids=[findings.ids[i] for i in shown],
        codes=np.full(len(shown), -1) if labels is None else labels.codes[shown],
        classes=classes,
        coloured=len(classes) <= _MOST_COLOURED,
        notes=_notes(findings, shown),
        pairs=pairs,
        similar=similar,
        neighbors=findings.neighbors,
    )
    return Maps(
        chart=chart,
        n_rows=findings.n_rows,
        n_classes=len(classes),
        n_pairs=len(findings.pairs[0]),
        pairs_are_noted=findings.draws_noted_pairs,
        shows_training_rows=findings.are_training_rows,
    )


def _pairs_on_map(findings: Findings) -> tuple[np.ndarray, np.ndarray]:
    """Return pairs as positions of rows on the map, and whether they are similar; a random sample of many."""
    index, similar = findings.pairs
    on_map = np.flatnonzero(np.isin(index, findings.shown).all(axis=1))
    if len(on_map) > _MOST_LINES:
        on_map = np.sort(np.random.default_rng(0).choice(on_map, _MOST_LINES, replace=False))
    return np.searchsorted(findings.shown, index[on_map]), similar[on_map]


def _notes(findings: Findings, shown: np.ndarray) -> list[str]:
    """Return a remark for each row whose label looks wrong, an empty text for the others."""
    notes = dict.fromkeys(shown.tolist(), "")
    try:
        found = findings.doubtful_rows
    except Missing:
        return list(notes.values())
    for row, score, code in zip(found.rows.tolist(), found.score, found.suggested, strict=True):
        if row in notes and score > 0.5:
            notes[row] = f"doubtful label: looks like {findings.class_name(code)}"
    return list(notes.values())


# -- hubs ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Hubs:
    """Neighbour counts before and after, their distribution, and the rows with the largest."""

    before: HubCounts
    after: HubCounts
    chart: Chart
    table: Table


def hubs(findings: Findings) -> Hubs:
    """Return the rows that are neighbours of very many others."""
    before, after = findings.hubs
    width = max(1, int(np.ceil((max(before.counts.max(), after.counts.max()) + 1) / _HUB_BINS)))
    chart = Chart(
        "hubs",
        f"Distribution of how often rows are among the {after.k} nearest neighbours of others: 1 % of the rows make up "
        f"{percent(before.top_share)} of all neighbours before, {percent(after.top_share)} after",
        "A long tail to the right means hubs.",
        HubChart(after.k, _distribution(before.counts, width), _distribution(after.counts, width)),
    )
    return Hubs(before, after, chart, _hub_table(findings, before, after))


def _hub_table(findings: Findings, before: HubCounts, after: HubCounts) -> Table:
    labelled = findings.labels is not None
    columns = [Column("Row"), *([Column("Label")] if labelled else []), Column("After", True), Column("Before", True)]
    rows = []
    for k in np.argsort(-after.counts, kind="stable")[:_N_HUBS]:
        row = int(findings.shown[k])
        counts = [Cell(f"{n:,}", int(n)) for n in (after.counts[k], before.counts[k])]
        rows.append([row_cell(findings, [row]), *([Cell(findings.label(row))] if labelled else []), *counts])
    return Table(f"Rows most often among the {after.k} nearest neighbours", columns, rows, "hubs-table")


def _distribution(counts: np.ndarray, width: int) -> HubCurve:
    shares = np.bincount(counts // width) / len(counts)
    return HubCurve(width * np.arange(len(shares)), shares)
