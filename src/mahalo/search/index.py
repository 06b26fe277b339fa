"""Index of rows for nearest-neighbour search under a learned metric."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from functools import cached_property
from importlib.util import find_spec
from os import PathLike
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from ..linalg import Matrix
from ..metric import Metric
from ..rows import is_lazy
from ..types import RowsLike
from ..validation import check_count, len_of
from .exact import SimilaritySearch, VectorSearch
from .graphs import FaissSearch, UsearchSearch
from .ids import as_ids

if TYPE_CHECKING:
    import dask.array as da
    import dask.dataframe as dd

T = TypeVar("T", np.ndarray, list[np.ndarray])

# Chosen for a recall above .95 of the exact ten on embeddings and on 100,000 rows; `python -m benchmarks search`.
_GRAPH_OPTIONS = {"connectivity": 16, "expansion_add": 128, "expansion_search": 64}
_OPTIONS: dict[str, dict[str, int]] = {"exact": {}, "faiss": _GRAPH_OPTIONS, "usearch": _GRAPH_OPTIONS}
GRAPH_SEARCHES = {"faiss": FaissSearch, "usearch": UsearchSearch}


class Neighbors(NamedTuple, Generic[T]):
    """Distances and ids, nearest first: arrays of shape (n_queries, k), or lists of one array per query."""

    distances: T
    ids: T


class HasMetric(Protocol):
    """A fitted learner."""

    @property
    def metric_(self) -> Metric: ...


class Searcher(Protocol):
    """Search structure over the rows of one part of an index."""

    kind: str

    @property
    def n(self) -> int:
        """Number of rows."""

    @property
    def step(self) -> int:
        """Number of queries to search at once."""

    def add(self, X: RowsLike) -> None:
        """Append rows."""

    @property
    def space(self) -> Metric:
        """Metric of the space in which rows are stored."""

    def map(self, X: RowsLike) -> Matrix:
        """Return rows in the space in which rows are stored, as `nearest` and `within` take queries."""

    def stored(self, positions: np.ndarray) -> Matrix:
        """Return the rows at these positions."""

    def nearest(self, Q: Matrix, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return distances and positions of the k nearest rows of each query."""

    def within(self, Q: Matrix, radius: float) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return distances and positions of the rows within a radius of each query."""

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the named arrays to store in a file."""


