"""Nearest rows of a row, or of any point, before and after learning."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import numpy as np

from ..metric import Metric

_BLOCK = 4_096


@dataclass(frozen=True, eq=False)
class Neighbors:
    """Nearest rows of a point by the ordinary and by the learned distance, nearest first.

    Attributes
    ----------
    before, after : ndarray of int
        Row numbers.
    rank_before, rank_after : ndarray of int
        Rank, from 1, of the rows of `after` by the ordinary distance, and of the rows of `before` by the learned one.
    """

    before: np.ndarray
    after: np.ndarray
    rank_before: np.ndarray
    rank_after: np.ndarray


class RowIndex:
    """Rows in the spaces of two metrics, the ordinary and the newest one, in single precision."""

    def __init__(self, X: np.ndarray, ordinary: Metric) -> None:
        self._X, self._ordinary = X, ordinary
        self._lock = threading.Lock()
        self._before: np.ndarray | None = None
        self._after: tuple[Metric, np.ndarray] | None = None

    def embedded(self, metric: Metric) -> np.ndarray:
        """Return all rows in the space of a metric; the ordinary one's and the latest are kept."""
        with self._lock:
            if metric is self._ordinary:
                if self._before is None:
                    self._before = _embed(metric, self._X)
                return self._before
            if self._after is None or self._after[0] is not metric:
                self._after = None  # before the new one takes its place in memory
                self._after = (metric, _embed(metric, self._X))
            return self._after[1]

    def nearest(self, metric: Metric, point: np.ndarray, k: int, row: int | None = None) -> Neighbors:
        """Return the k nearest rows of a point, without `row` itself."""
        sq = [_sq_distances(self.embedded(m), m, point) for m in (self._ordinary, metric)]
        if row is not None:
            for values in sq:
                values[row] = np.inf
        n = len(self._X) - (row is not None)
        before, after = (_k_smallest(values, min(k, n)) for values in sq)
        return Neighbors(before, after, _ranks(sq[0], after), _ranks(sq[1], before))


def _embed(metric: Metric, X: np.ndarray) -> np.ndarray:
    parts = [metric.transform(X[k : k + _BLOCK]) for k in range(0, len(X), _BLOCK)]
    return np.concatenate(parts).astype(np.float32, copy=False)


def _sq_distances(T: np.ndarray, metric: Metric, point: np.ndarray) -> np.ndarray:
    t = np.asarray(metric.transform(np.atleast_2d(point)), dtype=np.float32)[0]
    sq = np.empty(len(T), dtype=np.float64)
    for k in range(0, len(T), _BLOCK):
        D = T[k : k + _BLOCK] - t
        sq[k : k + _BLOCK] = np.einsum("ij,ij->i", D, D)
    return sq


def _k_smallest(values: np.ndarray, k: int) -> np.ndarray:
    """Return the numbers of the k smallest values in ascending order; equal ones by number."""
    limit = np.partition(values, k - 1)[k - 1]
    found = np.flatnonzero(values <= limit)
    return found[np.argsort(values[found], kind="stable")][:k]


def _ranks(values: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the rank, from 1, of some values among all; equal ones share the best rank."""
    return 1 + np.array([np.count_nonzero(values < values[row]) for row in rows], dtype=np.intp)
