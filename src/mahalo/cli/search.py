"""Exact nearest rows under a metric, a block of queries at a time."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..coordinates import LinearCoordinates
from ..linalg import nearest_of
from ..metric import Metric
from ..validation import len_of
from .naming import named, plain_name, quoted
from .tables import write
from .watching import Watch

__all__ = ["Found", "nearest"]

_BLOCK_BYTES = 1 << 26  # of distances held at once


@dataclass(frozen=True)
class Found:
    """Rows found, nearest first, and their distances: queries × k; names where rows have them."""

    rows: np.ndarray
    distances: np.ndarray
    asking: list[str] | None
    names: list[str] | None

    @property
    def n_queries(self) -> int:
        return len(self.rows)

    @property
    def k(self) -> int:
        return self.rows.shape[1]

    def columns(self) -> dict[str, Any]:
        """One entry for each neighbour."""
        query = np.repeat(np.arange(self.n_queries), self.k)
        return {
            "query": named(query, self.asking),
            "rank": np.tile(np.arange(1, self.k + 1), self.n_queries),
            "neighbor": named(self.rows.ravel(), self.names),
            "distance": self.distances.ravel(),
        }

    def write(self, path: Path) -> None:
        write(path, self.columns())

    def print(self) -> None:
        columns = self.columns()
        sys.stdout.write(",".join(columns) + "\n")
        for query, rank, neighbor, distance in zip(*columns.values(), strict=True):
            sys.stdout.write(f"{quoted(query)},{rank},{quoted(neighbor)},{distance:.6g}\n")

    def as_json(self) -> dict[str, Any]:
        asking = named(np.arange(self.n_queries), self.asking)
        return {
            "neighbors": [
                {
                    "query": plain_name(asking[q]),
                    "neighbors": [plain_name(name) for name in named(self.rows[q], self.names)],
                    "distances": self.distances[q].tolist(),
                }
                for q in range(self.n_queries)
            ]
        }


def nearest(metric: Metric, X: Any, Q: Any, k: int, watch: Watch) -> tuple[np.ndarray, np.ndarray]:
    """(rows, distances) of the k nearest rows of X; where Q is None each row of X asks for the others."""
    itself = Q is None
    n_found = min(k, len_of(X) - itself)
    linear = isinstance(metric.coordinates, LinearCoordinates)
    if linear:  # one product for all queries, instead of one for each block
        watch.show("searching: transforming rows")
        X, Q = metric.transform(X), None if itself else metric.transform(Q)
    Q = X if itself else Q
    step = max(1, _BLOCK_BYTES // (8 * len_of(X)))
    rows, distances = [], []
    for a in watch.parts("searching: part", range(0, len_of(Q), step)):
        block = Q[a : a + step]
        D = _sq_euclidean(block, X) if linear else metric.distances(block, X)
        if itself:
            D[np.arange(len_of(block)), a + np.arange(len_of(block))] = np.inf
        found = nearest_of(D, n_found)
        rows.append(found)
        distances.append(_exact(block, X, found) if linear else np.take_along_axis(D, found, axis=1))
    return np.concatenate(rows), np.concatenate(distances)


def _sq_euclidean(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    from sklearn.metrics.pairwise import euclidean_distances

    return euclidean_distances(A, B, squared=True)


def _exact(Q: np.ndarray, X: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Distances from differences: products leave rounding where rows are almost the same."""
    difference = Q[:, None].astype(np.float64) - X[found]
    return np.sqrt(np.einsum("qkd,qkd->qk", difference, difference))
