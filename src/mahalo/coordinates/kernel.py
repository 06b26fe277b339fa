"""Coordinates in the feature space of a kernel, through a few support points."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.linalg.lapack import dpstrf

from ..constraints import Constraints, EdgeForms, Geometry, MappedGeometry, sq_distances
from ..errors import NothingToLearnError, NotPositiveDefiniteError
from ..linalg import inverse_factor, row_slices, sq_norms, symmetrize
from ..persistence import FileParts, Json, as_plain, matrix_arrays
from ..progress import SILENT, Progress
from ..rows import InMemoryRows, MappedRows
from ..types import Matrix
from ..validation import len_of
from .base_kernel import BaseKernel
from .kernel_geometry import KernelGeometry, MixedGeometry
from .protocol import Coordinates, PosedRows, ReducedMetric

_BLOCK = 1 << 24  # similarities held at once
_LARGEST = 8_000  # rows whose span is learned in as a whole
_RANK_TOL = 1e-10  # pivots below this share of the largest (20 ε in single precision) are left to the offsets


@dataclass(frozen=True)
class KernelCoordinates:
    """φ(z) = T k(support, z): orthonormal coordinates in the span of the support points' images.

    `support` holds the points themselves (precomputed: their column numbers).
    """

    kernel: BaseKernel
    support: Matrix
    T: np.ndarray
    n_features: int | None
    residual: float = 1.0

    is_linear: ClassVar[bool] = False
    leaves_out: ClassVar[bool] = True

    def shares_map(self, other: Coordinates) -> bool:
        return isinstance(other, KernelCoordinates) and self.T is other.T and self.support is other.support

    @property
    def rank(self) -> int:
        return self.T.shape[0]

    @property
    def n_outputs(self) -> int:
        return self.rank

    @property
    def takes_objects(self) -> bool:
        return callable(self.kernel.kind) and self.n_features is None

    @property
    def is_precomputed(self) -> bool:
        return self.kernel.precomputed

    @property
    def kernel_name(self) -> str:
        return self.kernel.kind if isinstance(self.kernel.kind, str) else "callable"

    def map(self, X: Matrix) -> np.ndarray:
        return self.kernel(X, self.support) @ self.T.T

    def embed(self, X: Matrix, root: np.ndarray, eta: float) -> np.ndarray:
        """Return F^½ φ(x), without what lies outside the span of the support points."""
        phi = self.map(X)
        return phi @ root.astype(phi.dtype, copy=False)

    def with_solution(self, F: np.ndarray, eta: float, residual: float) -> tuple[KernelCoordinates, np.ndarray]:
        return (self if residual == self.residual else replace(self, residual=residual)), F

    def without_learning(self) -> tuple[KernelCoordinates, np.ndarray]:
        """Return coordinates and core matrix of κ = κ0."""
        return replace(self, residual=1.0), np.eye(self.rank)

    def reduce(self, root: np.ndarray, eta: float, directions: np.ndarray) -> ReducedMetric:
        """Return the metric U S² Uᵀ of the directions D, from F^½ Dᵀ = U S Vᵀ."""
        U, S, Vt = np.linalg.svd(root @ directions.T, full_matrices=False)
        return ReducedMetric(replace(self, T=U.T @ self.T, residual=0.0), np.diag(S**2), Vt)

    def base(self, X: Matrix, Y: Matrix) -> np.ndarray:
        return self.kernel(X, Y)

    def base_paired(self, X: Matrix, Y: Matrix) -> np.ndarray:
        return self.kernel.paired(X, Y)

    def base_diagonal(self, X: Matrix) -> np.ndarray:
        return self.kernel.diagonal(X)

    def file_parts(self) -> FileParts:
        fields = {
            "kernel": self.kernel.kind if isinstance(self.kernel.kind, str) else None,
            "kernel_params": _plain_params(self.kernel.params),
            "shift": self.kernel.shift,
            "n_features": self.n_features,
            "residual": float(self.residual),
        }
        return FileParts(fields, {"map": self.T, **_support_arrays(self.support)})


def _plain_params(params: Mapping[str, object]) -> dict[str, Json]:
    """Return kernel parameters as a JSON header can hold them."""
    try:
        return as_plain(params, allow_nan=False)
    except (TypeError, ValueError):
        raise ValueError(
            f"kernel_params {params!r} cannot be written to a file; use numbers and strings, or put them into the "
            "kernel itself: kernel=functools.partial(...)."
        ) from None


def _support_arrays(support: Matrix) -> dict[str, np.ndarray]:
    """Return support points that are vectors, or numbers of training rows; others are not in the file."""
    return matrix_arrays("support", support) if support.dtype.kind in "fiu" else {}


def factor_kernel(K0: np.ndarray, precision: float = 0.0) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Return (points X̂, support, T) with X̂X̂ᵀ ≈ K0 and T κ0(support, z) the coordinates of any z.

    By Cholesky with pivots, which stop at the numerical rank (`_RANK_TOL` of the largest): a singular K0 needs nothing
    special, and no pseudo-inverse is formed. None if K0 is indefinite. `precision` is the relative accuracy of the
    numbers in K0.
    """
    n = len(K0)
    largest = float(np.diagonal(K0).max(initial=0.0))
    L, pivot, rank, _ = dpstrf(
        np.ascontiguousarray(K0.T), tol=max(_RANK_TOL, 20 * precision) * max(largest, 1e-300), lower=1
    )
    order = pivot - 1
    L = np.tril(L)[:, :rank]
    left = K0[np.ix_(order[rank:], order[rank:])] - L[rank:] @ L[rank:].T
    if np.abs(left).max(initial=0.0) > max(1e-6, 1000 * precision) * max(largest, 1e-300) or largest <= 0:
        return None
    points = np.empty((n, rank))
    points[order] = L
    return points, order[:rank], inverse_factor(np.ascontiguousarray(L[:rank]))


