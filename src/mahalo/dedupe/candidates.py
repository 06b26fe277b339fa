"""Candidate pairs: nearest rows from an index, their squared distance, and how much nearer each row has another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..coordinates import LinearCoordinates
from ..metric import Metric
from ..search import build_index

_BLOCK = 1 << 22  # differences of entries held at once


@dataclass(frozen=True, eq=False)
class Neighborhood:
    """Nearest rows of every row: in the same table, or between two tables.

    Attributes
    ----------
    rows, other : ndarray
        Rows of the first table, and of the one they are compared with.
    neighbors : tuple of ndarray
        The nearest rows of each row, nearest first; between two tables there and back.
    nearest, other_nearest : ndarray
        Squared distance of every row to its nearest one.
    """

    rows: np.ndarray
    other: np.ndarray
    neighbors: tuple[np.ndarray, ...]
    nearest: np.ndarray
    other_nearest: np.ndarray

    @classmethod
    def search(cls, rows: np.ndarray, other: np.ndarray | None, k: int, backend: str = "exact") -> Neighborhood:
        """Return the k nearest rows of each in the table itself, or in the other and back."""
        if other is None:
            ids, nearest = _nearest_rows(rows, rows, k, backend, skip_self=True)
            return cls(rows, rows, (ids,), nearest, nearest)
        k = min(k, len(rows), len(other))
        there, nearest = _nearest_rows(rows, other, k, backend)
        back, other_nearest = _nearest_rows(other, rows, k, backend)
        return cls(rows, other, (there, back), nearest, other_nearest)

    def pairs(self, ranks: Sequence[int] | None = None) -> np.ndarray:
        """Return distinct pairs of every row with its neighbours, or with those of some ranks; 1 is the nearest.

        Pairs of one table name the smaller row first, those of two a row of the first table.
        """
        k = self.neighbors[0].shape[1]
        columns = [rank - 1 for rank in ranks or range(1, k + 1) if rank <= k]
        found = []
        for ids in self.neighbors:
            found.append(np.column_stack([np.repeat(np.arange(len(ids)), len(columns)), ids[:, columns].ravel()]))
        if len(found) == 1:
            return np.unique(np.sort(found[0], axis=1), axis=0)
        return np.unique(np.concatenate([found[0], found[1][:, ::-1]]), axis=0)

    def sq_distances(self, pairs: np.ndarray) -> np.ndarray:
        """Return the squared distance of each pair."""
        return sq_pair_distances(self.rows, self.other, pairs)

    def distances(self, pairs: np.ndarray) -> np.ndarray:
        """Return the squared distance of each pair, and by how much it exceeds the least of its two rows, summed."""
        sq = self.sq_distances(pairs)
        excess = np.maximum(sq - self.nearest[pairs[:, 0]], 0.0) + np.maximum(sq - self.other_nearest[pairs[:, 1]], 0.0)
        return np.column_stack([sq, excess])


def _nearest_rows(
    Q: np.ndarray, X: np.ndarray, k: int, backend: str, skip_self: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Return the k nearest rows of each query, shape (n_queries, k), and its least squared distance."""
    euclidean = Metric(LinearCoordinates.euclidean(X.shape[1]), np.zeros((0, 0)))
    distances, ids = build_index(euclidean, X, backend).kneighbors(Q, min(k + skip_self, len(X)))
    if skip_self:  # equal rows may come before a row itself, which then is further back or cut off
        kept = np.argsort(ids == np.arange(len(Q))[:, None], axis=1, kind="stable")[:, : ids.shape[1] - 1]
        ids, distances = (np.take_along_axis(one, kept, axis=1) for one in (ids, distances))
    return ids.astype(np.intp), np.square(distances[:, 0])


def sq_pair_distances(X: np.ndarray, Y: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """Return ‖x − y‖² for pairs of rows of X and Y, some at a time."""
    found = np.empty(len(pairs))
    step = max(1, _BLOCK // X.shape[1])
    for a in range(0, len(pairs), step):
        difference = X[pairs[a : a + step, 0]] - Y[pairs[a : a + step, 1]]
        found[a : a + step] = np.einsum("ij,ij->i", difference, difference, dtype=np.float64)
    return found
