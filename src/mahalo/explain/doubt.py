"""How doubtful labels are: nearness to rows of the same class against nearness to rows of others."""

from __future__ import annotations

import numpy as np

from ..linalg import nearest_of

__all__ = ["N_NEIGHBOURS", "log_ratio"]

N_NEIGHBOURS = 5
_FARTHEST = 1e6  # times as far as the others: identical rows make ratios of 0 and ∞


def log_ratio(distances: np.ndarray, own: np.ndarray, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """ln a/b of rows of classes `own`, from their distances to rows of classes `codes` (∞: has no say).

    a is the mean distance to the five nearest of the same class, b to the five nearest of others; above 0 a row is
    closer to others. Where either has no row, nothing is known: 0. With it come the nearest of others, −1 for none.
    """
    same = own[:, None] == codes
    a, _ = _nearest(distances, same)
    b, others = _nearest(distances, ~same)
    known = np.isfinite(a) & np.isfinite(b) & ((a > 0) | (b > 0))
    least = np.maximum(a, b) / _FARTHEST
    ratio = np.divide(np.maximum(a, least), np.maximum(b, least), out=np.ones_like(a), where=known)
    return np.log(ratio), others


def _nearest(distances: np.ndarray, among: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean distance to the five nearest (as many as there are; ∞ for none), and which they are."""
    D = np.where(among, distances, np.inf)
    found = nearest_of(D, N_NEIGHBOURS)
    D = np.take_along_axis(D, found, axis=1)
    there = np.isfinite(D)
    n = there.sum(axis=1)
    total = np.where(there, D, 0.0).sum(axis=1)
    return np.divide(total, n, out=np.full(len(n), np.inf), where=n > 0), np.where(there, found, -1)
