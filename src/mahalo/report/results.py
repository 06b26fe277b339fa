"""What learning brought: in short, as measures before and after, as distances of alike and unalike pairs."""

from __future__ import annotations

from collections.abc import Iterable

from ..evaluation import VOTE_NOTE, BeforeAfter, PairDistances
from .findings import Missing
from .markup import Cell, Column, chart, escaped, percent, section, table
from .sheet import Sheet, advice, part, told
from .views import histograms

__all__ = ["distances", "results", "summary"]

_KINDS = {
    "similar": "similar pairs",
    "dissimilar": "dissimilar pairs",
    "triplet": "triplets",
    "quadruplet": "quadruplets",
    "linear": "linear forms",
}


_MEASURES = {
    "10-NN": (
        "10-NN accuracy",
        f"Share of queries whose class the vote of their ten nearest rows gets right ({VOTE_NOTE}).",
    ),
    "P@1": ("P@1", "Share of queries whose nearest row is of their class."),
    "P@10": ("P@10", "Share of their own class among the ten nearest rows."),
    "MAP": ("MAP", "Mean average precision: how early in the ranking all rows of the class come."),
    "AUC": ("AUC", "Probability that a row of the same class is closer than one of another class."),
    "pair AUC": ("pair AUC", "Probability that a similar pair is closer than a dissimilar one; 0.5 is guessing."),
    "retrieval": ("retrieval", "Mean of P@1, P@10 and MAP, by which settings were chosen."),
}
_HEADLINES = {
    "better": "The learned distance is better by {}",
    "worse": "The learned distance is worse by {}",
    "no clear difference": "No clear difference in {}",
}


def summary(sheet: Sheet) -> str:
    f = sheet.findings
    return (
        '<section id="summary" aria-labelledby="title">\n'
        f'<h1 id="title">{_headline(sheet)}</h1>\n{_sentence(sheet)}<p class="lede">{_learned_from(sheet)}</p>\n'
        f'<ul class="tiles">{"".join(_tiles(sheet))}</ul>\n'
        f'<p class="note">“Before” is {escaped(f.before[1])}. {told(_notes, sheet, "span")}</p>\n'
        "</section>\n"
    )


def _notes(sheet: Sheet) -> str:
    """Say what was judged, and what belongs beside the figures."""
    judged = sheet.findings.judged
    return escaped(" ".join([judged.brief, *(f"{note[:1].upper()}{note[1:]}." for note in judged.evaluation.notes)]))


def _headline(sheet: Sheet) -> str:
    """Return the verdict on the measure that settings were chosen by."""
    try:
        evaluation = sheet.findings.judged.evaluation
        return escaped(_HEADLINES[evaluation.verdict()].format(_title(evaluation.primary)))
    except Missing:
        return "A learned distance"


def _sentence(sheet: Sheet) -> str:
    try:
        return f'<p class="lede">{escaped(sheet.findings.judged.evaluation.sentence)}</p>'
    except Missing:
        return ""


def _learned_from(sheet: Sheet) -> str:
    f, provenance = sheet.findings, sheet.findings.provenance
    rows = f"{f.n_rows:,} rows" + (f" with {f.metric.n_features:,} features" if f.metric.n_features else "")
    classes = f" of {len(f.labels.classes):,} classes" if f.labels is not None else ""
    encoder = provenance.table.encoder
    rows += f", vectors of {escaped(str(encoder))}" if encoder else ""
    if provenance.fit is None:
        return f"Shown on {rows}{classes}. The file does not say what the metric was learned from."
    asked = _joined(f"{n:,} {_KINDS.get(kind, kind)}" for kind, n in provenance.fit.n_constraints.items())
    if f.learned_here:
        return f"Learned from <strong>{rows}</strong>{classes}, by {asked}."
    n = None if provenance.data is None else provenance.data.n_rows
    return f"Learned from {f'{n:,} rows, ' if n else ''}by {asked}; shown on <strong>{rows}</strong>{classes}."


