from __future__ import annotations

import numpy as np

__all__ = ["nearest_of"]


def nearest_of(distances: np.ndarray, k: int) -> np.ndarray:
    """Columns of the k smallest entries of each row, smallest first, of equal ones the first column."""
    k = min(k, distances.shape[1])
    found = np.argpartition(distances, k - 1, axis=1)[:, :k]
    last = np.take_along_axis(distances, found, axis=1).max(axis=1, initial=-np.inf)
    torn = np.flatnonzero((distances <= last[:, None]).sum(axis=1) > k)  # more than k: which of the equal ones are in?
    found[torn] = np.argsort(distances[torn], axis=1, kind="stable")[:, :k]
    found.sort(axis=1)
    order = np.argsort(np.take_along_axis(distances, found, axis=1), axis=1, kind="stable")
    return np.take_along_axis(found, order, axis=1)
