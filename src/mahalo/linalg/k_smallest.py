"""Selection of the k smallest entries of each row of a matrix."""

from __future__ import annotations

import numpy as np


def nearest_of(distances: np.ndarray, k: int) -> np.ndarray:
    """Return the columns of the k smallest entries of each row, smallest first; ties go to the first column."""
    k = min(k, distances.shape[1])
    found = np.argpartition(distances, k - 1, axis=1)[:, :k]
    last = np.take_along_axis(distances, found, axis=1).max(axis=1, initial=-np.inf)
    ties = np.flatnonzero((distances <= last[:, None]).sum(axis=1) > k)  # more than k entries qualify
    found[ties] = np.argsort(distances[ties], axis=1, kind="stable")[:, :k]
    found.sort(axis=1)
    order = np.argsort(np.take_along_axis(distances, found, axis=1), axis=1, kind="stable")
    return np.take_along_axis(found, order, axis=1)
