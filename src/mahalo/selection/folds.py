"""Training and held-out rows, and how well a metric learned on the former does on the latter."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..constraints import Constraints
from ..metric import Metric
from ..scoring import nearest_of, pair_auc, vote

__all__ = ["Fold"]


@dataclass(frozen=True)
class Fold:
    """Training and held-out rows; with a precomputed kernel, rows of similarities to the training rows.

    `y` holds class codes, −1 for unlabelled rows, `labels` the labels as they were given.
    """

    X: Any
    y: np.ndarray | None
    labels: np.ndarray | None
    rows: np.ndarray | None
    train: np.ndarray
    test: np.ndarray
    pairwise: bool

    @cached_property
    def X_train(self):
        return self.X[np.ix_(self.train, self.train)] if self.pairwise else self.X[self.train]

    @cached_property
    def X_test(self):
        return self.X[np.ix_(self.test, self.train)] if self.pairwise else self.X[self.test]

    @property
    def y_train(self):
        return None if self.y is None else self.y[self.train]

    @property
    def y_test(self):
        return None if self.y is None else self.y[self.test]

    def labels_of(self, part: np.ndarray):
        return None if self.labels is None else self.labels[part]

    @property
    def train_rows(self):
        return None if self.rows is None else self.rows[self.train]

    def knn_accuracy(self, metric: Metric, k: int = 10) -> float:
        """Of k nearest training rows on held-out rows; unlabelled rows neither vote nor count."""
        codes = self.y
        votes_of, truth = codes[self.train], codes[self.test]
        voters, judged = np.flatnonzero(votes_of >= 0), np.flatnonzero(truth >= 0)
        n_right = 0
        for part in np.array_split(judged, 1 + len(judged) * len(voters) // 40_000_000):
            nearest = nearest_of(self._sq_distances(metric, part)[:, voters], k)
            n_right += int((vote(votes_of[voters][nearest]) == truth[part]).sum())
        return n_right / len(judged)

    def _sq_distances(self, metric: Metric, part: np.ndarray) -> np.ndarray:
        """Between some held-out rows and all training rows."""
        if not self.pairwise:
            return metric.distances(self.X_test[part], self.X_train, squared=True)
        own = np.diagonal(self.X)
        cross = self.X_test[part]
        return metric.distances(
            cross, self.X_train, squared=True, cross=cross, diag_x=own[self.test[part]], diag_y=own[self.train]
        )

    def auc(self, metric: Metric, constraints: Constraints | None) -> float:
        """Of telling similar from dissimilar pairs among held-out rows."""
        test_rows = None if self.rows is None else self.rows[self.test]

        def sq_distances(index: np.ndarray) -> np.ndarray:
            i, j = index.T
            if not self.pairwise:
                return metric.pair_distances(self.X_test[i], self.X_test[j], squared=True)
            a, b = self.test[i], self.test[j]
            own = np.diagonal(self.X)
            return metric.pair_distances(
                self.X_test[i], self.X_test[j], squared=True, cross=self.X[a, b], diag_x=own[a], diag_y=own[b]
            )

        return pair_auc(sq_distances, len(self.test), self.y_test, constraints, test_rows)
