"""What shaped the metric, and what of it looks wrong: constraints by pull, labels by doubt."""

from __future__ import annotations

from collections.abc import Iterable

from .markup import Cell, Column, bar, number, section, table
from .sheet import Sheet, advice, share_cell, told

__all__ = ["constraints", "doubtful"]


def constraints(sheet: Sheet) -> str:
    return section("constraints", "The constraints that shaped it", told(_pulls, sheet))


def _pulls(sheet: Sheet) -> str:
    f, found = sheet.findings, sheet.findings.pulls
    labelled = f.labels is not None
    columns = [Column("Kind"), Column("Rows"), *([Column("Labels")] if labelled else [])]
    columns += [Column(c, True) for c in ("Bound", "Distance now", "Pull")]
    widest = float(found.share.max(initial=0.0))
    rows = []
    for kind, ends, bound, value, share in zip(
        found.kinds, found.rows, found.bound, found.value, found.share, strict=True
    ):
        cells = [Cell(kind), sheet.row_cell(ends)]
        cells += [Cell(" · ".join(_unique(sheet.label(i) for i in ends[:4])))] if labelled else []
        cells += [Cell(number(float(v)), f"{v:.6g}") for v in (bound, value)]
        rows.append([*cells, share_cell(share, widest, "after")])
    return (
        f"<p>{found.n_active:,} of {found.n_constraints:,} constraints pull at the metric; the others would hold "
        "anyway. These pull hardest. Where one of them is wrong, it did more harm than any other: look at them first. "
        "Bounds and distances are squared.</p>"
        + table("Constraints by pull, their share of all multipliers", columns, rows, name="constraints-table")
    )


def doubtful(sheet: Sheet) -> str:
    f = sheet.findings
    of_constraints = f.constraints is not None or (f.notes is not None and f.notes.constraints is not None)
    parts = [told(_doubtful_rows, sheet)] if f.labels is not None or not of_constraints else []
    parts += [told(_doubtful_constraints, sheet)] if of_constraints else []
    return section("doubtful", "Labels that look wrong", *parts)


def _doubtful_rows(sheet: Sheet) -> str:
    f, found = sheet.findings, sheet.findings.doubtful_rows
    likely = int((found.score > 0.5).sum())
    n_neighbours = 3 if max(map(len, f.ids)) < 20 else 1  # of long names one fills the cell
    rows = [
        [
            sheet.row_cell([row]),
            Cell(sheet.label(row)),
            Cell(sheet.class_name(code)),
            _doubt_cell(float(score)),
            sheet.row_cell(near[:n_neighbours]),
        ]
        for row, score, code, near in zip(
            found.rows.tolist(), found.score, found.suggested, found.neighbours, strict=True
        )
    ]
    many = (
        f"{likely} or more rows are"
        if likely == len(found.rows)
        else f"{likely} rows are"
        if likely > 1
        else "One row is"
    )
    count = f"{many if likely else 'No row is'} closer to another class than to {'their' if likely > 1 else 'its'} own"
    return (
        f"<p>{count}. {_how_judged(sheet)} Doubt above 0.5 speaks for a wrong label, or for a row that is hard.</p>"
        + (advice("Look at the first ten, mend what is wrong, and learn again.") if likely else "")
        + table(
            "Rows by doubt, most doubtful first",
            [Column("Row"), Column("Label"), Column("Looks like"), Column("Doubt", True), Column("Because of")],
            rows,
            name="doubtful-rows",
        )
    )


def _how_judged(sheet: Sheet) -> str:
    """By which metric labels were doubted, when, and among how many rows."""
    f, found = sheet.findings, sheet.findings.doubtful_rows
    noted = f.notes is not None and f.notes.rows is not None
    judge = "metrics that had not seen its label" if found.held_out else "the metric as it is"
    text = f"Each was judged{' at the fit' if noted else ''} by its nearest neighbours under {judge}."
    if not found.held_out and f.believed:
        text += " That metric was learned from these rows, and what it was told it believes: fewer stand out."
    n_labelled = int((f.labels.codes >= 0).sum())  # type: ignore[union-attr]
    return text + (f" {found.n_judged:,} rows, drawn at random, were looked at." if found.n_judged < n_labelled else "")


def _doubtful_constraints(sheet: Sheet) -> str:
    found = sheet.findings.doubtful_constraints
    rows = [
        [sheet.row_cell(ends), Cell(given), Cell(suggested), _doubt_cell(float(score))]
        for ends, given, suggested, score in zip(found.rows, found.given, found.suggested, found.score, strict=True)
    ]
    return (
        "<h3>Pairs and triplets</h3><p>Each is held against the learned distances of the others: doubt is the share "
        "of pairs of the other kind that it lies on the wrong side of.</p>"
        + table(
            "Pairs and triplets by doubt, most doubtful first",
            [Column("Rows"), Column("Given as"), Column("Looks like"), Column("Doubt", True)],
            rows,
            name="doubtful-pairs",
        )
    )


def _doubt_cell(score: float) -> Cell:
    return Cell(f"{score:.2f}", f"{score:.6f}", f"{score:.2f} {bar(score, 'unalike')}")


def _unique(values: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(values))