def combination_map(G: np.ndarray, J: sp.csr_array, psd: str, precision: float = 0.0) -> np.ndarray:
    """Return T = G^{-1/2} Jᵀ over the support, G = Jᵀ K0 J, without directions of no size."""
    values, vectors = np.linalg.eigh(G)
    if values[0] < -max(1e-6, 1000 * precision) * np.abs(values[-1]) and psd != "clip":
        raise _indefinite(values, "over this basis", "psd='clip' to leave out the negative part")
    keep = values > max(1e-12, 20 * precision) * max(values[-1], 1e-300)
    return (J @ (vectors[:, keep] / np.sqrt(values[keep]))).T


def _indefinite(values: np.ndarray, where: str, remedy: str) -> NotPositiveDefiniteError:
    return NotPositiveDefiniteError(
        f"the kernel matrix {where} is not positive semidefinite: its most negative eigenvalue is {values[0]:.4g} "
        f"(largest {values[-1]:.4g}). Use a valid kernel, or {remedy}."
    )


class KernelSpace:
    """Objects under a kernel: their distances in its feature space, and coordinates for a set of constraints.

    `J` (n_samples × k) fixes the directions to learn in, combinations of the objects' images; without it they are the
    span of all constrained objects. ρ is the weight of the `residual`, what lies outside.
    """

    def __init__(
        self,
        kernel: BaseKernel,
        X: Matrix,
        J: Matrix | None = None,
        residual: float = 1.0,
        psd: str = "error",
        progress: Progress = SILENT,
    ) -> None:
        self.kernel, self.X, self.residual, self.psd = kernel, X, residual, psd
        self.n_features = X.shape[1] if X.ndim == 2 else None
        self._geometry = KernelGeometry(kernel, X)
        self._over_basis = None if J is None else self._from_combinations(J, progress)

    @property
    def geometry(self) -> Geometry:
        """Distances under the start metric: all of feature space at weight ρ, the basis at weight 1."""
        if self.residual == 1.0 or self._over_basis is None:
            return self._geometry
        if self.residual > 0.0:
            return MixedGeometry(self.kernel, self.X, self._over_basis.map, self.residual)
        inside = MappedRows(InMemoryRows(self.X), self._over_basis.map, self._over_basis.rank)
        return MappedGeometry(inside, self._geometry.self_similarity)

    @property
    def coordinates(self) -> KernelCoordinates:
        """Coordinates over the basis."""
        if self._over_basis is None:
            raise ValueError("without a basis the coordinates of a kernel's feature space depend on the constraints.")
        return self._over_basis

    def span(self, rows: np.ndarray, progress: Progress = SILENT) -> KernelCoordinates:
        """Return orthonormal coordinates of the span of the images of `rows`."""
        return self._factored(rows, progress)[0]

    def _factored(self, rows: np.ndarray, progress: Progress) -> tuple[KernelCoordinates, np.ndarray, np.ndarray]:
        """Return coordinates of the span of some rows, the rows in them, and their kernel matrix."""
        if len(rows) > _LARGEST:
            raise ValueError(
                f"{len(rows):,} constrained rows under a kernel would make matrices of that order and hours of work. "
                "Use a basis (e.g. basis=200), or fewer constraints."
            )
        K0, precision = self._exact_gram(rows, progress)
        factors = factor_kernel(K0, precision)
        if factors is None:
            remedy = "psd='clip' to leave out the negative part, or psd='shift' to add to the diagonal"
            raise _indefinite(np.linalg.eigvalsh(K0), f"of the {len(rows)} constrained points", remedy)
        points, support, T = factors
        coordinates = KernelCoordinates(self.kernel, self._support(rows[support]), T, self.n_features, self.residual)
        return coordinates, points, K0

    def _support(self, rows: np.ndarray) -> Matrix:
        return rows if self.kernel.precomputed else self.X[rows]

    def with_definite_kernel(self, constraints: Constraints) -> KernelSpace:
        """Return this space, or the one that `psd` asks for if the kernel matrix of constrained rows is indefinite.

        "shift" adds to the similarity of every object with itself. "clip" keeps the directions with positive
        eigenvalues, and nothing outside them.
        """
        if self.psd == "error" or self._over_basis is not None:
            return self
        touched = constraints.edges()[1]
        rows = touched[touched >= 0]
        K0, precision = self._exact_gram(rows, SILENT)
        if factor_kernel(K0, precision) is not None:
            return self
        values, vectors = np.linalg.eigh(K0)
        if self.psd == "shift":
            if self.kernel.precomputed:
                amount = f"add {-1.001 * values[0]:.4g} or more to the diagonal of the matrix before you pass it"
                raise _indefinite(values, f"of the {len(rows)} constrained points", f"{amount}, or psd='clip'")
            return KernelSpace(replace(self.kernel, shift=-1.001 * float(values[0])), self.X)
        keep = values > _RANK_TOL * max(values[-1], 1e-300)
        J = np.zeros((len_of(self.X), int(keep.sum())))
        J[rows] = vectors[:, keep]
        return KernelSpace(self.kernel, self.X, J, residual=0.0, psd="clip")

    def _exact_gram(self, rows: np.ndarray, progress: Progress) -> tuple[np.ndarray, float]:
        """Return κ0 among some rows in float64, symmetric, and the relative accuracy of its numbers."""
        return symmetrize(self._geometry.gram(rows, progress).astype(np.float64)), self._geometry.precision

    def _from_combinations(self, J: Matrix, progress: Progress) -> KernelCoordinates:
        J = sp.csr_array(J)
        rows = np.flatnonzero(np.diff(J.indptr))
        if not len(rows):
            raise NothingToLearnError("the basis is zero; give at least one combination that is not.")
        J = J[rows]
        G = self._gram_of_combinations(rows, J, progress)
        T = combination_map(G, J, self.psd, self._geometry.precision)
        return KernelCoordinates(self.kernel, self._support(rows), T, self.n_features, self.residual)

    def _gram_of_combinations(self, rows: np.ndarray, J: sp.csr_array, progress: Progress) -> np.ndarray:
        """Return Jᵀ K0 J, computed a block of rows of K0 at a time."""
        G = np.zeros((J.shape[1],) * 2)
        parts = list(row_slices(len(rows), len(rows), _BLOCK))
        for part in progress.track(parts, len(parts), "part"):
            K0 = self._geometry.block(rows[part], rows).astype(np.float64)
            G += J[part].T @ (K0 @ J)
        return symmetrize(G)

    def pose(self, forms: EdgeForms, rows: np.ndarray, progress: Progress = SILENT) -> PosedRows:
        """Return `rows` (−1: the origin) in coordinates, for constraints with these edges."""
        real = rows[rows >= 0]
        if self._over_basis is not None:
            coordinates, points = self._over_basis, self._over_basis.map(self.X[real]).astype(np.float64)
            K0 = None
        else:
            coordinates, points, K0 = self._factored(real, progress)
        left = np.zeros(len(forms.tail))
        if self.residual:
            left = self.residual * self._left_out(forms, rows, points, K0)
        if len(real) < len(rows):
            points = np.vstack([np.zeros((1, points.shape[1])), points])
        return PosedRows(coordinates, points, left)

    def _left_out(self, forms: EdgeForms, rows: np.ndarray, points: np.ndarray, K0: np.ndarray | None) -> np.ndarray:
        """Return the squared length of every edge under κ0, κ0(x, x) to the origin, less that in coordinates."""
        origin = int(len(rows) > len(points))
        inner = (forms.tail >= origin) & (forms.head >= origin)
        i, j = forms.tail[inner] - origin, forms.head[inner] - origin
        full = np.empty(len(forms.tail))
        real = rows[rows >= 0]
        if K0 is not None:
            full[inner] = K0[i, i] + K0[j, j] - 2.0 * K0[i, j]
        else:
            full[inner] = self._geometry.sq_distances(np.column_stack([real[i], real[j]]))
        end = np.maximum(forms.tail[~inner], forms.head[~inner]) - origin
        if len(end):
            own = np.diagonal(K0) if K0 is not None else self._geometry.self_similarity(real)
            full[~inner] = own[end]
        kept = np.empty(len(forms.tail))
        kept[inner] = sq_distances(points, np.column_stack([i, j]))
        kept[~inner] = sq_norms(points[end])
        left = full - kept
        if K0 is None and left.min(initial=0.0) < 0:
            size = float(self._geometry.self_similarity(real).max())
            if left.min() < -max(1e-6, 1000 * self._geometry.precision) * size:
                raise NotPositiveDefiniteError(
                    "the kernel is not positive semidefinite: outside the basis a constraint's squared length is "
                    f"{left.min():.4g}. Use a valid kernel, or residual=False."
                )
        return np.where(left > 1e-12 * full, left, 0.0)  # less is rounding