def _tiles(sheet: Sheet) -> Iterable[str]:
    try:
        evaluation = sheet.findings.judged.evaluation
    except Missing:
        evaluation = None
    if evaluation is not None:
        for name in dict.fromkeys((evaluation.primary, "10-NN", "MAP", "AUC", "pair AUC")):
            if name in evaluation.before:
                yield _tile(evaluation, name)
    fit = sheet.findings.provenance.fit
    if fit is not None:
        yield (
            f'<li class="tile"><p class="what">Proved optimal within</p><p class="value">'
            f"{part(fit.certificate.relative_gap)}</p>"
            f'<p class="from">{"as asked" if fit.certificate.converged else "stopped before what was asked"}</p></li>'
        )


def _tile(evaluation: BeforeAfter, name: str) -> str:
    verdict = evaluation.verdict(name)
    kind = verdict if verdict in ("better", "worse") else ""
    lda = f" · LDA: {_shown(name, evaluation.lda[name])}" if name in evaluation.lda else ""
    change = f'<span class="{kind}">{_change(evaluation, name)}</span>'
    return (
        f'<li class="tile"><p class="what">{escaped(_title(name))}</p>'
        f'<p class="value">{_shown(name, evaluation.after[name])}</p><p class="from">before: '
        f"{_shown(name, evaluation.before[name])} · {change}{lda}</p></li>"
    )


def results(sheet: Sheet) -> str:
    return section("better", "Before and after", told(_measures, sheet), told(_by_class, sheet))


def _measures(sheet: Sheet) -> str:
    judged = sheet.findings.judged
    e = judged.evaluation
    sheet.charts["measures"] = {
        "rows": [
            {
                "name": _title(name),
                "before": e.before[name],
                "after": e.after[name],
                "beforeMargin": e.before_interval.get(name) or 0.0,
                "afterMargin": e.after_interval.get(name) or 0.0,
                "lda": e.lda.get(name),
            }
            for name in e.before
        ]
    }
    lda = ("LDA",) if e.lda else ()
    numeric = (Column(c, True) for c in ("Before", "After", *lda, "Change"))
    columns = [Column("Measure"), *numeric, Column("In short")]
    rows = []
    for name in e.before:
        title, what = _MEASURES.get(name, (name, ""))
        verdict = e.verdict(name)
        beside = [Cell(_shown(name, e.lda[name]) if name in e.lda else "")] if lda else []
        rows.append(
            [
                Cell(title, markup=f"<strong>{escaped(title)}</strong><br><small>{escaped(what)}</small>"),
                Cell(_shown(name, e.before[name]) + _margin(name, e.before_interval.get(name))),
                Cell(_shown(name, e.after[name]) + _margin(name, e.after_interval.get(name))),
                *beside,
                Cell(_change(e, name)),
                Cell(verdict, markup=f'<span class="{verdict}">{verdict}</span>'),
            ]
        )
    words = "; ".join(
        f"{_title(n)} {_shown(n, e.before[n])} before, {_shown(n, e.after[n])} after"
        + (f", {_shown(n, e.lda[n])} by LDA" if n in e.lda else "")
        for n in e.before
    )
    return (
        f"<p>{escaped(judged.how)} The figures are of {escaped(e.judged_on)}.</p>"
        + chart("measures", f"Measures with 95 % intervals: {words}")
        + table("Every measure, with half the width of its 95 % interval over rows", columns, rows)
        + _advice_on(e)
    )


def _advice_on(evaluation: BeforeAfter) -> str:
    verdicts = {evaluation.verdict(name) for name in evaluation.before}
    if verdicts == {"no clear difference"}:
        return advice("Learning changed little here: more labels or pairs, or other features, would help more.")
    if "worse" in verdicts:
        return advice("Where it is worse, try a smaller γ, or let MetricLearnerCV choose γ and the prior.")
    return ""


