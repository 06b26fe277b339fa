"""Nearest rows of an index, on disk or built from rows, under the distance of a model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..linalg import Matrix
from ..metric.files import pack
from ..progress import SILENT, Progress
from ..search import Index, Neighbors, build_index, load_index
from ..tables.labels_and_ids import name_rows
from ..tables.model import FittedModel, ModelRows
from ..tables.options import RowOptions
from .index_files import is_saved_index, refuse_ids

_QUERIES = 4_096  # queries to search for at once


@dataclass(frozen=True)
class FoundNeighbors:
    """Names of the neighbours, nearest first, and their distances, both queries × k; ids of the queries, if any."""

    neighbors: np.ndarray
    distances: np.ndarray
    query_ids: list[str] | None = None

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


@dataclass(frozen=True, eq=False)
class NeighborSearch:
    """A model and an index of rows under its distance; ids of the index are names of rows, or numbers from 0."""

    model: FittedModel
    index: Index

    def find(
        self, Q: Matrix, k: int, progress: Progress = SILENT, query_ids: list[str] | None = None
    ) -> FoundNeighbors:
        """Return the k nearest rows of each row of Q, which has the columns that the model was fitted on."""
        found = self._search(Q, k, progress)
        return FoundNeighbors(found.ids, found.distances, query_ids)

    def find_others(
        self, X: Matrix, k: int, progress: Progress = SILENT, query_ids: list[str] | None = None
    ) -> FoundNeighbors:
        """Return the k nearest rows of each row X of the index, without itself but with its copies."""
        found, ids = self._search(X, k + 1, progress), self.index.ids
        others = found.ids != ids[:, None]
        others[others.all(axis=1), -1] = False  # a row may be missing among its own neighbours if it has many copies
        neighbors, distances = (values[others].reshape(len(ids), -1) for values in (found.ids, found.distances))
        return FoundNeighbors(neighbors, distances, query_ids)

    def _search(self, Q: Matrix, k: int, progress: Progress) -> Neighbors[np.ndarray]:
        starts = range(0, Q.shape[0], _QUERIES)
        pieces = progress.track(starts, len(starts), "searching: part")
        found = [self.index.kneighbors(Q[a : a + _QUERIES], k) for a in pieces]
        if not found:
            return self.index.kneighbors(Q, k)
        return Neighbors(*(np.concatenate(parts) for parts in zip(*found, strict=True)))


def find_neighbors(
    model: Path, index: RowOptions, queries: RowOptions | None, k: int, progress: Progress = SILENT
) -> FoundNeighbors:
    """Search a saved index, or rows exactly; without queries each row is a query for the others."""
    if index.ids is not None and is_saved_index(index):
        raise ValueError(f"{index.data[0]} is an index that was saved with its ids: leave --index-ids out.")
    fitted = FittedModel.load(model, index.encoder)
    if queries is not None:
        query_rows = fitted.read(queries, progress)
        return _open(fitted, index, progress).find(query_rows.X, k, progress, query_rows.ids)
    if is_saved_index(index):
        raise ValueError(
            f"{index.data[0]} is a saved index, which does not search for its own rows: give the queries, --query DATA."
        )
    rows = fitted.read(index, progress)
    return _build(fitted, rows, progress).find_others(rows.X, k, progress, rows.ids)


def open_search(model: Path, index: RowOptions, progress: Progress = SILENT) -> NeighborSearch:
    """Load a model and a saved index of it, or build an exact index of rows.

    Raise ValueError if the index was made with another model, or if ids are given for it.
    """
    if is_saved_index(index):
        refuse_ids(index)
    return _open(FittedModel.load(model, index.encoder), index, progress)


def _open(model: FittedModel, index: RowOptions, progress: Progress) -> NeighborSearch:
    if not is_saved_index(index):
        return _build(model, model.read(index, progress), progress)
    path = index.data[0]
    saved = load_index(path)
    ours, theirs = pack(model.metric).arrays, pack(saved.metric).arrays
    if ours.keys() != theirs.keys() or not all(np.array_equal(ours[name], theirs[name]) for name in ours):
        raise ValueError(f"{path} was made with another model than {model.path}; make it again with mahalo index.")
    return NeighborSearch(model, saved)


def _build(model: FittedModel, rows: ModelRows, progress: Progress) -> NeighborSearch:
    """Return the exact search of rows."""
    progress.show("searching: transforming rows")
    return NeighborSearch(model, build_index(model.metric, rows.X, ids=rows.ids))
