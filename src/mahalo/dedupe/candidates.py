"""Candidate pairs: nearest rows from an index, their squared distance, and how much nearer each row has another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..coordinates import LinearCoordinates
from ..metric import Metric
from ..search import build_index

__all__ = ["Neighborhood", "sq_pair_distances"]

_BLOCK = 1 << 22  # differences of entries held at once


@dataclass(frozen=True, eq=False)
class Neighborhood:
    """Nearest rows of every row: in the same table, or between two tables.

    Attributes
    ----------
    rows, other : ndarray
        Rows of the first table, and of the one they are compared with.
    pairs : ndarray of int, shape (n_pairs, 2)
        Distinct candidate pairs: each row with its nearest ones, in both directions.
    nearest, other_nearest : ndarray
        Squared distance of every row to its nearest one.
    """

    rows: np.ndarray
    other: np.ndarray
    pairs: np.ndarray
    nearest: np.ndarray
    other_nearest: np.ndarray

    @classmethod
    def search(cls, rows: np.ndarray, other: np.ndarray | None, ranks: Sequence[int], backend: str) -> Neighborhood:
        """Return pairs of each row with its nearest ones of these ranks, in the table itself, or in the other and back.

        Rank 1 is the nearest; ranks include it.
        """
        if other is None:
            ids, distances = _nearest_rows(rows, rows, ranks, backend, skip_self=True)
            return cls(rows, rows, np.unique(np.sort(_pairs(ids), axis=1), axis=0), distances, distances)
        there, nearest = _nearest_rows(rows, other, ranks, backend)
        back, other_nearest = _nearest_rows(other, rows, ranks, backend)
        found = np.unique(np.concatenate([_pairs(there), _pairs(back)[:, ::-1]]), axis=0)
        return cls(rows, other, found, nearest, other_nearest)

    def distances(self, pairs: np.ndarray) -> np.ndarray:
        """Return the squared distance of each pair, and by how much it exceeds the least of its two rows, summed."""
        sq = sq_pair_distances(self.rows, self.other, pairs)
        excess = np.maximum(sq - self.nearest[pairs[:, 0]], 0.0) + np.maximum(sq - self.other_nearest[pairs[:, 1]], 0.0)
        return np.column_stack([sq, excess])


def _nearest_rows(
    Q: np.ndarray, X: np.ndarray, ranks: Sequence[int], backend: str, skip_self: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Return for each query the rows of some ranks, shape (n_queries, n_ranks), and its least squared distance."""
    euclidean = Metric(LinearCoordinates.euclidean(X.shape[1]), np.zeros((0, 0)))
    k = min(max(ranks) + skip_self, len(X))
    distances, ids = build_index(euclidean, X, backend).kneighbors(Q, k)
    if skip_self:  # equal rows may come before a row itself, which then is further back or cut off
        kept = np.argsort(ids == np.arange(len(Q))[:, None], axis=1, kind="stable")[:, : k - 1]
        ids, distances = (np.take_along_axis(one, kept, axis=1) for one in (ids, distances))
    chosen = [rank - 1 for rank in ranks if rank <= ids.shape[1]]
    return ids[:, chosen].astype(np.intp), np.square(distances[:, 0])


def _pairs(ids: np.ndarray) -> np.ndarray:
    """Return (row, neighbour) for every neighbour of every row."""
    return np.column_stack([np.repeat(np.arange(len(ids)), ids.shape[1]), ids.ravel()])


def sq_pair_distances(X: np.ndarray, Y: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """Return ‖x − y‖² for pairs of rows of X and Y, some at a time."""
    found = np.empty(len(pairs))
    step = max(1, _BLOCK // X.shape[1])
    for a in range(0, len(pairs), step):
        difference = X[pairs[a : a + step, 0]] - Y[pairs[a : a + step, 1]]
        found[a : a + step] = np.einsum("ij,ij->i", difference, difference, dtype=np.float64)
    return found
