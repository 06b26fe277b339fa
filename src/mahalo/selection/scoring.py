"""Scores by which candidates are chosen on held-out rows."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..constraints import Constraints
from ..evaluation import average_precision, nearest_of, precision_at, ranked, recall_at, vote
from ..metric import Metric
from .folds import Fold

__all__ = ["RETRIEVAL", "Score", "Scorer", "knn_hits", "make_scorer", "retrieval", "retrieval_queries"]

Score = Callable[[Metric, Fold], np.ndarray]

_AT = re.compile(r"(precision|recall)@([1-9][0-9]*)")
_MAX_QUERIES = 500
RETRIEVAL = "'map', 'precision@10' or 'recall@10' (any number in place of 10)"


@dataclass(frozen=True)
class Scorer:
    """A score, larger is better, and what a search needs to know of it.

    Attributes
    ----------
    score_rows : callable(metric, fold)
        Score of every held-out row or query; of a fold as a whole, an array of one number.
    measure : str
        Name of the measure of `mahalo.evaluation` that it is, or is nearest to.
    by_retrieval : bool
        Whether held-out rows are searched for among each other.
    in_unit_interval : bool
        Whether scores lie between 0 and 1; False for a user's callable.
    """

    score_rows: Score
    measure: str
    by_retrieval: bool = False
    in_unit_interval: bool = True


def make_scorer(
    scoring: str | Callable | None, y: np.ndarray | None, constraints: Constraints | None, *, unseen: bool = False
) -> Scorer:
    """Return the scorer of a `scoring` parameter.

    `unseen` says that held-out rows are of classes that no training row has, so that these cannot vote.
    """
    if scoring is None:
        scoring = "map" if unseen else "auc" if y is None else "accuracy"
    if callable(scoring):
        measure = "pair AUC" if y is None else "MAP" if unseen else "10-NN"
        return Scorer(_call_user(scoring), measure, in_unit_interval=False)
    if scoring == "auc":
        return Scorer(lambda metric, f: np.array([f.auc(metric, constraints)]), "pair AUC" if y is None else "AUC")
    if isinstance(scoring, str) and y is not None:
        if scoring == "accuracy" and not unseen:
            return Scorer(_knn_accuracy, "10-NN")
        if scoring == "map":
            return Scorer(lambda metric, f: average_precision(retrieval(metric, f)), "MAP", True)
        if found := _AT.fullmatch(scoring):
            at, k = {"precision": precision_at, "recall": recall_at}[found[1]], int(found[2])
            name = scoring.replace("precision", "P")
            return Scorer(lambda metric, f: at(retrieval(metric, f), k), name, True)
    if scoring == "accuracy" and unseen:
        raise ValueError(
            "scoring='accuracy' needs training rows of the held-out classes, and holdout='classes' leaves none; use "
            f"{RETRIEVAL}, or 'auc'."
        )
    raise ValueError(
        f"scoring must be 'accuracy', {RETRIEVAL} (all of which need y), 'auc' or a callable; got {scoring!r}"
        f"{'' if y is not None else ' without y'}."
    )


def _call_user(scoring: Callable[..., Any]) -> Score:
    def score(metric: Metric, f: Fold) -> np.ndarray:
        return np.array([float(scoring(metric, f.X_train, f.labels_of(f.train), f.X_test, f.labels_of(f.test)))])

    return score


def _knn_accuracy(metric: Metric, fold: Fold) -> np.ndarray:
    return knn_hits(metric, fold)[1].astype(np.float64)


def knn_hits(metric: Metric, fold: Fold, k: int = 10) -> tuple[np.ndarray, np.ndarray]:
    """Return the labelled held-out rows, and whether the vote of their k nearest labelled training rows is right."""
    votes_of, truth = fold.y_train, fold.y_test
    assert votes_of is not None and truth is not None
    voters, scored = votes_of >= 0, truth >= 0
    D = fold.sq_distances(metric, among=False)
    D = D if voters.all() and scored.all() else D[np.ix_(scored, voters)]
    return np.flatnonzero(scored), vote(votes_of[voters][nearest_of(D, k)]) == truth[scored]


def retrieval_queries(fold: Fold) -> np.ndarray:
    """Return the held-out rows used as queries: those with another row of their class, a fixed sample of many."""
    codes = fold.y_test
    assert codes is not None
    labelled = np.flatnonzero(codes >= 0)
    queries = labelled[np.bincount(codes[labelled])[codes[labelled]] > 1]
    if not len(queries):
        raise ValueError(
            "retrieval among held-out rows needs two rows of one class there; use fewer folds, or more labels a class."
        )
    if len(queries) > _MAX_QUERIES:
        queries = np.sort(np.random.default_rng(0).choice(queries, _MAX_QUERIES, replace=False))
    return queries


def retrieval(metric: Metric, fold: Fold) -> np.ndarray:
    """Return which held-out rows are of each query's class, nearest first; the query itself comes last."""
    codes = fold.y_test
    assert codes is not None
    labelled, queries = np.flatnonzero(codes >= 0), retrieval_queries(fold)
    itself = np.arange(len(queries)), np.searchsorted(labelled, queries)
    D = fold.sq_distances(metric, among=True)
    D = D[queries] if len(labelled) == len(codes) else D[np.ix_(queries, labelled)]
    D = np.ldexp(D, -np.frexp(D.max(initial=0.0))[1]).astype(np.float32)  # scaled to fit single precision
    D[itself] = np.inf
    relevant = codes[queries][:, None] == codes[labelled]
    relevant[itself] = False
    return ranked(D, relevant)
