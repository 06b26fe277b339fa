"""Base kernels, and coordinates in their feature space through a few support points."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg.lapack import dpstrf
from sklearn.metrics.pairwise import KERNEL_PARAMS, PAIRWISE_KERNEL_FUNCTIONS, pairwise_kernels

from ..constraints import EdgeForms, MappedGeometry, len_of, sq_distances
from ..errors import NotPositiveDefiniteError
from ..linalg import inverse_factor, symmetrize

__all__ = ["BaseKernel", "KernelCoordinates", "KernelGeometry", "KernelSpace", "factor_kernel"]

_BLOCK = 64  # objects in a block of which only the diagonal is wanted
_RANK_TOL = 1e-10  # pivots below this share of the largest (20 ε in single precision) are left to the offsets
_SAMPLE_ROWS = 200


@dataclass(frozen=True)
class BaseKernel:
    """κ0: a name scikit-learn knows, a callable(X, Y), or "precomputed", where rows are their similarities to the
    training rows and similarities between new rows come from outside.

    `shift` is added to the similarity of every object with itself, equal objects being the same.
    """

    kind: str | Callable
    params: dict[str, Any] = field(default_factory=dict)
    shift: float = 0.0

    @classmethod
    def of(cls, kernel, params) -> BaseKernel:
        params = dict(params or {})
        if isinstance(kernel, str) and kernel != "precomputed" and kernel not in PAIRWISE_KERNEL_FUNCTIONS:
            raise ValueError(
                f"kernel must be 'precomputed', a callable or one of {sorted(PAIRWISE_KERNEL_FUNCTIONS)}; "
                f"got {kernel!r}."
            )
        if not isinstance(kernel, str) and not callable(kernel):
            raise ValueError(f"kernel must be a name or a callable(X, Y); got {type(kernel).__name__}.")
        if kernel == "precomputed" and params:
            raise ValueError(f"kernel='precomputed' takes no kernel_params; got {sorted(params)}.")
        if isinstance(kernel, str) and set(params) - set(known := KERNEL_PARAMS.get(kernel, params)):
            raise ValueError(f"kernel={kernel!r} takes the kernel_params {sorted(known)}; got {sorted(params)}.")
        return cls(kernel, params)

    @property
    def precomputed(self) -> bool:
        return self.kind == "precomputed"

    def __call__(self, X, Y) -> np.ndarray:
        """κ0 of all rows of X with all rows of Y (precomputed: Y are columns of X)."""
        if self.precomputed:
            return np.asarray(X[:, Y])
        if callable(self.kind):
            K = np.asarray(self.kind(X, Y, **self.params))
            K = K if K.dtype == np.float32 else K.astype(np.float64, copy=False)
            if K.shape != (len_of(X), len_of(Y)):
                raise ValueError(
                    f"the kernel must return {len_of(X)} × {len_of(Y)} similarities for that many objects; "
                    f"got an array of shape {K.shape}."
                )
        else:
            K = np.asarray(pairwise_kernels(X, Y, metric=self.kind, **self.params))
        if not np.isfinite(K).all():
            raise ValueError("the kernel returned NaN or infinity; check the data and kernel_params.")
        return K + self.shift * _equal_objects(X, Y) if self.shift else K

    def paired(self, X, Y) -> np.ndarray:
        """κ0(x_k, y_k) for every k."""
        out = np.empty(len_of(X))
        for a in range(0, len(out), _BLOCK):
            part = slice(a, a + _BLOCK)
            out[part] = self(X[part], Y[part]).diagonal()
        return out

    def diagonal(self, X) -> np.ndarray:
        """κ0(x, x) for every row."""
        if self.kind in ("rbf", "laplacian"):
            return np.full(len_of(X), 1.0 + self.shift)
        return self.paired(X, X)


def _equal_objects(X, Y) -> np.ndarray:
    """Which of X are which of Y."""
    number: dict = {}
    x, y = (np.array([number.setdefault(key, len(number)) for key in _keys(objects)]) for objects in (X, Y))
    return np.equal.outer(x, y)


def _keys(X) -> list:
    """One hashable thing for each object, equal where they are."""
    if getattr(X, "ndim", 1) != 2:
        try:
            return [key for key in X if hash(key) is not None]
        except TypeError:
            raise ValueError(
                "psd='shift' must tell which objects are the same, and these cannot be hashed; use psd='clip', or give "
                "them __eq__ and __hash__."
            ) from None
    rows = sp.csr_array(X, dtype=np.float64, copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    cuts = list(zip(rows.indptr, rows.indptr[1:], strict=False))
    indices = rows.indices.astype(np.int64)
    return [(indices[a:b].tobytes(), rows.data[a:b].tobytes()) for a, b in cuts]


class KernelGeometry:
    """Distances in the feature space of a kernel: κ(x,x) + κ(y,y) − 2κ(x,y)."""

    def __init__(self, kernel: BaseKernel, X):
        self.kernel, self.X = kernel, X

    @property
    def n_rows(self) -> int:
        return len_of(self.X)

    def gram(self, rows: np.ndarray) -> np.ndarray:
        """κ0 among some rows."""
        if self.kernel.precomputed:
            return np.asarray(self.X[np.ix_(rows, rows)])
        return self.kernel(self.X[rows], self.X[rows])

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
        if self.kernel.precomputed:
            K, (i, j) = self.X, index.T
        else:
            rows, compact = np.unique(index, return_inverse=True)
            i, j = compact.reshape(index.shape).T
            if len(rows) ** 2 > _BLOCK * len(index):
                diagonal = self.kernel.diagonal(self.X[rows])
                between = self.kernel.paired(self.X[rows[i]], self.X[rows[j]])
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

    def self_similarity(self, rows: np.ndarray) -> np.ndarray:
        """κ0(x, x) of some rows."""
        if self.kernel.precomputed:
            return np.asarray(self.X[rows, rows], dtype=np.float64)
        return self.kernel.diagonal(self.X[rows])

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
            rows = anchors[a : a + step]
            K = self.kernel(self.X[rows], candidates if self.kernel.precomputed else self.X[candidates])
            D = own - 2.0 * K  # less κ(x,x), the same for all candidates of a row
            near = np.argpartition(D, k - 1, axis=1)[:, :k]
            order = np.argsort(np.take_along_axis(D, near, axis=1), axis=1, kind="stable")
            found[a : a + step] = np.take_along_axis(near, order, axis=1)
        return candidates[found]


@dataclass(frozen=True)
class KernelCoordinates:
    """φ(z) = T k(support, z): orthonormal coordinates in the span of the support points' images.

    `support` holds the points themselves (precomputed: their column numbers).
    """

    kernel: BaseKernel
    support: Any
    T: np.ndarray
    n_features: int | None
    residual: bool = True

    @property
    def rank(self) -> int:
        return self.T.shape[0]

    def map(self, X) -> np.ndarray:
        """φ of every row."""
        return self.kernel(X, self.support) @ self.T.T

    def base(self, X, Y) -> np.ndarray:
        return self.kernel(X, Y)

    def base_paired(self, X, Y) -> np.ndarray:
        return self.kernel.paired(X, Y)

    def base_diagonal(self, X) -> np.ndarray:
        return self.kernel.diagonal(X)


def factor_kernel(K0: np.ndarray, precision: float = 0.0) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """(coordinates X̂ of the points, support, T) with X̂X̂ᵀ ≈ K0 and T κ0(support, z) the coordinates of any z.

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


