"""Similarities and distances of a metric in terms of its kernel, computed by blocks of rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from ..linalg import row_slices, sq_norms
from ..types import Matrix
from ..validation import in_double, len_of
from .pairwise import BLOCK_NUMBERS, cosines, is_positive, paired_cosines, to_distances

if TYPE_CHECKING:
    from .metric import Metric


@dataclass(frozen=True, eq=False)
class BaseSimilarities:
    """κ0 that a caller passes along: of the rows of X with those of Y, and of the rows of each with themselves.

    What is None is computed, which a precomputed kernel cannot do.
    """

    cross: ArrayLike | None = None
    diag_x: ArrayLike | None = None
    diag_y: ArrayLike | None = None

    def refuse(self) -> None:
        """Raise ValueError if similarities are passed to a linear metric."""
        if any(block is not None for block in (self.cross, self.diag_x, self.diag_y)):
            raise ValueError(
                "cross=, diag_x= and diag_y= are similarities under a kernel; this metric is linear and measures the "
                "rows alone. Leave them out."
            )

    def require_for(self, metric: Metric, *, itself: bool = False) -> None:
        """Raise ValueError if a precomputed kernel needs similarities that are missing; `itself`: X against X."""
        if not (metric.coordinates.is_precomputed and metric.base_weight):
            return
        if self.cross is None:
            raise ValueError(
                "with a precomputed kernel, similarities between the rows compared cannot be computed; pass cross=, "
                "κ0 between the rows of X and the rows of Y."
            )
        if not itself and (self.diag_x is None or self.diag_y is None):
            raise ValueError("with a precomputed kernel pass diag_x= and diag_y=, κ0 of each row with itself.")

    def between(self, *shape: int) -> np.ndarray | None:
        """Return κ0 of the rows of X with those of Y, checked; None to compute it."""
        return _checked(self.cross, shape, "cross must be κ0 of the rows of X and Y")

    def of_x(self, n: int) -> np.ndarray | None:
        """Return κ0 of the rows of X with themselves, checked; None to compute it."""
        return _checked(self.diag_x, (n,), "diag_x must be κ0 of each row with itself")

    def of_y(self, n: int) -> np.ndarray | None:
        """Return κ0 of the rows of Y with themselves, checked; None to compute it."""
        return _checked(self.diag_y, (n,), "diag_y must be κ0 of each row with itself")


def _checked(block: ArrayLike | None, shape: tuple[int, ...], what: str) -> np.ndarray | None:
    """Return similarities as a finite float64 array of this shape; None stays None."""
    if block is None:
        return None
    block = np.asarray(block, dtype=np.float64)
    if block.shape != shape:
        raise ValueError(f"{what}, of shape {shape}; got shape {block.shape}.")
    if not np.isfinite(block).all():
        raise ValueError(f"{what}, and contains NaN or infinity.")
    return block


def kernel_distances(
    metric: Metric, X: Matrix, Y: Matrix | None, squared: bool, dtype: DTypeLike, base: BaseSimilarities
) -> np.ndarray:
    """Return distances of all rows of X to all rows of Y (None: of X), through their similarities."""
    X = in_double(X)
    other = X if Y is None else in_double(Y)
    cross, diagonal = base.between(len_of(X), len_of(other)), base.of_x(len_of(X))
    diagonal = np.diagonal(cross) if cross is not None and Y is None and diagonal is None else diagonal
    own_x = self_similarity(metric, X, diagonal)
    own_y = own_x if Y is None else self_similarity(metric, other, base.of_y(len_of(other)))

    def finish(K: np.ndarray, part: slice) -> np.ndarray:
        own = own_x[part], own_y
        if metric.normalize:
            K, own = cosines(K, *own), (is_positive(own[0]), is_positive(own[1]))
        return to_distances(K, *own, squared)

    return similarity_blocks(metric, X, other, cross, dtype, finish)


def sq_pair_distances(metric: Metric, X: Matrix, Y: Matrix, base: BaseSimilarities) -> np.ndarray:
    """Return the squared distance of row k of X from row k of Y, for every k; rounding may leave it below zero."""
    if metric.coordinates.is_linear and not metric.normalize:
        return self_similarity(metric, in_double(X - Y))  # squares may be too large or small for float32
    X, Y = in_double(X), in_double(Y)
    if metric.is_explicit(X, Y):
        return sq_norms(metric.embed_in_double(X) - metric.embed_in_double(Y))
    weight, n = metric.base_weight, len_of(X)
    phi_x, phi_y = metric.coordinates.map(X), metric.coordinates.map(Y)
    if not metric.normalize:
        phi = phi_x - phi_y
        D = np.einsum("ij,ij->i", phi @ metric.core_change, phi)
        if not weight:
            return D
        own = _base_diagonal(metric, X, base.of_x(n)) + _base_diagonal(metric, Y, base.of_y(n))
        return D + weight * (own - 2.0 * _base_paired(metric, X, Y, base))
    own_x, own_y = self_similarity(metric, X, base.of_x(n)), self_similarity(metric, Y, base.of_y(n))
    K = np.einsum("ij,ij->i", phi_x @ metric.core_change, phi_y)
    if weight:
        K = K + weight * _base_paired(metric, X, Y, base)
    return is_positive(own_x) + is_positive(own_y) - 2.0 * paired_cosines(K, own_x, own_y)


def similarity_blocks(
    metric: Metric,
    X: Matrix,
    Y: Matrix,
    cross: np.ndarray | None,
    dtype: DTypeLike,
    finish: Callable[[np.ndarray, slice], np.ndarray] = lambda K, part: K,
) -> np.ndarray:
    """Return finish(κ) of all rows, a block of rows of X at a time: beside the result only a block is held."""
    n, m = len_of(X), len_of(Y)
    change = metric.coordinates.map(Y) @ metric.core_change
    out = np.empty((n, m), dtype=dtype)
    for part in row_slices(n, m, BLOCK_NUMBERS):
        K = metric.coordinates.map(X[part]) @ change.T
        if metric.base_weight:
            K += metric.base_weight * (metric.coordinates.base(X[part], Y) if cross is None else cross[part])
        out[part] = finish(K, part)
    return out


def self_similarity(metric: Metric, X: Matrix, diagonal: np.ndarray | None = None) -> np.ndarray:
    """Return κ(x, x) for every validated row; `diagonal` is κ0(x, x), computed by default."""
    if metric.is_explicit(X, X):
        return sq_norms(metric.embed(X))
    phi = metric.coordinates.map(X)
    own = np.einsum("ij,ij->i", phi @ metric.core_change.astype(phi.dtype, copy=False), phi)
    if metric.base_weight:
        own += metric.base_weight * _base_diagonal(metric, X, diagonal)
    return own


def _base_diagonal(metric: Metric, X: Matrix, diagonal: np.ndarray | None) -> np.ndarray:
    return metric.coordinates.base_diagonal(X) if diagonal is None else diagonal


def _base_paired(metric: Metric, X: Matrix, Y: Matrix, base: BaseSimilarities) -> np.ndarray:
    cross = base.between(len_of(X))
    return metric.coordinates.base_paired(X, Y) if cross is None else cross
