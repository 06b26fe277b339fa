"""Folds of a search: training and held-out rows, and distances between them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np

from ..constraints import Constraints
from ..evaluation import pair_auc
from ..metric import CoordinateDistances, Metric, leading_part
from ..task import FitData

__all__ = ["Fold", "SearchData"]


@dataclass(frozen=True, eq=False)
class SearchData:
    """Rows that a search may use, and the sample of them that it does.

    Attributes
    ----------
    X, y, labels, rows
        All rows, their class codes (−1: unlabelled), their labels as the caller wrote them, and their numbers in the
        numbering of the constraints.
    constraints : Constraints or None
    pairwise : bool
        Whether X is a precomputed kernel matrix.
    sample : ndarray
        Positions of the rows that folds are made of.
    n_total : int
        Number of rows of which X is itself a sample; that of X where it is none.
    sample_weight : ndarray or None
        Weight of each row.
    """

    X: Any
    y: np.ndarray | None
    labels: np.ndarray | None
    rows: np.ndarray
    constraints: Constraints | None
    pairwise: bool
    sample: np.ndarray
    n_total: int
    sample_weight: np.ndarray | None = None

    @property
    def n_rows(self) -> int:
        return len(self.rows)

    def n_constrained(self, pairs_per_class: int | None = None, fold: Fold | None = None) -> int:
        """Return how many of all rows, or the training rows of a fold, have constraints; an upper bound for labels."""
        if self.constraints is not None:
            rows = self.rows if fold is None else fold.train_rows
            return len(self.constraints.on_rows(rows)[0].edges()[1])
        y = self.y if fold is None else fold.y_train
        n_labelled = 0 if y is None else int((y >= 0).sum())
        return n_labelled if pairs_per_class is None else min(n_labelled, 4 * pairs_per_class * self.n_classes)

    @cached_property
    def n_classes(self) -> int:
        """Number of classes in the sample."""
        if self.y is None:
            return 0
        codes = self.y[self.sample]
        return len(np.unique(codes[codes >= 0]))

    @property
    def class_names(self) -> list[str]:
        """Names of the classes, in the order of their codes."""
        if self.y is None:
            return []
        names = [""] * (int(self.y.max(initial=-1)) + 1)
        codes, first = np.unique(self.y, return_index=True)
        for code, row in zip(codes.tolist(), first.tolist(), strict=True):
            if code >= 0:
                names[code] = str(code if self.labels is None else self.labels[row])
        return names

    def fold(self, train: np.ndarray, test: np.ndarray) -> Fold:
        """Return a fold of all rows."""
        return Fold(self.X, self.y, self.labels, self.rows, train, test, self.pairwise, self.sample_weight)

    def sampled_folds(self, splits: Iterable[tuple[np.ndarray, np.ndarray]]) -> tuple[Fold, ...]:
        """Return folds of the sample, from splits of it."""
        part = self.sample
        if len(part) == self.n_rows:
            return tuple(self.fold(*split) for split in splits)
        X = self.X[np.ix_(part, part)] if self.pairwise else self.X[part]
        y, labels, weight = (None if a is None else a[part] for a in (self.y, self.labels, self.sample_weight))
        return tuple(Fold(X, y, labels, self.rows[part], *split, self.pairwise, weight) for split in splits)


@dataclass(frozen=True)
class Fold:
    """Training and held-out rows; with a precomputed kernel, rows of similarities to the training rows.

    `y` holds class codes, −1 for unlabelled rows, `labels` the labels as they were given.
    """

    X: Any
    y: np.ndarray | None
    labels: np.ndarray | None
    rows: np.ndarray
    train: np.ndarray
    test: np.ndarray
    pairwise: bool
    sample_weight: np.ndarray | None = None
    scatter_cache: dict = field(default_factory=dict, repr=False)  # shared by tasks on the training rows
    _distance_cache: dict = field(default_factory=dict, repr=False)

    @cached_property
    def X_train(self) -> Any:
        return self.X[np.ix_(self.train, self.train)] if self.pairwise else self.X[self.train]

    @cached_property
    def X_test(self) -> Any:
        return self.X[np.ix_(self.test, self.train)] if self.pairwise else self.X[self.test]

    @property
    def y_train(self) -> np.ndarray | None:
        return None if self.y is None else self.y[self.train]

    @property
    def y_test(self) -> np.ndarray | None:
        return None if self.y is None else self.y[self.test]

    def labels_of(self, part: np.ndarray) -> np.ndarray | None:
        """Return the labels of some rows as the caller wrote them."""
        return None if self.labels is None else self.labels[part]

    @property
    def train_rows(self) -> np.ndarray:
        return self.rows[self.train]

    def training_data(self, constraints: Constraints | None) -> FitData:
        """Return the training rows, with the constraints between them."""
        weight = None if self.sample_weight is None else self.sample_weight[self.train]
        return FitData(self.X_train, self.y_train, constraints, self.train_rows, weight)

    # -- distances under one variant of a metric --------------------------------------------------------------------

    def variant(self, metric: Metric, n_components: int | None, normalize: bool) -> Metric:
        """Return the metric with or without normalisation, reduced to its leading components."""
        metric = dataclasses.replace(metric, normalize=normalize)
        if n_components is None:
            return metric
        # A part of the rows may have fewer outputs than all.
        return leading_part(metric, self.X_train, min(n_components, metric.n_outputs))

    def sq_distances(self, metric: Metric, *, among: bool) -> np.ndarray:
        """Return squared distances of held-out rows to training rows, or among themselves."""
        if not self.pairwise and isinstance(self.X, np.ndarray) and self.X.ndim == 2 and metric.scaling is None:
            return self._coordinate_distances(metric, among).sq_distances(metric)
        if not self.pairwise:
            return metric.distances(self.X_test, None if among else self.X_train, squared=True)
        own = np.diagonal(self.X)
        if among:
            return metric.distances(self.X_test, squared=True, cross=self.X[np.ix_(self.test, self.test)])
        cross = self.X_test
        return metric.distances(
            cross, self.X_train, squared=True, cross=cross, diag_x=own[self.test], diag_y=own[self.train]
        )

    def sq_query_distances(self, metric: Metric, queries: np.ndarray, index: np.ndarray, *, among: bool) -> np.ndarray:
        """Return squared distances of some held-out rows to some training rows, or to some held-out rows.

        `queries` are positions among the held-out rows, `index` among the training rows (held-out rows if `among`).
        """
        if not self.pairwise:
            return metric.distances(self.X_test[queries], (self.X_test if among else self.X_train)[index], squared=True)
        own, a, b = np.diagonal(self.X), self.test[queries], (self.test if among else self.train)[index]
        return metric.distances(
            self.X[np.ix_(a, self.train)],
            self.X[np.ix_(b, self.train)],
            squared=True,
            cross=self.X[np.ix_(a, b)],
            diag_x=own[a],
            diag_y=own[b],
        )

    def _coordinate_distances(self, metric: Metric, among: bool) -> CoordinateDistances:
        """Return the distances over some coordinates, cached for the last ones."""
        cached = self._distance_cache.get((among, metric.normalize))
        if cached is None or not cached.is_for(metric):
            X, Y = self.X_test.astype(np.float64), (self.X_test if among else self.X_train).astype(np.float64)
            if metric.is_linear and not metric.normalize:
                centre = Y.mean(axis=0)  # a common shift changes no distance and spares digits far from the origin
                X, Y = X - centre, Y - centre
            Y = X if among else Y
            cached = self._distance_cache[among, metric.normalize] = CoordinateDistances(metric, X, Y)
        return cached

    def auc(self, metric: Metric, constraints: Constraints | None) -> float:
        """Return the AUC of similar against dissimilar pairs among held-out rows."""
        sq_distances = partial(self.sq_pair_distances, metric)
        return pair_auc(sq_distances, len(self.test), self.y_test, constraints, self.rows[self.test])

    def sq_pair_distances(self, metric: Metric, index: np.ndarray) -> np.ndarray:
        """Return squared distances of pairs of held-out rows."""
        i, j = index.T
        if not self.pairwise:
            return metric.pair_distances(self.X_test[i], self.X_test[j], squared=True)
        a, b = self.test[i], self.test[j]
        own = np.diagonal(self.X)
        return metric.pair_distances(
            self.X_test[i], self.X_test[j], squared=True, cross=self.X[a, b], diag_x=own[a], diag_y=own[b]
        )
