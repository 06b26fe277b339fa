"""Exact search: all distances by one product, then those that could be among the nearest from differences."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..linalg import nearest_of
from ..metric import Metric, cosines, is_positive
from ..metric.query_side import self_similarities
from ..validation import in_double, len_of
from .sparse_rows import as_arrays, from_arrays

__all__ = ["SimilaritySearch", "VectorSearch", "checked_vectors", "vectors_of"]

_BLOCK = 1 << 22  # distances, or differences of entries, held at once
_SPARE = 8  # candidates beyond k, for those that rounding may have put behind it

Refine = Callable[[np.ndarray, np.ndarray], np.ndarray]  # (queries, positions), both flat → distances


def _nearest(near: np.ndarray, slack: np.ndarray, refine: Refine, k: int) -> tuple[np.ndarray, np.ndarray]:
    """(distances, positions) of the k nearest of each row, of equals the first.

    `near` holds squared distances, but for a number common to a row, right to ± half of the row's `slack`.
    """
    n_rows, n = near.shape
    width = min(n, k + _SPARE)
    found = nearest_of(near, width)
    values = np.take_along_axis(near, found, axis=1)
    rows = np.repeat(np.arange(n_rows), width)
    distances = refine(rows, found.ravel()).reshape(found.shape)
    distances, found = _in_order(distances, found, k)
    if width < n:
        # Rows with more candidates than were looked at.
        for row in np.flatnonzero(values[:, -1] <= values[:, k - 1] + slack):
            more = np.flatnonzero(near[row] <= values[row, k - 1] + slack[row])[None]
            exact = refine(np.full(more.size, row), more.ravel())[None]
            (distances[row],), (found[row],) = _in_order(exact, more, k)
    return distances, found


def _in_order(distances: np.ndarray, positions: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """By distance, then position, the first k of every row."""
    order = np.lexsort((positions, distances), axis=1)[:, :k]
    return np.take_along_axis(distances, order, axis=1), np.take_along_axis(positions, order, axis=1)


def _within(near: np.ndarray, limit: np.ndarray, refine: Refine, radius: float) -> list[tuple[np.ndarray, np.ndarray]]:
    """(distances, positions) within the radius, for each row, nearest first; `limit` is where `near` surely ends."""
    found = []
    for row, (values, end) in enumerate(zip(near, limit, strict=True)):
        positions = np.flatnonzero(values <= end)
        distances = refine(np.full(len(positions), row), positions)
        positions, distances = positions[distances <= radius], distances[distances <= radius]
        order = np.lexsort((positions, distances))
        found.append((distances[order], positions[order]))
    return found


class VectorSearch:
    """Among dense vectors in the space where the learned distance is the Euclidean one."""

    kind = "vectors"

    def __init__(self, metric: Metric, vectors: np.ndarray) -> None:
        self.metric, self.vectors = metric, vectors

    @classmethod
    def of(cls, metric: Metric, X: Any) -> VectorSearch:
        return cls(metric, vectors_of(metric, X))

    @property
    def n(self) -> int:
        return len(self.vectors)

    @property
    def step(self) -> int:
        """Queries to take at once."""
        return max(1, _BLOCK // max(1, self.n, 16 * self.vectors.shape[1]))

    @cached_property
    def _centre(self) -> np.ndarray:
        return self.vectors.mean(axis=0, dtype=np.float64)

    @cached_property
    def _sq_radii(self) -> np.ndarray:
        """‖x − c‖² in double precision."""
        out = np.empty(self.n)
        step = max(1, _BLOCK // max(1, self.vectors.shape[1]))
        for a in range(0, self.n, step):
            away = self.vectors[a : a + step] - self._centre
            out[a : a + step] = np.einsum("ij,ij->i", away, away)
        return out

    @cached_property
    def _longest(self) -> float:
        return float(np.sqrt(np.einsum("ij,ij->i", self.vectors, self.vectors, dtype=np.float64).max(initial=0.0)))

    def add(self, X: Any) -> None:
        more = vectors_of(self.metric, X).astype(self.vectors.dtype, copy=False)
        self.vectors = np.concatenate([self.vectors, more])
        for name in ("_centre", "_sq_radii", "_longest"):
            self.__dict__.pop(name, None)

    def asked(self, Q: Any) -> np.ndarray:
        return vectors_of(self.metric, Q)

    def _near(self, Q: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """‖x − c‖² − 2 (q − c)·x, what makes it ‖q − x‖², and by how much rounding may be off."""
        away, dtype = Q - self._centre, self.vectors.dtype
        near = away.astype(dtype) @ self.vectors.T
        near *= -2.0
        near += self._sq_radii.astype(dtype)
        length = np.sqrt(np.einsum("ij,ij->i", away, away))
        rest = length**2 + 2.0 * away @ self._centre
        eps = np.finfo(dtype).eps * (16.0 + 4.0 * np.sqrt(self.vectors.shape[1]))
        return near, rest, eps * (self._sq_radii.max(initial=0.0) + 2.0 * length * self._longest)

    def _refine(self, Q: np.ndarray) -> Refine:
        def distances(rows: np.ndarray, positions: np.ndarray) -> np.ndarray:
            out = np.empty(len(rows))
            step = max(1, _BLOCK // max(1, self.vectors.shape[1]))
            for a in range(0, len(rows), step):
                part = slice(a, a + step)
                difference = Q[rows[part]] - self.vectors[positions[part]]
                out[part] = np.sqrt(np.einsum("ij,ij->i", difference, difference))
            return out

        return distances

    def nearest(self, Q: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        near, _, slack = self._near(Q)
        return _nearest(near, slack, self._refine(Q), k)

    def within(self, Q: np.ndarray, radius: float) -> list[tuple[np.ndarray, np.ndarray]]:
        near, rest, slack = self._near(Q)
        return _within(near, radius**2 - rest + slack, self._refine(Q), radius)

    def arrays(self) -> dict[str, np.ndarray]:
        return {"vectors": self.vectors}

    @classmethod
    def from_arrays(cls, metric: Metric, arrays: dict[str, np.ndarray], options: dict[str, Any]) -> VectorSearch:
        return cls(metric, checked_vectors(metric, arrays, (np.float32, np.float64)))


def vectors_of(metric: Metric, X: Any) -> np.ndarray:
    """`transform` in double precision: of vectors rounded to single, near ones would lose their distances."""
    return metric.of_scaled_rows().transform(in_double(metric.validate_rows(X)))


def checked_vectors(metric: Metric, arrays: dict[str, np.ndarray], dtypes: tuple[type, ...]) -> np.ndarray:
    vectors = arrays["vectors"]
    if vectors.dtype not in dtypes or vectors.ndim != 2 or vectors.shape[1] != metric.n_outputs:
        raise ValueError(f"vectors of shape {vectors.shape} and dtype {vectors.dtype} are not of its metric")
    if not np.isfinite(vectors).all():
        raise ValueError("vectors are not finite")
    return vectors


class SimilaritySearch:
    """Among rows that are not made vectors: wide sparse ones, and objects under a kernel.

    κ(q, x) = φ(q)ᵀ (F − wI) φ(x) + w κ0(q, x): the coordinates of stored rows are kept, and their κ(x, x); κ0 is a
    product of sparse rows, or the kernel.
    """

    kind = "similarities"

    def __init__(self, metric: Metric, rows: Any) -> None:
        self.metric, self.rows = metric, rows

    @classmethod
    def of(cls, metric: Metric, X: Any) -> SimilaritySearch:
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
        return self_similarities(self.metric, self.rows)

    @cached_property
    def _whitened(self) -> Any:
        return self.metric.linear_coordinates.prior.whiten(self.rows)

    def add(self, X: Any) -> None:
        more = in_double(self.metric.validate_rows(X))
        sparse = sp.issparse(self.rows) or sp.issparse(more)
        self.rows = sp.csr_array(sp.vstack([self.rows, more])) if sparse else np.concatenate([self.rows, more])
        for name in ("_change", "_own", "_whitened"):
            self.__dict__.pop(name, None)

    def asked(self, Q: Any) -> Any:
        return in_double(self.metric.validate_rows(Q))

    def _base(self, Q: Any) -> np.ndarray:
        """κ0 of queries with stored rows, sparse ones staying so."""
        if not self.metric.is_linear:
            return self.metric.coordinates.base(Q, self.rows)
        c = self.metric.linear_coordinates
        if c.prior.dense:
            return np.asarray((self.rows @ c.prior.compose(c.prior.whiten(Q).T)).T)
        K = c.prior.whiten(Q) @ self._whitened.T
        return K.toarray() if sp.issparse(K) else np.asarray(K)

    def _near(self, Q: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Squared distances less a number of each row, that number, and by how much rounding may be off."""
        metric = self.metric
        K = metric.coordinates.map(Q) @ self._change.T
        if metric.base_weight:
            K += metric.base_weight * self._base(Q)
        own, asked = self._own, self_similarities(metric, Q)
        if metric.normalize:
            K, own, asked = cosines(K, asked, own), is_positive(own), is_positive(asked)
        K *= -2.0
        K += own
        return K, asked, 1e-12 * (asked + own.max(initial=0.0))

    def _refine(self, Q: Any) -> Refine:
        def distances(rows: np.ndarray, positions: np.ndarray) -> np.ndarray:
            if not len(rows):
                return np.empty(0)
            wide = self.metric.n_features if self._dense_prior else 64
            step = max(1, _BLOCK // max(1, wide or 1))
            parts = [slice(a, a + step) for a in range(0, len(rows), step)]
            scaled = self.metric.of_scaled_rows()
            return np.concatenate([scaled.pair_distances(Q[rows[p]], self.rows[positions[p]]) for p in parts])

        return distances

    def nearest(self, Q: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
        near, _, slack = self._near(Q)
        return _nearest(near, slack, self._refine(Q), k)

    def within(self, Q: Any, radius: float) -> list[tuple[np.ndarray, np.ndarray]]:
        near, rest, slack = self._near(Q)
        return _within(near, radius**2 - rest + slack, self._refine(Q), radius)

    def arrays(self) -> dict[str, np.ndarray]:
        return as_arrays(self.rows)

    @classmethod
    def from_arrays(cls, metric: Metric, arrays: dict[str, np.ndarray], options: dict[str, Any]) -> SimilaritySearch:
        rows = from_arrays(arrays)
        if rows.ndim != 2 or rows.shape[1] != metric.n_features:
            raise ValueError(f"rows of shape {rows.shape} do not fit a metric of {metric.n_features} features")
        return cls(metric, rows)
