"""The learned metric κ = w κ0 + φᵀ (F − wI) φ: distances, similarities, transform."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from ..coordinates import Coordinates, LinearCoordinates
from ..features import FeatureMap
from ..linalg import symmetrize
from ..rows import is_lazy
from ..types import Matrix, RowsLike
from ..validation import check_count, in_double, len_of
from . import array_api
from .input_checks import check_names, checked_rows, names_of_columns
from .local_matrix import local_matrix
from .pairwise import all_distances, cosines, nearest_among, unit_length
from .query_side import QuerySide, query_side
from .scaling import Scaling
from .similarities import BaseSimilarities, kernel_distances, self_similarity, similarity_blocks, sq_pair_distances

if TYPE_CHECKING:
    from .torch_module import MetricModule

_MAX_DENSE_COLUMNS = 20_000  # features beyond which d × d matrices and dense outputs are refused
_NOT_LINEAR = (
    "a metric in the feature space of a kernel, or over features, {}; use transform, distances or kernel, or learn "
    "with kernel='linear', features=None."
)


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
    coordinates : Coordinates
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
    scaling : Scaling, optional
        Applied to rows before anything else; `matrix` and `linear_map` are of scaled rows.
    features : FeatureMap, optional
        Applied to (scaled) rows next; the coordinates are those of its columns.
    about : mapping
        Notes such as names of columns, stored in files as JSON.
    """

    coordinates: Coordinates
    F: np.ndarray
    eta: float = 1.0
    normalize: bool = False
    rotation: np.ndarray | None = None
    scaling: Scaling | None = None
    features: FeatureMap | None = None
    about: Mapping[str, Any] = field(default_factory=dict)

    @property
    def n_features(self) -> int | None:
        """Number of features it was learned on; None for objects that are not vectors."""
        return self.coordinates.n_features if self.features is None else self.features.n_features_in

    @property
    def column_names(self) -> list[str]:
        """Names of the columns it was learned on; empty if they are not known."""
        return names_of_columns(self.about)

    @property
    def is_linear(self) -> bool:
        """True if `transform` is a linear map of the rows."""
        return self.coordinates.is_linear and self.features is None

    @property
    def linear_coordinates(self) -> LinearCoordinates:
        """Coordinates of a metric that is linear in the rows or in their features; ValueError for a kernel's."""
        if not isinstance(self.coordinates, LinearCoordinates):
            raise ValueError(_NOT_LINEAR.format("is no linear map of the rows"))
        return self.coordinates

    @property
    def base_weight(self) -> float:
        """Weight w = ηρ of κ0 outside the coordinates."""
        return self.eta * self.coordinates.residual

    @cached_property
    def core_change(self) -> np.ndarray:
        """F − wI, the learned change inside the coordinates."""
        return self.F - self.base_weight * np.eye(len(self.F))

    @cached_property
    def map_constants(self) -> array_api.MapConstants:
        """Linear map and scaling of columns, as arrays of the kinds of the rows it met."""
        return array_api.MapConstants.of(self)

    @cached_property
    def root(self) -> np.ndarray:
        """F^½."""
        values, vectors = np.linalg.eigh(symmetrize(self.F))
        return (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T

    @cached_property
    def matrix(self) -> np.ndarray:
        """W, d × d; linear kernel only. With `normalize` the cosine is that of xᵀWy."""
        self._require_linear("has no d × d matrix")
        d = self.n_features
        if d is None or d > _MAX_DENSE_COLUMNS:
            raise ValueError(
                f"the matrix of this metric would be {d} × {d}. Use distances, pair_distances or kernel, which do not "
                "need it."
            )
        G = self.embed(np.eye(d))
        return symmetrize(G @ G.T)

    def linear_map(self) -> np.ndarray:
        """Return G, n_features × n_outputs, with ``transform(X) = X @ G`` (before rows are brought to unit length)."""
        self._require_linear("is no linear map of the rows")
        c = self.linear_coordinates
        if c.n_features > _MAX_DENSE_COLUMNS and c.residual:
            raise ValueError(
                f"the map of this metric would be {c.n_features} × {c.n_features}; learn with a basis and "
                "residual=False."
            )
        inside = c.basis is not None and not c.residual
        G = c.projection @ self.root if inside else self.embed(np.eye(c.n_features))
        return G if self.rotation is None else G @ self.rotation

    def _require_linear(self, problem: str) -> None:
        if not self.is_linear:
            raise ValueError(_NOT_LINEAR.format(problem))

    def query_side(self) -> QuerySide:
        """Return the map of queries for search among stored vectors that stay unchanged."""
        return query_side(self)

    def at(self, x: ArrayLike) -> np.ndarray:
        """Return the local matrix at one row, d × d: a small step δ from x has squared length δᵀ at(x) δ.

        JᵀWJ with J the Jacobian of the features; with `normalize` the second-order form of 2 − 2 cos. A linear metric
        without `normalize` has the same matrix everywhere.
        """
        return local_matrix(self, x)

    # -- transform ---------------------------------------------------------------------------------------------

    @property
    def n_outputs(self) -> int:
        """Columns of `transform`."""
        return self.coordinates.n_outputs

    def transform(self, X: RowsLike) -> np.ndarray:
        """Return rows in a space where the learned distance is the Euclidean one.

        Exact for linear kernels. For others F^½ φ(x), which leaves out what of φ(x) lies outside the span of the
        training rows: exact between those, approximate for new ones; `distances` is exact for all.
        """
        if is_lazy(X):
            from ..rows.dask import map_rows

            check_names(self.column_names, X)
            return map_rows(self.transform, X, self.n_outputs)
        if (xp := array_api.namespace_of(X)) is not None:
            return array_api.transform(self, xp, X)
        rows = self.validate_rows(X)
        if self.is_too_wide(rows):
            raise ValueError(
                f"transform would make a dense array with {self.n_outputs} columns. Use metric.distances or "
                "metric.kernel, which take sparse rows as they are, or learn with a basis and residual=False."
            )
        T = self.embed(rows)
        T = T if self.rotation is None else T @ self.rotation.astype(T.dtype, copy=False)
        T = unit_length(T) if self.normalize else T
        return T.astype(np.float32, copy=False) if rows.dtype == np.float32 else T

    def is_too_wide(self, X: RowsLike) -> bool:
        """Return whether `transform` refuses these rows: sparse, with an output both dense and wide."""
        return sp.issparse(X) and self.n_outputs > _MAX_DENSE_COLUMNS

    def embed(self, X: Matrix) -> np.ndarray:
        """Return validated rows in the learned space, before rotation and unit length."""
        return self.coordinates.embed(X, self.root, self.eta)

    # -- distances and similarities -----------------------------------------------------------------------------

    def distances(
        self,
        X: RowsLike,
        Y: RowsLike | None = None,
        squared: bool = False,
        *,
        cross: ArrayLike | None = None,
        diag_x: ArrayLike | None = None,
        diag_y: ArrayLike | None = None,
    ) -> np.ndarray:
        """Return learned distances between all rows of X and all rows of Y (of X itself by default).

        Worked out in double precision, whatever the precision of the rows, and returned in theirs; a Dask array, block
        by block, if X or Y is on Dask.
        """
        base = BaseSimilarities(cross, diag_x, diag_y)
        if is_lazy(X) or is_lazy(Y):
            from ..rows.dask import pairwise_table

            check_names(self.column_names, X, Y)
            base.refuse()
            return pairwise_table(partial(self.distances, squared=squared), X, Y)
        if (xp := array_api.namespace_of(X, Y)) is not None:
            base.refuse()
            return array_api.distances(self, xp, X, Y, squared)
        A = self.validate_rows(X)
        B = None if Y is None else self.validate_rows(Y)
        base.require_for(self, itself=B is None)
        dtype = _common_dtype(A, A if B is None else B)
        if self.is_explicit(A, A if B is None else B):
            base.refuse()
            TA = self.embed_in_double(A)
            D = all_distances(TA, TA if B is None else self.embed_in_double(B), squared, dtype)
        else:
            D = kernel_distances(self, A, B, squared, dtype, base)
        if B is None:
            np.fill_diagonal(D, 0.0)
        return D

    def embed_in_double(self, X: Matrix) -> np.ndarray:
        """Return rows, dense, as points whose Euclidean distances are the learned ones."""
        T = self.embed(in_double(X))
        return unit_length(T) if self.normalize else T

    def pair_distances(
        self,
        X: RowsLike,
        Y: RowsLike,
        squared: bool = False,
        *,
        cross: ArrayLike | None = None,
        diag_x: ArrayLike | None = None,
        diag_y: ArrayLike | None = None,
    ) -> np.ndarray:
        """Return the learned distance of row k of X from row k of Y, for every k, in float64; on Dask by blocks."""
        base = BaseSimilarities(cross, diag_x, diag_y)
        if is_lazy(X) or is_lazy(Y):
            from ..rows.dask import map_pairs

            check_names(self.column_names, X, Y)
            base.refuse()
            return map_pairs(partial(self.pair_distances, squared=squared), X, Y)
        if (xp := array_api.namespace_of(X, Y)) is not None:
            base.refuse()
            return array_api.pair_distances(self, xp, X, Y, squared)
        A, B = self.validate_rows(X), self.validate_rows(Y)
        if len_of(A) != len_of(B):
            raise ValueError(
                f"pair_distances compares rows one by one and needs as many of each; got {len_of(A)} and "
                f"{len_of(B)} rows. For all against all use distances."
            )
        base.require_for(self)
        if self.coordinates.is_linear:
            base.refuse()
        D = np.maximum(sq_pair_distances(self, A, B, base), 0.0)
        return D if squared else np.sqrt(D)

    def kneighbors(self, X: RowsLike, Y: RowsLike, k: int = 10) -> tuple[np.ndarray, np.ndarray]:
        """Return distances and row numbers of the k nearest rows of Y of each row of X, nearest first.

        Either may be on Dask; Dask arrays are returned then, and compute(distances, rows) goes through Y once. Beside
        the result distances of some rows to all of Y, or of a block, are held at a time.
        """
        check_count(k, "k")
        if is_lazy(X) or is_lazy(Y):
            from ..rows.dask import nearest_rows

            check_names(self.column_names, X, Y)
            return nearest_rows(self.kneighbors, X, Y, k)
        return nearest_among(self.of_validated_rows().distances, self.validate_rows(X), self.validate_rows(Y), k)

    def without_learning(self) -> Metric:
        """Return the distance before learning: Euclidean between the rows, or that of the kernel."""
        coordinates, F = self.coordinates.without_learning()
        if self.features is not None:
            coordinates = LinearCoordinates.euclidean(self.features.n_features_in)
        return replace(self, coordinates=coordinates, F=F, eta=1.0, normalize=False, rotation=None, features=None)

    def of_validated_rows(self) -> Metric:
        """Return the metric of validated rows: scaled, and with their features."""
        return self if self.scaling is None and self.features is None else self._unscaled

    @cached_property
    def _unscaled(self) -> Metric:
        return replace(self, scaling=None, features=None)  # kept for its root, which takes long to find

    def kernel(self, X: RowsLike, Y: RowsLike | None = None, *, cross: ArrayLike | None = None) -> np.ndarray:
        """Return learned similarities κ(x, y); usable as SVC(kernel=metric.kernel)."""
        base, itself = BaseSimilarities(cross), Y is None
        A = self.validate_rows(X)
        B = A if Y is None else self.validate_rows(Y)
        base.require_for(self, itself=True)
        if self.is_explicit(A, B):
            base.refuse()
            TA = self.embed(A)
            TB = TA if itself else self.embed(B)
            if self.normalize:
                TA, TB = unit_length(TA), unit_length(TB)
            return TA @ TB.T
        between, dtype = base.between(len_of(A), len_of(B)), _common_dtype(A, B)
        if not self.normalize:
            return similarity_blocks(self, A, B, between, dtype)
        if self.coordinates.is_precomputed and self.base_weight and (between is None or not itself):
            raise ValueError(
                "with a precomputed kernel and normalize=True the similarity of each row with itself is needed too; "
                "use distances with cross=, diag_x= and diag_y=: the kernel is 1 − distances(..., squared=True) / 2."
            )
        own_x = self_similarity(self, A, np.diagonal(between) if between is not None and itself else None)
        own_y = own_x if itself else self_similarity(self, B)
        return similarity_blocks(self, A, B, between, dtype, lambda K, part: cosines(K, own_x[part], own_y))

    def is_explicit(self, X: Matrix, Y: Matrix) -> bool:
        """Return True if validated rows may be transformed whole: dense, linear."""
        return self.coordinates.is_linear and (not self.coordinates.residual or not (sp.issparse(X) or sp.issparse(Y)))

    def validate_rows(self, X: RowsLike) -> Matrix:
        """Return rows as a finite array, CSR array or array of objects, with the columns of this metric, scaled."""
        rows = checked_rows(self, X)
        rows = rows if self.scaling is None else self.scaling.apply(rows)
        if self.features is None:
            return rows
        return self.features.transform(rows).astype(rows.dtype, copy=False)

    def save(self, path: str | PathLike) -> None:
        """Write to a safetensors file, whole or not at all. Load with `mahalo.load`.

        A callable kernel is not stored, nor are support points that are not vectors: `load` asks for them again.
        """
        from .files import save

        save(self, path)

    def to_onnx(self, path: str | PathLike) -> None:
        """Write `transform` of float32 rows as an ONNX graph (opset 18), which runs without this library.

        Input "X", output "transformed"; any number of rows. ValueError for a kernel or features that are code.
        """
        from .onnx_file import write_onnx

        write_onnx(self, path)

    def to_torch(self) -> MetricModule:
        """Return `transform` as a torch module with constant buffers, which torch.jit.script takes."""
        try:
            from .torch_module import as_module
        except ModuleNotFoundError as error:
            if error.name != "torch":
                raise
            raise ImportError('to_torch needs torch: pip install "mahalo[torch]"') from None
        return as_module(self)

    def __repr__(self) -> str:
        c = self.coordinates
        space = "" if c.is_linear else f", kernel={c.kernel_name!r}"
        if self.features is not None:
            space = f", features={type(self.features).__name__}, n_columns={self.features.n_columns}"
        rank = f", rank={c.rank}" if c.rank != c.n_features else ""
        return f"Metric(n_features={self.n_features}{space}{rank}{', normalize=True' * self.normalize})"


def _common_dtype(X: Matrix, Y: Matrix) -> type[np.floating]:
    """Return float32 if both sets of rows are in single precision, else float64."""
    return np.float32 if X.dtype == Y.dtype == np.float32 else np.float64
