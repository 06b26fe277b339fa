"""Squared distances and nearest rows under the prior, used by sampling and bounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, cast

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import cdist, pdist

from ..linalg import nearest_of, nearest_rows, row_slices, sq_norms
from ..rows import InMemoryRows, Rows
from ..types import Matrix, MatrixLike
from .forms import EdgeForms

SAMPLE = 20_000  # pairs whose distances give percentiles
_FEW_DIFFERENCES = 1 << 23  # entries of rows up to which all distances are computed one by one
_IN_MEMORY = 1 << 25  # numbers of rows in memory at once


class Geometry(Protocol):
    """Protocol of n rows with squared distances between them."""

    @property
    def n_rows(self) -> int: ...

    def sq_distances(self, index: np.ndarray) -> np.ndarray:
        """Return the squared distance of each pair of rows in `index`."""

    def sample_sq_distances(self, rng: np.random.Generator) -> np.ndarray:
        """Return squared distances of distinct points: of all pairs of rows if they are few, else of a sample."""

    def nearest(self, anchors: np.ndarray, candidates: np.ndarray, k: int) -> np.ndarray:
        """Return the k nearest candidates of each anchor (itself included), nearest first; row indices."""

    def distinct_rows(self, candidates: np.ndarray) -> np.ndarray:
        """Return the candidates whose rows are distinct; of equal rows the first is kept."""


@dataclass
class VectorGeometry:
    """Euclidean geometry of rows."""

    rows: Rows

    @property
    def n_rows(self) -> int:
        return self.rows.shape[0]

    def sq_distances(self, index: np.ndarray) -> np.ndarray:
        if not len(index):
            return np.zeros(0)
        used, compact = compact_rows(index, self.n_rows)
        if len(used) * self.rows.shape[1] <= _IN_MEMORY:
            return sq_distances(self.rows.take(used), compact)
        parts = np.array_split(index, -(-index.size * self.rows.shape[1] // _IN_MEMORY))
        lines = (np.arange(2 * len(part)).reshape(2, -1).T for part in parts)
        return np.concatenate(
            [sq_distances(self.rows.take(part.T.ravel()), line) for part, line in zip(parts, lines, strict=True)]
        )

    def sample_sq_distances(self, rng: np.random.Generator) -> np.ndarray:
        n = self.rows.n_uniform
        if n * (n - 1) // 2 > SAMPLE:
            # i < n, and an offset of 1 … n−1 from it: never a row with itself.
            i = rng.integers(0, n, SAMPLE)
            distances = self.sq_distances(np.column_stack([i, (i + rng.integers(1, n, SAMPLE)) % n]))
        else:
            distances = self._all_sq_distances()
        return distances[distances > 0]

    def _all_sq_distances(self) -> np.ndarray:
        X = self._in_memory[: self.rows.n_uniform]
        if isinstance(X, np.ndarray):
            return pdist(X, "sqeuclidean")
        return self.sq_distances(np.column_stack(np.triu_indices(X.shape[0], 1)))

    @cached_property
    def _in_memory(self) -> Matrix:
        return self.rows.take(np.arange(self.n_rows))

    def nearest(self, anchors: np.ndarray, candidates: np.ndarray, k: int) -> np.ndarray:
        from sklearn.neighbors import NearestNeighbors

        if self.rows.densifies:
            raise ValueError(
                "a search for nearest rows would make sparse X dense under a prior with correlations; use "
                "prior='identity' or 'diagonal', or strategy='random'."
            )
        X = self._in_memory
        if isinstance(X, np.ndarray):
            if len(anchors) * len(candidates) * X.shape[1] <= _FEW_DIFFERENCES:
                return candidates[nearest_of(cdist(X[anchors], X[candidates], "sqeuclidean"), k)]
            return candidates[nearest_rows(X[anchors], X[candidates], k)]
        search = NearestNeighbors(n_neighbors=k).fit(X[candidates])
        return candidates[search.kneighbors(X[anchors], return_distance=False)]

    def distinct_rows(self, candidates: np.ndarray) -> np.ndarray:
        return first_of_equal(candidates, self._row_numbers)

    @cached_property
    def _row_numbers(self) -> np.ndarray:
        return number_rows(self._in_memory)


@dataclass
class MappedGeometry(VectorGeometry):
    """Euclidean geometry of coordinates; a squared distance up to `rounding` times `sq_size(rows)` is zero."""

    sq_size: Callable[[np.ndarray], np.ndarray]
    rounding: float = 1e-14

    def sq_distances(self, index: np.ndarray) -> np.ndarray:
        D = super().sq_distances(index)
        rows, compact = compact_rows(index, self.n_rows)
        if len(rows):
            size = self.sq_size(rows)[compact].sum(axis=1)
            D[self.rounding * size >= D] = 0.0
        return D

    def _all_sq_distances(self) -> np.ndarray:
        D = super()._all_sq_distances()
        size = self.sq_size(np.arange(self.rows.n_uniform))
        i, j = np.triu_indices(len(size), 1)
        D[self.rounding * (size[i] + size[j]) >= D] = 0.0
        return D


def first_of_equal(candidates: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Return the first candidate of every number, in the order of the candidates; `numbers` are of all rows."""
    return candidates[np.sort(np.unique(numbers[candidates], return_index=True)[1])]


def number_rows(X: Matrix) -> np.ndarray:
    """Return a number for each row, the same for equal rows."""
    if isinstance(X, np.ndarray):
        rows = np.ascontiguousarray(X + 0.0)  # −0 as 0
        as_bytes = rows.view(np.dtype((np.void, rows.strides[0] or 1))) if rows.size else np.zeros(len(rows))
        return np.unique(as_bytes.ravel(), return_inverse=True)[1]
    X = sp.csr_array(X, copy=not X.has_canonical_format)
    X.sum_duplicates()
    ends = zip(X.indptr[:-1], X.indptr[1:], strict=True)
    numbers: dict[tuple[bytes, bytes], int] = {}
    keys = ((X.indices[a:b].tobytes(), (X.data[a:b] + 0.0).tobytes()) for a, b in ends)
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.intp)


def sq_distances(X: Matrix, index: np.ndarray) -> np.ndarray:
    """Return the squared Euclidean distance of each pair of rows of X; differences are in memory some at a time."""
    if isinstance(X, np.ndarray) and X.dtype == np.float64:
        X, (i, j) = np.ascontiguousarray(X), np.ascontiguousarray(index.T, dtype=np.intp)
        return EdgeForms(i, j, len(X)).apply(X, X)
    out = np.empty(len(index))
    for part in row_slices(len(index), X.shape[1]):
        i, j = index[part].T
        D = X[i] - X[j]
        out[part] = sq_norms(D.astype(np.float64)) if sp.issparse(D) else np.einsum("ij,ij->i", D, D, dtype=np.float64)
    return out


def compact_rows(index: np.ndarray, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows that occur in `index`, in order, and `index` with their positions in place of them."""
    if n_rows > 4 * index.size:
        used, compact = np.unique(index, return_inverse=True)
        return used, compact.reshape(index.shape)
    occurs = np.zeros(n_rows, dtype=bool)
    occurs[index] = True
    return np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[index]


def geometry_of(X: MatrixLike | Geometry) -> Geometry:
    """Return X if it is a geometry, else the Euclidean geometry of its rows."""
    if hasattr(X, "nearest"):
        return cast(Geometry, X)
    return VectorGeometry(InMemoryRows(sp.csr_array(X) if sp.issparse(X) else np.asarray(X)))
