"""Scores by which candidates are chosen on held-out rows."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..constraints import Constraints
from ..evaluation import average_precision, n_voters, nearest_of, precision_at, ranked, recall_at, vote, vote_confidence
from ..metric import Metric
from .folds import Fold

Score = Callable[[Metric, Fold], "RowScores"]

_AT = re.compile(r"(precision|recall)@([1-9][0-9]*)")
_MAX_QUERIES = 500
RETRIEVAL = "'map', 'precision@10' or 'recall@10' (any number in place of 10)"


def is_scoring_name(name: str) -> bool:
    """Return whether a score has this name."""
    return name in ("accuracy", "auc", "map") or _AT.fullmatch(name) is not None


class RowScores(NamedTuple):
    """Scores of held-out rows or queries; of a fold as a whole, arrays of one number.

    `smooth` has the same mean, about, and less noise where a score is right or wrong: candidates are compared by both.
    """

    values: np.ndarray
    smooth: np.ndarray

    @classmethod
    def of(cls, values: np.ndarray) -> RowScores:
        """Return scores that are smooth as they are."""
        return cls(values, values)


def _fold_as_a_whole(fold: Fold) -> None:
    """Return None: scores are not of single rows."""
    return None


@dataclass(frozen=True)
class Scorer:
    """A score, larger is better, and what a search needs to know of it.

    Attributes
    ----------
    score_rows : callable(metric, fold) returning RowScores
    measure : str
        Name of the measure of `mahalo.evaluation` that it is, or is nearest to.
    by_retrieval : bool
        Whether held-out rows are searched for among each other.
    in_unit_interval : bool
        Whether scores lie between 0 and 1; False for a user's callable.
    scored_rows : callable(fold) returning an array or None
        Positions of the rows that are scored; None if scores are not of single rows.
    """

    score_rows: Score
    measure: str
    by_retrieval: bool = False
    in_unit_interval: bool = True
    scored_rows: Callable[[Fold], np.ndarray | None] = _fold_as_a_whole


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
        measure = "pair AUC" if y is None else "AUC"
        return Scorer(lambda metric, f: RowScores.of(np.array([f.auc(metric, constraints)])), measure)
    if isinstance(scoring, str) and y is not None:
        if scoring == "accuracy" and not unseen:
            return Scorer(_knn_accuracy, "10-NN", scored_rows=_labelled_rows)
        if scoring == "map":
            return retrieval_scorer(average_precision, "MAP")
        if found := _AT.fullmatch(scoring):
            at, k = {"precision": precision_at, "recall": recall_at}[found[1]], int(found[2])
            name = scoring.replace("precision", "P")
            return retrieval_scorer(lambda found: at(found, k), name)
    if scoring == "accuracy" and unseen:
        raise ValueError(
            "scoring='accuracy' needs training rows of the held-out classes, and holdout='classes' leaves none; use "
            f"{RETRIEVAL}, or 'auc'."
        )
    raise ValueError(
        f"scoring must be 'accuracy', {RETRIEVAL} (all of which need y), 'auc' or a callable; got {scoring!r}"
        f"{'' if y is not None else ' without y'}."
    )


def retrieval_scorer(score: Callable[[np.ndarray], np.ndarray], measure: str) -> Scorer:
    """Return the scorer of a measure of what each query finds, which is relevant or not, nearest first."""
    return Scorer(
        lambda metric, fold: RowScores.of(score(retrieval(metric, fold))),
        measure,
        by_retrieval=True,
        scored_rows=lambda fold: fold.test[retrieval_queries(fold)],
    )


def _call_user(scoring: Callable[..., Any]) -> Score:
    def score(metric: Metric, f: Fold) -> RowScores:
        value = scoring(metric, f.X_train, f.labels_of(f.train), f.X_test, f.labels_of(f.test))
        return RowScores.of(np.array([float(value)]))

    return score


def _knn_accuracy(metric: Metric, fold: Fold) -> RowScores:
    """Score labelled held-out rows by the vote of their nearest labelled training rows, 10 at most; see `n_voters`."""
    codes, truth = fold.y_train, fold.y_test
    assert codes is not None and truth is not None
    voters, scored = codes >= 0, truth >= 0
    D = fold.sq_distances(metric, among=False)
    D = D if voters.all() and scored.all() else D[np.ix_(scored, voters)]
    codes, truth = codes[voters], truth[scored]
    neighbours = codes[nearest_of(D, n_voters(len(codes)))]
    return RowScores((vote(neighbours) == truth).astype(np.float64), vote_confidence(neighbours, truth))


def _labelled_rows(fold: Fold) -> np.ndarray:
    assert fold.y_test is not None
    return fold.test[fold.y_test >= 0]


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