class Index:
    """Index of rows under a learned metric; made by `build_index`, read by `load_index`.

    It has one part, or one for each block of a Dask array; results do not depend on the division into parts.

    Attributes
    ----------
    metric : Metric
    backend : {"exact", "faiss", "usearch"}
    ids : ndarray
        Ids of the rows, in the order of addition.
    options : dict
        Options of the graph: `connectivity`, `expansion_add`, `expansion_search`.
    """

    def __init__(
        self, metric: Metric, parts: list[Searcher], ids: np.ndarray, backend: str, options: dict[str, int]
    ) -> None:
        self.metric, self.parts, self.ids, self.backend, self.options = metric, parts, ids, backend, options

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        parts = f", {len(self.parts)} parts" if len(self.parts) > 1 else ""
        return f"Index({len(self):,} rows, backend={self.backend!r}{parts}, {self.metric!r})"

    def kneighbors(self, Q: RowsLike, k: int = 10) -> Neighbors[np.ndarray]:
        """Return the k nearest rows of each query (all if there are fewer), nearest first, ties in order of addition.

        Returns
        -------
        Neighbors
            ``distances`` and ``ids``, both of shape (n_queries, k).
        """
        check_count(k, "k")
        k = min(int(k), len(self))
        distances, positions = [], []
        for block in self._blocks(Q):
            found = [part.nearest(block, min(k, part.n)) for part in self.parts]
            d = np.concatenate([d for d, _ in found], axis=1)
            p = np.concatenate([p + start for (_, p), start in zip(found, self._starts(), strict=True)], axis=1)
            if len(found) > 1:
                order = np.lexsort((p, d), axis=1)[:, :k]
                d, p = np.take_along_axis(d, order, axis=1), np.take_along_axis(p, order, axis=1)
            distances.append(d)
            positions.append(p)
        if not distances:
            return Neighbors(np.empty((0, k)), np.empty((0, k), dtype=self.ids.dtype))
        return Neighbors(np.concatenate(distances), self.ids[np.concatenate(positions)])

    def radius_neighbors(self, Q: RowsLike, radius: float) -> Neighbors[list[np.ndarray]]:
        """Return all rows within `radius` of each query, nearest first; exact indexes only.

        Returns
        -------
        Neighbors
            ``distances`` and ``ids``, lists with one array for each query.
        """
        if not radius >= 0:
            raise ValueError(f"radius must be a number ≥ 0; got {radius!r}.")
        distances, ids = [], []
        for block in self._blocks(Q):
            by_part = [part.within(block, float(radius)) for part in self.parts]
            for found in zip(*by_part, strict=True):
                d = np.concatenate([d for d, _ in found])
                p = np.concatenate([p + start for (_, p), start in zip(found, self._starts(), strict=True)])
                order = np.lexsort((p, d))
                distances.append(d[order])
                ids.append(self.ids[p[order]])
        return Neighbors(distances, ids)

    # -- distances of stored rows -------------------------------------------------------------------------------

    @property
    def space(self) -> Metric:
        """Metric of the space in which rows are stored: ``space.distances(map(X), stored(ids))``."""
        return self.parts[0].space

    def map(self, X: RowsLike) -> Matrix:
        """Return rows in the space in which rows are stored."""
        return self.parts[0].map(X)

    def stored(self, ids: Iterable[Hashable]) -> Matrix:
        """Return stored rows by id; raise ValueError for an id that is unknown."""
        try:
            positions = np.array([self._positions[one] for one in ids], dtype=np.intp)
        except KeyError as error:
            raise ValueError(f"no row has the id {error.args[0]!r}.") from None
        part_of = np.searchsorted(self._starts(), positions, side="right") - 1
        used = np.unique(part_of) if len(positions) else [0]
        found = [self.parts[k].stored(positions[part_of == k] - self._starts()[k]) for k in used]
        rows = sp.csr_array(sp.vstack(found)) if sp.issparse(found[0]) else np.concatenate(found)
        return rows[np.argsort(np.argsort(part_of, kind="stable"))]

    @cached_property
    def _positions(self) -> dict[Hashable, int]:
        return {one: position for position, one in enumerate(self.ids.tolist())}

    def _blocks(self, Q: RowsLike) -> Iterator[Matrix]:
        queries = self.map(Q)
        n, step = len_of(queries), min(part.step for part in self.parts)
        return (queries[a : a + step] for a in range(0, n, step))

    def _starts(self) -> np.ndarray:
        return np.cumsum([0, *(part.n for part in self.parts[:-1])])

    def add(self, X: RowsLike, ids: ArrayLike | None = None) -> None:
        """Add rows with these ids, by default the next integers."""
        n = len_of(X)
        ids = as_ids(ids, n, self.ids)
        if n:
            self.parts[-1].add(X)
            self.ids = np.concatenate([self.ids, ids])
            self.__dict__.pop("_positions", None)

    def save(self, path: str | PathLike) -> None:
        """Write rows, ids, graph and metric atomically to one safetensors file; `load_index` reads it."""
        from .files import save

        save(self, path)


