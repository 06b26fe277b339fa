"""Doubt about labels: distances to rows of the same class relative to distances to rows of other classes."""

from __future__ import annotations

import numpy as np

from ..linalg import nearest_of

N_NEIGHBOURS = 5
_LARGEST_RATIO = 1e6  # identical rows would make it infinite


def log_ratio(distances: np.ndarray, own: np.ndarray, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return ln a/b for rows of classes `own`, from their distances to rows of classes `codes`.

    a is the mean distance to the five nearest rows of the same class, b to the five nearest rows of other classes;
    above 0 a row is closer to others. Rows at an infinite distance are left out. The result is 0 where a or b has no
    row. The second result are the nearest rows of other classes, −1 for none.
    """
    same = own[:, None] == codes
    a, _ = _nearest(distances, same)
    b, others = _nearest(distances, ~same)
    comparable = np.isfinite(a) & np.isfinite(b) & ((a > 0) | (b > 0))
    least = np.maximum(a, b) / _LARGEST_RATIO
    ratio = np.divide(np.maximum(a, least), np.maximum(b, least), out=np.ones_like(a), where=comparable)
    return np.log(ratio), others


def _nearest(distances: np.ndarray, mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean distance to the five nearest rows of the mask (∞ for none), and their numbers (−1 for none)."""
    D = np.where(mask, distances, np.inf)
    found = nearest_of(D, N_NEIGHBOURS)
    D = np.take_along_axis(D, found, axis=1)
    exists = np.isfinite(D)
    n = exists.sum(axis=1)
    total = np.where(exists, D, 0.0).sum(axis=1)
    return np.divide(total, n, out=np.full(len(n), np.inf), where=n > 0), np.where(exists, found, -1)
