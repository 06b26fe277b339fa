"""Tables cut in two: what the experiments on rows of numbers share."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import entropy
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.preprocessing import StandardScaler

from mahalo import Metric

from .data import Table
from .protocol import knn_error, metric_error

__all__ = ["Distance", "Half", "Learn", "Stops", "information_gain", "sampled"]

Distance = Metric | Callable[[np.ndarray], np.ndarray]
"""What was learned: a metric, or a map into the space where the distance is the ordinary one."""
Learn = Callable[[np.ndarray, np.ndarray, int], Distance]
"""(X, y, seed) → what was learned from them."""


@dataclass(frozen=True)
class Half:
    """Rows to learn from and rows to judge on, in standard units of the first."""

    X_train: np.ndarray
    y_train: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray

    @classmethod
    def of(cls, table: Table, train: np.ndarray, test: np.ndarray) -> Half:
        scaler = StandardScaler().fit(table.X[train])
        return cls(scaler.transform(table.X[train]), table.y[train], scaler.transform(table.X[test]), table.y[test])

    def most_telling(self, n_features: int) -> Half:
        """The features with the largest information gain on the rows to learn from."""
        kept = np.argsort(-information_gain(self.X_train, self.y_train), kind="stable")[:n_features]
        return replace(self, X_train=self.X_train[:, kept], X_test=self.X_test[:, kept])

    def error(self, learn: Learn, seed: int) -> float:
        """Of the vote of neighbours under what is learned."""
        return self.error_under(learn(self.X_train, self.y_train, seed))

    def error_under(self, learned: Distance) -> float:
        """Of the vote of neighbours."""
        if isinstance(learned, Metric):
            return metric_error(learned, self.X_train, self.y_train, self.X_test, self.y_test)
        return knn_error(learned(self.X_train), self.y_train, learned(self.X_test), self.y_test)


def sampled(table: Table, max_rows: int, seed: int) -> Table:
    """The table, or a stratified sample of its rows."""
    if len(table.y) <= max_rows:
        return table
    splitter = StratifiedShuffleSplit(1, train_size=max_rows, random_state=seed)
    rows = np.sort(next(splitter.split(table.X, table.y))[0])
    return replace(table, X=table.X[rows], y=table.y[rows])


def information_gain(X: np.ndarray, y: np.ndarray, n_bins: int = 10) -> np.ndarray:
    """H(y) − H(y | feature) in nats for each feature, cut into bins with about equally many rows."""
    classes, codes = np.unique(y, return_inverse=True)
    gains = np.empty(X.shape[1])
    for k, column in enumerate(X.T):
        cuts = np.unique(np.quantile(column, np.linspace(0, 1, n_bins + 1)[1:-1]))
        counts = np.zeros((len(cuts) + 1, len(classes)))
        np.add.at(counts, (np.searchsorted(cuts, column, side="left"), codes), 1.0)
        filled = counts[counts.sum(axis=1) > 0]
        share = filled.sum(axis=1) / len(y)
        gains[k] = entropy(counts.sum(axis=0)) - share @ entropy(filled, axis=1)
    return gains


class Stops:
    """Counts, for each method, the fits that stopped before they had converged."""

    def __init__(self) -> None:
        self._fits: Counter[str] = Counter()
        self._stopped: Counter[str] = Counter()

    @contextmanager
    def watching(self, method: str) -> Iterator[None]:
        """Around one fit. Its other warnings, about rows that are equal and small classes, concern the data."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
        self._fits[method] += 1
        self._stopped[method] += any(issubclass(w.category, ConvergenceWarning) for w in caught)

    def notes(self) -> tuple[str, ...]:
        return tuple(
            f"{method} stopped at its limit of steps before it had converged in {n} of {self._fits[method]} fits."
            for method, n in self._stopped.items()
            if n
        )
