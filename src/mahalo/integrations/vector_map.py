"""Maps of the vectors of queries and of documents, for libraries that embed both by themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..feedback import QueryAdapter
from ..learner import MetricLearner
from ..metric import Metric

__all__ = ["Adapter", "VectorMap"]

Adapter = Metric | MetricLearner | QueryAdapter
Map = Callable[[np.ndarray], np.ndarray]


class VectorMap:
    """Map from vectors of queries and documents to those that a learned distance compares.

    Parameters
    ----------
    adapter : Metric, fitted learner such as EmbeddingAdapter, or QueryAdapter
        What maps vectors.
    side : {"both", "query"}, optional
        "both": documents and queries are transformed. "query": stored vectors stay as they are and queries alone are
        mapped, so that inner products are learned similarities. By default "both", but "query" for a QueryAdapter,
        which knows no other.
    """

    def __init__(self, adapter: Adapter, side: str | None = None) -> None:
        if side not in (None, "both", "query"):
            raise ValueError(f"side must be 'both' or 'query'; got {side!r}.")
        if isinstance(adapter, QueryAdapter) and side == "both":
            raise ValueError("a QueryAdapter maps queries only, and stored vectors stay; leave side out.")
        self.side = side or ("query" if isinstance(adapter, QueryAdapter) else "both")
        self._map_queries, self._map_documents = _maps_of(adapter, self.side)

    def queries(self, vectors: Sequence[Sequence[float]]) -> list[list[float]]:
        """Return the vectors of queries to search with."""
        return self._map_queries(_rows(vectors)).tolist() if len(vectors) else []

    def documents(self, vectors: Sequence[Sequence[float]]) -> list[list[float]]:
        """Return the vectors of documents to store."""
        if self._map_documents is None or not len(vectors):
            return [list(vector) for vector in vectors]
        return self._map_documents(_rows(vectors)).tolist()


def _maps_of(adapter: Adapter, side: str) -> tuple[Map, Map | None]:
    """Return the map of queries and that of documents, None where stored vectors stay."""
    if isinstance(adapter, QueryAdapter):
        return adapter.transform, None
    metric = getattr(adapter, "metric_", adapter)
    if not isinstance(metric, Metric):
        raise ValueError(
            "adapter must be a Metric, a fitted EmbeddingAdapter or MetricLearner, or a QueryAdapter; got "
            f"{type(adapter).__name__}."
        )
    return (metric.transform, metric.transform) if side == "both" else (metric.query_side().queries, None)


def _rows(vectors: Sequence[Sequence[float]]) -> np.ndarray:
    return np.asarray(vectors, dtype=np.float64)
