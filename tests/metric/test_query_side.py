"""Unchanged stored vectors, learned queries: the ranking is that of `distances`."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp

from mahalo import MetricLearner
from mahalo.metric import Scaling

FORMS = {
    "full": {},
    "prior": {"prior": "covariance"},
    "low rank": {"basis": 3},
    "low rank, within": {"basis": 3, "prior": "within", "residual": 0.3},
    "basis alone": {"basis": 3, "residual": False},
    "leading": {"n_components": 4},
}


def learned(seed, normalize, **options):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((60, 8)) + 3.0
    y = rng.integers(0, 3, 60)
    X += 0.7 * y[:, None]
    return MetricLearner(normalize=normalize, random_state=seed, **options).fit(X, y).metric_, X, rng


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("seed", range(4))
def test_ranks_as_distances_to_the_last_place(seed, form, normalize):
    metric, X, rng = learned(seed, normalize, **form)
    Q = rng.standard_normal((20, 8)) + 3.0
    D = metric.distances(Q, X)
    assert np.array_equal(np.argsort(-metric.query_side().scores(Q, X), axis=1), np.argsort(D, axis=1))


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_formula_gives_the_distance_itself(form):
    metric, X, rng = learned(0, False, **form)
    side, Q = metric.query_side(), rng.standard_normal((20, 8))
    sq = side.stored(Q)[:, None] + side.stored(X) - 2.0 * (Q @ side.matrix) @ X.T
    np.testing.assert_allclose(sq, metric.distances(Q, X, squared=True), atol=1e-9)
    np.testing.assert_allclose(side.queries(Q), Q @ side.matrix, atol=1e-10)


@pytest.mark.parametrize("normalize", [False, True])
def test_scaling_of_columns_is_on_the_query_side_too(normalize):
    metric, X, rng = learned(1, normalize)
    metric = dataclasses.replace(metric, scaling=Scaling(rng.standard_normal(8), 1 + rng.random(8)))
    Q = rng.standard_normal((20, 8)) + 3.0
    order = np.argsort(-metric.query_side().scores(Q, X), axis=1)
    assert np.array_equal(order, np.argsort(metric.distances(Q, X), axis=1))


def test_sparse_and_wide_rows_need_no_matrix():
    rng = np.random.default_rng(0)
    X = sp.random_array((80, 30_000), density=2e-3, format="csr", random_state=rng)
    metric = MetricLearner(basis=4).fit(X, rng.integers(0, 3, 80)).metric_
    order = np.argsort(-metric.query_side().scores(X[:10], X[10:]), axis=1)
    assert np.array_equal(order, np.argsort(metric.distances(X[:10], X[10:]), axis=1))


def test_single_precision_stays():
    metric, X, _ = learned(0, False)
    assert metric.query_side().queries(X.astype(np.float32)).dtype == np.float32


def test_a_kernel_has_none():
    rng = np.random.default_rng(0)
    metric = MetricLearner(kernel="rbf").fit(rng.standard_normal((30, 3)), rng.integers(0, 2, 30)).metric_
    with pytest.raises(ValueError, match="no linear map"):
        metric.query_side()
