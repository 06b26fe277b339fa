"""Labels that look wrong: rows nearer to other classes than to their own, constraints that distances contradict.

A metric learned from a wrong label has been told to believe it. So nothing is judged by a metric it has had a say in:
rows, or constraints, are dealt into folds, and each fold is judged by a metric learned from the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..constraints import Constraints, as_labels, check_count
from ..metric import Metric
from ..scoring import vote
from ..task import Task
from ..validation import len_of
from .doubt import blocks_of, doubt_of
from .frames import data_frame, names_of_rows, tuples
from .influence import constraint_kinds, constraint_rows

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["Judged", "suspect_constraints", "suspect_rows"]

_FOLDS = 4
_OPPOSITE = {"similar": "dissimilar", "dissimilar": "similar", "triplet": "the other way round"}
_MOST_REFERENCE = 2_000  # random pairs of rows that a pair is held against where none of the other kind are known


@dataclass(frozen=True)
class Judged:
    """Rows to judge labels among, and how to learn a metric from a part of them.

    Attributes
    ----------
    X : array, sparse array or array of objects
        With a precomputed kernel the n × n matrix.
    settings : MetricLearner or None
        What to learn with; None where nothing is known but the metric.
    metric : Metric
        What was learned from all rows.
    pairwise : bool
        Whether X is a precomputed kernel.
    """

    X: Any
    settings: Any
    metric: Metric
    pairwise: bool

    @property
    def n_rows(self) -> int:
        return len_of(self.X)

    def learned_from(self, train: np.ndarray, y: np.ndarray) -> Metric:
        """From labels of some of the rows."""
        X = self.X[np.ix_(train, train)] if self.pairwise else self.X[train]
        return _solved(Task.of(self.settings, X, y[train], None, train, quiet=True), self.settings)

    def learned_by(self, constraints: Constraints) -> Metric:
        """From constraints alone, over all rows."""
        return _solved(Task.of(self.settings, self.X, None, constraints, None, quiet=True), self.settings)

    def sq_lengths(self, metric: Metric, index: np.ndarray) -> np.ndarray:
        """Squared distances of pairs of rows, under a metric learned from all rows."""
        i, j = index.T
        if not len(index):
            return np.empty(0)
        if not self.pairwise:
            return metric.pair_distances(self.X[i], self.X[j], squared=True)
        K, own = self.X, np.diagonal(self.X)
        return metric.pair_distances(K[i], K[j], squared=True, cross=K[i, j], diag_x=own[i], diag_y=own[j])

    def distances(self, metric: Metric, train: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Of some rows to all, under a metric learned from `train`."""
        if not self.pairwise:
            return metric.distances(self.X[rows], self.X)
        K, own = self.X, np.diagonal(self.X)
        return metric.distances(K[np.ix_(rows, train)], K[:, train], cross=K[rows], diag_x=own[rows], diag_y=own)


def suspect_rows(judged: Judged, y: Any, n: int, index: Sequence[Any] | None) -> DataFrame:
    """The n rows whose labels are most doubtful."""
    check_count(n, "n")
    labels = as_labels(y)
    codes = labels.codes
    _check_rows(judged, codes)
    names = names_of_rows(index, judged.n_rows)
    score, others = _row_doubts(judged, codes)
    labelled = np.flatnonzero(codes >= 0)
    order = labelled[np.argsort(-score[labelled], kind="stable")][:n]
    suggested = vote(codes[others[order]])
    against = [others[i][codes[others[i]] == c] for i, c in zip(order, suggested, strict=True)]
    columns: dict[str, Any] = {} if names is None else {"name": [names[i] for i in order]}
    columns |= {
        "score": score[order],
        "given": labels.classes[codes[order]],
        "suggested": labels.classes[suggested],
        "neighbours": tuples([rows.tolist() for rows in against]),
    }
    return data_frame(columns, order, "row")


def suspect_constraints(judged: Judged, constraints: Constraints, n: int, index: Sequence[Any] | None) -> DataFrame:
    """The n pairs and triplets that distances contradict most, under metrics learned from the others."""
    check_count(n, "n")
    names = names_of_rows(index, judged.n_rows)
    constraints.check_rows(judged.n_rows)
    score = _constraint_doubts(judged, constraints)
    order = np.argsort(-score, kind="stable")[:n]
    rows = constraint_rows(constraints, order)
    given = constraint_kinds(constraints)[order]
    columns: dict[str, Any] = {"rows": tuples(rows)}
    if names is not None:
        columns["names"] = tuples([[names[i] for i in ends] for ends in rows])
    columns |= {"score": score[order], "given": given, "suggested": [_OPPOSITE[kind] for kind in given]}
    return data_frame(columns, order, "constraint")


