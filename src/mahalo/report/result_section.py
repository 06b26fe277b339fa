"""Results: every measure before and after learning, by class, and the distances of pairs."""

from __future__ import annotations

from dataclasses import dataclass

from ..drawing import pair_histograms
from ..drawing.charts import MeasureRow, MeasuresChart
from ..evaluation import VOTE_NOTE, BeforeAfter
from .findings import Findings, Missing
from .formatting import change_text, measure_text
from .parts import Cell, Chart, Column, Table

_MEASURES = {
    "10-NN": (
        "10-NN accuracy",
        f"Share of queries whose class the vote of their ten nearest rows predicts ({VOTE_NOTE}).",
    ),
    "P@1": ("P@1", "Share of queries whose nearest row is of their class."),
    "P@10": ("P@10", "Share of their own class among the ten nearest rows."),
    "MAP": ("MAP", "Mean average precision: how early in the ranking all rows of the class come."),
    "AUC": ("AUC", "Probability that a row of the same class is closer than one of another class."),
    "pair AUC": ("pair AUC", "Probability that a similar pair is closer than a dissimilar one; 0.5 is guessing."),
    "retrieval": ("retrieval", "Mean of P@1, P@10 and MAP, by which settings were chosen."),
}


def short_title(measure: str) -> str:
    """Return the name of a measure as the page writes it."""
    return _MEASURES.get(measure, (measure, ""))[0]


@dataclass(frozen=True)
class Measures:
    """Measures before and after learning, how they were evaluated, and advice ("unchanged", "worse" or none)."""

    how: str
    evaluated_on: str
    chart: Chart
    table: Table
    advice: str


@dataclass(frozen=True)
class ClassTables:
    """Primary measure by class, and confusions of the vote; None without labels."""

    classes: Table | None
    confusions: Table | None


def measures(findings: Findings) -> Measures:
    """Return every measure before and after learning."""
    assessment = findings.assessment
    e = assessment.evaluation
    rows = tuple(
        MeasureRow(
            short_title(name),
            e.before[name],
            e.after[name],
            e.before_interval.get(name) or 0.0,
            e.after_interval.get(name) or 0.0,
            e.lda.get(name),
        )
        for name in e.before
    )
    words = "; ".join(
        f"{short_title(n)} {measure_text(n, e.before[n])} before, {measure_text(n, e.after[n])} after"
        + (f", {measure_text(n, e.lda[n])} by LDA" if n in e.lda else "")
        for n in e.before
    )
    return Measures(
        how=assessment.how,
        evaluated_on=e.evaluated_on,
        chart=Chart("measures", f"Measures with 95 % intervals: {words}", "", MeasuresChart(rows)),
        table=_measure_table(e),
        advice=_advice(e),
    )


def _measure_table(e: BeforeAfter) -> Table:
    lda = ("LDA",) if e.lda else ()
    numeric = (Column(name, True) for name in ("Before", "After", *lda, "Change"))
    rows = []
    for name in e.before:
        title, meaning = _MEASURES.get(name, (name, ""))
        verdict = e.verdict(name)
        beside = [Cell(measure_text(name, e.lda[name]) if name in e.lda else "")] if lda else []
        rows.append(
            [
                Cell(title, title, strong=True, note=meaning),
                Cell(measure_text(name, e.before[name], e.before_interval.get(name))),
                Cell(measure_text(name, e.after[name], e.after_interval.get(name))),
                *beside,
                Cell(change_text(name, e.after[name] - e.before[name], e.interval.get(name))),
                Cell(verdict, kind=verdict),
            ]
        )
    caption = "Every measure, with half the width of its 95\N{NO-BREAK SPACE}% interval over rows"
    return Table(caption, [Column("Measure"), *numeric, Column("Verdict")], rows)


def _advice(e: BeforeAfter) -> str:
    verdicts = {e.verdict(name) for name in e.before}
    if verdicts == {"no clear difference"}:
        return "unchanged"
    return "worse" if "worse" in verdicts else ""


def class_tables(findings: Findings) -> ClassTables:
    """Return the primary measure by class, and the confusions of the vote."""
    e = findings.assessment.evaluation
    if not e.classes:
        return ClassTables(None, None)
    name = e.primary
    columns = [Column("Class"), *(Column(c, True) for c in ("Queries", "Before", "After", "Change"))]
    rows = [
        [
            Cell(one.name),
            Cell(f"{one.n_queries:,}", one.n_queries),
            Cell(measure_text(name, one.before), f"{one.before:.6g}"),
            Cell(measure_text(name, one.after), f"{one.after:.6g}"),
            Cell(change_text(name, one.after - one.before), f"{one.after - one.before:.6g}"),
        ]
        for one in sorted(e.classes, key=lambda one: one.after)
    ]
    classes = Table(f"{short_title(name)} of every class, lowest first", columns, rows, "class-table")
    return ClassTables(classes, _confusion_table(e) if e.confusions else None)


def _confusion_table(e: BeforeAfter) -> Table:
    columns = [Column("Class"), Column("Predicted"), *(Column(c, True) for c in ("Before", "After"))]
    rows = [
        [Cell(one.actual), Cell(one.predicted), *(Cell(_count(n), f"{n:g}") for n in (one.before, one.after))]
        for one in e.confusions
    ]
    caption = "Queries of a class for which the vote of ten neighbours predicts another, most frequent first"
    if any(n != round(n) for one in e.confusions for n in (one.before, one.after)):
        caption += " (means over repeated folds)"
    return Table(caption, columns, rows, "confusion-table")


def _count(value: float) -> str:
    return f"{value:,.0f}" if value == round(value) else f"{value:,.1f}"


# -- distances of pairs --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Histograms:
    """Distances of similar and dissimilar pairs before and after, and the rows that the pairs are of."""

    rows: str
    before: Chart
    after: Chart


def distance_histograms(findings: Findings) -> Histograms:
    """Return the histograms of the distances of similar and dissimilar pairs."""
    assessment = findings.assessment
    sides = assessment.evaluation.pair_distances
    if sides is None or not sides[0].similar.sum():
        raise Missing("no pairs were held out.")
    charts = []
    for when, side, drawn in zip(("Before", "After"), sides, pair_histograms(sides), strict=True):
        auc = (
            ""
            if side.auc is None
            else f"A similar pair is closer than a dissimilar one with probability {side.auc:.3f}."
        )
        description = f"Distances of similar and dissimilar pairs {when.lower()} learning. {auc}"
        charts.append(Chart(f"histogram{when}", description, auc, drawn))
    return Histograms(assessment.pair_rows, charts[0], charts[1])
