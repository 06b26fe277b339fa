"""Labels that look wrong: rows closer to other classes than to their own, constraints that distances contradict.

A metric learned from a wrong label fits it. So rows are divided into folds, and each fold is judged by a metric learned
from the others. One pair among hundreds has little influence, and fitting without it costs more than it gains, so
constraints are judged by the metric itself. Multipliers are no better criterion: under LogDet they are, within a kind,
a function of the distance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.metrics.pairwise import euclidean_distances

from ..constraints import Constraints, as_labels, codes_by_appearance
from ..evaluation import share_below, vote
from ..linalg import Matrix
from ..metric import Metric
from ..progress import progress_for
from ..rows import stratified_sample
from ..task import FitData, FitSettings, pose
from ..validation import at_least_single, check_count, in_double, len_of
from .doubt import N_NEIGHBOURS, log_ratio
from .frames import Column, check_row_names, data_frame, tuple_column
from .influence import constraint_kinds, constraint_rows

if TYPE_CHECKING:
    from pandas import DataFrame

    from .mixin import ExplainMixin

_FOLDS, _MORE_FOLDS, _FEW_ROWS = 4, 10, 1_000  # more folds where rows are few and fits quick
MOST_JUDGED = 10_000  # rows of a sample
_MOST_DISTANCES = 5_000_000  # in memory at a time
OPPOSITE = {"similar": "dissimilar", "dissimilar": "similar", "triplet": "the other way round"}
_N_REFERENCE = 2_000  # random pairs to compare a pair with where there are none of the other kind


@dataclass(frozen=True, eq=False)
class FoldMetric:
    """Metric learned from the rows `train`, and the held-out rows `test`."""

    train: np.ndarray
    test: np.ndarray
    metric: Metric


@dataclass
class LabelJudge:
    """Rows whose labels are judged, and the metrics that judge them.

    Attributes
    ----------
    X : array, sparse array or array of objects
        With a precomputed kernel the n × n matrix.
    settings : FitSettings or None
        Settings to fit metrics of folds with; None to judge by `metric` itself.
    metric : Metric
        Metric learned from all rows.
    pairwise : bool
        True if X is a precomputed kernel.
    prior_distances : callable, optional
        Distances between rows of two arrays before learning. Default: Euclidean, or those of the kernel.
    folds : sequence of FoldMetric
        Metrics fitted before with these settings; every labelled row is held out from one or more of them. Empty: they
        are fitted when they are needed.
    """

    X: Matrix
    settings: FitSettings | None
    metric: Metric
    pairwise: bool = False
    prior_distances: Callable[[Matrix, Matrix], np.ndarray] | None = None
    verbose: int = 0
    folds: Sequence[FoldMetric] = ()

    @classmethod
    def from_learner(
        cls, learner: ExplainMixin, X: Matrix, refit: bool = True, folds: Sequence[FoldMetric] = ()
    ) -> LabelJudge:
        """Make a judge from a fitted learner; with `refit` it fits metrics without the labels they judge."""
        settings = learner.refit_settings() if refit else None
        metric, verbose = learner.metric_, getattr(learner, "verbose", 0)
        return cls(at_least_single(X), settings, metric, metric.coordinates.is_precomputed, None, verbose, folds)

    def restricted_to(self, rows: np.ndarray) -> LabelJudge:
        """Return the judge of some of the rows, by number; not for a precomputed kernel."""
        position = np.full(self.n_rows, -1)
        position[rows] = np.arange(len(rows))
        moved = [(position[fold.train], position[fold.test], fold.metric) for fold in self.folds]
        folds = [FoldMetric(train[train >= 0], test[test >= 0], metric) for train, test, metric in moved]
        return replace(self, X=self.X[rows], folds=folds)

    def fold_metrics(self, codes: np.ndarray) -> Sequence[FoldMetric]:
        """Return metrics such that every labelled row is held out from one; `codes` are numbered by appearance."""
        if self.folds and self.settings is not None:
            return self.folds
        fold = _assign_folds(codes)
        folds = [(np.flatnonzero(fold == k), np.flatnonzero(fold != k)) for k in range(fold.max() + 1)]
        with progress_for(self.verbose) as progress:
            work = progress.track(folds, len(folds), "judging labels:", lambda fold: f"{len(fold[0]):,} rows held out")
            return [FoldMetric(train, test, self.fold_metric(train, codes)) for test, train in work]

    @property
    def n_rows(self) -> int:
        return len_of(self.X)

    def fold_metric(self, train: np.ndarray, codes: np.ndarray) -> Metric:
        """Return a metric fitted to some of the rows, or the metric of all rows if there are no settings."""
        if self.settings is None:
            return self.metric
        X = self.X[np.ix_(train, train)] if self.pairwise else self.X[train]
        task = pose(self.settings, FitData(X, codes[train], rows=train), quiet=True)
        return task.metric(task.solve(self.settings.gamma))

    def sq_lengths(self, index: np.ndarray) -> np.ndarray:
        """Return the squared learned distances of pairs of rows."""
        i, j = index.T
        if not len(index):
            return np.empty(0)
        if not self.pairwise:
            return self.metric.pair_distances(self.X[i], self.X[j], squared=True)
        K, own = self.X, np.diagonal(self.X)
        return self.metric.pair_distances(K[i], K[j], squared=True, cross=K[i, j], diag_x=own[i], diag_y=own[j])

    def learned_distances(self, metric: Metric, train: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """Return a function from rows to their distances to all rows, under a metric learned from `train`."""
        if self.pairwise:
            K, own = self.X, np.diagonal(self.X)
            columns = K[:, train]
            return lambda rows: metric.distances(columns[rows], columns, cross=K[rows], diag_x=own[rows], diag_y=own)
        if metric.is_linear and not sp.issparse(self.X):
            T = metric.transform(in_double(self.X))
            return lambda rows: euclidean_distances(T[rows], T)
        return lambda rows: metric.distances(self.X[rows], self.X)

    def distances_before(self, rows: np.ndarray) -> np.ndarray:
        """Return the distances of some rows to all rows before learning."""
        if self.prior_distances is not None:
            return self.prior_distances(self.X[rows], self.X)
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
        Doubt from 0 to 1, above ½ where rows of other classes are closer.
    suggested : ndarray of int
        Codes of the classes that the rows look like.
    neighbours : list of list of int
        Nearest rows of the suggested class.
    n_judged : int
        Number of labels judged.
    held_out : bool
        True if each label was judged by a metric learned without it.
    """

    rows: np.ndarray
    score: np.ndarray
    suggested: np.ndarray
    neighbours: list[list[int]]
    n_judged: int
    held_out: bool


