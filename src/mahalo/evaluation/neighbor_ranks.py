"""Nearest neighbours before and after learning, and their ranks by the other distance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..linalg import nearest_of

_BLOCK = 16_000_000  # comparisons at a time


@dataclass(frozen=True, eq=False)
class NeighborRanks:
    """The k nearest rows of every row by two distances, nearest first; all arrays have the shape (n_rows, k).

    Attributes
    ----------
    before, after : ndarray of int
        Positions of the nearest rows before and after learning.
    rank_before : ndarray of int
        Ranks of the rows of `after` by the distance before learning, from 1; equal distances share the best rank.
    rank_after : ndarray of int
        Ranks of the rows of `before` by the learned distance.
    """

    before: np.ndarray
    after: np.ndarray
    rank_before: np.ndarray
    rank_after: np.ndarray


def neighbor_ranks(before: np.ndarray, after: np.ndarray, k: int = 10) -> NeighborRanks:
    """Return the k nearest rows of every row, from two distance matrices with an infinite diagonal."""
    k = min(k, len(before) - 1)
    near_before, near_after = nearest_of(before, k), nearest_of(after, k)
    return NeighborRanks(near_before, near_after, _ranks(before, near_after), _ranks(after, near_before))


def _ranks(distances: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return the rank, from 1, of some columns of every row among all its columns."""
    ranks = np.empty(columns.shape, dtype=np.intp)
    step = max(1, _BLOCK // max(1, distances.shape[1] * columns.shape[1]))
    for a in range(0, len(distances), step):
        D, own = distances[a : a + step], columns[a : a + step]
        values = np.take_along_axis(D, own, axis=1)
        ranks[a : a + step] = 1 + (D[:, None, :] < values[:, :, None]).sum(axis=2)
    return ranks
