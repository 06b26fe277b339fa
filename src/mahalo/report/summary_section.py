"""Summary: the verdict, the rows and constraints of the fit, and the main figures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..evaluation import BeforeAfter
from .findings import Findings, Missing
from .formatting import change_text, gap_text, joined, measure_text
from .result_section import short_title

_KINDS = {
    "similar": "similar pairs",
    "dissimilar": "dissimilar pairs",
    "triplet": "triplets",
    "quadruplet": "quadruplets",
    "linear": "linear forms",
}
_HEADLINES = {
    "better": "The learned distance is better by {}",
    "worse": "The learned distance is worse by {}",
    "no clear difference": "No clear difference in {}",
}
_MAIN_MEASURES = ("10-NN", "MAP", "AUC", "pair AUC")


@dataclass(frozen=True)
class Tile:
    """Main figure with a note below, the change (coloured by `verdict`) and the figure of LDA."""

    title: str
    value: str
    note: str
    change: str = ""
    verdict: str = ""
    lda: str = ""


@dataclass(frozen=True)
class Summary:
    """Head of the page.

    Attributes
    ----------
    headline, sentence : str
        Verdict of the evaluation, in brief and with figures; the sentence is empty without an evaluation.
    rows, classes : str
        Numbers of rows and features, and of classes, in words.
    constraints : str or None
        Numbers of constraints by kind; None where the fit is not known.
    n_training_rows : int or None
        Number of training rows, where the rows shown are others.
    """

    headline: str
    sentence: str
    rows: str
    classes: str
    constraints: str | None
    shows_training_rows: bool
    n_training_rows: int | None
    tiles: tuple[Tile, ...]
    distance_before: str


def summary(findings: Findings) -> Summary:
    """Return the verdict, what the metric was learned from, and the main figures."""
    fit, data = findings.provenance.fit, findings.provenance.data
    try:
        evaluation = findings.assessment.evaluation
    except Missing:
        evaluation = None
    return Summary(
        headline="A learned distance" if evaluation is None else _headline(evaluation),
        sentence="" if evaluation is None else evaluation.sentence,
        rows=_rows(findings),
        classes="" if findings.labels is None else f" of {len(findings.labels.classes):,} classes",
        constraints=None
        if fit is None
        else joined(f"{n:,} {_KINDS.get(kind, kind)}" for kind, n in fit.n_constraints.items()),
        shows_training_rows=findings.are_training_rows,
        n_training_rows=None if data is None else data.n_rows,
        tiles=tuple(_tiles(findings, evaluation)),
        distance_before=findings.before.name,
    )


def _headline(evaluation: BeforeAfter) -> str:
    return _HEADLINES[evaluation.verdict()].format(short_title(evaluation.primary))


def _rows(findings: Findings) -> str:
    n_features, encoder = findings.metric.n_features, findings.provenance.table.encoder
    rows = f"{findings.n_rows:,} rows" + (f" with {n_features:,} features" if n_features else "")
    return rows + (f", vectors of {encoder}" if encoder else "")


def evaluation_notes(findings: Findings) -> str:
    """Return the way of the evaluation and the remarks on its figures."""
    assessment = findings.assessment
    notes = (f"{note[:1].upper()}{note[1:]}." for note in assessment.evaluation.notes)
    return " ".join([assessment.brief, *notes])


def _tiles(findings: Findings, evaluation: BeforeAfter | None) -> Iterator[Tile]:
    if evaluation is not None:
        for name in dict.fromkeys((evaluation.primary, *_MAIN_MEASURES)):
            if name in evaluation.before:
                yield _measure_tile(evaluation, name)
    fit = findings.provenance.fit
    if fit is not None:
        reached = "within the tolerance" if fit.certificate.converged else "the tolerance was not reached"
        yield Tile("Proved optimal within", gap_text(fit.certificate.relative_gap), reached)


def _measure_tile(evaluation: BeforeAfter, name: str) -> Tile:
    before, after, lda = evaluation.before[name], evaluation.after[name], evaluation.lda.get(name)
    return Tile(
        title=short_title(name),
        value=measure_text(name, after),
        note=f"before: {measure_text(name, before)}",
        change=change_text(name, after - before, evaluation.interval.get(name)),
        verdict=evaluation.verdict(name),
        lda="" if lda is None else measure_text(name, lda),
    )
