"""The page about a learned metric: HTML that needs nothing but a browser, with no network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from ..constraints import Constraints
from ..drawing import as_json, chart_assets
from ..learner import MetricLearner
from ..metric import Metric
from ..persistence import write_bytes
from ..progress import Progress, progress_for
from ..text import WordWeights
from ..types import RowsLike
from .constraint_section import doubtful_constraints, doubtful_labels, influential_constraints
from .feature_section import feature_tables, spectrum_chart
from .findings import Findings
from .html import asset, render, template_environment
from .map_section import Maps, hubs, neighbourhood_maps
from .parts import Section, charts_of
from .proof_section import proof
from .result_section import class_tables, distance_histograms, measures
from .summary_section import evaluation_notes, summary
from .word_section import word_table

if TYPE_CHECKING:
    from jinja2 import Environment

_SECTIONS = (
    Section("summary", "Summary", {"summary": summary, "notes": evaluation_notes}),
    Section("results", "Results", {"measures": measures, "by_class": class_tables}),
    Section("map", "Map", {"maps": neighbourhood_maps}),
    Section("distances", "Distances", {"histograms": distance_histograms}),
    Section("features", "Features", {"words": word_table, "tables": feature_tables, "spectrum": spectrum_chart}),
    Section("proof", "Proof", {"proof": proof}),
    Section("constraints", "Constraints", {"influential": influential_constraints}),
    Section("labels", "Labels", {"rows": doubtful_labels, "constraints": doubtful_constraints}),
    Section("hubs", "Hubs", {"hubs": hubs}),
)


def write(
    model: MetricLearner | Metric,
    X: RowsLike,
    y: ArrayLike | None,
    path: str | PathLike,
    *,
    constraints: Constraints | None = None,
    names: Sequence[str] | None = None,
    ids: Sequence[object] | None = None,
    words: WordWeights | None = None,
    verbose: int | Callable[[str], None] = 0,
) -> Path:
    """Write one self-contained HTML page about a metric: what it learned, its proof, its effect on these rows.

    Parameters
    ----------
    model : MetricLearner, MetricLearnerCV, EmbeddingAdapter or Metric
        Fitted, or loaded from a file. The page says which parts a file does not hold.
    X : array-like, sparse matrix or sequence of objects
        The training rows, which are evaluated on held-out folds; or other rows, which are evaluated directly.
    y : array-like or None
        Labels of the rows, if there are any.
    path : path of the file
        Written whole or not at all.
    constraints : Constraints, optional
        Constraints of the fit, by row of X. Default: the learner's own, unless they were drawn from y.
    names : sequence of str, optional
        Names of the features. Default: the columns of X, or those seen at fit.
    ids : sequence, optional
        Names of the rows, such as their sentences where they are texts. Default: their numbers, from 0.
    words : WordWeights, optional
        Words to list, where rows are texts: `mahalo.text.word_weights`.
    verbose : int or callable, default=0
        1: a line of progress for each section; a callable receives the lines.

    Returns
    -------
    Path
    """
    environment = template_environment()
    findings = Findings.of(model, X, y, constraints, names, ids, words)
    path = Path(path)
    with progress_for(verbose) as progress:
        write_bytes(path, _render(environment, findings, progress))
    return path


def _render(environment: Environment, findings: Findings, progress: Progress) -> bytes:
    work = progress.track(_SECTIONS, len(_SECTIONS), "drawing:", lambda section: section.title.lower())
    sections = [(section, section.parts(findings)) for section in work]
    chart_style, chart_script = chart_assets()
    style, script = asset("page.css") + chart_style, chart_script + asset("page.js")
    parts = [part for _, parts in sections for part in parts.values()]
    maps = next((part.chart for part in parts if isinstance(part, Maps)), None)
    charts = {chart.name: chart.data for part in parts for chart in charts_of(part)}
    return render(
        environment,
        "page.html",
        style=style,
        script=script,
        sections=sections,
        data=as_json({"charts": charts, "map": maps}),
    )
