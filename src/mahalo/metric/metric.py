"""The learned metric: κ = w κ0 + φᵀ (F − wI) φ, as a small object that measures and transforms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from os import PathLike
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, DTypeLike
from sklearn.utils import check_array

from ..coordinates import KernelCoordinates, LinearCoordinates
from ..linalg import symmetrize, to_dense
from ..rows import is_lazy
from ..validation import as_objects, at_least_single, check_count, in_double, len_of
from . import array_api
from .among import (
    BLOCK_BYTES,
    all_distances,
    cosines,
    finished,
    is_positive,
    nearest_among,
    paired_cosines,
    sq_norms,
    unit_length,
)
from .given import check_names, checked_block, refuse_similarities
from .query_side import QuerySide, query_side
from .scaling import Scaling

__all__ = ["Metric"]

_WIDEST_DENSE = 20_000  # features beyond which d × d matrices and dense outputs are refused
_CROSS = "cross must be κ0 of the rows of X and Y"


@dataclass(frozen=True, eq=False)
class Metric:
    """A learned similarity κ and the distance that belongs to it, for any rows, seen or not.

    With φ the coordinates and κ0 the base kernel (xᵀ W0 y for linear ones),
    κ(x, y) = w κ0(x, y) + φ(x)ᵀ (F − wI) φ(y), w = ηρ being the weight of what lies outside the coordinates, and
    d²(x, y) = κ(x, x) + κ(y, y) − 2 κ(x, y).

    With a precomputed kernel rows are similarities to the training rows, and what the formula needs beyond them is
    passed along: `cross`, κ0 between the rows compared, and `diag_x`, `diag_y`, κ0 of each with itself.

    Parameters
    ----------
    coordinates : LinearCoordinates or KernelCoordinates
        φ, κ0 and ρ.
    F : ndarray of shape (rank, rank)
        Core matrix.
    eta : float
        The loss's resting point.
    normalize : bool
        Compare rows at unit length: κ(x, y) / √(κ(x, x) κ(y, y)) takes the place of κ. A row of length zero stays as
        it is.
    rotation : ndarray of shape (rank, rank), optional
        Turns what `transform` returns, so that leading directions come first; distances do not change.
    scaling, about : Scaling, optional; mapping
        What rows go through before anything else (`matrix` and `linear_map` are of rows that have); what its maker
        notes down, such as names of columns, kept in files as JSON.
    """

    coordinates: LinearCoordinates | KernelCoordinates
    F: np.ndarray
    eta: float = 1.0
    normalize: bool = False
    rotation: np.ndarray | None = None
    scaling: Scaling | None = None
    about: Mapping[str, Any] = field(default_factory=dict)

    @property
    def n_features(self) -> int | None:
        """Number of features it was learned on; None for objects that are not vectors."""
        return self.coordinates.n_features

    @property
    def _linear(self) -> bool:
        return isinstance(self.coordinates, LinearCoordinates)

    @property
    def _base_weight(self) -> float:
        return self.eta * self.coordinates.residual

    @cached_property
    def _change(self) -> np.ndarray:
        """F − wI."""
        return self.F - self._base_weight * np.eye(len(self.F))

    @cached_property
    def root(self) -> np.ndarray:
        """F^½."""
        values, vectors = np.linalg.eigh(symmetrize(self.F))
        return (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T

    @cached_property
    def matrix(self) -> np.ndarray:
        """W, d × d; linear kernel only. With `normalize` the cosine is that of xᵀWy."""
        if not self._linear:
            raise ValueError("a metric in the feature space of a kernel has no d × d matrix; use distances or kernel.")
        d = self.n_features
        if d is None or d > _WIDEST_DENSE:
            raise ValueError(
                f"the matrix of this metric would be {d} × {d}. Use distances, pair_distances or kernel, which do not "
                "need it."
            )
        G = self._embedded(np.eye(d))
        return symmetrize(G @ G.T)

    def linear_map(self) -> np.ndarray:
        """G, n_features × n_outputs, with ``transform(X) = X @ G`` (before rows are brought to unit length)."""
        if not self._linear:
            raise ValueError("a metric in the feature space of a kernel is no linear map; use transform.")
        if self.n_features > _WIDEST_DENSE and self.coordinates.residual:  # type: ignore[operator]
            raise ValueError(
                f"the map of this metric would be {self.n_features} × {self.n_features}; learn with a basis and "
                "residual=False."
            )
        c = self.coordinates
        assert isinstance(c, LinearCoordinates)
        inside = c.basis is not None and not c.residual
        G = c.projection @ self.root if inside else self._embedded(np.eye(c.n_features))
        return G if self.rotation is None else G @ self.rotation

    def query_side(self) -> QuerySide:
        """What to multiply queries with where stored vectors must stay as they are."""
        return query_side(self)

    # -- transform ---------------------------------------------------------------------------------------------

    @property
    def n_outputs(self) -> int:
        """Columns of `transform`."""
        keeps_all = self._linear and self.coordinates.residual > 0
        return self.coordinates.n_features if keeps_all else self.coordinates.rank  # type: ignore[return-value]

    def transform(self, X: Any) -> np.ndarray:
        """Rows in a space where the learned distance is the Euclidean one.

        Exact for linear kernels. For others F^½ φ(x), which leaves out what of φ(x) lies outside the span of the
        training rows: exact between those, approximate for new ones; `distances` is exact for all.
        """
        if is_lazy(X):
            from ..rows.dask import map_rows

            check_names(self.about, X)
            return map_rows(self.transform, X, self.n_outputs)
        if (xp := array_api.namespace_of(X)) is not None:
            return array_api.transform(self, xp, X)
        X = self._checked(X)
        if self._too_wide(X):
            raise ValueError(
                f"transform would make a dense array with {self.n_outputs} columns. Use metric.distances or "
                "metric.kernel, which take sparse rows as they are, or learn with a basis and residual=False."
            )
        T = self._embedded(X)
        T = T if self.rotation is None else T @ self.rotation.astype(T.dtype, copy=False)
        T = unit_length(T) if self.normalize else T
        return T.astype(np.float32, copy=False) if getattr(X, "dtype", None) == np.float32 else T

    def _too_wide(self, X: Any) -> bool:
        """Whether `transform` refuses these rows: sparse, and what comes of them would be dense and wide."""
        return sp.issparse(X) and self.n_outputs > _WIDEST_DENSE

    def _embedded(self, X: Any) -> np.ndarray:
        """[√w I + Q (F^½ − √w I) Qᵀ] W0^½ x for every row; without residual, and for kernels, F^½ φ(x)."""
        c = self.coordinates
        if not isinstance(c, LinearCoordinates):
            phi = c.map(X)
            return phi @ self.root.astype(phi.dtype, copy=False)
        Z = c.prior.whiten(X)
        phi = c.map_whitened(Z)
        if c.basis is None or not c.residual:
            return phi @ self.root.astype(phi.dtype, copy=False)
        kept = np.sqrt(self._base_weight)
        change = phi @ (self.root - kept * np.eye(len(self.F))).astype(phi.dtype, copy=False)
        change = change @ c.basis.T.astype(phi.dtype, copy=False)
        change += kept * to_dense(Z)
        return change

    # -- distances and similarities -----------------------------------------------------------------------------

    def distances(
        self,
        X: Any,
        Y: Any = None,
        squared: bool = False,
        *,
        cross: ArrayLike | None = None,
        diag_x: ArrayLike | None = None,
        diag_y: ArrayLike | None = None,
    ) -> np.ndarray:
        """Learned distances between all rows of X and all rows of Y (of X itself by default).

        Worked out in double precision, whatever the precision of the rows, and returned in theirs; a Dask array, block
        by block, if X or Y is on Dask.
        """
        if is_lazy(X) or is_lazy(Y):
            from ..rows.dask import pairwise_table

            check_names(self.about, X, Y)
            refuse_similarities(cross, diag_x, diag_y)
            return pairwise_table(partial(self.distances, squared=squared), X, Y)
        if (xp := array_api.namespace_of(X, Y)) is not None:
            refuse_similarities(cross, diag_x, diag_y)
            return array_api.distances(self, xp, X, Y, squared)
        X = self._checked(X)
        itself = Y is None
        Y = X if itself else self._checked(Y)
        self._need(cross, diag_x, diag_y, itself, both=True)
        dtype = np.float32 if _single(X) and _single(Y) else np.float64
        if self._explicit(X, Y):
            refuse_similarities(cross, diag_x, diag_y)
            TX = self._compared(X)
            D = all_distances(TX, TX if itself else self._compared(Y), squared, dtype)
        else:
            D = self._distances_by_kernel(X, None if itself else Y, squared, dtype, cross, diag_x, diag_y)
        if itself:
            np.fill_diagonal(D, 0.0)
        return D

    def _compared(self, X: Any) -> np.ndarray:
        """Rows, dense, as points whose Euclidean distances are the learned ones."""
        T = self._embedded(in_double(X))
        return unit_length(T) if self.normalize else T

    def _distances_by_kernel(
        self, X: Any, Y: Any, squared: bool, dtype: DTypeLike, cross: Any, diag_x: Any, diag_y: Any
    ) -> np.ndarray:
        itself = Y is None
        Y = X if itself else Y
        cross = checked_block(cross, (len_of(X), len_of(Y)), _CROSS)
        diag_x = np.diagonal(cross) if cross is not None and itself and diag_x is None else diag_x
        own_x = self._self_kernel(in_double(X), diag_x)
        own_y = own_x if itself else self._self_kernel(in_double(Y), diag_y, "diag_y")

        def finish(K: np.ndarray, part: slice) -> np.ndarray:
            own = own_x[part], own_y
            if self.normalize:
                K, own = cosines(K, *own), (is_positive(own[0]), is_positive(own[1]))
            return finished(K, *own, squared)

        return self._by_blocks(in_double(X), in_double(Y), cross, dtype, finish)

    def pair_distances(
        self,
        X: Any,
        Y: Any,
        squared: bool = False,
        *,
        cross: ArrayLike | None = None,
        diag_x: ArrayLike | None = None,
        diag_y: ArrayLike | None = None,
    ) -> np.ndarray:
        """Learned distance between row k of X and row k of Y, for every k, in float64; on Dask, block by block."""
        if is_lazy(X) or is_lazy(Y):
            from ..rows.dask import map_pairs

            check_names(self.about, X, Y)
            refuse_similarities(cross, diag_x, diag_y)
            return map_pairs(partial(self.pair_distances, squared=squared), X, Y)
        if (xp := array_api.namespace_of(X, Y)) is not None:
            refuse_similarities(cross, diag_x, diag_y)
            return array_api.pair_distances(self, xp, X, Y, squared)
        X, Y = self._checked(X), self._checked(Y)
        if len_of(X) != len_of(Y):
            raise ValueError(
                f"pair_distances compares rows one by one and needs as many of each; got {len_of(X)} and "
                f"{len_of(Y)} rows. For all against all use distances."
            )
        self._need(cross, diag_x, diag_y, False, both=True)
        if self._linear:
            refuse_similarities(cross, diag_x, diag_y)
        if self.normalize:
            D = self._sq_cosine_distances(in_double(X), in_double(Y), cross, diag_x, diag_y)
        elif self._linear:
            D = self._self_kernel(in_double(X - Y), None)  # squares may be too large or small for float32
        else:
            X, Y = in_double(X), in_double(Y)
            phi = self.coordinates.map(X) - self.coordinates.map(Y)
            D = np.einsum("ij,ij->i", phi @ self._change, phi)
            if self._base_weight:
                own = self._base_diagonal(X, diag_x, "diag_x") + self._base_diagonal(Y, diag_y, "diag_y")
                D += self._base_weight * (own - 2.0 * self._base_paired(X, Y, cross))
        D = np.maximum(D, 0.0)
        return D if squared else np.sqrt(D)

    def kneighbors(self, X: Any, Y: Any, k: int = 10) -> tuple[np.ndarray, np.ndarray]:
        """The k nearest rows of Y of each row of X: distances and numbers of rows of Y, nearest first.

        Either may be on Dask; Dask arrays are returned then, and compute(distances, rows) goes through Y once. Beside
        the result distances of some rows to all of Y, or of a block, are held at a time.
        """
        check_count(k, "k")
        if is_lazy(X) or is_lazy(Y):
            from ..rows.dask import nearest_rows

            check_names(self.about, X, Y)
            return nearest_rows(self.kneighbors, X, Y, k)
        return nearest_among(self.of_scaled_rows().distances, self._checked(X), self._checked(Y), k)

    def of_scaled_rows(self) -> Metric:
        """The same metric for rows whose columns are scaled already."""
        return self if self.scaling is None else replace(self, scaling=None)

    def _sq_cosine_distances(self, X: Any, Y: Any, cross: Any, diag_x: Any, diag_y: Any) -> np.ndarray:
        if self._explicit(X, Y):
            return sq_norms(self._compared(X) - self._compared(Y))
        own_x, own_y = self._self_kernel(X, diag_x), self._self_kernel(Y, diag_y, "diag_y")
        K = np.einsum("ij,ij->i", self.coordinates.map(X) @ self._change, self.coordinates.map(Y))
        if self._base_weight:
            K = K + self._base_weight * self._base_paired(X, Y, cross)
        return is_positive(own_x) + is_positive(own_y) - 2.0 * paired_cosines(K, own_x, own_y)

    def _base_paired(self, X: Any, Y: Any, cross: Any) -> np.ndarray:
        cross = checked_block(cross, (len_of(X),), _CROSS)
        return self.coordinates.base_paired(X, Y) if cross is None else cross

    def kernel(self, X: Any, Y: Any = None, *, cross: ArrayLike | None = None) -> np.ndarray:
        """Learned similarities κ(x, y); usable as SVC(kernel=metric.kernel)."""
        X = self._checked(X)
        itself = Y is None
        Y = X if itself else self._checked(Y)
        self._need(cross, None, None, itself, both=False)
        if self._explicit(X, Y):
            refuse_similarities(cross)
            TX = self._embedded(X)
            TY = TX if itself else self._embedded(Y)
            if self.normalize:
                TX, TY = unit_length(TX), unit_length(TY)
            return TX @ TY.T
        cross = checked_block(cross, (len_of(X), len_of(Y)), _CROSS)
        dtype = np.float32 if _single(X) and _single(Y) else np.float64
        if not self.normalize:
            return self._by_blocks(X, Y, cross, dtype)
        if self._precomputed and self._base_weight and (cross is None or not itself):
            raise ValueError(
                "with a precomputed kernel and normalize=True the similarity of each row with itself is needed too; "
                "use distances with cross=, diag_x= and diag_y=: the kernel is 1 − distances(..., squared=True) / 2."
            )
        own_x = self._self_kernel(X, np.diagonal(cross) if cross is not None and itself else None)
        own_y = own_x if itself else self._self_kernel(Y, None)
        return self._by_blocks(X, Y, cross, dtype, lambda K, part: cosines(K, own_x[part], own_y))

    def _explicit(self, X: Any, Y: Any) -> bool:
        """Whether rows may be transformed whole: dense, linear."""
        return self._linear and (not self.coordinates.residual or not (sp.issparse(X) or sp.issparse(Y)))

    def _by_blocks(
        self, X: Any, Y: Any, cross: Any, dtype: DTypeLike, finish: Callable = lambda K, part: K
    ) -> np.ndarray:
        """finish(κ) of all rows, a block of rows of X at a time: beside the result only a block is held."""
        n, m = len_of(X), len_of(Y)
        change = self.coordinates.map(Y) @ self._change
        out = np.empty((n, m), dtype=dtype)
        step = max(1, BLOCK_BYTES // max(1, 8 * m))
        for a in range(0, n, step):
            part = slice(a, a + step)
            K = self.coordinates.map(X[part]) @ change.T
            if self._base_weight:
                K += self._base_weight * (self.coordinates.base(X[part], Y) if cross is None else cross[part])
            out[part] = finish(K, part)
        return out

    def _self_kernel(self, X: Any, diagonal: Any, name: str = "diag_x") -> np.ndarray:
        """κ(x, x) for every row; `diagonal` is κ0(x, x) where it is known."""
        if self._explicit(X, X):
            return sq_norms(self._embedded(X))
        phi = self.coordinates.map(X)
        own = np.einsum("ij,ij->i", phi @ self._change.astype(phi.dtype, copy=False), phi)
        if self._base_weight:
            own += self._base_weight * self._base_diagonal(X, diagonal, name)
        return own

    def _base_diagonal(self, X: Any, diagonal: Any, name: str) -> np.ndarray:
        diagonal = checked_block(diagonal, (len_of(X),), f"{name} must be κ0 of each row with itself")
        return self.coordinates.base_diagonal(X) if diagonal is None else diagonal

    # -- checks ------------------------------------------------------------------------------------------------

    @property
    def _precomputed(self) -> bool:
        return isinstance(self.coordinates, KernelCoordinates) and self.coordinates.kernel.precomputed

    def _need(self, cross: Any, diag_x: Any, diag_y: Any, itself: bool, both: bool) -> None:
        """Raise where a precomputed kernel lacks similarities that cannot be worked out."""
        if not self._precomputed or not self._base_weight:
            return
        if cross is None:
            raise ValueError(
                "with a precomputed kernel, similarities between the rows compared cannot be computed; pass cross=, "
                "κ0 between the rows of X and the rows of Y."
            )
        if both and not itself and (diag_x is None or diag_y is None):
            raise ValueError("with a precomputed kernel pass diag_x= and diag_y=, κ0 of each row with itself.")

    def _checked(self, X: Any) -> Any:
        if is_lazy(X):
            raise ValueError(
                "rows on Dask are taken by transform, distances, pair_distances and kneighbors; for all else pass "
                "X.compute(), or some of the rows."
            )
        coordinates = self.coordinates
        if isinstance(coordinates, KernelCoordinates) and callable(coordinates.kernel.kind) and self.n_features is None:
            return as_objects(X)
        check_names(self.about, X)
        X = check_array(
            at_least_single(X), accept_sparse=not self._precomputed and "csr", dtype=[np.float64, np.float32]
        )
        if X.shape[1] != self.n_features:
            if self._precomputed:
                raise ValueError(
                    f"X must hold similarities to the {self.n_features} training rows, one column each; it has "
                    f"{X.shape[1]} columns."
                )
            raise ValueError(f"X has {X.shape[1]} features, but this metric was learned on {self.n_features} features.")
        X = X if self.scaling is None else self.scaling.apply(X)
        return sp.csr_array(X) if sp.issparse(X) else X  # the older csr_matrix would make np.matrix of a difference

    def save(self, path: str | PathLike) -> None:
        """Write to a safetensors file, whole or not at all. Load with `mahalo.load`.

        A callable kernel is not stored, nor are support points that are not vectors: `load` asks for them again.
        """
        from .files import save

        save(self, path)

    def __repr__(self) -> str:
        c = self.coordinates
        kernel = "" if isinstance(c, LinearCoordinates) else f", kernel={c.kernel.kind!r}"
        rank = f", rank={c.rank}" if c.rank != c.n_features else ""
        return f"Metric(n_features={self.n_features}{kernel}{rank}{', normalize=True' * self.normalize})"


def _single(X: Any) -> bool:
    return getattr(X, "dtype", None) == np.float32
