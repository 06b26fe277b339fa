"""Distances between rows under the prior, whatever the rows are: what sampling and bounds ask for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import pdist

__all__ = ["Geometry", "MappedGeometry", "VectorGeometry", "len_of", "sq_distances"]

SAMPLE = 20_000


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


class VectorGeometry:
    """Euclidean distances between rows of an array, a sparse matrix, or anything that gives such rows when indexed."""

    def __init__(self, X):
        self.X = X

    @property
    def n_rows(self) -> int:
        return self.X.shape[0]

    def sq_distances(self, index: np.ndarray) -> np.ndarray:
        return sq_distances(self.X, index)

    def sample_sq_distances(self, rng: np.random.Generator) -> np.ndarray:
        n = self.n_rows
        if n * (n - 1) // 2 > SAMPLE:
            # i < n, and an offset of 1 … n−1 from it: never a row with itself.
            i = rng.integers(0, n, SAMPLE)
            distances = self.sq_distances(np.column_stack([i, (i + rng.integers(1, n, SAMPLE)) % n]))
        elif isinstance(self.X, np.ndarray):
            distances = pdist(self.X, "sqeuclidean")
        else:
            distances = self.sq_distances(np.column_stack(np.tril_indices(n, -1)))
        return distances[distances > 0]

    def nearest(self, anchors: np.ndarray, candidates: np.ndarray, k: int) -> np.ndarray:
        from sklearn.neighbors import NearestNeighbors

        if getattr(self.X, "densifies", False):
            raise ValueError(
                "looking for nearest rows would make sparse X dense under a prior with correlations; use "
                "prior='identity' or 'diagonal', or strategy='random'."
            )
        search = NearestNeighbors(n_neighbors=k).fit(self.X[candidates])
        return candidates[search.kneighbors(self.X[anchors], return_distance=False)]


class MappedGeometry(VectorGeometry):
    """Distances between coordinates `X` of rows; what is rounding beside the rows' own `sq_size(rows)` is zero."""

    def __init__(self, X, sq_size: Callable[[np.ndarray], np.ndarray]):
        super().__init__(X)
        self.sq_size = sq_size

    def sq_distances(self, index: np.ndarray) -> np.ndarray:
        D = super().sq_distances(index)
        rows, compact = np.unique(index, return_inverse=True)
        if len(rows):
            size = self.sq_size(rows)[compact.reshape(index.shape)].sum(axis=1)
            D[1e-14 * size >= D] = 0.0
        return D


def len_of(X) -> int:
    """Number of rows of an array or sparse matrix, or of objects in a sequence."""
    return X.shape[0] if hasattr(X, "shape") else len(X)


def sq_distances(X, index: np.ndarray) -> np.ndarray:
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
