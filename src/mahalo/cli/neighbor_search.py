"""Nearest rows of an index, on disk or built from rows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..linalg import Matrix
from ..metric.files import pack
from ..progress import Progress
from ..search import Index, Neighbors, build_index, load_index
from ..tables.labels_and_ids import name_rows
from ..tables.model import FittedModel
from .options import RowOptions

__all__ = ["FoundNeighbors", "find_neighbors"]

_QUERIES = 4_096  # queries to search for at once


@dataclass(frozen=True)
class FoundNeighbors:
    """Names of the neighbours, nearest first, and their distances, both queries × k; ids of the queries, if any."""

    neighbors: np.ndarray
    distances: np.ndarray
    query_ids: list[str] | None

    @property
    def n_queries(self) -> int:
        return len(self.neighbors)

    @property
    def k(self) -> int:
        return self.neighbors.shape[1]

    def columns(self) -> dict[str, np.ndarray]:
        """Return columns with one entry for each neighbour."""
        return {
            "query": name_rows(np.repeat(np.arange(self.n_queries), self.k), self.query_ids),
            "rank": np.tile(np.arange(1, self.k + 1), self.n_queries),
            "neighbor": self.neighbors.ravel(),
            "distance": self.distances.ravel(),
        }

    def by_query(self) -> list[dict[str, object]]:
        """Return one record for each query."""
        queries = name_rows(np.arange(self.n_queries), self.query_ids).tolist()
        neighbors, distances = self.neighbors.tolist(), self.distances.tolist()
        return [
            {"query": query, "neighbors": neighbors[q], "distances": distances[q]} for q, query in enumerate(queries)
        ]


def find_neighbors(
    model: Path, index: RowOptions, queries: RowOptions | None, k: int, progress: Progress
) -> FoundNeighbors:
    """Search a saved index, or rows exactly; without queries each row is a query for the others."""
    fitted = FittedModel.load(model, index.encoder)
    if Path(index.data[0]).suffix.lower() == ".safetensors":
        return _search_saved(fitted, index, queries, k, progress)
    rows = fitted.read(index, progress)
    query_rows = rows if queries is None else fitted.read(queries, progress)
    progress.show("searching: transforming rows")
    built = build_index(fitted.metric, rows.X)
    found = (_search_others if queries is None else _search)(built, query_rows.X, k, progress)
    return FoundNeighbors(name_rows(found.ids, rows.ids), found.distances, query_rows.ids)


def _search_saved(
    fitted: FittedModel, index: RowOptions, queries: RowOptions | None, k: int, progress: Progress
) -> FoundNeighbors:
    path = index.data[0]
    if queries is None:
        raise ValueError(
            f"{path} is a saved index, which does not search for its own rows: give the queries, --query DATA."
        )
    if index.ids is not None:
        raise ValueError(f"{path} is an index that was saved with its ids: leave --index-ids out.")
    saved = load_index(path)
    ours, theirs = pack(fitted.metric).arrays, pack(saved.metric).arrays
    if ours.keys() != theirs.keys() or not all(np.array_equal(ours[name], theirs[name]) for name in ours):
        raise ValueError(f"{path} was made with another model than {fitted.path}; make it again with mahalo index.")
    query_rows = fitted.read(queries, progress)
    found = _search(saved, query_rows.X, k, progress)
    return FoundNeighbors(found.ids, found.distances, query_rows.ids)


def _search(index: Index, Q: Matrix, k: int, progress: Progress) -> Neighbors:
    """Return the k nearest rows of each query."""
    starts = range(0, Q.shape[0], _QUERIES)
    found = [index.kneighbors(Q[a : a + _QUERIES], k) for a in progress.track(starts, len(starts), "searching: part")]
    if not found:
        return index.kneighbors(Q, k)
    return Neighbors(*(np.concatenate(parts) for parts in zip(*found, strict=True)))


def _search_others(index: Index, X: Matrix, k: int, progress: Progress) -> Neighbors:
    """Return the k nearest rows of each row of the index, X, without itself but with its copies."""
    found = _search(index, X, k + 1, progress)
    others = found.ids != index.ids[:, None]
    others[others.all(axis=1), -1] = False  # a row may be missing among its own neighbours if it has many copies
    return Neighbors(*(values[others].reshape(len(index), -1) for values in found))
