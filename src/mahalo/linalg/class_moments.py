"""Sizes, means and scatter of classes, computed from parts of the rows and merged two at a time.

For two parts of one class, with a and b rows and means that differ by δ, the scatter around the common mean is

    S = S_a + S_b + a b / (a + b) δ δᵀ                                             (Chan, Golub and LeVeque)

No sum is subtracted, so no digits are lost far from the origin or in long sums. Each class has a mean; the scatter is
pooled, one matrix for all classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy.sparse as sp

from ..types import Matrix
from .blocks import row_slices
from .covariance import centred_sums, scatter_around
from .scatter import unit_of

ScatterKind = Literal["none", "variances", "scatter"]

_NUMBERS = 1 << 19  # numbers centred at once, so that they stay in the cache
_FEW_ROWS = 16  # rows of a class, below which all classes are summed together


@dataclass(frozen=True)
class ClassMoments:
    """Number of rows and mean of every class, and the scatter Σ (x − m)(x − m)ᵀ, m being the mean of x's class.

    `scatter` is the whole matrix, its diagonal, or None.
    """

    sizes: np.ndarray
    means: np.ndarray
    scatter: np.ndarray | None

    @classmethod
    def empty(cls, n_classes: int, d: int, second: ScatterKind) -> ClassMoments:
        """Return the moments of no rows."""
        shape = {"none": None, "variances": (d,), "scatter": (d, d)}[second]
        scatter = None if shape is None else np.zeros(shape)
        return cls(np.zeros(n_classes, dtype=np.int64), np.zeros((n_classes, d)), scatter)

    @classmethod
    def of(cls, X: Matrix, codes: np.ndarray, n_classes: int, second: ScatterKind) -> ClassMoments:
        """Return the moments of rows, dense or CSR, with classes `codes`."""
        if sp.issparse(X):
            return _sparse_moments(X, codes, n_classes, second)
        found = cls.empty(n_classes, X.shape[1], second)
        centred = _centre_columns if X.strides[0] < X.strides[1] else _centre_rows
        for part in row_slices(len(X), X.shape[1], _NUMBERS):
            Z, present, sizes, means = centred(X[part], codes[part])
            scatter = None
            if second != "none":
                scatter = Z.T @ Z if second == "scatter" else np.einsum("ij,ij->j", Z, Z)
            found = found.merge(cls(sizes, means, scatter).renumber(present, n_classes))
        return found

    @property
    def n(self) -> int:
        return int(self.sizes.sum())

    @property
    def unit(self) -> float:
        """Unit of variance, a power of two in which squares of variances do not overflow."""
        if self.scatter is None:
            return 1.0
        second = self.scatter if self.scatter.ndim == 1 else np.diagonal(self.scatter)
        return unit_of(second / max(self.n, 1))

    def merge(self, other: ClassMoments) -> ClassMoments:
        """Return the moments of both sets of rows, which share their class numbers."""
        sizes = self.sizes + other.sizes
        share = other.sizes / np.maximum(sizes, 1)
        difference = other.means - self.means
        scatter = None
        if self.scatter is not None and other.scatter is not None:
            scatter = self.scatter + other.scatter + _between(self.sizes * share, difference, self.scatter.ndim)
        return ClassMoments(sizes, self.means + share[:, None] * difference, scatter)

    def renumber(self, codes: np.ndarray, n_classes: int) -> ClassMoments:
        """Return the moments with class g called class codes[g] of `n_classes`."""
        sizes = np.zeros(n_classes, dtype=np.int64)
        means = np.zeros((n_classes, self.means.shape[1]))
        sizes[codes], means[codes] = self.sizes, self.means
        return ClassMoments(sizes, means, self.scatter)

    def pool(self) -> ClassMoments:
        """Return the moments of all rows as one class."""
        n, centre = self.n, self.sizes @ self.means / max(self.n, 1)
        scatter = self.scatter
        if scatter is not None:
            scatter = scatter + _between(self.sizes, self.means - centre, scatter.ndim)
        return ClassMoments(np.array([n]), centre[None, :], scatter)


def _between(weight: np.ndarray, difference: np.ndarray, ndim: int) -> np.ndarray:
    """Return Σ_g w_g δ_g δ_gᵀ, or its diagonal."""
    return weight @ difference**2 if ndim == 1 else (difference.T * weight) @ difference


Centred = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]  # centred rows, classes present, their sizes, means


def _centre_rows(X: np.ndarray, codes: np.ndarray) -> Centred:
    """Centre row-major rows by class; they come back sorted by class."""
    order = np.argsort(codes, kind="stable")
    Z = X.take(order, axis=0).astype(np.float64, copy=False)
    present, first, sizes = np.unique(codes[order], return_index=True, return_counts=True)
    if len(present) * _FEW_ROWS > len(Z):
        means = np.add.reduceat(Z, first, axis=0) / sizes[:, None]
        Z -= np.repeat(means, sizes, axis=0)
        return Z, present, sizes, means
    parts = np.split(Z, first[1:])
    means = np.array([part.mean(axis=0) for part in parts])
    for part, mean in zip(parts, means, strict=True):
        part -= mean
    return Z, present, sizes, means


def _centre_columns(X: np.ndarray, codes: np.ndarray) -> Centred:
    """Centre column-major rows by class, as in data frames, without transposing them in memory."""
    present, position, sizes = np.unique(codes, return_inverse=True, return_counts=True)
    Zt = X.T.astype(np.float64)
    means = np.array([np.bincount(position, column, minlength=len(present)) for column in Zt]) / sizes
    Zt -= means.take(position, axis=1)
    return Zt.T, present, sizes, means.T


def _sparse_moments(X: sp.csr_array, codes: np.ndarray, n_classes: int, second: ScatterKind) -> ClassMoments:
    """Return the moments of CSR rows, without centring: scatter around the common mean less that of class means."""
    n, d = X.shape
    if not n:
        return ClassMoments.empty(n_classes, d, second)
    member = sp.csr_array((np.ones(n), (codes, np.arange(n))), shape=(n_classes, n))
    sizes = np.bincount(codes, minlength=n_classes)
    means = (member @ X).toarray() / np.maximum(sizes, 1)[:, None]
    if second == "none":
        return ClassMoments(sizes, means, None)
    centre = sizes @ means / n
    full = second == "scatter"
    around = scatter_around(lambda: [X], centre) if full else centred_sums(X, centre)[1]
    return ClassMoments(sizes, means, around - _between(sizes, means - centre, around.ndim))
