"""The evaluation that a page shows: made on held-out rows, read from a model file, or made on the rows given."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..constraints import Constraints, as_label_array
from ..evaluation import BeforeAfter
from ..learner import MetricLearner
from ..selection import MetricLearnerCV
from ..selection.held_out import evaluate_held_out, search_again

__all__ = ["Assessment", "as_stored", "on_held_out"]


@dataclass(frozen=True)
class Assessment:
    """An evaluation, how it was made (in short and in full), and whose pairs the histograms show."""

    brief: str
    how: str
    evaluation: BeforeAfter
    whose: str = "held-out rows"


def as_stored(stored: BeforeAfter, fallback: Assessment | None) -> Assessment:
    """Show the evaluation stored with the metric; histograms of older files, which hold none, are of the rows given."""
    how = (
        "As stored with the metric when it was learned: in every fold it was learned anew from the other rows, with "
        "settings chosen without the rows left out, and judged on those."
    )
    whose = "held-out rows"
    if stored.pair_distances is None and fallback is not None:
        stored = replace(stored, pair_distances=fallback.evaluation.pair_distances)
        whose = "rows that were learned from, which flatters the right side a little"
    return Assessment("Judged on rows held out from learning.", how, stored, whose)


def on_held_out(
    learner: MetricLearner, X: Any, y: Any, codes: np.ndarray | None, constraints: Constraints | None
) -> Assessment:
    """Learn anew with the learner's settings, fold by fold, and judge on the rows left out."""
    search, settings = search_again(learner, X, codes, None if y is None else as_label_array(y), constraints)
    found = evaluate_held_out(search, settings=settings)
    how = _how_held_out(len(search.folds), settings is None, isinstance(learner, MetricLearnerCV))
    return Assessment("Judged on rows held out from learning.", how, found)


def _how_held_out(n_folds: int, nested: bool, chooses: bool) -> str:
    text = (
        f"On held-out rows: in each of {n_folds} folds the metric was learned anew, with the same settings, from the "
        "other rows, and judged on those left out."
    )
    if nested:
        return text + " Settings of a fold (γ and the rest) were chosen by the other folds."
    return text + (" γ and the rest were chosen on all rows, which flatters a little." if chooses else "")
