"""Adapting embeddings from pairs alone: how candidates are judged."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits

from mahalo import Constraints
from mahalo.coordinates import LinearCoordinates
from mahalo.embeddings.adapter import EmbeddingAdapter, _pair_precision
from mahalo.evaluation import average_precision, ranked
from mahalo.metric import Metric
from mahalo.priors import Prior
from mahalo.selection.folds import Fold


def held_out(X: np.ndarray, train: int) -> Fold:
    n = np.arange(len(X))
    return Fold(X, None, None, n, n[:train], n[train:], pairwise=False)


def metric_of(weights) -> Metric:
    weights = np.asarray(weights, dtype=float)
    return Metric(LinearCoordinates(Prior(np.sqrt(weights)), len(weights)), np.eye(len(weights)))


def all_similar_pairs(y: np.ndarray, first: int) -> np.ndarray:
    i, j = np.nonzero(y[:, None] == y)
    return np.column_stack([i, j])[(i != j) & (i >= first) & (j >= first)]


def test_with_every_pair_known_it_ranks_metrics_as_average_precision_does():
    rng = np.random.default_rng(0)
    y = np.arange(300) % 6
    X = np.column_stack([y + 0.5 * rng.standard_normal(300), 2 * rng.standard_normal(300)])
    fold, pairs = held_out(X, 100), Constraints.from_pairs(all_similar_pairs(y, 100))
    weights = [(1.0, w) for w in (0.001, 0.03, 0.3, 1.0, 10.0)]

    def truth(metric: Metric) -> float:
        D = metric.distances(X[100:])
        np.fill_diagonal(D, np.inf)
        relevant = (y[100:, None] == y[100:]) & ~np.eye(200, dtype=bool)
        return float(average_precision(ranked(D, relevant)).mean())

    found = [_pair_precision(metric_of(w), fold, pairs).values.mean() for w in weights]
    expected = [truth(metric_of(w)) for w in weights]
    assert np.argsort(found).tolist() == np.argsort(expected).tolist()


def test_it_does_not_depend_on_units():
    X = np.random.default_rng(1).standard_normal((80, 3))
    fold, pairs = held_out(X, 20), Constraints.from_pairs([[30, 31], [40, 41], [50, 60]])
    found = [_pair_precision(metric_of(weights), fold, pairs).values for weights in ([1, 2, 3], [4, 8, 12])]
    np.testing.assert_array_equal(*found)


def test_it_does_not_depend_on_the_last_bits():
    """The other row of a pair is found at its own distance, however that is rounded."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((200, 30)).astype(np.float32)
    pairs = Constraints.from_pairs(np.arange(50, 200).reshape(-1, 2))
    weights = rng.uniform(0.1, 3.0, 30)
    single, double = (_pair_precision(metric_of(weights), held_out(X.astype(kind), 50), pairs).values for kind in "fd")
    np.testing.assert_allclose(single, double, rtol=0, atol=1e-9)


def test_a_pair_that_is_nearest_has_rank_one():
    X = np.array([[0.0], [0.1], [5.0], [5.1], [9.0], [9.1]])
    pairs = Constraints.from_pairs([[2, 3], [4, 5]])
    np.testing.assert_array_equal(_pair_precision(metric_of([1.0]), held_out(X, 2), pairs).values, 1.0)


def test_without_similar_pairs_it_is_the_auc():
    X = np.random.default_rng(1).standard_normal((80, 3))
    fold = held_out(X, 20)
    pairs = Constraints.from_triplets([[30, 31, 32], [40, 41, 42]])
    assert _pair_precision(metric_of([1, 1, 1]), fold, pairs).values == [fold.auc(metric_of([1, 1, 1]), pairs)]


@pytest.mark.slow
def test_pairs_alone_improve_the_ranking_of_digits():
    X, y = load_digits(return_X_y=True)
    i, j = np.random.default_rng(0).integers(len(y), size=(2, 8000))
    pairs = Constraints.from_pairs(np.column_stack([i, j])[i != j], same=(y[i] == y[j])[i != j])
    adapter = EmbeddingAdapter(random_state=0).fit(X, constraints=pairs)
    before, after = (_map(Z, y) for Z in (X, adapter.transform(X)))
    assert after > before + 0.1
    assert adapter.before_after_.after["pair AUC"] > adapter.before_after_.before["pair AUC"]


def _map(Z: np.ndarray, y: np.ndarray) -> float:
    sq = np.einsum("ij,ij->i", Z, Z)
    D = sq[:, None] + sq - 2 * Z @ Z.T
    np.fill_diagonal(D, np.inf)
    return float(average_precision(ranked(D, (y[:, None] == y) & ~np.eye(len(y), dtype=bool))).mean())
