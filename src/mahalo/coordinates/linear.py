from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from ..constraints import EdgeForms, MappedGeometry, VectorGeometry, sq_distances
from .prior import Prior

__all__ = ["LinearCoordinates", "LinearSpace", "orthonormal", "span_of"]

_SPAN_PAYS_BELOW = 0.8  # of the number of features
_LARGEST_RANK = 20_000  # beyond which r × r matrices are not attempted


@dataclass(frozen=True)
class LinearCoordinates:
    """φ(x) = Qᵀ W0^½ x; Q orthonormal, or None for all of space.

    W = W0^½ [I + Q (F − I) Qᵀ] W0^½ is the metric that a core matrix F stands for; without `residual`,
    W = W0^½ Q F Qᵀ W0^½.
    """

    prior: Prior
    n_features: int
    basis: np.ndarray | None = None
    residual: bool = True

    @property
    def rank(self) -> int:
        return self.n_features if self.basis is None else self.basis.shape[1]

    def map(self, X) -> np.ndarray:
        """Coordinates of rows of X, dense."""
        return self.map_whitened(self.prior.whiten(X))

    def map_whitened(self, Z) -> np.ndarray:
        if self.basis is not None:
            return np.asarray(Z @ self.basis.astype(Z.dtype, copy=False))
        return Z.toarray() if sp.issparse(Z) else Z

    def base(self, X, Y) -> np.ndarray:
        """κ0(x, y) = xᵀ W0 y for all rows of X and Y."""
        K = self.prior.whiten(X) @ self.prior.whiten(Y).T
        return K.toarray() if sp.issparse(K) else np.asarray(K)

    def base_paired(self, X, Y) -> np.ndarray:
        ZX, ZY = self.prior.whiten(X), self.prior.whiten(Y)
        if sp.issparse(ZX) or sp.issparse(ZY):
            return np.asarray(sp.csr_array(ZX).multiply(ZY).sum(axis=1)).ravel()
        return np.einsum("ij,ij->i", ZX, ZY)

    def base_diagonal(self, X) -> np.ndarray:
        return self.base_paired(X, X)


class LinearSpace:
    """The rows of X as vectors under a prior: their distances, and coordinates for a set of constraints.

    `basis` fixes the directions to learn in (orthonormal columns); without it they are all of space, or, where that is
    clearly smaller, what the constraints can see.
    """

    def __init__(self, prior: Prior, X, basis: np.ndarray | None = None, residual: bool = True):
        self.prior, self.basis, self.residual = prior, basis, residual
        self.n_features = X.shape[1]
        self.Z = prior.whitened(X)

    @property
    def geometry(self) -> VectorGeometry:
        """Distances between whitened rows, or, without the residual, between their coordinates alone."""
        if self.residual:
            return VectorGeometry(self.Z)
        return MappedGeometry(_MappedRows(self.Z, self._fixed()), lambda rows: _sq_norms(self.Z[rows]))

    def _fixed(self) -> LinearCoordinates:
        return LinearCoordinates(self.prior, self.n_features, self.basis, self.residual)

    def pose(self, forms: EdgeForms, rows: np.ndarray) -> tuple[LinearCoordinates, np.ndarray, np.ndarray]:
        """Coordinates, points x̂ of `rows` (−1: the origin), and what they leave out of each edge's squared length."""
        used = _with_origin(self.Z[np.maximum(rows, 0)], rows)
        coordinates = _choose(self.prior, used, forms) if self.basis is None else self._fixed()
        points = coordinates.map_whitened(used).astype(np.float64)
        if coordinates.basis is None or not self.residual:
            return coordinates, points, np.zeros(len(forms.tail))
        if self.basis is None and not sp.issparse(used):
            return coordinates, points, np.zeros(len(forms.tail))  # an exact span
        return coordinates, points, _left_out(used, points, forms)


@dataclass(frozen=True)
class _MappedRows:
    """Coordinates of rows, made as they are indexed."""

    Z: object
    coordinates: LinearCoordinates

    @property
    def shape(self) -> tuple[int, int]:
        return self.Z.shape[0], self.coordinates.rank  # type: ignore[attr-defined]

    def __getitem__(self, rows) -> np.ndarray:
        return self.coordinates.map_whitened(self.Z[rows])  # type: ignore[index]


