"""Similarities and distances of a metric in terms of its kernel, computed by blocks of rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike

from ..validation import in_double, len_of
from .input_checks import CROSS, checked_block
from .pairwise import BLOCK_BYTES, cosines, is_positive, paired_cosines, sq_norms, to_distances

if TYPE_CHECKING:
    from .metric import Metric

__all__ = [
    "kernel_distances",
    "self_similarity",
    "similarity_blocks",
    "sq_cosine_distances",
    "sq_pair_distances",
]


def kernel_distances(
    metric: Metric, X: Any, Y: Any, squared: bool, dtype: DTypeLike, cross: Any, diag_x: Any, diag_y: Any
) -> np.ndarray:
    itself = Y is None
    Y = X if itself else Y
    cross = checked_block(cross, (len_of(X), len_of(Y)), CROSS)
    diag_x = np.diagonal(cross) if cross is not None and itself and diag_x is None else diag_x
    own_x = self_similarity(metric, in_double(X), diag_x)
    own_y = own_x if itself else self_similarity(metric, in_double(Y), diag_y, "diag_y")

    def finish(K: np.ndarray, part: slice) -> np.ndarray:
        own = own_x[part], own_y
        if metric.normalize:
            K, own = cosines(K, *own), (is_positive(own[0]), is_positive(own[1]))
        return to_distances(K, *own, squared)

    return similarity_blocks(metric, in_double(X), in_double(Y), cross, dtype, finish)


def sq_cosine_distances(metric: Metric, X: Any, Y: Any, cross: Any, diag_x: Any, diag_y: Any) -> np.ndarray:
    if metric.is_explicit(X, Y):
        return sq_norms(metric.embed_in_double(X) - metric.embed_in_double(Y))
    own_x, own_y = self_similarity(metric, X, diag_x), self_similarity(metric, Y, diag_y, "diag_y")
    K = np.einsum("ij,ij->i", metric.coordinates.map(X) @ metric.core_change, metric.coordinates.map(Y))
    if metric.base_weight:
        K = K + metric.base_weight * base_paired(metric, X, Y, cross)
    return is_positive(own_x) + is_positive(own_y) - 2.0 * paired_cosines(K, own_x, own_y)


def sq_pair_distances(metric: Metric, X: Any, Y: Any, cross: Any, diag_x: Any, diag_y: Any) -> np.ndarray:
    """Return δᵀ (F − wI) δ + w d0²(x_k, y_k) for every k, δ = φ(x_k) − φ(y_k)."""
    phi = metric.coordinates.map(X) - metric.coordinates.map(Y)
    D = np.einsum("ij,ij->i", phi @ metric.core_change, phi)
    if metric.base_weight:
        own = base_diagonal(metric, X, diag_x, "diag_x") + base_diagonal(metric, Y, diag_y, "diag_y")
        D += metric.base_weight * (own - 2.0 * base_paired(metric, X, Y, cross))
    return D


def base_paired(metric: Metric, X: Any, Y: Any, cross: Any) -> np.ndarray:
    cross = checked_block(cross, (len_of(X),), CROSS)
    return metric.coordinates.base_paired(X, Y) if cross is None else cross


def similarity_blocks(
    metric: Metric, X: Any, Y: Any, cross: Any, dtype: DTypeLike, finish: Callable = lambda K, part: K
) -> np.ndarray:
    """finish(κ) of all rows, a block of rows of X at a time: beside the result only a block is held."""
    n, m = len_of(X), len_of(Y)
    change = metric.coordinates.map(Y) @ metric.core_change
    out = np.empty((n, m), dtype=dtype)
    step = max(1, BLOCK_BYTES // max(1, 8 * m))
    for a in range(0, n, step):
        part = slice(a, a + step)
        K = metric.coordinates.map(X[part]) @ change.T
        if metric.base_weight:
            K += metric.base_weight * (metric.coordinates.base(X[part], Y) if cross is None else cross[part])
        out[part] = finish(K, part)
    return out


def self_similarity(metric: Metric, X: Any, diagonal: Any = None, name: str = "diag_x") -> np.ndarray:
    """Return κ(x, x) for every validated row; `diagonal` is κ0(x, x), computed by default."""
    if metric.is_explicit(X, X):
        return sq_norms(metric.embed(X))
    phi = metric.coordinates.map(X)
    own = np.einsum("ij,ij->i", phi @ metric.core_change.astype(phi.dtype, copy=False), phi)
    if metric.base_weight:
        own += metric.base_weight * base_diagonal(metric, X, diagonal, name)
    return own


def base_diagonal(metric: Metric, X: Any, diagonal: Any, name: str) -> np.ndarray:
    diagonal = checked_block(diagonal, (len_of(X),), f"{name} must be κ0 of each row with itself")
    return metric.coordinates.base_diagonal(X) if diagonal is None else diagonal
