"""Distances between rows in the feature space of a kernel."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from ..constraints import first_of_equal, number_rows, sq_distances
from ..linalg import nearest_of, row_slices
from ..progress import SILENT, Progress
from ..types import Matrix
from .base_kernel import BaseKernel

_DENSE_SHARE = 64  # entries per pair up to which the whole kernel matrix of the rows is computed at once
_SAMPLE_ROWS = 200
_CALL_ROWS = 100  # rows per call of a user's kernel function


class KernelGeometry:
    """Rows under a kernel κ; with a precomputed one X is the kernel matrix."""

    def __init__(self, kernel: BaseKernel, X: Matrix) -> None:
        self.kernel, self.X = kernel, X

    @property
    def n_rows(self) -> int:
        return self.X.shape[0]

    def block(self, rows: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Return the kernel matrix of some rows with others."""
        if self.kernel.precomputed:
            return np.asarray(self.X[np.ix_(rows, others)])
        return self.kernel(self.X[rows], self.X[others])

    def paired(self, rows: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Return κ(x_k, y_k) for every k."""
        if self.kernel.precomputed:
            return np.asarray(self.X[rows, others], dtype=np.float64)
        return self.kernel.paired(self.X[rows], self.X[others])

    def self_similarity(self, rows: np.ndarray) -> np.ndarray:
        """Return κ(x, x) of some rows."""
        return self.paired(rows, rows) if self.kernel.precomputed else self.kernel.diagonal(self.X[rows])

    def gram(self, rows: np.ndarray, progress: Progress = SILENT) -> np.ndarray:
        """Return κ among some rows; a user's function, which may be slow, is called for some rows at a time."""
        if not callable(self.kernel.kind) or len(rows) <= _CALL_ROWS:
            return self.block(rows, rows)
        parts = range(0, len(rows), _CALL_ROWS)
        return np.concatenate(
            [self.block(rows[a : a + _CALL_ROWS], rows) for a in progress.track(parts, len(parts), "part")]
        )

    def sq_distances(self, index: np.ndarray) -> np.ndarray:
        """Return the squared distance of each pair of rows."""
        if not len(index):
            return np.zeros(0)
        own, between = self._similarities(index)
        D = own - 2.0 * between
        # The difference of nearly equal numbers is rounding, not distance.
        small, rounding = 1e-6 * own, 20 * self.precision * own
        D[(-small <= D) & (rounding >= D)] = 0.0
        if not self.kernel.precomputed and self.X.ndim == 2:
            near = np.flatnonzero(np.abs(D) <= small)
            D[near[sq_distances(self.X, index[near]) == 0]] = 0.0
        return D

    def _similarities(self, index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return κ(x, x) + κ(y, y) and κ(x, y) of every pair."""
        rows, compact = np.unique(index, return_inverse=True)
        i, j = compact.reshape(index.shape).T
        if self.kernel.precomputed or len(rows) ** 2 > _DENSE_SHARE * len(index):
            diagonal = self.self_similarity(rows)
            between = self.paired(rows[i], rows[j])
            return diagonal[i] + diagonal[j], np.where(i == j, diagonal[i], between)
        K = self.gram(rows)
        return K[i, i].astype(np.float64) + K[j, j], K[i, j].astype(np.float64)

    @cached_property
    def precision(self) -> float:
        """Relative precision of the kernel's numbers."""
        return float(np.finfo(self.gram(np.arange(1)).dtype).eps)

    def sample_sq_distances(self, rng: np.random.Generator) -> np.ndarray:
        """Return squared distances between distinct rows, of a sample where there are many."""
        n = self.n_rows
        rows = np.arange(n) if n <= _SAMPLE_ROWS else rng.choice(n, _SAMPLE_ROWS, replace=False)
        distances = self.sq_distances(rows[np.column_stack(np.tril_indices(len(rows), -1))])
        return distances[distances > 0]

    def nearest(self, anchors: np.ndarray, candidates: np.ndarray, k: int) -> np.ndarray:
        """Return the k nearest candidates of each anchor, nearest first."""
        own = self.self_similarity(candidates)
        found = np.empty((len(anchors), k), dtype=np.intp)
        for part in row_slices(len(anchors), len(candidates)):
            # κ(x,x) is the same for all candidates of a row.
            found[part] = nearest_of(own - 2.0 * self.block(anchors[part], candidates), k)
        return candidates[found]

    def distinct_rows(self, candidates: np.ndarray) -> np.ndarray:
        """Return the candidates whose rows are distinct; of equal rows the first is kept, of objects all are."""
        return candidates if self._row_numbers is None else first_of_equal(candidates, self._row_numbers)

    @cached_property
    def _row_numbers(self) -> np.ndarray | None:
        # Rows of a kernel matrix are equal where their points have the same products with all others.
        return number_rows(self.X) if self.X.ndim == 2 else None


class MixedGeometry(KernelGeometry):
    """Geometry of ρ κ(x, y) + (1 − ρ) φ(x)ᵀ φ(y): all of feature space at weight ρ, the coordinates φ at weight 1."""

    def __init__(self, kernel: BaseKernel, X: Matrix, phi: Callable[[Matrix], np.ndarray], residual: float) -> None:
        super().__init__(kernel, X)
        self.phi, self.residual = phi, residual

    @cached_property
    def _points(self) -> np.ndarray:
        return np.asarray(self.phi(self.X), dtype=np.float64)

    def block(self, rows: np.ndarray, others: np.ndarray) -> np.ndarray:
        inside = self._points[rows] @ self._points[others].T
        return self.residual * super().block(rows, others) + (1.0 - self.residual) * inside

    def paired(self, rows: np.ndarray, others: np.ndarray) -> np.ndarray:
        inside = np.einsum("ij,ij->i", self._points[rows], self._points[others])
        return self.residual * super().paired(rows, others) + (1.0 - self.residual) * inside

    def self_similarity(self, rows: np.ndarray) -> np.ndarray:
        return self.paired(rows, rows)
