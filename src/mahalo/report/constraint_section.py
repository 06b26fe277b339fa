"""Constraints that shaped the metric, and labels and constraints that look wrong."""

from __future__ import annotations

from dataclasses import dataclass

from .findings import Findings
from .formatting import number
from .parts import Bar, Cell, Column, Table, row_cell, share_cell

_LONG_NAME = 20  # characters of row names beyond which a cell names one neighbour instead of three


@dataclass(frozen=True)
class ConstraintTable:
    """Constraints with the largest multipliers, and the numbers of active and of all constraints."""

    n_active: int
    n_constraints: int
    table: Table


def influential_constraints(findings: Findings) -> ConstraintTable:
    """Return the constraints by their share of the multipliers."""
    found = findings.influential
    labelled = findings.labels is not None
    columns = [Column("Kind"), Column("Rows"), *([Column("Labels")] if labelled else [])]
    columns += [Column(name, True) for name in ("Bound", "Learned", "Share of multipliers")]
    largest = float(found.share.max(initial=0.0))
    rows = []
    for kind, ends, bound, value, share in zip(
        found.kinds, found.rows, found.bound, found.value, found.share, strict=True
    ):
        labels = dict.fromkeys(findings.label(i) for i in ends[:4])
        cells = [Cell(kind), row_cell(findings, ends), *([Cell(" · ".join(labels))] if labelled else [])]
        cells += [Cell(number(float(v)), f"{v:.6g}") for v in (bound, value)]
        rows.append([*cells, share_cell(share, largest, "after")])
    table = Table("Constraints with the largest multipliers, largest first", columns, rows, "constraints-table")
    return ConstraintTable(found.n_active, found.n_constraints, table)


# -- doubtful labels and constraints -------------------------------------------------------------------------------


@dataclass(frozen=True)
class DoubtfulLabels:
    """Rows by doubt about their labels.

    Attributes
    ----------
    n_likely : int
        Rows listed with a doubt above 0.5; `n_listed` of them may be more.
    at_fit : bool
        True where labels were judged when the metric was learned.
    held_out : bool
        True where each label was judged by a metric that was learned without it.
    learned_from_labels : bool
        True where the metric was learned from labels of these rows.
    n_judged : int
        Number of labels judged.
    is_sample : bool
        True where these are a random sample of the labelled rows.
    """

    n_likely: int
    n_listed: int
    at_fit: bool
    held_out: bool
    learned_from_labels: bool
    n_judged: int
    is_sample: bool
    table: Table


def _has_constraints(findings: Findings) -> bool:
    notes = findings.notes
    return findings.constraints is not None or (notes is not None and notes.constraints is not None)


def doubtful_labels(findings: Findings) -> DoubtfulLabels | None:
    """Return labels that look wrong; None where the fit had constraints instead."""
    if findings.labels is None and _has_constraints(findings):
        return None
    found, notes, codes = findings.doubtful_rows, findings.notes, findings.codes
    n_neighbours = 3 if max(map(len, findings.ids)) < _LONG_NAME else 1
    rows = [
        [
            row_cell(findings, [row]),
            Cell(findings.label(row)),
            Cell(findings.class_name(code)),
            _doubt_cell(float(score)),
            row_cell(findings, near[:n_neighbours]),
        ]
        for row, score, code, near in zip(
            found.rows.tolist(), found.score, found.suggested, found.neighbours, strict=True
        )
    ]
    columns = [Column("Row"), Column("Label"), Column("Looks like"), Column("Doubt", True), Column("Neighbours")]
    return DoubtfulLabels(
        n_likely=int((found.score > 0.5).sum()),
        n_listed=len(rows),
        at_fit=notes is not None and notes.rows is not None,
        held_out=found.held_out,
        learned_from_labels=findings.learned_from_labels,
        n_judged=found.n_judged,
        is_sample=codes is not None and found.n_judged < int((codes >= 0).sum()),
        table=Table("Rows by doubt, most doubtful first", columns, rows, "doubtful-rows"),
    )


def doubtful_constraints(findings: Findings) -> Table | None:
    """Return pairs and triplets that look wrong; None where the fit had none."""
    if not _has_constraints(findings):
        return None
    found = findings.doubtful_constraints
    rows = [
        [row_cell(findings, ends), Cell(given), Cell(suggested), _doubt_cell(float(score))]
        for ends, given, suggested, score in zip(found.rows, found.given, found.suggested, found.score, strict=True)
    ]
    columns = [Column("Rows"), Column("Constraint"), Column("Looks like"), Column("Doubt", True)]
    return Table("Pairs and triplets by doubt, most doubtful first", columns, rows, "doubtful-pairs")


def _doubt_cell(score: float) -> Cell:
    return Cell(f"{score:.2f}", f"{score:.6f}", bar=Bar(score, "dissimilar"))
