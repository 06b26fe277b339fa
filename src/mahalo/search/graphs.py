"""Approximate search by the HNSW graphs of faiss and usearch, over vectors in the learned space.

A file holds a graph as arrays of numbers. They are checked, link by link, before they reach a library, because neither
library is safe against a hostile file.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self, TypeAlias

import numpy as np

from ..linalg import Matrix
from ..metric import Metric
from ..persistence import Contents
from ..types import RowsLike
from .exact import VectorSearch, euclidean_metric, transform_in_double

Graph: TypeAlias = Any  # faiss.IndexHNSWFlat or usearch.index.Index, whose hints lack what is used here


class _GraphSearch(ABC):
    """Base of the graph searches: float32 vectors around a centre, exact search for queries left short of k."""

    kind = ""
    package = ""
    step = 1 << 14

    def __init__(self, metric: Metric, options: dict[str, int], centre: np.ndarray) -> None:
        self.metric, self.options, self.centre = metric, options, centre
        self.graph = self._empty(metric.n_outputs)

    @classmethod
    def of(cls, metric: Metric, X: RowsLike, options: dict[str, int], centre: np.ndarray | None = None) -> Self:
        """Build a graph of the rows of X; vectors are stored relative to `centre`, by default their mean."""
        T = transform_in_double(metric, X)
        centre = T.mean(axis=0) if centre is None else centre
        search = cls(metric, options, centre)
        search._insert(search._centred(T))
        return search

    def add(self, X: RowsLike) -> None:
        self._insert(self._centred(self.map(X)))

    def map(self, X: RowsLike) -> np.ndarray:
        return transform_in_double(self.metric, X)

    @property
    def space(self) -> Metric:
        return euclidean_metric(self.metric.n_outputs)

    def stored(self, positions: np.ndarray) -> np.ndarray:
        return self._vectors_at(positions).astype(np.float64) + self.centre

    def _centred(self, T: np.ndarray) -> np.ndarray:
        """Return float32 vectors relative to the centre; far from it, single precision loses the distances."""
        return np.ascontiguousarray(T - self.centre, dtype=np.float32)

    @staticmethod
    def _vectors_and_centre(metric: Metric, contents: Contents) -> tuple[np.ndarray, np.ndarray]:
        """Return vectors and centre of a file; raise ValueError if they do not fit the metric."""
        width = metric.n_outputs
        return contents.array("vectors", (None, width), (np.float32,)), contents.array("centre", (width,))

    def nearest(self, Q: Matrix, k: int) -> tuple[np.ndarray, np.ndarray]:
        Q = self._centred(Q)
        sq, positions = self._search(Q, k)
        distances = np.sqrt(np.maximum(sq, 0.0, dtype=np.float64))
        # A graph may return fewer than k rows for a query; then search exactly.
        short = np.flatnonzero((positions < 0).any(axis=1))
        if len(short):
            exact = VectorSearch(self.metric, self.vectors)
            distances[short], positions[short] = exact.nearest(Q[short].astype(np.float64), k)
        return distances, positions

    def within(self, Q: Matrix, radius: float) -> list[tuple[np.ndarray, np.ndarray]]:
        raise ValueError(
            f"an index through {self.package} is approximate and would miss rows within a radius; build one with "
            'backend="exact".'
        )

    # -- for each library -------------------------------------------------------------------------------------

    n: int
    vectors: np.ndarray

    @abstractmethod
    def _empty(self, n_dims: int) -> Graph:
        """Return a graph without vectors."""

    @abstractmethod
    def _insert(self, vectors: np.ndarray) -> None:
        """Add vectors to the graph."""

    @abstractmethod
    def _vectors_at(self, positions: np.ndarray) -> np.ndarray:
        """Return stored vectors, relative to the centre."""

    @abstractmethod
    def arrays(self) -> dict[str, np.ndarray]:
        """Return vectors, centre and graph as named arrays."""

    @classmethod
    @abstractmethod
    def from_contents(cls, metric: Metric, contents: Contents, options: dict[str, int]) -> Self:
        """Return the search that a file holds; raise ValueError if its graph is inconsistent."""

    @abstractmethod
    def _search(self, Q: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return squared distances and positions of the k nearest; −1 where fewer were found."""