def _by_class(sheet: Sheet) -> str:
    """Tabulate the primary measure by class, and the confusions of the vote."""
    e = sheet.findings.judged.evaluation
    if not e.classes:
        return ""
    name = e.primary
    columns = [Column("Class"), *(Column(c, True) for c in ("Queries", "Before", "After", "Change"))]
    rows = [
        [
            Cell(one.name),
            Cell(f"{one.n_queries:,}", one.n_queries),
            Cell(_shown(name, one.before), f"{one.before:.6g}"),
            Cell(_shown(name, one.after), f"{one.after:.6g}"),
            Cell(_signed(name, one.after - one.before), f"{one.after - one.before:.6g}"),
        ]
        for one in sorted(e.classes, key=lambda one: one.after)
    ]
    text = (
        f"<h3>By class</h3>{table(f'{_title(name)} of every class, lowest first', columns, rows, name='class-table')}"
    )
    if not e.confusions:
        return text
    columns = [Column("Class"), Column("Taken for"), *(Column(c, True) for c in ("Before", "After"))]
    rows = [
        [Cell(one.actual), Cell(one.predicted), *(Cell(_count(n), f"{n:g}") for n in (one.before, one.after))]
        for one in e.confusions
    ]
    caption = "Queries of a class that the vote of ten neighbours takes for another, most frequent first"
    if any(n != round(n) for one in e.confusions for n in (one.before, one.after)):
        caption += " (means over repeated folds)"
    return text + f"<h3>Confusions</h3>{table(caption, columns, rows, name='confusion-table')}"


def _count(value: float) -> str:
    return f"{value:,.0f}" if value == round(value) else f"{value:,.1f}"


def distances(sheet: Sheet) -> str:
    return section("distances", "Similar and dissimilar pairs", told(_histograms, sheet))


def _histograms(sheet: Sheet) -> str:
    judged = sheet.findings.judged
    sides = judged.evaluation.pair_distances
    if sides is None or not sides[0].similar.sum():
        raise Missing("no pairs were held out.")
    drawn = histograms(sides)
    top = max(max(one["alike"] + one["unalike"]) for one in drawn)
    for name, one, side in zip(("histogramBefore", "histogramAfter"), drawn, sides, strict=True):
        sheet.charts[name] = one | {
            "top": top,
            "nAlike": int(side.similar.sum()),
            "nUnalike": int(side.dissimilar.sum()),
        }
    words = [_auc_words(side) for side in sides]
    figures = "".join(
        f"<div><h3>{title} learning</h3>"
        + chart(name, f"Distances of similar and dissimilar pairs {title.lower()} learning, {text}", text)
        + "</div>"
        for title, name, text in zip(("Before", "After"), ("histogramBefore", "histogramAfter"), words, strict=True)
    )
    return (
        "<p>The less the two humps overlap, the better the distance separates similar from dissimilar. These are "
        f"pairs of {judged.whose}; what lies beyond the axis is in its last bar.</p>"
        f'<div class="pair">{figures}</div>'
    )


def _auc_words(side: PairDistances) -> str:
    return (
        "" if side.auc is None else f"{percent(side.auc)} of the time a similar pair is closer than a dissimilar one."
    )


def _title(name: str) -> str:
    return _MEASURES.get(name, (name, ""))[0]


def _in_percent(name: str) -> bool:
    return name not in ("MAP", "AUC", "pair AUC", "retrieval")


def _shown(name: str, value: float) -> str:
    return percent(value) if _in_percent(name) else f"{value:.3f}"


def _plain(name: str, value: float) -> str:
    return f"{100 * value:.1f}" if _in_percent(name) else f"{value:.3f}"


def _margin(name: str, value: float | None) -> str:
    return "" if value is None else f" ± {_plain(name, value)}"


def _change(evaluation: BeforeAfter, name: str) -> str:
    change = evaluation.after[name] - evaluation.before[name]
    return _signed(name, change) + _margin(name, evaluation.interval.get(name))


def _signed(name: str, value: float) -> str:
    return ("+" if value >= 0 else "−") + _plain(name, abs(value))


def _joined(parts: Iterable[str]) -> str:
    *first, last = list(parts) or ["nothing"]
    return f"{', '.join(first)} and {last}" if first else last
