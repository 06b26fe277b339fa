"""What learning brought: in short, as measures before and after, as distances of alike and unalike pairs."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from .findings import Missing
from .judged import Measure
from .markup import Cell, Column, chart, escaped, percent, section, table
from .sheet import Sheet, advice, part, told
from .views import histogram

__all__ = ["distances", "results", "summary"]

_KINDS = {
    "similar": "similar pairs",
    "dissimilar": "dissimilar pairs",
    "triplet": "triplets",
    "quadruplet": "quadruplets",
    "linear": "linear forms",
}


def summary(sheet: Sheet) -> str:
    f = sheet.findings
    return (
        '<section id="summary" aria-labelledby="title">\n'
        f'<h1 id="title">{_headline(sheet)}</h1>\n<p class="lede">{_learned_from(sheet)}</p>\n'
        f'<ul class="tiles">{"".join(_tiles(sheet))}</ul>\n'
        f'<p class="note">{told(_brief, sheet, "span")} “Before” is '
        f"{escaped(f.before[1])}. ± is half a 95 % interval.</p>\n"
        "</section>\n"
    )


def _brief(sheet: Sheet) -> str:
    return escaped(sheet.findings.judged.brief)


def _headline(sheet: Sheet) -> str:
    try:
        verdicts = [m.verdict for m in sheet.findings.judged.measures]
    except Missing:
        return "A learned distance"
    if "better" in verdicts and "worse" not in verdicts:
        return "The learned distance is better"
    if "worse" in verdicts and "better" not in verdicts:
        return "The learned distance is worse than what it started from"
    if "better" in verdicts:
        return "The learned distance is better at some things, worse at others"
    return "The learned distance makes no clear difference"


def _learned_from(sheet: Sheet) -> str:
    f, record = sheet.findings, sheet.findings.record
    rows = f"{f.n_rows:,} rows" + (f" with {f.metric.n_features:,} features" if f.metric.n_features else "")
    classes = f" of {len(f.labels.classes):,} classes" if f.labels is not None else ""
    encoder = (f.metric.about or {}).get("encoder")
    rows += f", vectors of {escaped(encoder)}" if encoder else ""
    if not record:
        return f"Shown on {rows}{classes}. The file does not say what the metric was learned from."
    counts = record.get("n_constraints", {})
    asked = _joined(f"{n:,} {_KINDS.get(kind, kind)}" for kind, n in counts.items())
    if f.learned_here:
        return f"Learned from <strong>{rows}</strong>{classes}, by {asked}."
    n = record.get("n_rows")
    return f"Learned from {f'{n:,} rows, ' if n else ''}by {asked}; shown on <strong>{rows}</strong>{classes}."


def _tiles(sheet: Sheet) -> Iterable[str]:
    try:
        measures = {m.name: m for m in sheet.findings.judged.measures}
    except Missing:
        measures = {}
    for name in ("10-NN accuracy", "MAP", "AUC", "pair AUC"):
        if name in measures:
            yield _tile(measures[name])
    certificate = sheet.findings.record.get("certificate")
    if certificate:
        yield (
            f'<li class="tile"><p class="what">Proved optimal within</p><p class="value">'
            f"{part(float(certificate['relative_gap']))}</p>"
            f'<p class="from">{"as asked" if certificate["converged"] else "stopped before what was asked"}</p></li>'
        )


def _tile(measure: Measure) -> str:
    kind = measure.verdict if measure.verdict in ("better", "worse") else ""
    change = _signed(measure, measure.change) + _margin(measure, measure.change_margin)
    return (
        f'<li class="tile"><p class="what">{escaped(measure.name)}</p>'
        f'<p class="value">{_shown(measure, measure.after)}</p><p class="from">before: '
        f'{_shown(measure, measure.before)} · <span class="{kind}">{change}</span></p></li>'
    )


def results(sheet: Sheet) -> str:
    return section("better", "Before and after", told(_measures, sheet))


def _measures(sheet: Sheet) -> str:
    judged = sheet.findings.judged
    sheet.charts["measures"] = {
        "rows": [
            {
                "name": m.name,
                "before": m.before,
                "after": m.after,
                "beforeMargin": m.before_margin or 0.0,
                "afterMargin": m.after_margin or 0.0,
            }
            for m in judged.measures
        ]
    }
    columns = [Column("Measure"), *(Column(c, True) for c in ("Before", "After", "Change")), Column("In short")]
    rows = [
        [
            Cell(m.name, markup=f"<strong>{escaped(m.name)}</strong><br><small>{escaped(m.what)}</small>"),
            Cell(_shown(m, m.before) + _margin(m, m.before_margin)),
            Cell(_shown(m, m.after) + _margin(m, m.after_margin)),
            Cell(_signed(m, m.change) + _margin(m, m.change_margin)),
            Cell(m.verdict, markup=f'<span class="{m.verdict}">{m.verdict}</span>'),
        ]
        for m in judged.measures
    ]
    words = "; ".join(f"{m.name} {_shown(m, m.before)} before, {_shown(m, m.after)} after" for m in judged.measures)
    return (
        f"<p>{escaped(judged.how)} {judged.n_rows:,} rows were judged.</p>"
        + chart("measures", f"Measures with 95 % intervals: {words}")
        + table("Every measure, with half the width of its 95 % interval over rows", columns, rows)
        + _advice_on(sheet)
    )


def _advice_on(sheet: Sheet) -> str:
    verdicts = {m.verdict for m in sheet.findings.judged.measures}
    if verdicts == {"no clear difference"}:
        return advice("Learning changed little here: more labels or pairs, or other features, would help more.")
    if "worse" in verdicts:
        return advice("Where it is worse, try a smaller γ, or let MetricLearnerCV choose γ and the prior.")
    return ""


def distances(sheet: Sheet) -> str:
    return section("distances", "Alike and unalike", told(_histograms, sheet))


def _histograms(sheet: Sheet) -> str:
    judged = sheet.findings.judged
    sides = [(lengths.of(True), lengths.of(False)) for lengths in judged.lengths]
    if not len(sides[0][0]):
        raise Missing("no pairs were held out.")
    end = float(np.clip(max(np.percentile(np.concatenate(side), 99) for side in sides), 2.0, 3.0))
    drawn = [histogram(*side, end) for side in sides]
    top = max(max(one["alike"] + one["unalike"]) for one in drawn)
    for name, one, side in zip(("histogramBefore", "histogramAfter"), drawn, sides, strict=True):
        sheet.charts[name] = one | {"top": top, "nAlike": len(side[0]), "nUnalike": len(side[1])}
    said = [_said_of(lengths.auc) for lengths in judged.lengths]
    figures = "".join(
        f"<div><h3>{title} learning</h3>"
        + chart(name, f"Distances of alike and unalike pairs {title.lower()} learning, {words}", words)
        + "</div>"
        for title, name, words in zip(("Before", "After"), ("histogramBefore", "histogramAfter"), said, strict=True)
    )
    return (
        "<p>The less the two humps overlap, the better the distance tells alike from unalike. These are pairs of "
        f"{judged.whose}; what lies beyond the axis is in its last bar.</p>"
        f'<div class="pair">{figures}</div>'
    )


def _said_of(auc: float | None) -> str:
    return "" if auc is None else f"{percent(auc)} of the time an alike pair is closer than an unalike one."


def _in_percent(measure: Measure) -> bool:
    return measure.name not in ("MAP", "AUC", "pair AUC")


def _shown(measure: Measure, value: float) -> str:
    return percent(value) if _in_percent(measure) else f"{value:.3f}"


def _plain(measure: Measure, value: float) -> str:
    return f"{100 * value:.1f}" if _in_percent(measure) else f"{value:.3f}"


def _margin(measure: Measure, value: float | None) -> str:
    return "" if value is None else f" ± {_plain(measure, value)}"


def _signed(measure: Measure, value: float) -> str:
    return ("+" if value >= 0 else "−") + _plain(measure, abs(value))


def _joined(parts: Iterable[str]) -> str:
    *first, last = list(parts) or ["nothing"]
    return f"{', '.join(first)} and {last}" if first else last