class FaissSearch(_GraphSearch):
    """Search by an HNSW graph of faiss over flat vectors."""

    kind = package = "faiss"

    def _empty(self, n_dims: int) -> Graph:
        import faiss

        graph = faiss.IndexHNSWFlat(n_dims, self.options["connectivity"])
        graph.hnsw.efConstruction = self.options["expansion_add"]
        graph.hnsw.efSearch = self.options["expansion_search"]
        return graph

    @property
    def n(self) -> int:  # type: ignore[override]
        return self.graph.ntotal

    @property
    def vectors(self) -> np.ndarray:  # type: ignore[override]
        return self.graph.storage.reconstruct_n(0, self.n).reshape(self.n, self.graph.d)

    def _insert(self, vectors: np.ndarray) -> None:
        self.graph.add(vectors)

    def _vectors_at(self, positions: np.ndarray) -> np.ndarray:
        return self.graph.storage.reconstruct_batch(positions)

    def _search(self, Q: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        return self.graph.search(Q, k)

    def arrays(self) -> dict[str, np.ndarray]:
        import faiss

        hnsw = self.graph.hnsw
        levels, links = (faiss.vector_to_array(part) for part in (hnsw.levels, hnsw.neighbors))
        entry = np.array([hnsw.entry_point], dtype=np.int64)
        return {"vectors": self.vectors, "centre": self.centre, "levels": levels, "links": links, "entry": entry}

    @classmethod
    def from_contents(cls, metric: Metric, contents: Contents, options: dict[str, int]) -> Self:
        import faiss

        (vectors, centre), arrays = cls._vectors_and_centre(metric, contents), contents.arrays
        levels, links, entry, n = arrays["levels"], arrays["links"], arrays["entry"], len(vectors)
        search = cls(metric, options, centre)
        graph, hnsw = search.graph, search.graph.hnsw
        slots = faiss.vector_to_array(hnsw.cum_nneighbor_per_level)  # total links of a node, by its number of levels
        if not (levels.dtype == links.dtype == np.int32 and levels.shape == (n,) and links.ndim == 1):
            raise ValueError("its graph is incomplete")
        if not n or not 1 <= levels.min() <= levels.max() < len(slots):
            raise ValueError("levels of its graph are out of range")
        if entry.dtype != np.int64 or entry.shape != (1,) or not 0 <= entry[0] < n or levels[entry[0]] != levels.max():
            raise ValueError("the entry of its graph is out of range")
        offsets = np.concatenate([[0], np.cumsum(slots[levels], dtype=np.uint64)]).astype(np.uint64)
        if len(links) != offsets[-1]:
            raise ValueError("its graph is incomplete")
        at = np.arange(len(links)) - np.repeat(offsets[:-1].astype(np.int64), slots[levels])
        check_links(links, np.searchsorted(slots, at, side="right") - 1, levels - 1, links >= 0)
        graph.storage.add(vectors)
        graph.ntotal = n
        for array, part in ((levels, hnsw.levels), (offsets, hnsw.offsets), (links, hnsw.neighbors)):
            faiss.copy_array_to_vector(array, part)
        hnsw.entry_point, hnsw.max_level = int(entry[0]), int(levels.max()) - 1
        return search


class UsearchSearch(_GraphSearch):
    """Search by an HNSW graph of usearch."""

    kind = package = "usearch"

    def _empty(self, n_dims: int) -> Graph:
        from usearch.index import Index

        graph: type[Graph] = Index
        return graph(ndim=n_dims, metric="l2sq", dtype="f32", **self.options)

    @property
    def n(self) -> int:  # type: ignore[override]
        return len(self.graph)

    @property
    def vectors(self) -> np.ndarray:  # type: ignore[override]
        return self._vectors_at(np.arange(self.n))

    def _vectors_at(self, positions: np.ndarray) -> np.ndarray:
        return np.asarray(self.graph.get(positions), dtype=np.float32).reshape(len(positions), self.graph.ndim)

    def _insert(self, vectors: np.ndarray) -> None:
        self.graph.add(
            np.arange(self.n, self.n + len(vectors)), vectors, threads=1
        )  # several threads give a different graph each time

    def _search(self, Q: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        keys, sq = np.full((len(Q), k), -1, dtype=np.int64), np.full((len(Q), k), np.inf, dtype=np.float32)
        found = self.graph.search(Q, k)
        counts = np.atleast_1d(getattr(found, "counts", len(found)))
        is_found = np.arange(k) < counts[:, None]
        shape = (len(Q), -1)
        width = found.keys.size // len(Q)
        keys[:, :width] = np.where(is_found[:, :width], found.keys.reshape(shape).astype(np.int64), -1)
        sq[:, :width] = found.distances.reshape(shape)
        return sq, keys

    # A file of usearch: counts of rows and bytes (8), vectors, a head (64), then the graph: five numbers (40), a level
    # of each node, and its tape: key (8), level (2), and for each level the number of links (4) and capacity for them.
    _HEAD, _GRAPH, _NODE = 64, 40, 10

    def arrays(self) -> dict[str, np.ndarray]:
        data = np.frombuffer(self.graph.save(), dtype=np.uint8)
        graph = data[8 + 4 * self.n * self.graph.ndim :]
        return {"vectors": self.vectors, "centre": self.centre, "graph": graph, "order": self._order(data)}

    def _order(self, data: np.ndarray) -> np.ndarray:
        """Return the keys in the order in which usearch stores its nodes."""
        graph = data[8 + 4 * self.n * self.graph.ndim :]
        tape, starts, _ = self._tape(graph[self._HEAD :], self.n)
        return _read_numbers(tape, starts, np.int64)

    def _tape(self, graph: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the tapes of all nodes, the start of each tape, and the level of each node."""
        M = self.options["connectivity"]
        if len(graph) < self._GRAPH + 2 * n:
            raise ValueError("its graph is incomplete")
        levels = graph[self._GRAPH : self._GRAPH + 2 * n].copy().view(np.int16).astype(np.int64)
        tape = graph[self._GRAPH + 2 * n :]
        if n and not 0 <= levels.min() <= levels.max() < 64:
            raise ValueError("levels of its graph are out of range")
        ends = np.cumsum(self._NODE + 4 * (1 + 2 * M) + levels * 4 * (1 + M))
        if len(tape) != (ends[-1] if n else 0):
            raise ValueError("its graph is incomplete")
        return tape, np.concatenate([[0], ends[:-1]]).astype(np.int64), levels

    @classmethod
    def from_contents(cls, metric: Metric, contents: Contents, options: dict[str, int]) -> Self:
        (vectors, centre), arrays = cls._vectors_and_centre(metric, contents), contents.arrays
        graph, order, n = arrays["graph"], arrays["order"], len(vectors)
        search = cls(metric, options, centre)
        if graph.dtype != np.uint8 or graph.ndim != 1 or len(graph) < cls._HEAD:
            raise ValueError("its graph is incomplete")
        if order.dtype != np.int64 or not np.array_equal(np.sort(order), np.arange(n)):
            raise ValueError("its graph is of other rows")
        head = _file_header(search.graph, n)
        if not np.array_equal(graph[: cls._HEAD], head):
            raise ValueError("its graph is of another kind or version of usearch; build the index again")
        search._check_graph(graph[cls._HEAD :], order, n)
        sizes = np.array([n, 4 * vectors.shape[1]], dtype=np.uint32).view(np.uint8)
        stored = np.ascontiguousarray(vectors[order]).view(np.uint8).ravel()
        search.graph.load(np.concatenate([sizes, stored, graph]).tobytes())
        search.graph.expansion_add = options["expansion_add"]
        search.graph.expansion_search = options["expansion_search"]
        return search

    def _check_graph(self, graph: np.ndarray, order: np.ndarray, n: int) -> None:
        """Raise ValueError if sizes, keys, levels or links of a graph are inconsistent."""
        tape, starts, levels = self._tape(graph, n)
        M = self.options["connectivity"]
        size, links, links_base, top, entry = graph[: self._GRAPH].copy().view(np.uint64).tolist()
        expected = (n, M, 2 * M, int(levels.max(initial=0)))
        if (size, links, links_base, top) != expected or (n and (entry >= n or levels[entry] != top)):
            raise ValueError("its graph is incomplete")
        if not np.array_equal(_read_numbers(tape, starts, np.int64), order):
            raise ValueError("its graph is of other rows")
        if not np.array_equal(_read_numbers(tape, starts + 8, np.int16), levels):
            raise ValueError("levels of its graph are out of range")
        for level in range(int(levels.max(initial=-1)) + 1):
            nodes = np.flatnonzero(levels >= level)
            capacity = M if level else 2 * M
            begin = starts[nodes] + self._NODE + (4 * (1 + 2 * M) + (level - 1) * 4 * (1 + M) if level else 0)
            count = _read_numbers(tape, begin, np.uint32).astype(np.int64)
            if (count > capacity).any():
                raise ValueError("links of its graph are out of range")
            linked = np.stack([_read_numbers(tape, begin + 4 * (1 + k), np.uint32) for k in range(capacity)], axis=1)
            used = np.arange(capacity) < count[:, None]
            check_links(linked.astype(np.int64), np.full(linked.shape, level), levels, used)


def check_links(links: np.ndarray, level: np.ndarray, top: np.ndarray, used: np.ndarray) -> None:
    """Raise ValueError unless every used link leads to a node whose `top` level is at least the link's level."""
    links, level = links[used], level[used]
    if len(links) and not (0 <= links.min() <= links.max() < len(top) and (top[links] >= level).all()):
        raise ValueError("links of its graph are out of range")


def _file_header(graph: Graph, n: int) -> np.ndarray:
    """Return the header of a usearch file with n nodes, made from that of an empty graph."""
    data = np.frombuffer(bytes(graph.save()), dtype=np.uint8)
    head = data[8:72].copy()
    head[17:25] = np.array([n], dtype=np.uint64).view(np.uint8)
    return head


def _read_numbers(data: np.ndarray, at: np.ndarray, dtype: type) -> np.ndarray:
    """Return the number of this type at each of these positions in an array of bytes."""
    width = np.dtype(dtype).itemsize
    return np.ascontiguousarray(data[at[:, None] + np.arange(width)]).view(dtype).ravel()
