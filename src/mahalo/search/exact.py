"""Exact search: approximate distances to all rows by one product, then exact distances to the candidates."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from ..coordinates import LinearCoordinates
from ..linalg import ExactDistances, Matrix, refined_nearest, to_dense
from ..metric import Metric, cosines, is_positive
from ..metric.query_side import self_similarities
from ..persistence import Contents, matrix_arrays
from ..types import RowsLike
from ..validation import in_double, len_of

_BLOCK = 1 << 22  # distances, or differences of entries, held at once


def _within(
    approximate: np.ndarray, limit: np.ndarray, exact: ExactDistances, radius: float
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return distances and positions within the radius of each query, nearest first.

    Rows with `approximate` above the query's `limit` are certainly outside.
    """
    found = []
    for q, (values, end) in enumerate(zip(approximate, limit, strict=True)):
        positions = np.flatnonzero(values <= end)
        distances = exact(np.full(len(positions), q), positions)
        positions, distances = positions[distances <= radius], distances[distances <= radius]
        order = np.lexsort((positions, distances))
        found.append((distances[order], positions[order]))
    return found


@dataclass(frozen=True, eq=False)
class _ApproximateDistances:
    """Squared distances of queries to all rows, each correct to ± half of its query's slack.

    The squared distances of query q are `sq[q] + constant[q]`.
    """

    sq: np.ndarray
    constant: np.ndarray
    slack: np.ndarray