def _check_rows(judged: Judged, codes: np.ndarray) -> None:
    n = judged.n_rows
    if len(codes) != n:
        raise ValueError(f"y must have one label for each of the {n} rows of X; got {len(codes)}.")
    if judged.pairwise and judged.X.shape[0] != judged.X.shape[1]:
        raise ValueError(
            f"with a precomputed kernel labels are judged among the training rows: X must be their n × n matrix; got "
            f"shape {judged.X.shape}."
        )
    if (np.bincount(codes[codes >= 0]) >= 2).sum() < 2:
        raise ValueError(
            "to tell whether a label is wrong takes two classes with two rows each, at least; pass more labelled rows."
        )


def _row_doubts(judged: Judged, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of every labelled row its score and its nearest rows of other classes."""
    fold = _dealt(codes)
    score, others = np.zeros(len(codes)), np.full((len(codes), 5), -1)
    for k in range(_FOLDS):
        held_out = np.flatnonzero(fold == k)
        train = np.flatnonzero(fold != k)
        metric = judged.metric if judged.settings is None else judged.learned_from(train, codes)
        for rows in blocks_of(held_out, judged.n_rows):
            D = judged.distances(metric, train, rows)
            D[np.arange(len(rows)), rows] = np.inf
            D[:, codes < 0] = np.inf
            doubt = doubt_of(D, codes[rows], codes)
            score[rows], others[rows] = doubt.score, doubt.others
    return score, others


def _constraint_doubts(judged: Judged, constraints: Constraints) -> np.ndarray:
    """Of every pair and triplet; linear forms are about no label, and have 0."""
    n, n_pairs, n_triplets = constraints.n_constraints, len(constraints.pairs), len(constraints.triplets)
    if n_pairs + n_triplets < 2:
        raise ValueError(
            f"to tell whether a pair or triplet is wrong takes others to learn from; got {n_pairs + n_triplets}. Pass "
            "y to judge the labels of rows."
        )
    fold = np.random.default_rng(0).permutation(n) % min(_FOLDS, n)
    score = np.zeros(n)
    for k in np.unique(fold):
        metric = judged.metric if judged.settings is None else judged.learned_by(constraints.take(fold != k))
        score[fold == k] = _contradicted(judged, metric, constraints)[fold == k]
    return score


def _contradicted(judged: Judged, metric: Metric, constraints: Constraints) -> np.ndarray:
    """Of each pair the share of pairs of the other kind (of random ones, if there are none) on its wrong side."""
    pairs, triplets = constraints.pairs, constraints.triplets
    length, similar = judged.sq_lengths(metric, pairs.index), pairs.sign > 0
    score = np.zeros(constraints.n_constraints)
    for kind, side in ((similar, 1.0), (~similar, -1.0)):
        if kind.any():
            others = length[~kind] if (~kind).any() else judged.sq_lengths(metric, _random_pairs(judged.n_rows))
            score[: len(pairs)][kind] = _share_below(side * others, side * length[kind])
    a, b, c = triplets.index.T
    near, far = (judged.sq_lengths(metric, np.column_stack([a, end])) for end in (b, c))
    total = near + far
    part = slice(len(pairs), len(pairs) + len(triplets))
    score[part] = np.divide(near, total, out=np.full(len(near), 0.5), where=total > 0)
    return score


def _share_below(others: np.ndarray, values: np.ndarray) -> np.ndarray:
    return np.searchsorted(np.sort(others), values) / len(others)


def _random_pairs(n_rows: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    first = rng.integers(n_rows, size=_MOST_REFERENCE)
    return np.column_stack([first, (first + rng.integers(1, n_rows, size=_MOST_REFERENCE)) % n_rows])


def _dealt(codes: np.ndarray) -> np.ndarray:
    """The fold of each row, those of a class dealt evenly; unlabelled rows are in none, and learned from by all."""
    fold = np.full(len(codes), -1)
    labelled = np.flatnonzero(codes >= 0)
    shuffled = np.random.default_rng(0).permutation(labelled)
    by_class = shuffled[np.argsort(codes[shuffled], kind="stable")]
    fold[by_class] = np.arange(len(by_class)) % _FOLDS
    return fold


def _solved(task: Task, settings: Any) -> Metric:
    return task.metric(task.solve(settings.gamma))
