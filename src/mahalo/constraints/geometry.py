"""Distances between rows under the prior, whatever the rows are: what sampling and bounds ask for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import pdist

from ..rows import InMemoryRows, Rows

__all__ = ["Geometry", "MappedGeometry", "VectorGeometry", "geometry_of", "sq_distances"]

SAMPLE = 20_000
_HELD = 1 << 25  # numbers of rows held at once


class Geometry(Protocol):
    """n rows and the squared distances between them."""

    @property
    def n_rows(self) -> int: ...

    def sq_distances(self, index: np.ndarray) -> np.ndarray:
        """Of the rows of each pair."""

    def sample_sq_distances(self, rng: np.random.Generator) -> np.ndarray:
        """Of distinct points: of all pairs of rows if they are few, of a random sample if not."""

    def nearest(self, anchors: np.ndarray, candidates: np.ndarray, k: int) -> np.ndarray:
        """For each anchor its k nearest candidates (itself, if it is one of them), nearest first; row indices."""


@dataclass
class VectorGeometry:
    """Euclidean distances between rows."""

    rows: Rows

    @property
    def n_rows(self) -> int:
        return self.rows.shape[0]

    def sq_distances(self, index: np.ndarray) -> np.ndarray:
        if not len(index):
            return np.zeros(0)
        used, compact = np.unique(index, return_inverse=True)
        if len(used) * self.rows.shape[1] <= _HELD:
            return sq_distances(self._taken(used), compact.reshape(index.shape))
        parts = np.array_split(index, -(-index.size * self.rows.shape[1] // _HELD))
        lines = (np.arange(2 * len(part)).reshape(2, -1).T for part in parts)
        return np.concatenate(
            [sq_distances(self._taken(part.T.ravel()), line) for part, line in zip(parts, lines, strict=True)]
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
        X = self._held[: self.rows.n_uniform]
        if isinstance(X, np.ndarray):
            return pdist(X, "sqeuclidean")
        return self.sq_distances(np.column_stack(np.tril_indices(X.shape[0], -1)))

    @cached_property
    def _held(self) -> Any:
        return self._taken(np.arange(self.n_rows))

    def _taken(self, index: np.ndarray) -> Any:
        return self.rows.take(index)

    def nearest(self, anchors: np.ndarray, candidates: np.ndarray, k: int) -> np.ndarray:
        from sklearn.neighbors import NearestNeighbors

        if self.rows.densifies:
            raise ValueError(
                "looking for nearest rows would make sparse X dense under a prior with correlations; use "
                "prior='identity' or 'diagonal', or strategy='random'."
            )
        search = NearestNeighbors(n_neighbors=k).fit(self._held[candidates])
        return candidates[search.kneighbors(self._held[anchors], return_distance=False)]


@dataclass
class MappedGeometry(VectorGeometry):
    """Distances between coordinates of rows; what is rounding beside the rows' own `sq_size(rows)` is zero."""

    sq_size: Callable[[np.ndarray], np.ndarray]

    def sq_distances(self, index: np.ndarray) -> np.ndarray:
        D = super().sq_distances(index)
        rows, compact = np.unique(index, return_inverse=True)
        if len(rows):
            size = self.sq_size(rows)[compact.reshape(index.shape)].sum(axis=1)
            D[1e-14 * size >= D] = 0.0
        return D

    def _all_sq_distances(self) -> np.ndarray:
        return self.sq_distances(np.column_stack(np.tril_indices(self.rows.n_uniform, -1)))


def sq_distances(X: Any, index: np.ndarray) -> np.ndarray:
    """Squared Euclidean distances between rows of X, pair by pair, a chunk at a time."""
    out = np.empty(len(index))
    step = max(1, (1 << 21) // max(1, X.shape[1]))
    for a in range(0, len(index), step):
        i, j = index[a : a + step].T
        D = X[i] - X[j]
        if sp.issparse(D):
            D = D.astype(np.float64)
            out[a : a + step] = np.asarray(D.multiply(D).sum(axis=1)).ravel()
        else:
            out[a : a + step] = np.einsum("ij,ij->i", D, D, dtype=np.float64)
    return out


def geometry_of(X: Any) -> Any:
    """Distances between rows, from the rows or from whatever can tell already."""
    if X is None or hasattr(X, "nearest"):
        return X
    return VectorGeometry(InMemoryRows(sp.csr_array(X) if sp.issparse(X) else np.asarray(X)))
