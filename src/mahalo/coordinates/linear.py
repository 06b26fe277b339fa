from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..constraints import EdgeForms, MappedGeometry, VectorGeometry, sq_distances
from ..linalg import to_dense
from ..priors import Prior
from ..rows import JoinedRows, MappedRows, Rows
from ..validation import in_double
from .span import span_of_edges

__all__ = ["LinearCoordinates", "LinearSpace", "orthonormal"]


@dataclass(frozen=True)
class LinearCoordinates:
    """φ(x) = Qᵀ W0^½ x; Q orthonormal, or None for all of space.

    W = W0^½ [ρη (I − QQᵀ) + Q F Qᵀ] W0^½ is the metric that a core matrix F stands for, ρ being the weight of the
    `residual`: 1 for the paper's identity plus low rank, 0 for the part inside Q alone.
    """

    prior: Prior
    n_features: int
    basis: np.ndarray | None = None
    residual: float = 1.0

    @property
    def rank(self) -> int:
        return self.n_features if self.basis is None else self.basis.shape[1]

    @cached_property
    def projection(self) -> np.ndarray:
        """W0^½ Q, n_features × k."""
        assert self.basis is not None
        return self.prior.compose(self.basis)

    def map(self, X: Any) -> np.ndarray:
        """Coordinates of rows of X, dense."""
        if self.basis is not None:
            return np.asarray(X @ self.projection.astype(X.dtype, copy=False))
        return self.map_whitened(self.prior.whiten(X))

    def map_whitened(self, Z: Any) -> np.ndarray:
        if self.basis is not None:
            return np.asarray(Z @ self.basis.astype(Z.dtype, copy=False))
        return Z.toarray() if sp.issparse(Z) else Z

    def base(self, X: Any, Y: Any) -> np.ndarray:
        """κ0(x, y) = xᵀ W0 y for all rows of X and Y."""
        K = self.prior.whiten(X) @ self.prior.whiten(Y).T
        return to_dense(K)

    def base_paired(self, X: Any, Y: Any) -> np.ndarray:
        ZX, ZY = self.prior.whiten(X), self.prior.whiten(Y)
        if sp.issparse(ZX) or sp.issparse(ZY):
            return np.asarray(sp.csr_array(ZX).multiply(ZY).sum(axis=1)).ravel()
        return np.einsum("ij,ij->i", ZX, ZY)

    def base_diagonal(self, X: Any) -> np.ndarray:
        return self.base_paired(X, X)


@dataclass
class LinearSpace:
    """Rows as vectors under a prior: their distances, and coordinates for a set of constraints.

    `basis` fixes the directions to learn in (orthonormal columns); without it they are all of space, or, where that is
    clearly smaller, what the constraints can see.
    """

    prior: Prior
    rows: Rows
    basis: np.ndarray | None = None
    residual: float = 1.0

    @cached_property
    def whitened(self) -> Rows:
        return self.prior.whitened(self.rows)

    @property
    def geometry(self) -> VectorGeometry:
        """Distances under the start metric, W0^½ [ρI + (1 − ρ) QQᵀ] W0^½."""
        if self.basis is None or self.residual == 1.0:
            return VectorGeometry(self.whitened)
        inside = MappedRows(self.rows, self._mapped, self.basis.shape[1], linear=True, dense=True)
        if self.residual == 0.0:
            return MappedGeometry(inside, lambda rows: _sq_norms(self.whitened.take(rows)))
        return VectorGeometry(JoinedRows(self.whitened, self.residual**0.5, inside, (1.0 - self.residual) ** 0.5))

    @property
    def coordinates(self) -> LinearCoordinates:
        """Over the basis, or all of space."""
        return LinearCoordinates(self.prior, self.rows.shape[1], self.basis, self.residual)

    def _mapped(self, X: Any) -> np.ndarray:
        return self.coordinates.map(in_double(X))

    def pose(self, forms: EdgeForms, rows: np.ndarray) -> tuple[LinearCoordinates, np.ndarray, np.ndarray]:
        """Coordinates, points x̂ of `rows` (−1: the origin), and ρ times what they leave out of each edge's squared
        length."""
        if self.basis is not None and self.residual == 0.0:
            used = _with_origin(self.rows.take(np.maximum(rows, 0)), rows)
            return self.coordinates, self._mapped(used), np.zeros(len(forms.tail))
        used = _with_origin(self.whitened.take(np.maximum(rows, 0)), rows).astype(np.float64, copy=False)
        coordinates, exact = self.coordinates, False
        if self.basis is None:
            span = span_of_edges(used, forms)
            coordinates, exact = dataclasses.replace(coordinates, basis=span.basis), span.exact
        points = coordinates.map_whitened(used)
        left = np.zeros(len(forms.tail)) if exact else self.residual * _left_out(used, points, forms)
        return coordinates, points, left


def _sq_norms(Z: Any) -> np.ndarray:
    return np.asarray((Z.multiply(Z) if sp.issparse(Z) else Z * Z).sum(axis=1), dtype=np.float64).ravel()


def _with_origin(used: Any, rows: np.ndarray) -> Any:
    """Row 0 made zero where it stands for the origin."""
    if not len(rows) or rows[0] != -1:
        return used
    if sp.issparse(used):
        return sp.vstack([sp.csr_array((1, used.shape[1])), used[1:]], format="csr")
    used = used.copy()
    used[0] = 0.0
    return used


def _left_out(used: Any, points: np.ndarray, forms: EdgeForms) -> np.ndarray:
    """‖z_i − z_j‖² − ‖x̂_i − x̂_j‖² of every edge."""
    index = np.column_stack([forms.tail, forms.head])
    full = sq_distances(used, index)
    left = full - sq_distances(points, index)
    return np.where(left > 1e-12 * full, left, 0.0)  # less is rounding


def orthonormal(R: np.ndarray) -> np.ndarray:
    """U = R (RᵀR)^{-1/2}, directions of no size left out."""
    size = np.abs(R).max(axis=0, initial=0.0)
    if not size.any():
        raise ValueError("the basis is zero; give at least one direction that is not.")
    R = R[:, size > 0] / size[size > 0]
    R = R / np.linalg.norm(R, axis=0)  # the span does not depend on the lengths of its vectors; the cut below would
    Q, S = np.linalg.qr(R)
    left, singular, right = np.linalg.svd(S, full_matrices=False)
    keep = singular > 1e-6 * singular[0]
    return Q @ (left @ right if keep.all() and len(keep) == R.shape[1] else left[:, keep])
