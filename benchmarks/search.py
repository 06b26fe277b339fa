"""Approximate search: how much of the exact ten it finds, and how much sooner."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.neighbors import NearestNeighbors

from experiments.data import load_banking77
from mahalo import Metric, MetricLearner
from mahalo.embeddings import EmbeddingAdapter
from mahalo.search import build_index

from .report import Check, Report, Table
from .settings import Settings
from .tables import data_folder
from .timing import alternate

__all__ = ["run"]

K, RECALL, N_QUERIES = 10, 0.95, 1_000
BACKENDS = ("faiss", "usearch")


def run(settings: Settings) -> Report:
    rows, checks = [], []
    for name, metric, X, Q in _sets(settings):
        exact = build_index(metric, X)
        T, TQ = metric.transform(X), metric.transform(Q)
        ours = exact.kneighbors(Q, K)
        theirs, order = NearestNeighbors(n_neighbors=K, algorithm="brute").fit(T).kneighbors(TQ)
        same = _same_but_for_ties(ours.ids, order, ours.distances, theirs)
        checks.append(Check(f"{name}: exact answers that are scikit-learn's, but for ties", same, 1.0))
        indexes, built = {"exact": exact}, {"exact": 0.0}
        for backend in BACKENDS:
            began = time.perf_counter()
            indexes[backend] = build_index(metric, X, backend)
            built[backend] = time.perf_counter() - began
        tasks = {backend: lambda index=index, Q=Q: index.kneighbors(Q, K) for backend, index in indexes.items()}
        seconds = alternate(tasks, 1 if settings.quick else 5)
        for backend, index in indexes.items():
            recall = _recall(ours.ids, index.kneighbors(Q, K).ids)
            faster = seconds["exact"] / seconds[backend]
            each = 1e3 * seconds[backend] / len(Q)
            rows.append(
                (name, len(X), backend, f"{recall:.4f}", f"{each:.3f}", f"{faster:.1f}", f"{built[backend]:.1f}")
            )
            if backend != "exact":
                checks.append(Check(f"{name}, {backend}: recall of the exact ten", recall, RECALL))
                checks.append(Check(f"{name}, {backend}: times as fast as exact", faster, 1.0))
    columns = ("data", "rows", "backend", "recall@10", "ms a query", "× exact", "seconds to build")
    return Report(
        name="search",
        checks=tuple(checks),
        tables=(Table("ten nearest under a learned metric", columns, tuple(rows)),),
        notes=(
            f"up to {N_QUERIES:,} queries that were not stored, the transform of the queries included; "
            "every backend at its defaults",
        ),
    )


def _recall(wanted: np.ndarray, found: np.ndarray) -> float:
    return float(np.mean([len(np.intersect1d(a, b)) / len(a) for a, b in zip(wanted, found, strict=True)]))


def _same_but_for_ties(ids: np.ndarray, others: np.ndarray, distances: np.ndarray, their: np.ndarray) -> float:
    """Share of places with the same row, or with another that is equally far."""
    return float(((ids == others) | (np.abs(distances - their) <= 1e-6 * their.max())).mean())


def _sets(settings: Settings) -> Iterator[tuple[str, Metric, np.ndarray, np.ndarray]]:
    """(name, metric, stored rows, queries)."""
    if (folder := data_folder()) is not None:
        os.environ.setdefault("MAHALO_DATA", str(folder))
        data = load_banking77()
        few = data.is_train.nonzero()[0][:: 8 if settings.quick else 2]
        adapter = EmbeddingAdapter().fit(data.X[few], data.y[few])
        yield "banking77", adapter.metric_, data.X[data.is_train], data.X[~data.is_train][:N_QUERIES]
    yield "simulated", *_simulated(10_000 if settings.quick else 100_000, settings.seed)


def _simulated(n: int, seed: int, n_features: int = 64, n_classes: int = 200) -> tuple[Metric, Any, Any]:
    """Classes that differ in a third of the columns, under noise of its own size in each; metric learned on some."""
    rng = np.random.default_rng(seed)
    centres = np.zeros((n_classes, n_features))
    centres[:, : n_features // 3] = 2.0 * rng.standard_normal((n_classes, n_features // 3))
    noise = np.exp(rng.standard_normal(n_features))
    y = rng.integers(0, n_classes, n + N_QUERIES)
    X = (centres[y] + noise * rng.standard_normal((len(y), n_features))).astype(np.float32)
    metric = MetricLearner(prior="within", pairs_per_class=20).fit(X[:5_000], y[:5_000]).metric_
    return metric, X[:n], X[n:]