@dataclass(frozen=True, eq=False)
class DoubtfulConstraints:
    """Pairs and triplets that distances contradict, most doubtful first: numbers, rows, kinds and doubts."""

    which: np.ndarray
    rows: list[list[int]]
    given: list[str]
    score: np.ndarray

    @property
    def suggested(self) -> list[str]:
        return [OPPOSITE[kind] for kind in self.given]


def doubtful_rows(judge: LabelJudge, codes: np.ndarray, n: int) -> DoubtfulRows:
    """Return the n rows whose labels are most doubtful."""
    check_count(n, "n")
    _check_rows(judge, codes)
    score, others = _row_doubts(judge, codes)
    labelled = np.flatnonzero(codes >= 0)
    order = labelled[np.argsort(-score[labelled], kind="stable")][:n]
    found = [others[i][others[i] >= 0] for i in order]
    suggested = np.array([vote(codes[rows][None])[0] for rows in found])
    against = [rows[codes[rows] == c].tolist() for rows, c in zip(found, suggested, strict=True)]
    return DoubtfulRows(order, score[order], suggested, against, len(labelled), judge.settings is not None)


def doubtful_rows_in_sample(judge: LabelJudge, codes: np.ndarray, n: int) -> DoubtfulRows:
    """Return the n most doubtful rows of a stratified sample of 10,000 rows; of all rows of a precomputed kernel."""
    every = np.arange(judge.n_rows)
    some = every if judge.pairwise else stratified_sample(len(every), MOST_JUDGED, codes_by_appearance(codes))
    if len(some) == judge.n_rows:
        return doubtful_rows(judge, codes, n)
    found = doubtful_rows(judge.restricted_to(some), codes[some], n)
    return replace(found, rows=some[found.rows], neighbours=[some[near].tolist() for near in found.neighbours])


def doubtful_constraints(judge: LabelJudge, constraints: Constraints, n: int) -> DoubtfulConstraints:
    """Return the n pairs and triplets that learned distances contradict most."""
    check_count(n, "n")
    constraints.check_rows(judge.n_rows)
    if not len(constraints.pairs) + len(constraints.triplets):
        raise ValueError(
            "only pairs and triplets can be judged, and there are none. Pass y to judge the labels of rows."
        )
    score = _constraint_doubts(judge, constraints)
    order = np.argsort(-score[: len(constraints.pairs) + len(constraints.triplets)], kind="stable")[:n]
    given = constraint_kinds(constraints)[order].tolist()
    return DoubtfulConstraints(order, constraint_rows(constraints, order), given, score[order])


def suspect_rows(judge: LabelJudge, y: ArrayLike, n: int, index: Sequence[object] | None) -> DataFrame:
    """Return a table of the n rows whose labels are most doubtful."""
    labels = as_labels(y)
    found = doubtful_rows(judge, labels.codes, n)
    names = check_row_names(index, judge.n_rows)
    columns: dict[str, Column] = {} if names is None else {"name": [names[i] for i in found.rows]}
    columns |= {
        "score": found.score,
        "given": labels.classes[labels.codes[found.rows]],
        "suggested": labels.classes[found.suggested],
        "neighbours": tuple_column(found.neighbours),
    }
    return data_frame(columns, found.rows, "row")