def build_index(
    metric: Metric | HasMetric,
    X: RowsLike | da.Array | dd.DataFrame,
    backend: str = "exact",
    ids: ArrayLike | None = None,
    **options: int,
) -> Index:
    """Build an index of the rows of X under a learned metric.

    Parameters
    ----------
    metric : Metric or fitted learner
        A `Metric`, `MetricLearner`, `MetricLearnerCV` or `EmbeddingAdapter`.
    X : rows as the metric takes them, or a Dask array or dataframe of them
        Each block of a Dask array or partition of a dataframe becomes one part of the index.
    backend : {"exact", "faiss", "usearch"}, default="exact"
        "exact" compares with all rows: linear metrics by products of transformed rows, low-rank ones over sparse rows
        and kernels by similarities, nothing made dense. "faiss" and "usearch" (``pip install "mahalo[search]"``) walk a
        graph over ``metric.transform(X)`` in single precision, and find most of the nearest, much faster.
    ids : array-like of n integers or strings, optional
        Unique ids of the rows. Default: their numbers, from 0.
    connectivity, expansion_add, expansion_search : int
        Options of the graph: links per node, and width of the search when rows are added and when they are searched.
        Larger values find more of the nearest rows and take longer.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from mahalo import MetricLearner
    >>> from mahalo.search import build_index
    >>> X, y = load_wine(return_X_y=True)
    >>> index = build_index(MetricLearner(prior="diagonal").fit(X, y), X)
    >>> distances, ids = index.kneighbors(X[:2], k=3)
    >>> ids[:, 0].tolist()
    [0, 1]
    """
    metric = _metric_of(metric)
    options = check_options(backend, options)
    parts: list[Searcher] = []
    for block in _row_blocks(X):
        if len_of(block):
            parts.append(_make_searcher(metric, block, backend, options, parts[0] if parts else None))
    n = sum(part.n for part in parts)
    if not n:
        raise ValueError("an index needs at least one row.")
    return Index(metric, parts, as_ids(ids, n), backend, options)


def _metric_of(metric: object) -> Metric:
    found = getattr(metric, "metric_", metric)
    if not isinstance(found, Metric):
        raise ValueError(f"metric must be a mahalo.Metric or a fitted learner; got {type(metric).__name__}.")
    if found.coordinates.is_precomputed and found.base_weight:
        raise ValueError(
            "with a precomputed kernel, similarities between queries and stored rows cannot be computed; use "
            "metric.distances with cross=, diag_x= and diag_y=."
        )
    return found


def check_options(backend: str, options: dict[str, int]) -> dict[str, int]:
    """Return the options of a backend with defaults filled in; raise ValueError if one is invalid."""
    if backend not in _OPTIONS:
        raise ValueError(f"backend must be 'exact', 'faiss' or 'usearch'; got {backend!r}.")
    defaults = _OPTIONS[backend]
    if unknown := sorted(set(options) - set(defaults)):
        takes = ", ".join(defaults) if defaults else "no options"
        raise ValueError(f"backend={backend!r} takes {takes}; got {', '.join(unknown)}.")
    for name, value in options.items():
        check_count(value, name)
        if not 2 <= value <= 4096:
            raise ValueError(f"{name} must lie between 2 and 4096; got {value}.")
    require_backend(backend)
    return defaults | {name: int(value) for name, value in options.items()}


def require_backend(backend: str) -> None:
    """Raise ImportError if the package of a graph backend is not installed."""
    if backend in GRAPH_SEARCHES and find_spec(backend) is None:
        raise ImportError(f'backend={backend!r} needs {GRAPH_SEARCHES[backend].package}: pip install "mahalo[search]"')


def _row_blocks(X: Any) -> Iterator[RowsLike]:
    """Yield X, or one by one the blocks of rows of a Dask array and the partitions of a Dask dataframe."""
    if not is_lazy(X):
        yield X
    elif hasattr(X, "partitions"):
        for partition in X.partitions:
            yield partition.compute()
    else:
        X = X.rechunk({1: -1}) if X.ndim == 2 else X
        for i in range(X.numblocks[0]):
            yield X.blocks[i].compute()


def _make_searcher(
    metric: Metric, X: RowsLike, backend: str, options: dict[str, int], first: Searcher | None
) -> Searcher:
    """Return a search structure over X; `first` is that of the index's first part."""
    if backend in GRAPH_SEARCHES:
        centre = first.centre if isinstance(first, GRAPH_SEARCHES[backend]) else None
        return GRAPH_SEARCHES[backend].of(metric, X, options, centre)
    return exact_search_class(metric, X).of(metric, X)


def exact_search_class(metric: Metric, X: RowsLike) -> type[VectorSearch] | type[SimilaritySearch]:
    """Return `VectorSearch` if `transform` is exact and makes no wide rows dense, else `SimilaritySearch`."""
    weight = metric.base_weight
    return VectorSearch if not weight or (metric.is_linear and not sp.issparse(X)) else SimilaritySearch
