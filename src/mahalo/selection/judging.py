"""Scores by name: what is measured on held-out rows to choose by."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from ..constraints import Constraints
from ..evaluation import average_precision, nearest_of, precision_at, ranked, recall_at, vote
from ..metric import Metric
from .folds import Fold

__all__ = ["RETRIEVAL", "Score", "knn_hits", "questions", "resolve_scoring", "retrieval", "scorer"]

Score = Callable[[Metric, Fold], float]

_AT = re.compile(r"(precision|recall)@([1-9][0-9]*)")
MOST_QUESTIONS = 500
RETRIEVAL = "'map', 'precision@10' or 'recall@10' (any number in place of 10)"


def resolve_scoring(scoring: Any, *, has_labels: bool, unseen: bool) -> Any:
    """Return `scoring`, or the name of the default score if it is None.

    `unseen` says that held-out rows are of classes that no training row has.
    """
    if scoring is not None:
        return scoring
    if unseen:
        return "map"
    return "accuracy" if has_labels else "auc"


def scorer(scoring: Any, y: np.ndarray | None, constraints: Constraints | None, *, unseen: bool = False) -> Score:
    """What a `scoring` parameter stands for; larger is better.

    `unseen` says that held-out rows are of classes that no training row has, so that these cannot vote.
    """
    scoring = resolve_scoring(scoring, has_labels=y is not None, unseen=unseen)
    if callable(scoring):
        return lambda metric, f: float(scoring(metric, f.X_train, f.labels_of(f.train), f.X_test, f.labels_of(f.test)))
    if scoring == "auc":
        return lambda metric, f: f.auc(metric, constraints)
    if isinstance(scoring, str) and y is not None:
        if scoring == "accuracy" and not unseen:
            return _knn_accuracy
        if scoring == "map":
            return lambda metric, f: _mean(average_precision(retrieval(metric, f)))
        if found := _AT.fullmatch(scoring):
            measure, k = {"precision": precision_at, "recall": recall_at}[found[1]], int(found[2])
            return lambda metric, f: _mean(measure(retrieval(metric, f), k))
    if scoring == "accuracy" and unseen:
        raise ValueError(
            "scoring='accuracy' needs training rows of the held-out classes, and holdout='classes' leaves none; use "
            f"{RETRIEVAL}, or 'auc'."
        )
    raise ValueError(
        f"scoring must be 'accuracy', {RETRIEVAL} (all of which need y), 'auc' or a callable; got {scoring!r}"
        f"{'' if y is not None else ' without y'}."
    )


def _knn_accuracy(metric: Metric, fold: Fold) -> float:
    return float(knn_hits(metric, fold)[1].mean())


def knn_hits(metric: Metric, fold: Fold, k: int = 10) -> tuple[np.ndarray, np.ndarray]:
    """Held-out rows, and whether the vote of their k nearest training rows is right.

    Unlabelled rows neither vote nor count.
    """
    votes_of, truth = fold.y_train, fold.y_test
    assert votes_of is not None and truth is not None
    voters, judged = votes_of >= 0, truth >= 0
    D = fold.sq_distances(metric, among=False)
    D = D if voters.all() and judged.all() else D[np.ix_(judged, voters)]
    return np.flatnonzero(judged), vote(votes_of[voters][nearest_of(D, k)]) == truth[judged]


def questions(fold: Fold) -> np.ndarray:
    """Held-out rows that ask for their class: those that are not alone in it; of many, some drawn once and for all."""
    codes = fold.y_test
    assert codes is not None
    labelled = np.flatnonzero(codes >= 0)
    asked = labelled[np.bincount(codes[labelled])[codes[labelled]] > 1]
    if not len(asked):
        raise ValueError(
            "retrieval among held-out rows needs two rows of one class there; use fewer folds, or more labels a class."
        )
    if len(asked) > MOST_QUESTIONS:
        asked = np.sort(np.random.default_rng(0).choice(asked, MOST_QUESTIONS, replace=False))
    return asked


def retrieval(metric: Metric, fold: Fold) -> np.ndarray:
    """What is relevant, nearest first, where held-out rows ask for their class among the others held out.

    Of many rows some ask; all are there to be found. The row that asks comes last.
    """
    codes = fold.y_test
    assert codes is not None
    labelled, asked = np.flatnonzero(codes >= 0), questions(fold)
    itself = np.arange(len(asked)), np.searchsorted(labelled, asked)
    D = fold.sq_distances(metric, among=True)
    D = D[asked] if len(labelled) == len(codes) else D[np.ix_(asked, labelled)]
    D = np.ldexp(D, -np.frexp(D.max(initial=0.0))[1]).astype(np.float32)  # in whatever unit, they fit
    D[itself] = np.inf
    relevant = codes[asked][:, None] == codes[labelled]
    relevant[itself] = False
    return ranked(D, relevant)


def _mean(values: np.ndarray) -> float:
    return float(values.mean())