def suspect_constraints(
    judge: LabelJudge, constraints: Constraints, n: int, index: Sequence[object] | None
) -> DataFrame:
    """Return a table of the n pairs and triplets that learned distances contradict most."""
    names = check_row_names(index, judge.n_rows)
    found = doubtful_constraints(judge, constraints, n)
    columns: dict[str, Column] = {"rows": tuple_column(found.rows)}
    if names is not None:
        columns["names"] = tuple_column([[names[i] for i in ends] for ends in found.rows])
    columns |= {"score": found.score, "given": found.given, "suggested": found.suggested}
    return data_frame(columns, found.which, "constraint")


def can_be_judged(codes: np.ndarray) -> bool:
    """Return whether there are two classes with two rows or more each."""
    return bool((np.bincount(codes[codes >= 0]) >= 2).sum() >= 2)


def _check_rows(judge: LabelJudge, codes: np.ndarray) -> None:
    n = judge.n_rows
    if len(codes) != n:
        raise ValueError(f"y must have one label for each of the {n} rows of X; got {len(codes)}.")
    if judge.pairwise and judge.X.shape[0] != judge.X.shape[1]:
        raise ValueError(
            f"with a precomputed kernel X must be the n × n matrix of the training rows to judge labels; got "
            f"shape {judge.X.shape}."
        )
    if not can_be_judged(codes):
        raise ValueError("judging labels needs at least two classes with two rows each; pass more labelled rows.")


def _row_doubts(judge: LabelJudge, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the doubt r / (1 + r) about every label, and the nearest rows of other classes.

    r is the geometric mean of two ratios: of distances before learning, which no label has shaped, and of learned
    distances to rows that are themselves not closer to other classes, as a doubtful label is no evidence.
    """
    folds = judge.fold_metrics(codes_by_appearance(codes))
    labelled = codes >= 0
    every = np.flatnonzero(labelled)

    def learned(trusted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean log ratio over the folds of each row, and the nearest rows of other classes in the last."""
        total, times = np.zeros(len(codes)), np.zeros(len(codes))
        others = np.full((len(codes), N_NEIGHBOURS), -1)
        for fold in folds:
            held_out = fold.test[labelled[fold.test]]
            ratio, near = _ratios(judge.learned_distances(fold.metric, fold.train), held_out, codes, trusted)
            total[held_out] += ratio
            times[held_out] += 1
            others[held_out, : near.shape[1]] = near
        return total / np.maximum(times, 1), others

    before = np.zeros(len(codes))
    before[every] = _ratios(judge.distances_before, every, codes, labelled)[0]
    first, others = learned(labelled)
    second, trusted_others = learned(labelled & (before + first <= 0))
    r = np.exp(0.5 * (before + second))
    return r / (1.0 + r), np.where(trusted_others[:, :1] >= 0, trusted_others, others)


def _ratios(
    distances: Callable[[np.ndarray], np.ndarray], rows: np.ndarray, codes: np.ndarray, trusted: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return `log_ratio` of some rows against the trusted ones, in blocks that fit in memory."""
    step = max(1, _MOST_DISTANCES // len(codes))
    found = []
    for a in range(0, len(rows), step):
        part = rows[a : a + step]
        D = distances(part)
        D[np.arange(len(part)), part] = np.inf
        D[:, ~trusted] = np.inf
        found.append(log_ratio(D, codes[part], codes))
    return np.concatenate([ratio for ratio, _ in found]), np.concatenate([others for _, others in found])


def _constraint_doubts(judge: LabelJudge, constraints: Constraints) -> np.ndarray:
    """Return, for each pair, the share of pairs of the other kind on its wrong side.

    Without pairs of the other kind random pairs take their place. Linear forms have 0.
    """
    pairs, triplets = constraints.pairs, constraints.triplets
    length, similar = judge.sq_lengths(pairs.index), pairs.sign > 0
    score = np.zeros(constraints.n_constraints)
    for kind, side in ((similar, 1.0), (~similar, -1.0)):
        if kind.any():
            others = length[~kind] if (~kind).any() else judge.sq_lengths(_random_pairs(judge.n_rows))
            score[: len(pairs)][kind] = share_below(np.sort(side * others), side * length[kind])
    a, b, c = triplets.index.T
    near, far = (judge.sq_lengths(np.column_stack([a, end])) for end in (b, c))
    total = near + far
    part = slice(len(pairs), len(pairs) + len(triplets))
    score[part] = np.divide(near, total, out=np.full(len(near), 0.5), where=total > 0)
    return score


def _random_pairs(n_rows: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    first = rng.integers(n_rows, size=_N_REFERENCE)
    return np.column_stack([first, (first + rng.integers(1, n_rows, size=_N_REFERENCE)) % n_rows])


def _assign_folds(codes: np.ndarray) -> np.ndarray:
    """Return the fold of each row, balanced within classes; −1 for unlabelled rows, which are in all training sets."""
    fold = np.full(len(codes), -1)
    labelled = np.flatnonzero(codes >= 0)
    shuffled = np.random.default_rng(0).permutation(labelled)
    by_class = shuffled[np.argsort(codes[shuffled], kind="stable")]
    fold[by_class] = np.arange(len(by_class)) % (_FOLDS if len(by_class) > _FEW_ROWS else _MORE_FOLDS)
    return fold
