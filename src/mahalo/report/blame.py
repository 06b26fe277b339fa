"""What shaped the metric, and what of it looks wrong: constraints by pull, labels by doubt."""

from __future__ import annotations

from collections.abc import Iterable

from .markup import Cell, Column, bar, number, section, table
from .sheet import Sheet, advice, share_cell, told

__all__ = ["constraints", "doubtful"]


def constraints(sheet: Sheet) -> str:
    return section("constraints", "The constraints that shaped it", told(_influential, sheet))


def _influential(sheet: Sheet) -> str:
    f = sheet.findings
    found = f.influential
    total = float(f.learner.duals_.sum()) or 1.0  # type: ignore[union-attr]
    active = int((f.learner.duals_ > 1e-9 * f.learner.duals_.max(initial=0.0)).sum())  # type: ignore[union-attr]
    columns = (
        [Column("Kind"), Column("Rows"), Column("Labels")] if f.labels is not None else [Column("Kind"), Column("Rows")]
    )
    columns += [Column(c, True) for c in ("Bound", "Distance now", "Pull")]
    rows = []
    for _, row in found.iterrows():
        ends = list(row["rows"])
        cells = [Cell(row["kind"]), sheet.row_cell(ends)]
        if f.labels is not None:
            cells.append(Cell(" · ".join(_unique(sheet.label(i) for i in ends[:4]))))
        cells += [Cell(number(float(row[k])), f"{row[k]:.6g}") for k in ("bound", "value")]
        cells.append(share_cell(row["dual"] / total, float(found["dual"].max()) / total, "after"))
        rows.append(cells)
    return (
        f"<p>{active:,} of {len(f.learner.duals_):,} constraints pull at the metric; the others would hold anyway. "  # type: ignore[union-attr]
        "These pull hardest. Where one of them is wrong, it did more harm than any other: look at them first. "
        "Bounds and distances are squared.</p>"
        + table("Constraints by pull, their share of all multipliers", columns, rows, name="constraints-table")
    )


def doubtful(sheet: Sheet) -> str:
    f = sheet.findings
    parts = [told(_suspect_rows, sheet)] if f.labels is not None or f.constraints is None else []
    if f.constraints is not None:
        parts.append(told(_suspect_constraints, sheet))
    return section("doubtful", "Labels that look wrong", *parts)


def _suspect_rows(sheet: Sheet) -> str:
    f, found = sheet.findings, sheet.findings.suspect_rows
    likely = int((found["score"] > 0.5).sum())
    n_neighbours = 3 if max(map(len, f.ids)) < 20 else 1  # of long names one fills the cell
    rows = [
        [
            sheet.row_cell([row]),
            Cell(sheet.label(row)),
            Cell(sheet.class_name(one["suggested"])),
            _doubt_cell(float(one["score"])),
            sheet.row_cell([int(f.suspected[i]) for i in one["neighbours"]][:n_neighbours]),
        ]
        for row, (_, one) in zip(found.index.tolist(), found.iterrows(), strict=True)
    ]
    many = (
        f"{likely} or more rows are" if likely == len(found) else f"{likely} rows are" if likely > 1 else "One row is"
    )
    count = f"{many if likely else 'No row is'} closer to another class than to {'their' if likely > 1 else 'its'} own"
    judge = "metrics that had not seen its label" if f.learns_again else "the metric as it is"
    among = f" {len(f.suspected):,} rows, drawn at random, were looked at." if len(f.suspected) < f.n_rows else ""
    return (
        f"<p>{count}. Each was judged by its nearest neighbours under {judge}. Doubt above 0.5 speaks "
        f"for a wrong label, or for a row that is hard.{among}</p>"
        + (advice("Look at the first ten, mend what is wrong, and learn again.") if likely else "")
        + table(
            "Rows by doubt, most doubtful first",
            [Column("Row"), Column("Label"), Column("Looks like"), Column("Doubt", True), Column("Because of")],
            rows,
            name="doubtful-rows",
        )
    )


def _suspect_constraints(sheet: Sheet) -> str:
    found = sheet.findings.suspect_constraints
    rows = [
        [
            sheet.row_cell(list(one["rows"])),
            Cell(one["given"]),
            Cell(one["suggested"]),
            _doubt_cell(float(one["score"])),
        ]
        for _, one in found.iterrows()
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
