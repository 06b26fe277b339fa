"""Nearest rows of an index, and how they are written."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..search import Index, Neighbors
from ..validation import len_of
from .naming import named, plain_name, quoted
from .tables import write
from .watching import Watch

__all__ = ["Found", "nearest", "nearest_others"]

_QUERIES = 4_096  # searched at once


@dataclass(frozen=True)
class Found:
    """What rows found are called, nearest first, and their distances: queries × k; names of who asks, if any."""

    neighbors: np.ndarray
    distances: np.ndarray
    asking: list[str] | None

    @property
    def n_queries(self) -> int:
        return len(self.neighbors)

    @property
    def k(self) -> int:
        return self.neighbors.shape[1]

    def columns(self) -> dict[str, Any]:
        """One entry for each neighbour."""
        query = np.repeat(np.arange(self.n_queries), self.k)
        return {
            "query": named(query, self.asking),
            "rank": np.tile(np.arange(1, self.k + 1), self.n_queries),
            "neighbor": self.neighbors.ravel(),
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
                    "neighbors": self.neighbors[q].tolist(),
                    "distances": self.distances[q].tolist(),
                }
                for q in range(self.n_queries)
            ]
        }


def nearest(index: Index, Q: Any, k: int, watch: Watch) -> Neighbors:
    """The k nearest rows of each query."""
    blocks = range(0, len_of(Q), _QUERIES)
    found = [index.kneighbors(Q[a : a + _QUERIES], k) for a in watch.parts("searching: part", blocks)]
    return (
        Neighbors(*(np.concatenate(parts) for parts in zip(*found, strict=True))) if found else index.kneighbors(Q, k)
    )


def nearest_others(index: Index, X: Any, k: int, watch: Watch) -> Neighbors:
    """The k nearest rows of each row of the index, X, without itself; its copies are others."""
    found = nearest(index, X, k + 1, watch)
    others = found.ids != index.ids[:, None]
    others[others.all(axis=1), -1] = False  # so many copies are as near that it is not among those found
    return Neighbors(*(values[others].reshape(len(index), -1) for values in found))
