"""Evaluation as the page shows it: made on folds of the learner, stored with the metric, or made on the rows passed."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from ..constraints import Constraints, as_label_array
from ..evaluation import BeforeAfter
from ..learner import MetricLearner
from ..linalg import Matrix
from ..selection import MetricLearnerCV
from ..selection.held_out import evaluate_held_out, search_again

_HELD_OUT = "Evaluated on held-out rows."
_HELD_OUT_PAIRS = "held-out rows, each pair counted in every fold that holds it out"


@dataclass(frozen=True)
class Assessment:
    """Evaluation, its method in brief and in full, and the rows whose pairs the histograms show."""

    brief: str
    how: str
    evaluation: BeforeAfter
    pair_rows: str = _HELD_OUT_PAIRS


def stored_assessment(stored: BeforeAfter, fallback: Assessment | None) -> Assessment:
    """Return the evaluation stored with a metric; files without histograms get those of the fallback."""
    how = (
        "As stored with the metric at its fit: in every fold it was fitted to the other rows, with settings chosen "
        "without the held-out rows, and evaluated on those."
    )
    rows = _HELD_OUT_PAIRS
    if stored.pair_distances is None and fallback is not None:
        stored = replace(stored, pair_distances=fallback.evaluation.pair_distances)
        rows = "training rows, which is a little optimistic for “after”"
    return Assessment(_HELD_OUT, how, stored, rows)


def evaluate_with_learner(
    learner: MetricLearner, X: Matrix, y: ArrayLike | None, codes: np.ndarray | None, constraints: Constraints | None
) -> Assessment:
    """Fit again with the learner's settings, fold by fold, and evaluate on the held-out rows."""
    search, settings = search_again(learner, X, codes, None if y is None else as_label_array(y), constraints)
    evaluation = evaluate_held_out(search, settings=settings)
    how = _how_held_out(len(search.folds), settings is None, isinstance(learner, MetricLearnerCV))
    return Assessment(_HELD_OUT, how, evaluation)


def _how_held_out(n_folds: int, nested: bool, chooses: bool) -> str:
    text = f"In each of {n_folds} folds the metric was fitted to the other rows and evaluated on the held-out ones."
    if nested:
        return f"{text} The settings of a fold (γ and others) were chosen on the other folds."
    return text + (" γ and other settings were chosen on all rows, which is a little optimistic." if chooses else "")
