"""The evaluation that a page shows: made on held-out rows, read from a model file, or made on the rows given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ..constraints import Constraints, as_label_array
from ..evaluation import (
    BeforeAfter,
    FoldScores,
    PairDistances,
    choose_queries,
    compare_folds,
    known_pairs,
    score_queries,
)
from ..learner import MetricLearner
from ..metric import Metric
from ..selection import MetricLearnerCV
from ..selection.held_out import evaluate_held_out, evaluate_pairs, search_again
from .distance import Distance, among

__all__ = ["Judged", "as_stored", "on_held_out", "on_new_rows", "on_pairs"]

_MOST_PAIRED = 2_000  # rows whose pairs are drawn in histograms


@dataclass(frozen=True)
class Judged:
    """An evaluation, how it was made (in short and in full), and whose pairs the histograms show."""

    brief: str
    how: str
    evaluation: BeforeAfter
    whose: str = "held-out rows"


def on_new_rows(
    before: Distance, metric: Metric, X: Any, codes: np.ndarray, class_names: Sequence[Any], how: str
) -> Judged:
    """Compare labelled rows that the metric was not learned from, a sample of them where many, with all the others."""
    labelled = np.flatnonzero(codes >= 0)
    X, codes, rng = X[labelled], codes[labelled], np.random.default_rng(0)
    queries = choose_queries(np.arange(len(codes)), len(codes), rng)

    def distances(distance: Distance, block: np.ndarray) -> np.ndarray:
        return distance.distances(X[queries[block]], X)

    scores = [
        score_queries(partial(distances, distance), codes[queries], codes, own=queries) for distance in (before, metric)
    ]
    paired = queries[:_MOST_PAIRED]
    i, j = np.triu_indices(len(paired), 1)
    same = codes[paired[i]] == codes[paired[j]]
    drawn = [PairDistances.of(among(distance, X[paired])[i, j], same) for distance in (before, metric)]
    fold = FoldScores(len(codes) - 1, queries, scores=(scores[0], scores[1]), pair_distances=(drawn[0], drawn[1]))
    found = compare_folds([fold], primary="10-NN", searched="other rows given", class_names=class_names)
    return Judged("Judged on the rows given.", how, found, "the rows given")


def on_pairs(before: Distance, metric: Metric, X: Any, constraints: Constraints, how: str) -> Judged:
    """Compare similar with dissimilar pairs of rows without labels."""
    ends, similar = known_pairs(constraints)
    sides = [
        np.asarray(distance.pair_distances(X[ends[:, 0]], X[ends[:, 1]]), dtype=np.float64)
        for distance in (before, metric)
    ]
    measured = [evaluate_pairs(d, ends, similar, np.arange(X.shape[0])) for d in sides]
    drawn = [PairDistances.of(d, similar) for d in sides]
    fold = FoldScores(0, measured=(measured[0], measured[1]), pair_distances=(drawn[0], drawn[1]))
    found = compare_folds([fold], primary="pair AUC", searched="rows of the pairs given")
    return Judged("Judged on the pairs given.", how, found, "the pairs given")


def as_stored(stored: BeforeAfter, fallback: Judged | None) -> Judged:
    """Show the evaluation stored with the metric; histograms of older files, which hold none, are of the rows given."""
    how = (
        "As stored with the metric when it was learned: in every fold it was learned anew from the other rows, with "
        "settings chosen without the rows left out, and judged on those."
    )
    whose = "held-out rows"
    if stored.pair_distances is None and fallback is not None:
        stored = replace(stored, pair_distances=fallback.evaluation.pair_distances)
        whose = "rows that were learned from, which flatters the right side a little"
    return Judged("Judged on rows held out from learning.", how, stored, whose)


def on_held_out(
    learner: MetricLearner, X: Any, y: Any, codes: np.ndarray | None, constraints: Constraints | None
) -> Judged:
    """Learn anew with the learner's settings, fold by fold, and judge on the rows left out."""
    search, settings = search_again(learner, X, codes, None if y is None else as_label_array(y), constraints)
    found = evaluate_held_out(search, settings=settings)
    how = _how_held_out(len(search.folds), settings is None, isinstance(learner, MetricLearnerCV))
    return Judged("Judged on rows held out from learning.", how, found)


def _how_held_out(n_folds: int, nested: bool, chooses: bool) -> str:
    text = (
        f"On held-out rows: in each of {n_folds} folds the metric was learned anew, with the same settings, from the "
        "other rows, and judged on those left out."
    )
    if nested:
        return text + " Settings of a fold (γ and the rest) were chosen by the other folds."
    return text + (" γ and the rest were chosen on all rows, which flatters a little." if chooses else "")