def combination_map(K0: np.ndarray, J: np.ndarray, psd: str, precision: float = 0.0) -> np.ndarray:
    """T = (Jᵀ K0 J)^{-1/2} Jᵀ over the support, directions of no size left out."""
    values, vectors = np.linalg.eigh(symmetrize(J.T @ (K0 @ J)))
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
    span of all constrained objects.
    """

    def __init__(self, kernel: BaseKernel, X, J=None, residual: bool = True, psd: str = "error"):
        self.kernel, self.X, self.residual, self.psd = kernel, X, residual, psd
        self.n_features = X.shape[1] if getattr(X, "ndim", 1) == 2 else None
        self._geometry = KernelGeometry(kernel, X)
        self._fixed = None if J is None else self._from_combinations(J)

    @property
    def geometry(self):
        if self.residual or self._fixed is None:
            return self._geometry
        return MappedGeometry(_MappedObjects(self), self._geometry.self_similarity)

    def gram(self, rows: np.ndarray) -> np.ndarray:
        return self._geometry.gram(rows)

    def _objects(self, rows: np.ndarray):
        """Objects as the kernel takes them for its first argument."""
        return self.X[rows]

    def _support(self, rows: np.ndarray):
        return rows if self.kernel.precomputed else self.X[rows]

    def definite(self, rows: np.ndarray) -> KernelSpace:
        """This space, or one that `psd` asks for where the kernel matrix of `rows` is indefinite in this one.

        "shift" adds to the similarity of every object with itself. "clip" keeps the directions with positive
        eigenvalues, and nothing outside them.
        """
        if self.psd == "error" or self._fixed is not None:
            return self
        K0, precision = self._exact_gram(rows)
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
        return KernelSpace(self.kernel, self.X, J, residual=False, psd="clip")

    def _exact_gram(self, rows: np.ndarray) -> tuple[np.ndarray, float]:
        """κ0 among some rows in float64, symmetric, and the relative accuracy of its numbers."""
        return symmetrize(self.gram(rows).astype(np.float64)), self._geometry.precision

    def _from_combinations(self, J) -> KernelCoordinates:
        J = sp.csr_array(J)
        rows = np.flatnonzero(np.diff(J.indptr))
        if not len(rows):
            raise ValueError("the basis is zero; give at least one combination that is not.")
        K0, precision = self._exact_gram(rows)
        T = combination_map(K0, J[rows].toarray(), self.psd, precision)
        return KernelCoordinates(self.kernel, self._support(rows), T, self.n_features, self.residual)

    def pose(self, forms: EdgeForms, rows: np.ndarray) -> tuple[KernelCoordinates, np.ndarray, np.ndarray]:
        """Coordinates, points x̂ of `rows` (−1: the origin), and what they leave out of each edge's squared length."""
        real = rows[rows >= 0]
        if self._fixed is not None:
            coordinates, points = self._fixed, self._fixed.map(self._objects(real)).astype(np.float64)
            K0 = None
        else:
            K0, precision = self._exact_gram(real)
            factors = factor_kernel(K0, precision)
            if factors is None:
                remedy = "psd='clip' to leave out the negative part, or psd='shift' to add to the diagonal"
                raise _indefinite(np.linalg.eigvalsh(K0), f"of the {len(real)} constrained points", remedy)
            points, support, T = factors
            support = self._support(real[support])
            coordinates = KernelCoordinates(self.kernel, support, T, self.n_features, self.residual)
        left = np.zeros(len(forms.tail))
        if self.residual:
            left = self._left_out(forms, rows, points, K0)
        if len(real) < len(rows):
            points = np.vstack([np.zeros((1, points.shape[1])), points])
        return coordinates, points, left

    def _left_out(self, forms: EdgeForms, rows, points, K0) -> np.ndarray:
        """κ0-squared length of every edge less that of its coordinates; edges to the origin have length κ0(x, x)."""
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
        kept[~inner] = np.einsum("ij,ij->i", points[end], points[end])
        left = full - kept
        if K0 is None and left.min(initial=0.0) < 0:
            size = float(self._geometry.self_similarity(real).max())
            if left.min() < -max(1e-6, 1000 * self._geometry.precision) * size:
                raise NotPositiveDefiniteError(
                    "the kernel is not positive semidefinite: outside the basis a constraint's squared length is "
                    f"{left.min():.4g}. Use a valid kernel, or residual=False."
                )
        return np.where(left > 1e-12 * full, left, 0.0)  # less is rounding


class _MappedObjects:
    """Coordinates of objects, made as they are indexed."""

    def __init__(self, space: KernelSpace):
        self._space = space

    @property
    def shape(self) -> tuple[int, int]:
        assert self._space._fixed is not None
        return len_of(self._space.X), self._space._fixed.rank

    def __getitem__(self, rows) -> np.ndarray:
        assert self._space._fixed is not None
        return self._space._fixed.map(self._space._objects(rows))
