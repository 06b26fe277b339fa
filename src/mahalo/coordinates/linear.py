"""Coordinates of rows as vectors, under a prior, over all of space or a basis."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
import scipy.sparse as sp

from ..constraints import Constraints, EdgeForms, MappedGeometry, VectorGeometry, sq_distances
from ..errors import NothingToLearnError
from ..linalg import sq_norms, to_dense
from ..persistence import FileParts
from ..priors import Prior
from ..progress import SILENT, Progress
from ..rows import InMemoryRows, JoinedRows, MappedRows, Rows
from ..types import Matrix
from ..validation import in_double
from .protocol import Coordinates, PosedRows, ReducedMetric
from .span import span_of_edges

_FEW_NUMBERS = 1 << 21  # in rows that are whitened once


@dataclass(frozen=True)
class LinearCoordinates:
    """φ(x) = Qᵀ W0^½ x; Q orthonormal, or None for all of space.

    A core matrix F is the metric W = W0^½ [ρη (I − QQᵀ) + Q F Qᵀ] W0^½, ρ being the weight of the
    `residual`: 1 for the paper's identity plus low rank, 0 for the part inside Q alone.
    """

    prior: Prior
    n_features: int
    basis: np.ndarray | None = None
    residual: float = 1.0

    is_linear: ClassVar[bool] = True
    is_precomputed: ClassVar[bool] = False
    takes_objects: ClassVar[bool] = False
    kernel_name: ClassVar[str] = "linear"

    @property
    def rank(self) -> int:
        return self.n_features if self.basis is None else self.basis.shape[1]

    @property
    def leaves_out(self) -> bool:
        return self.basis is not None

    def shares_map(self, other: Coordinates) -> bool:
        return isinstance(other, LinearCoordinates) and self.prior is other.prior and self.basis is other.basis

    @property
    def n_outputs(self) -> int:
        return self.n_features if self.residual > 0 else self.rank

    @cached_property
    def projection(self) -> np.ndarray:
        """W0^½ Q, n_features × k."""
        assert self.basis is not None
        return self.prior.compose(self.basis)

    def map(self, X: Matrix) -> np.ndarray:
        """Return coordinates of rows of X, dense."""
        if self.basis is not None:
            return np.asarray(X @ self.projection.astype(X.dtype, copy=False))
        return self.map_whitened(self.prior.whiten(X))

    def map_whitened(self, Z: Matrix) -> np.ndarray:
        """Return coordinates of rows that the prior has whitened."""
        if self.basis is not None:
            return np.asarray(Z @ self.basis.astype(Z.dtype, copy=False))
        return to_dense(Z)

    def base(self, X: Matrix, Y: Matrix) -> np.ndarray:
        """Return κ0(x, y) = xᵀ W0 y for all rows of X and Y."""
        ZX = self.prior.whiten(X)
        return to_dense(ZX @ (ZX if Y is X else self.prior.whiten(Y)).T)

    def base_paired(self, X: Matrix, Y: Matrix) -> np.ndarray:
        ZX, ZY = self.prior.whiten(X), self.prior.whiten(Y)
        if sp.issparse(ZX) or sp.issparse(ZY):
            return np.asarray(sp.csr_array(ZX).multiply(ZY).sum(axis=1)).ravel()
        return np.einsum("ij,ij->i", ZX, ZY)

    def base_diagonal(self, X: Matrix) -> np.ndarray:
        return sq_norms(self.prior.whiten(X))

    def embed(self, X: Matrix, root: np.ndarray, eta: float) -> np.ndarray:
        """Return [√w I + Q (F^½ − √w I) Qᵀ] W0^½ x for every row, w = ηρ; without residual F^½ Qᵀ W0^½ x."""
        Z = self.prior.whiten(X)
        phi = self.map_whitened(Z)
        if self.basis is None or not self.residual:
            return phi @ root.astype(phi.dtype, copy=False)
        outside = np.sqrt(eta * self.residual)
        change = phi @ (root - outside * np.eye(len(root))).astype(phi.dtype, copy=False)
        change = change @ self.basis.T.astype(phi.dtype, copy=False)
        change += outside * to_dense(Z)
        return change

    def with_solution(self, F: np.ndarray, eta: float, residual: float) -> tuple[LinearCoordinates, np.ndarray]:
        keeps_residual = self.basis is None or residual == self.residual
        return (self if keeps_residual else dataclasses.replace(self, residual=residual)), F

    def without_learning(self) -> tuple[LinearCoordinates, np.ndarray]:
        """Return coordinates and core matrix of the Euclidean distance: a basis of no directions, all outside it."""
        return LinearCoordinates.euclidean(self.n_features), np.zeros((0, 0))

    @classmethod
    def euclidean(cls, n_features: int) -> Self:
        """Return the coordinates of the Euclidean distance, with a core matrix of rank 0."""
        return cls(Prior(), n_features, np.zeros((n_features, 0)))

    def reduce(self, root: np.ndarray, eta: float, directions: np.ndarray) -> ReducedMetric:
        """Return the metric U S² Uᵀ of the directions D, from E Dᵀ = U S Vᵀ, x ↦ Eᵀx the map of whitened rows."""
        E = self._embed_whitened(directions.T, root, eta)
        U, S, Vt = np.linalg.svd(E, full_matrices=False)
        return ReducedMetric(LinearCoordinates(self.prior, self.n_features, U, residual=0.0), np.diag(S**2), Vt)

    def file_parts(self) -> FileParts:
        prior = self.prior
        return FileParts(
            {
                "kernel": "linear",
                "n_features": self.n_features,
                "residual": float(self.residual),
                "shrinkage": float(prior.shrinkage),
            },
            {
                "basis": self.basis,
                "prior_root": prior.root,
                "prior_directions": prior.directions,
                "prior_gain": prior.gain,
            },
        )

    def _embed_whitened(self, D: np.ndarray, root: np.ndarray, eta: float) -> np.ndarray:
        """Return E D, n_features × k; E is √w I + Q (F^½ − √w I) Qᵀ, or Q F^½ without residual."""
        if self.basis is None:
            return root @ D
        if not self.residual:
            return self.basis @ (root @ D)
        outside = np.sqrt(eta * self.residual)
        inside = self.basis.T @ D
        return outside * D + self.basis @ (root @ inside - outside * inside)


@dataclass
class LinearSpace:
    """Vectors under a prior, with their distances and coordinates for a set of constraints.

    `basis` fixes the directions to learn in (orthonormal columns); without it they are all of space, or, where that is
    clearly smaller, what the constraints can see.
    """

    prior: Prior
    rows: Rows
    basis: np.ndarray | None = None
    residual: float = 1.0

    @cached_property
    def whitened(self) -> Rows:
        """Whitened rows: few dense ones are whitened once, others whenever they are read."""
        rows = self.prior.whitened(self.rows)
        n, d = rows.shape
        if rows is self.rows or self.rows.sparse or not isinstance(self.rows, InMemoryRows) or n * d > _FEW_NUMBERS:
            return rows
        return InMemoryRows(rows.take(np.arange(n)))

    @property
    def geometry(self) -> VectorGeometry:
        """Distances under the start metric, W0^½ [ρI + (1 − ρ) QQᵀ] W0^½."""
        if self.basis is None or self.residual == 1.0:
            return VectorGeometry(self.whitened)
        coordinates = self.coordinates
        inside = MappedRows(
            self.whitened,
            lambda Z: coordinates.map_whitened(in_double(Z)),
            self.basis.shape[1],
            linear=True,
            dense=True,
        )
        if self.residual == 0.0:
            # Coordinates are right to some hundred units of the last place of the whitened rows.
            is_single = self.rows.take(np.zeros(1, dtype=np.intp)).dtype == np.float32
            rounding = 1e-14 if is_single else 1e-26
            return MappedGeometry(inside, lambda rows: sq_norms(in_double(self.whitened.take(rows))), rounding)
        return VectorGeometry(JoinedRows(self.whitened, self.residual**0.5, inside, (1.0 - self.residual) ** 0.5))

    @property
    def coordinates(self) -> LinearCoordinates:
        """Coordinates over the basis, or all of space."""
        return LinearCoordinates(self.prior, self.rows.shape[1], self.basis, self.residual)

    def _mapped(self, X: Matrix) -> np.ndarray:
        return self.coordinates.map(in_double(X))

    def with_definite_kernel(self, constraints: Constraints) -> Self:
        """Return this space: xᵀ W0 y is positive semidefinite."""
        return self

    def pose(self, forms: EdgeForms, rows: np.ndarray, progress: Progress = SILENT) -> PosedRows:
        """Return `rows` (−1: the origin) in coordinates, for constraints with these edges."""
        if self.basis is not None and self.residual == 0.0:
            used = _with_origin(self.rows.take(np.maximum(rows, 0)), rows)
            return PosedRows(self.coordinates, self._mapped(used), np.zeros(len(forms.tail)))
        used = _with_origin(self.whitened.take(np.maximum(rows, 0)), rows).astype(np.float64, copy=False)
        coordinates, exact = self.coordinates, False
        if self.basis is None:
            span = span_of_edges(used, forms)
            coordinates, exact = dataclasses.replace(coordinates, basis=span.basis), span.exact
        points = coordinates.map_whitened(used)
        left = np.zeros(len(forms.tail)) if exact else self.residual * _left_out(used, points, forms)
        return PosedRows(coordinates, points, left)


def _with_origin(used: Matrix, rows: np.ndarray) -> Matrix:
    """Return the rows with row 0 set to zero where its number is −1, the origin."""
    if not len(rows) or rows[0] != -1:
        return used
    if sp.issparse(used):
        return sp.vstack([sp.csr_array((1, used.shape[1])), used[1:]], format="csr")
    used = used.copy()
    used[0] = 0.0
    return used


def _left_out(used: Matrix, points: np.ndarray, forms: EdgeForms) -> np.ndarray:
    """Return ‖z_i − z_j‖² − ‖x̂_i − x̂_j‖² of every edge."""
    index = np.column_stack([forms.tail, forms.head])
    full = sq_distances(used, index)
    left = full - sq_distances(points, index)
    return np.where(left > 1e-12 * full, left, 0.0)  # less is rounding


def orthonormal(R: np.ndarray) -> np.ndarray:
    """Return U = R (RᵀR)^{-1/2} without directions of no size."""
    size = np.abs(R).max(axis=0, initial=0.0)
    if not size.any():
        raise NothingToLearnError("the basis is zero; give at least one direction that is not.")
    R = R[:, size > 0] / size[size > 0]
    R = R / np.linalg.norm(R, axis=0)  # the span does not depend on the lengths of its vectors; the cut below would
    Q, S = np.linalg.qr(R)
    left, singular, right = np.linalg.svd(S, full_matrices=False)
    keep = singular > 1e-6 * singular[0]
    return Q @ (left @ right if keep.all() and len(keep) == R.shape[1] else left[:, keep])
