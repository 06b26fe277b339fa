"""Distances in the feature space of a kernel: κ(x,x) + κ(y,y) − 2κ(x,y)."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from ..constraints import len_of, sq_distances
from ..linalg import nearest_of
from .base_kernel import BaseKernel

__all__ = ["KernelGeometry", "MixedGeometry"]

_FEW = 64  # as many times more entries than pairs as a whole matrix may have and be worth it
_SAMPLE_ROWS = 200


class KernelGeometry:
    """Rows under a kernel. With a precomputed one X is the matrix of their similarities."""

    def __init__(self, kernel: BaseKernel, X):
        self.kernel, self.X = kernel, X

    @property
    def n_rows(self) -> int:
        return len_of(self.X)

    def block(self, rows: np.ndarray, others: np.ndarray) -> np.ndarray:
        """κ of some rows with others."""
        if self.kernel.precomputed:
            return np.asarray(self.X[np.ix_(rows, others)])
        return self.kernel(self.X[rows], self.X[others])

    def paired(self, rows: np.ndarray, others: np.ndarray) -> np.ndarray:
        """κ of some rows, each with one other."""
        if self.kernel.precomputed:
            return np.asarray(self.X[rows, others], dtype=np.float64)
        return self.kernel.paired(self.X[rows], self.X[others])

    def self_similarity(self, rows: np.ndarray) -> np.ndarray:
        """κ(x, x) of some rows."""
        return self.paired(rows, rows) if self.kernel.precomputed else self.kernel.diagonal(self.X[rows])

    def gram(self, rows: np.ndarray) -> np.ndarray:
        """κ among some rows."""
        return self.block(rows, rows)

    def sq_distances(self, index: np.ndarray) -> np.ndarray:
        if not len(index):
            return np.zeros(0)
        own, between = self._similarities(index)
        D = own - 2.0 * between
        # What is left of equal numbers is rounding, not distance.
        small, rounding = 1e-6 * own, 20 * self.precision * own
        D[(-small <= D) & (rounding >= D)] = 0.0
        if not self.kernel.precomputed and self._vectors:
            near = np.flatnonzero(np.abs(D) <= small)
            D[near[sq_distances(self.X, index[near]) == 0]] = 0.0
        return D

    def _similarities(self, index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """κ(x,x) + κ(y,y) and κ(x,y) of every pair."""
        rows, compact = np.unique(index, return_inverse=True)
        i, j = compact.reshape(index.shape).T
        if self.kernel.precomputed or len(rows) ** 2 > _FEW * len(index):
            diagonal = self.self_similarity(rows)
            between = self.paired(rows[i], rows[j])
            return diagonal[i] + diagonal[j], np.where(i == j, diagonal[i], between)
        K = self.gram(rows)
        return K[i, i].astype(np.float64) + K[j, j], K[i, j].astype(np.float64)

    @property
    def _vectors(self) -> bool:
        return getattr(self.X, "ndim", 1) == 2

    @cached_property
    def precision(self) -> float:
        """Of the kernel's numbers."""
        return float(np.finfo(self.gram(np.arange(1)).dtype).eps)

    def sample_sq_distances(self, rng: np.random.Generator) -> np.ndarray:
        n = self.n_rows
        rows = np.arange(n) if n <= _SAMPLE_ROWS else rng.choice(n, _SAMPLE_ROWS, replace=False)
        distances = self.sq_distances(rows[np.column_stack(np.tril_indices(len(rows), -1))])
        return distances[distances > 0]

    def nearest(self, anchors: np.ndarray, candidates: np.ndarray, k: int) -> np.ndarray:
        own = self.self_similarity(candidates)
        found = np.empty((len(anchors), k), dtype=np.intp)
        step = max(1, (1 << 21) // max(1, len(candidates)))
        for a in range(0, len(anchors), step):
            # κ(x,x) is the same for all candidates of a row.
            D = own - 2.0 * self.block(anchors[a : a + step], candidates)
            found[a : a + step] = nearest_of(D, k)
        return candidates[found]


class MixedGeometry(KernelGeometry):
    """Distances under ρ κ(x, y) + (1 − ρ) φ(x)ᵀ φ(y): all of feature space at weight ρ, some coordinates at 1."""

    def __init__(self, kernel: BaseKernel, X, coordinates: Any, residual: float):
        super().__init__(kernel, X)
        self.coordinates, self.residual = coordinates, residual

    @cached_property
    def _phi(self) -> np.ndarray:
        return np.asarray(self.coordinates.map(self.X), dtype=np.float64)

    def block(self, rows: np.ndarray, others: np.ndarray) -> np.ndarray:
        inside = self._phi[rows] @ self._phi[others].T
        return self.residual * super().block(rows, others) + (1.0 - self.residual) * inside

    def paired(self, rows: np.ndarray, others: np.ndarray) -> np.ndarray:
        inside = np.einsum("ij,ij->i", self._phi[rows], self._phi[others])
        return self.residual * super().paired(rows, others) + (1.0 - self.residual) * inside

    def self_similarity(self, rows: np.ndarray) -> np.ndarray:
        return self.paired(rows, rows)
