"""An index of rows under a learned metric."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from ..metric import Metric
from ..rows import is_lazy
from ..validation import check_count, len_of
from .exact import SimilaritySearch, VectorSearch
from .graphs import FaissSearch, UsearchSearch
from .ids import as_ids

__all__ = ["Index", "Neighbors", "build_index"]

# Chosen for a recall above .95 of the exact ten on embeddings and on 100,000 rows; `python -m benchmarks search`.
_GRAPH = {"connectivity": 16, "expansion_add": 128, "expansion_search": 64}
_OPTIONS: dict[str, dict[str, int]] = {"exact": {}, "faiss": _GRAPH, "usearch": _GRAPH}
_GRAPHS = {"faiss": FaissSearch, "usearch": UsearchSearch}


class Neighbors(NamedTuple):
    """Distances and ids, nearest first: arrays of queries × k, or, within a radius, a list of arrays for each."""

    distances: Any
    ids: Any


class Index:
    """Rows to be found under a learned metric; made by `build_index`, read by `load_index`.

    It has one part, or one for each block of a Dask array; answers do not depend on the parts.

    Attributes
    ----------
    metric : Metric
    backend : {"exact", "faiss", "usearch"}
    ids : ndarray
        What rows are called, in the order they were added.
    options : dict
        Of the graph: `connectivity`, `expansion_add`, `expansion_search`.
    """

    def __init__(self, metric: Metric, parts: list, ids: np.ndarray, backend: str, options: dict[str, int]) -> None:
        self.metric, self.parts, self.ids, self.backend, self.options = metric, parts, ids, backend, options

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        parts = f", {len(self.parts)} parts" if len(self.parts) > 1 else ""
        return f"Index({len(self):,} rows, backend={self.backend!r}{parts}, {self.metric!r})"

    def kneighbors(self, Q: Any, k: int = 10) -> Neighbors:
        """The k nearest rows of each query (all rows where there are fewer), nearest first, of equals the first added.

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

    def radius_neighbors(self, Q: Any, radius: float) -> Neighbors:
        """All rows within `radius` of each query, nearest first; exact indexes only.

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

    def _blocks(self, Q: Any) -> Iterator[Any]:
        asked = self.parts[0].asked(Q)
        n, step = len_of(asked), min(part.step for part in self.parts)
        return (asked[a : a + step] for a in range(0, n, step))

    def _starts(self) -> np.ndarray:
        return np.cumsum([0, *(part.n for part in self.parts[:-1])])

    def add(self, X: Any, ids: ArrayLike | None = None) -> None:
        """More rows, called `ids`, or by the numbers that follow."""
        n = len_of(X)
        ids = as_ids(ids, n, self.ids)
        if n:
            self.parts[-1].add(X)
            self.ids = np.concatenate([self.ids, ids])

    def save(self, path: str | PathLike) -> None:
        """Write rows, ids, graph and metric to one safetensors file, whole or not at all; `load_index` reads it."""
        from .files import save

        save(self, path)


def build_index(metric: Any, X: Any, backend: str = "exact", ids: ArrayLike | None = None, **options: int) -> Index:
    """An index of the rows of X under a learned metric.

    Parameters
    ----------
    metric : Metric or fitted learner
        A `Metric`, `MetricLearner`, `MetricLearnerCV` or `EmbeddingAdapter`.
    X : rows as the metric takes them, or a Dask array or dataframe of them
        On Dask every block or partition of rows becomes one part of the index, one block after the other.
    backend : {"exact", "faiss", "usearch"}, default="exact"
        "exact" compares with all rows: linear metrics by products of transformed rows, low-rank ones over sparse rows
        and kernels by similarities, nothing made dense. "faiss" and "usearch" (``pip install "mahalo[search]"``) walk a
        graph over ``metric.transform(X)`` in single precision, and find most of the nearest, much faster.
    ids : array-like of n integers or strings, optional
        What rows are called, no two alike. Default: their numbers, from 0.
    connectivity, expansion_add, expansion_search : int
        Of the graph: links of a node, and how far is looked when rows are added and when they are searched. More finds
        more and takes longer.

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
    options = _checked_options(backend, options)
    parts: list[Any] = []
    for block in _row_blocks(X):
        if len_of(block):
            parts.append(_part(metric, block, backend, options, parts[0] if parts else None))
    n = sum(part.n for part in parts)
    if not n:
        raise ValueError("an index needs at least one row.")
    return Index(metric, parts, as_ids(ids, n), backend, options)


def _metric_of(metric: Any) -> Metric:
    found = getattr(metric, "metric_", metric)
    if not isinstance(found, Metric):
        raise ValueError(
            f"metric must be a mahalo.Metric or a learner that has been fitted; got {type(metric).__name__}."
        )
    if found.coordinates.is_precomputed and found.base_weight:
        raise ValueError(
            "with a precomputed kernel similarities between queries and stored rows are not known; use "
            "metric.distances with cross=, diag_x= and diag_y=."
        )
    return found


def _checked_options(backend: str, options: dict[str, int]) -> dict[str, int]:
    if backend not in _OPTIONS:
        raise ValueError(f"backend must be 'exact', 'faiss' or 'usearch'; got {backend!r}.")
    known = _OPTIONS[backend]
    if unknown := sorted(set(options) - set(known)):
        takes = ", ".join(known) if known else "no options"
        raise ValueError(f"backend={backend!r} takes {takes}; got {', '.join(unknown)}.")
    for name, value in options.items():
        check_count(value, name)
        if not 2 <= value <= 4096:
            raise ValueError(f"{name} must lie between 2 and 4096; got {value}.")
    require_backend(backend)
    return known | {name: int(value) for name, value in options.items()}


def require_backend(backend: str) -> None:
    if backend in _GRAPHS and find_spec(backend) is None:
        raise ImportError(f'backend={backend!r} needs {_GRAPHS[backend].package}: pip install "mahalo[search]"')


def _row_blocks(X: Any) -> Iterator[Any]:
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


def _part(metric: Metric, X: Any, backend: str, options: dict[str, int], first: Any) -> Any:
    if backend in _GRAPHS:
        return _GRAPHS[backend].of(metric, X, options, first)
    return kind_for(metric, X).of(metric, X)


def kind_for(metric: Metric, X: Any) -> type[VectorSearch] | type[SimilaritySearch]:
    """Vectors where `transform` is exact and makes nothing dense that is wide."""
    weight = metric.base_weight
    return VectorSearch if not weight or (metric.is_linear and not sp.issparse(X)) else SimilaritySearch
