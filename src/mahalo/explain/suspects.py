"""Labels that look wrong: rows nearer to other classes than to their own, constraints that distances contradict.

A metric learned from a wrong label has been told to believe it. So rows are dealt into folds, each fold to be judged by
a metric learned from the others. One pair among hundreds has little say, and learning without it costs more than it
brings: constraints are judged by the metric as it is. Multipliers are no better guide: under LogDet they are, within a
kind, a function of the distance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import euclidean_distances

from ..constraints import Constraints, as_labels, codes_by_appearance
from ..evaluation import share_below, vote
from ..metric import Metric
from ..progress import progress_for
from ..rows import stratified_sample
from ..task import FitData, FitSettings, pose
from ..validation import at_least_single, check_count, in_double, len_of
from .doubt import N_NEIGHBOURS, log_ratio
from .frames import data_frame, names_of_rows, tuples
from .influence import constraint_kinds, constraint_rows

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = [
    "OPPOSITE",
    "DoubtfulConstraints",
    "DoubtfulRows",
    "FoldMetric",
    "Judged",
    "doubtful_constraints",
    "doubtful_of_some",
    "doubtful_rows",
    "suspect_constraints",
    "suspect_rows",
]

_FOLDS, _MORE_FOLDS, _FEW_ROWS = 4, 10, 1_000  # more where rows are few: each is then missed more, and fits are quick
MOST_JUDGED = 10_000  # rows, where nobody asked for all
_MOST_DISTANCES = 5_000_000  # held at once
OPPOSITE = {"similar": "dissimilar", "dissimilar": "similar", "triplet": "the other way round"}
_MOST_REFERENCE = 2_000  # random pairs of rows that a pair is held against where none of the other kind are known


@dataclass(frozen=True, eq=False)
class FoldMetric:
    """A metric learned from the rows `train`, and the rows `test`, whose labels it has not seen."""

    train: np.ndarray
    test: np.ndarray
    metric: Metric


@dataclass
class Judged:
    """Rows to judge labels among, and how to learn a metric from a part of them.

    Attributes
    ----------
    X : array, sparse array or array of objects
        With a precomputed kernel the n × n matrix.
    settings : FitSettings or None
        Settings to learn again with; None where only the metric is known.
    metric : Metric
        What was learned from all rows.
    pairwise : bool
        Whether X is a precomputed kernel.
    plain : callable, optional
        Distances of some rows to others with nothing learned. Default: Euclidean, or those of the kernel.
    folds : sequence of FoldMetric
        Metrics learned before with these settings, between them held out from every labelled row, once or more often.
        Empty: they are learned when they are needed.
    """

    X: Any
    settings: FitSettings | None
    metric: Metric
    pairwise: bool = False
    plain: Callable[[Any, Any], np.ndarray] | None = None
    verbose: int = 0
    folds: Sequence[FoldMetric] = ()

    @classmethod
    def by(cls, learner: Any, X: Any, again: bool = True, folds: Sequence[FoldMetric] = ()) -> Judged:
        """Build from a fitted learner; it learns `again` without the labels judged, unless `folds` hold the results."""
        settings = learner.refit_settings() if again else None
        verbose = getattr(learner, "verbose", 0)
        return cls(at_least_single(X), settings, learner.metric_, learner._pairwise, None, verbose, folds)

    def among(self, rows: np.ndarray) -> Judged:
        """Return the same for some of the rows, by number; not for a precomputed kernel."""
        place = np.full(self.n_rows, -1)
        place[rows] = np.arange(len(rows))
        placed = [(place[fold.train], place[fold.test], fold.metric) for fold in self.folds]
        folds = [FoldMetric(train[train >= 0], test[test >= 0], metric) for train, test, metric in placed]
        return replace(self, X=self.X[rows], folds=folds)

    def fold_metrics(self, codes: np.ndarray) -> Sequence[FoldMetric]:
        """Return metrics that are held out from every labelled row; `codes` are numbered by appearance."""
        if self.folds and self.settings is not None:
            return self.folds
        fold = _dealt(codes)
        folds = [(np.flatnonzero(fold == k), np.flatnonzero(fold != k)) for k in range(fold.max() + 1)]
        with progress_for(self.verbose) as progress:
            work = progress.track(folds, len(folds), "doubting labels:", lambda fold: f"{len(fold[0]):,} rows left out")
            return [FoldMetric(train, test, self.fold_metric(train, codes)) for test, train in work]

    @property
    def n_rows(self) -> int:
        return len_of(self.X)

    def fold_metric(self, train: np.ndarray, codes: np.ndarray) -> Metric:
        """Learned from the labels of some of the rows; the one there is, where it cannot be learned again."""
        if self.settings is None:
            return self.metric
        X = self.X[np.ix_(train, train)] if self.pairwise else self.X[train]
        task = pose(self.settings, FitData(X, codes[train], rows=train), quiet=True)
        return task.metric(task.solve(self.settings.gamma))

    def sq_lengths(self, index: np.ndarray) -> np.ndarray:
        """Squared learned distances of pairs of rows."""
        i, j = index.T
        if not len(index):
            return np.empty(0)
        if not self.pairwise:
            return self.metric.pair_distances(self.X[i], self.X[j], squared=True)
        K, own = self.X, np.diagonal(self.X)
        return self.metric.pair_distances(K[i], K[j], squared=True, cross=K[i, j], diag_x=own[i], diag_y=own[j])

    def learned_distances(self, metric: Metric, train: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """Of some rows to all, under a metric learned from `train`."""
        if self.pairwise:
            K, own = self.X, np.diagonal(self.X)
            columns = K[:, train]
            return lambda rows: metric.distances(columns[rows], columns, cross=K[rows], diag_x=own[rows], diag_y=own)
        if metric.is_linear and not sp.issparse(self.X):
            T = metric.transform(in_double(self.X))
            return lambda rows: euclidean_distances(T[rows], T)
        return lambda rows: metric.distances(self.X[rows], self.X)

    def plain_distances(self, rows: np.ndarray) -> np.ndarray:
        """Of some rows to all, with nothing learned."""
        if self.plain is not None:
            return self.plain(self.X[rows], self.X)
        if not self.pairwise:
            return self.metric.without_learning().distances(self.X[rows], self.X)
        own = np.diagonal(self.X)
        return np.sqrt(np.maximum(own[rows, None] + own - 2.0 * self.X[rows], 0.0))


@dataclass(frozen=True, eq=False)
class DoubtfulRows:
    """Rows whose labels are doubtful, most doubtful first.

    Attributes
    ----------
    rows : ndarray of int
    score : ndarray
        From 0 to 1, above ½ where others are closer.
    suggested : ndarray of int
        Codes of the classes they look like.
    neighbours : list of list of int
        The nearest rows that have the suggested class.
    n_judged : int
        Labelled rows that were looked at.
    held_out : bool
        Whether each was judged by a metric that had not seen its label.
    """

    rows: np.ndarray
    score: np.ndarray
    suggested: np.ndarray
    neighbours: list[list[int]]
    n_judged: int
    held_out: bool


@dataclass(frozen=True, eq=False)
class DoubtfulConstraints:
    """Pairs and triplets that distances contradict, most doubtful first: which, about which rows, and what they say."""

    which: np.ndarray
    rows: list[list[int]]
    given: list[str]
    score: np.ndarray

    @property
    def suggested(self) -> list[str]:
        return [OPPOSITE[kind] for kind in self.given]


def doubtful_rows(judged: Judged, codes: np.ndarray, n: int) -> DoubtfulRows:
    """The n rows whose labels are most doubtful."""
    check_count(n, "n")
    _check_rows(judged, codes)
    score, others = _row_doubts(judged, codes)
    labelled = np.flatnonzero(codes >= 0)
    order = labelled[np.argsort(-score[labelled], kind="stable")][:n]
    found = [others[i][others[i] >= 0] for i in order]
    suggested = np.array([vote(codes[rows][None])[0] for rows in found])
    against = [rows[codes[rows] == c].tolist() for rows, c in zip(found, suggested, strict=True)]
    return DoubtfulRows(order, score[order], suggested, against, len(labelled), judged.settings is not None)


def doubtful_of_some(judged: Judged, codes: np.ndarray, n: int) -> DoubtfulRows:
    """The same among at most 10,000 rows, drawn at random in every class; with a precomputed kernel among all."""
    every = np.arange(judged.n_rows)
    some = every if judged.pairwise else stratified_sample(len(every), MOST_JUDGED, codes_by_appearance(codes))
    if len(some) == judged.n_rows:
        return doubtful_rows(judged, codes, n)
    found = doubtful_rows(judged.among(some), codes[some], n)
    return replace(found, rows=some[found.rows], neighbours=[some[near].tolist() for near in found.neighbours])


def doubtful_constraints(judged: Judged, constraints: Constraints, n: int) -> DoubtfulConstraints:
    """The n pairs and triplets that learned distances contradict most."""
    check_count(n, "n")
    constraints.check_rows(judged.n_rows)
    if not len(constraints.pairs) + len(constraints.triplets):
        raise ValueError("only pairs and triplets can be doubtful; there are none. Pass y to judge the labels of rows.")
    score = _contradicted(judged, constraints)
    order = np.argsort(-score[: len(constraints.pairs) + len(constraints.triplets)], kind="stable")[:n]
    given = constraint_kinds(constraints)[order].tolist()
    return DoubtfulConstraints(order, constraint_rows(constraints, order), given, score[order])


def suspect_rows(judged: Judged, y: Any, n: int, index: Sequence[Any] | None) -> DataFrame:
    """The n rows whose labels are most doubtful, as a table."""
    labels = as_labels(y)
    found = doubtful_rows(judged, labels.codes, n)
    names = names_of_rows(index, judged.n_rows)
    columns: dict[str, Any] = {} if names is None else {"name": [names[i] for i in found.rows]}
    columns |= {
        "score": found.score,
        "given": labels.classes[labels.codes[found.rows]],
        "suggested": labels.classes[found.suggested],
        "neighbours": tuples(found.neighbours),
    }
    return data_frame(columns, found.rows, "row")


def suspect_constraints(judged: Judged, constraints: Constraints, n: int, index: Sequence[Any] | None) -> DataFrame:
    """The n pairs and triplets that learned distances contradict most, as a table."""
    names = names_of_rows(index, judged.n_rows)
    found = doubtful_constraints(judged, constraints, n)
    columns: dict[str, Any] = {"rows": tuples(found.rows)}
    if names is not None:
        columns["names"] = tuples([[names[i] for i in ends] for ends in found.rows])
    columns |= {"score": found.score, "given": found.given, "suggested": found.suggested}
    return data_frame(columns, found.which, "constraint")


def can_be_judged(codes: np.ndarray) -> bool:
    """Whether there are two classes of two rows or more."""
    return bool((np.bincount(codes[codes >= 0]) >= 2).sum() >= 2)


def _check_rows(judged: Judged, codes: np.ndarray) -> None:
    n = judged.n_rows
    if len(codes) != n:
        raise ValueError(f"y must have one label for each of the {n} rows of X; got {len(codes)}.")
    if judged.pairwise and judged.X.shape[0] != judged.X.shape[1]:
        raise ValueError(
            f"with a precomputed kernel labels are judged among the training rows: X must be their n × n matrix; got "
            f"shape {judged.X.shape}."
        )
    if not can_be_judged(codes):
        raise ValueError(
            "to tell whether a label is wrong takes two classes with two rows each, at least; pass more labelled rows."
        )


def _row_doubts(judged: Judged, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of every row its score, r / (1 + r), and the nearest of other classes.

    r is the geometric mean of two ratios: of plain distances, which no label has shaped, and of learned ones, among
    rows that are not themselves nearer to others: a doubtful label is no evidence against another.
    """
    folds = judged.fold_metrics(codes_by_appearance(codes))
    labelled = codes >= 0
    every = np.flatnonzero(labelled)

    def learned(has_say: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean over the folds of each row, and the nearest rows of other classes in the last of them."""
        total, times = np.zeros(len(codes)), np.zeros(len(codes))
        others = np.full((len(codes), N_NEIGHBOURS), -1)
        for fold in folds:
            held_out = fold.test[labelled[fold.test]]
            ratio, near = _ratios(judged.learned_distances(fold.metric, fold.train), held_out, codes, has_say)
            total[held_out] += ratio
            times[held_out] += 1
            others[held_out, : near.shape[1]] = near
        return total / np.maximum(times, 1), others

    plain = np.zeros(len(codes))
    plain[every] = _ratios(judged.plain_distances, every, codes, labelled)[0]
    first, others = learned(labelled)
    second, trusted = learned(labelled & (plain + first <= 0))
    r = np.exp(0.5 * (plain + second))
    return r / (1.0 + r), np.where(trusted[:, :1] >= 0, trusted, others)


def _ratios(
    distances: Callable[[np.ndarray], np.ndarray], rows: np.ndarray, codes: np.ndarray, has_say: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """`log_ratio` of some rows, so many at a time that their distances to all can be held."""
    step = max(1, _MOST_DISTANCES // len(codes))
    found = []
    for a in range(0, len(rows), step):
        part = rows[a : a + step]
        D = distances(part)
        D[np.arange(len(part)), part] = np.inf
        D[:, ~has_say] = np.inf
        found.append(log_ratio(D, codes[part], codes))
    return np.concatenate([ratio for ratio, _ in found]), np.concatenate([others for _, others in found])


def _contradicted(judged: Judged, constraints: Constraints) -> np.ndarray:
    """Of each pair the share of pairs of the other kind (of random ones, if there are none) on its wrong side.

    Linear forms are about no label, and have 0.
    """
    pairs, triplets = constraints.pairs, constraints.triplets
    length, similar = judged.sq_lengths(pairs.index), pairs.sign > 0
    score = np.zeros(constraints.n_constraints)
    for kind, side in ((similar, 1.0), (~similar, -1.0)):
        if kind.any():
            others = length[~kind] if (~kind).any() else judged.sq_lengths(_random_pairs(judged.n_rows))
            score[: len(pairs)][kind] = share_below(np.sort(side * others), side * length[kind])
    a, b, c = triplets.index.T
    near, far = (judged.sq_lengths(np.column_stack([a, end])) for end in (b, c))
    total = near + far
    part = slice(len(pairs), len(pairs) + len(triplets))
    score[part] = np.divide(near, total, out=np.full(len(near), 0.5), where=total > 0)
    return score


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
    fold[by_class] = np.arange(len(by_class)) % (_FOLDS if len(by_class) > _FEW_ROWS else _MORE_FOLDS)
    return fold