class _ExactSearch(ABC):
    """Search by the approximate and the exact distances of a subclass."""

    @abstractmethod
    def _approximate(self, Q: Matrix) -> _ApproximateDistances:
        """Return the distances of mapped queries to all rows, up to rounding."""

    @abstractmethod
    def _exact(self, Q: Matrix) -> ExactDistances:
        """Return a function of query numbers and row numbers that computes exact distances."""

    def nearest(self, Q: Matrix, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return distances and positions of the k nearest rows of each mapped query."""
        approximate = self._approximate(Q)
        return refined_nearest(approximate.sq, approximate.slack, self._exact(Q), k)

    def within(self, Q: Matrix, radius: float) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return distances and positions of the rows within the radius of each mapped query."""
        approximate = self._approximate(Q)
        limit = radius**2 - approximate.constant + approximate.slack
        return _within(approximate.sq, limit, self._exact(Q), radius)


class VectorSearch(_ExactSearch):
    """Search among dense vectors in the space where the learned distance is the Euclidean one."""

    kind = "vectors"

    def __init__(self, metric: Metric, vectors: np.ndarray) -> None:
        self.metric, self.vectors = metric, vectors

    @classmethod
    def of(cls, metric: Metric, X: RowsLike) -> VectorSearch:
        return cls(metric, transform_in_double(metric, X))

    @property
    def n(self) -> int:
        return len(self.vectors)

    @property
    def step(self) -> int:
        """Number of queries to search at once."""
        return max(1, _BLOCK // max(1, self.n, 16 * self.vectors.shape[1]))

    @cached_property
    def _centre(self) -> np.ndarray:
        return self.vectors.mean(axis=0, dtype=np.float64)

    @cached_property
    def _sq_radii(self) -> np.ndarray:
        """‖x − c‖² of each row, in double precision."""
        out = np.empty(self.n)
        step = max(1, _BLOCK // max(1, self.vectors.shape[1]))
        for a in range(0, self.n, step):
            away = self.vectors[a : a + step] - self._centre
            out[a : a + step] = np.einsum("ij,ij->i", away, away)
        return out

    @cached_property
    def _max_norm(self) -> float:
        return float(np.sqrt(np.einsum("ij,ij->i", self.vectors, self.vectors, dtype=np.float64).max(initial=0.0)))

    def add(self, X: RowsLike) -> None:
        more = transform_in_double(self.metric, X).astype(self.vectors.dtype, copy=False)
        self.vectors = np.concatenate([self.vectors, more])
        for name in ("_centre", "_sq_radii", "_max_norm"):
            self.__dict__.pop(name, None)

    def map(self, Q: RowsLike) -> np.ndarray:
        return transform_in_double(self.metric, Q)

    @property
    def space(self) -> Metric:
        return euclidean_metric(self.metric.n_outputs)

    def stored(self, positions: np.ndarray) -> np.ndarray:
        return self.vectors[positions].astype(np.float64, copy=False)

    def _approximate(self, Q: Matrix) -> _ApproximateDistances:
        """Return ‖x − c‖² − 2 (q − c)·x, with ‖q − x‖² less that, and a bound of the rounding error."""
        away, dtype = Q - self._centre, self.vectors.dtype
        products = away.astype(dtype) @ self.vectors.T
        products *= -2.0
        products += self._sq_radii.astype(dtype)
        length = np.sqrt(np.einsum("ij,ij->i", away, away))
        constant = length**2 + 2.0 * away @ self._centre
        eps = np.finfo(dtype).eps * (16.0 + 4.0 * np.sqrt(self.vectors.shape[1]))
        slack = eps * (self._sq_radii.max(initial=0.0) + 2.0 * length * self._max_norm)
        return _ApproximateDistances(products, constant, slack)

    def _exact(self, Q: Matrix) -> ExactDistances:
        rounding = (8.0 * float(np.finfo(self.vectors.dtype).eps)) ** 2

        def distances(queries: np.ndarray, positions: np.ndarray) -> np.ndarray:
            out = np.empty(len(queries))
            step = max(1, _BLOCK // max(1, self.vectors.shape[1]))
            for a in range(0, len(queries), step):
                part = slice(a, a + step)
                query, stored = Q[queries[part]], self.vectors[positions[part]]
                difference = query - stored
                sq, size = _sq_norms(difference), _sq_norms(query) + _sq_norms(stored)
                # A row is transformed with others, whose number changes the last digits: equal rows differ by these.
                out[part] = np.where((sq <= rounding * size) & np.isfinite(size), 0.0, np.sqrt(sq))
            return out

        return distances

    def arrays(self) -> dict[str, np.ndarray]:
        return {"vectors": self.vectors}

    @classmethod
    def from_contents(cls, metric: Metric, contents: Contents, options: dict[str, int]) -> VectorSearch:
        return cls(metric, contents.array("vectors", (None, metric.n_outputs), (np.float32, np.float64)))


def _sq_norms(T: np.ndarray) -> np.ndarray:
    return np.einsum("ij,ij->i", T, T, dtype=np.float64)


def euclidean_metric(n_features: int) -> Metric:
    """Return the Euclidean distance as a metric."""
    return Metric(LinearCoordinates.euclidean(n_features), np.zeros((0, 0)))


def transform_in_double(metric: Metric, X: RowsLike) -> np.ndarray:
    """Return `metric.transform(X)` in double precision; single precision would lose the distances of near rows."""
    return metric.of_validated_rows().transform(in_double(metric.validate_rows(X)))


class SimilaritySearch(_ExactSearch):
    """Search among rows that are not transformed to vectors: wide sparse rows, and objects under a kernel.

    κ(q, x) = φ(q)ᵀ (F − wI) φ(x) + w κ0(q, x): the coordinates of the rows and their κ(x, x) are stored; κ0 is a
    product of sparse rows, or the kernel.
    """

    kind = "similarities"

    def __init__(self, metric: Metric, rows: Matrix) -> None:
        self.metric, self.rows = metric, rows

    @classmethod
    def of(cls, metric: Metric, X: RowsLike) -> SimilaritySearch:
        return cls(metric, in_double(metric.validate_rows(X)))

    @property
    def n(self) -> int:
        return len_of(self.rows)

    @property
    def step(self) -> int:
        wide = self.metric.n_features if self._dense_prior else 1
        return max(1, _BLOCK // max(1, self.n, 4 * (wide or 1)))

    @property
    def _dense_prior(self) -> bool:
        return self.metric.is_linear and self.metric.linear_coordinates.prior.dense

    @cached_property
    def _change(self) -> np.ndarray:
        """(F − wI) φ(x) of the stored rows."""
        return self.metric.coordinates.map(self.rows) @ self.metric.core_change

    @cached_property
    def _own(self) -> np.ndarray:
        """κ(x, x) of the stored rows."""
        return self_similarities(self.metric, self.rows)

    @cached_property
    def _whitened(self) -> Matrix:
        return self.metric.linear_coordinates.prior.whiten(self.rows)

    def add(self, X: RowsLike) -> None:
        more = in_double(self.metric.validate_rows(X))
        sparse = sp.issparse(self.rows) or sp.issparse(more)
        self.rows = sp.csr_array(sp.vstack([self.rows, more])) if sparse else np.concatenate([self.rows, more])
        for name in ("_change", "_own", "_whitened"):
            self.__dict__.pop(name, None)

    def map(self, Q: RowsLike) -> Matrix:
        return in_double(self.metric.validate_rows(Q))

    @property
    def space(self) -> Metric:
        return self.metric.of_validated_rows()

    def stored(self, positions: np.ndarray) -> Matrix:
        return self.rows[positions]

    def _base(self, Q: Matrix) -> np.ndarray:
        """Return κ0 of queries with stored rows, without making sparse rows dense."""
        if not self.metric.is_linear:
            return self.metric.coordinates.base(Q, self.rows)
        c = self.metric.linear_coordinates
        if c.prior.dense:
            return np.asarray((self.rows @ c.prior.compose(c.prior.whiten(Q).T)).T)
        K = c.prior.whiten(Q) @ self._whitened.T
        return to_dense(K)

    def _approximate(self, Q: Matrix) -> _ApproximateDistances:
        metric = self.metric
        K = metric.coordinates.map(Q) @ self._change.T
        if metric.base_weight:
            K += metric.base_weight * self._base(Q)
        stored, query = self._own, self_similarities(metric, Q)
        if metric.normalize:
            K, stored, query = cosines(K, query, stored), is_positive(stored), is_positive(query)
        K *= -2.0
        K += stored
        return _ApproximateDistances(K, query, 1e-12 * (query + stored.max(initial=0.0)))

    def _exact(self, Q: Matrix) -> ExactDistances:
        def distances(queries: np.ndarray, positions: np.ndarray) -> np.ndarray:
            if not len(queries):
                return np.empty(0)
            wide = self.metric.n_features if self._dense_prior else 64
            step = max(1, _BLOCK // max(1, wide or 1))
            parts = [slice(a, a + step) for a in range(0, len(queries), step)]
            scaled = self.metric.of_validated_rows()
            return np.concatenate([scaled.pair_distances(Q[queries[p]], self.rows[positions[p]]) for p in parts])

        return distances

    def arrays(self) -> dict[str, np.ndarray]:
        if self.rows.dtype.kind != "f":
            raise ValueError(
                "an index of objects that are not vectors cannot be saved; save the metric, and build the index again "
                "from metric and objects."
            )
        return matrix_arrays("rows", self.rows)

    @classmethod
    def from_contents(cls, metric: Metric, contents: Contents, options: dict[str, int]) -> SimilaritySearch:
        rows = contents.matrix("rows", metric.n_features)
        if rows is None:
            raise ValueError("its rows are missing")
        return cls(metric, rows)
