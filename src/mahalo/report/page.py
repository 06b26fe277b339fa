"""One page about a learned metric: HTML that needs nothing but a browser, with no network."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Sequence
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Any

from ..constraints import Constraints
from ..learner import MetricLearner
from ..metric import Metric
from ..persistence import write_bytes
from ..progress import Progress, progress_for
from .blame import constraints as pulling
from .blame import doubtful
from .findings import Findings
from .markup import as_json, escaped
from .nearness import hubs, maps
from .proof import proof
from .results import distances, results, summary
from .sheet import Sheet
from .weighing import features

__all__ = ["write"]

# Maps come before what points at rows on them.
_SECTIONS = {
    "summary": ("Summary", summary),
    "better": ("Results", results),
    "map": ("Map", maps),
    "distances": ("Distances", distances),
    "features": ("Features", features),
    "sure": ("How sure", proof),
    "constraints": ("Constraints", pulling),
    "doubtful": ("Labels", doubtful),
    "hubs": ("Hubs", hubs),
}


def write(
    model: MetricLearner | Metric,
    X: Any,
    y: Any,
    path: str | PathLike,
    *,
    constraints: Constraints | None = None,
    names: Sequence[str] | None = None,
    ids: Sequence[Any] | None = None,
    verbose: int | Callable[[str], None] = 0,
) -> Path:
    """Write one self-contained HTML page on what was learned, how sure it is, and what it does to these rows.

    Parameters
    ----------
    model : MetricLearner, MetricLearnerCV, EmbeddingAdapter or Metric
        Fitted, or loaded from a file; what the file does not hold is left out, and the page says so.
    X : array-like, sparse matrix or sequence of objects
        The rows that were learned from: the metric is then judged on held-out parts of them. Or new rows: they judge
        it as they are.
    y : array-like or None
        Labels of the rows, if there are any.
    path : path of the file
        Written whole or not at all.
    constraints : Constraints, optional
        What was learned from, by row of X. Default: the learner's own, unless they were drawn from y.
    names : sequence of str, optional
        Of the features. Default: the columns of X, or those seen at fit.
    ids : sequence, optional
        What to call the rows; default their numbers, from 0.
    verbose : int or callable, default=0
        1: a line of progress for each section; a callable receives the lines.

    Returns
    -------
    Path
    """
    sheet = Sheet(Findings.of(model, X, y, constraints, names, ids))
    path = Path(path)
    with progress_for(verbose) as progress:
        write_bytes(path, _rendered(sheet, progress).encode("utf-8"))
    return path


def _rendered(sheet: Sheet, progress: Progress) -> str:
    from .. import __version__

    sections = progress.track(_SECTIONS.values(), len(_SECTIONS), "drawing:", lambda section: section[0].lower())
    style, script = _asset("page.css"), _asset("page.js")
    values = {
        "title": "A learned distance · mahalo report",
        "version": escaped(__version__),
        "style": style,
        "style_hash": _hash(style),
        "script": script,
        "script_hash": _hash(script),
        "links": "\n".join(f'<li><a href="#{name}">{title}</a></li>' for name, (title, _) in _SECTIONS.items()),
        "body": "".join(made(sheet) for _, made in sections),
        "foot": f"Made by mahalo {escaped(__version__)}. This page holds all its data and loads nothing.",
        "data": as_json({"charts": sheet.charts, "map": sheet.map}),
    }
    # One pass: what is filled in is not looked at again.
    return re.sub(r"\{\{(\w+)\}\}", lambda slot: values[slot[1]], _asset("page.html"))


def _asset(name: str) -> str:
    return (files(__package__) / "assets" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """What the page's own security policy knows its one style and its one script by."""
    return base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode()