def _sq_norms(Z) -> np.ndarray:
    return np.asarray((Z.multiply(Z) if sp.issparse(Z) else Z * Z).sum(axis=1), dtype=np.float64).ravel()


def _with_origin(used, rows: np.ndarray):
    """Row 0 made zero where it stands for the origin."""
    if not len(rows) or rows[0] != -1:
        return used
    if sp.issparse(used):
        return sp.vstack([sp.csr_array((1, used.shape[1])), used[1:]], format="csr")
    used = used.copy()
    used[0] = 0.0
    return used


def _left_out(used, points: np.ndarray, forms: EdgeForms) -> np.ndarray:
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


def _choose(prior: Prior, Z, forms: EdgeForms) -> LinearCoordinates:
    """All of space, or the span of the constraints' differences where that is clearly smaller.

    `Z` holds the whitened constrained rows, `forms` the edges between them. The optimum is the same in both; steps
    cost O(r²) and more.
    """
    n_features = Z.shape[1]
    # Every row has an edge, so there are at most half as many components as rows.
    if forms.n_rows / 2 >= _SPAN_PAYS_BELOW * n_features and n_features <= _LARGEST_RANK:
        return LinearCoordinates(prior, n_features)
    component = _components(forms)
    at_most = len(component) - (component.max(initial=-1) + 1)
    if at_most >= _SPAN_PAYS_BELOW * n_features and n_features <= _LARGEST_RANK:
        return LinearCoordinates(prior, n_features)
    if at_most > _LARGEST_RANK:
        raise ValueError(
            f"the constraints span up to {at_most} of {n_features} dimensions, too many for a full matrix. Use a "
            "basis (e.g. basis=100), or fewer constraints."
        )
    basis = _span(Z, component)
    if basis.shape[1] >= _SPAN_PAYS_BELOW * n_features and n_features <= _LARGEST_RANK:
        return LinearCoordinates(prior, n_features)
    return LinearCoordinates(prior, n_features, basis)


def span_of(points: np.ndarray, forms: EdgeForms) -> np.ndarray:
    """Orthonormal basis of what the edges between `points` span."""
    return _span(points, _components(forms))


def _components(forms: EdgeForms) -> np.ndarray:
    graph = sp.coo_array((np.ones(len(forms.tail)), (forms.tail, forms.head)), shape=(forms.n_rows,) * 2)
    return sp.csgraph.connected_components(graph, directed=False)[1]


def _span(Z, component: np.ndarray) -> np.ndarray:
    """Orthonormal basis of all differences of connected rows: of rows less the mean of their component."""
    n = len(component)
    if n == 0:
        return np.zeros((Z.shape[1], 0))
    member = sp.csr_array((np.ones(n), (component, np.arange(n))))
    mean = sp.csr_array(member.multiply(1.0 / member.sum(axis=1)[:, None])) @ Z
    if sp.issparse(Z):
        return _span_from_gram(Z, mean, component)
    centred = Z.astype(np.float64) - mean[component]
    _, singular, Vt = np.linalg.svd(centred, full_matrices=False)
    keep = singular > singular[0] * 1e-13 * max(centred.shape) if singular[0] > 0 else singular > 0
    return np.ascontiguousarray(Vt[keep].T)


def _span_from_gram(Z, mean, component: np.ndarray) -> np.ndarray:
    """The same for sparse rows, through their n × n Gram matrix, so that nothing as wide as Z and dense but Q is made.

    Directions with singular values below about 1e-7 of the largest are lost in a Gram matrix; what they carry is
    kept as offsets of the constraints, so the certificate stays that of the metric returned.
    """
    centred = sp.csr_array(Z - sp.csr_array(mean)[component])
    gram = (centred @ centred.T).toarray().astype(np.float64)
    values, vectors = np.linalg.eigh(gram)
    keep = values > max(values[-1], 0.0) * 1e-14 * len(values)
    Q = np.asarray(centred.T @ (vectors[:, keep] / np.sqrt(values[keep])))
    return np.linalg.qr(Q)[0]
