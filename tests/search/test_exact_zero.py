"""A row of the index is at distance zero from itself, whatever rows it is queried with."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits

from mahalo import MetricLearner
from mahalo.search import build_index


@pytest.mark.parametrize("settings", [{}, {"normalize": True}, {"basis": 5}, {"prior": "covariance"}], ids=str)
@pytest.mark.parametrize("shift", [0.0, 1e4])
def test_a_row_is_at_no_distance_from_itself(settings, shift):
    X, y = load_digits(return_X_y=True)
    X = np.random.default_rng(0).standard_normal((300, 64)) + X[:300] + shift
    metric = MetricLearner(**settings).fit(X, y[:300]).metric_
    index = build_index(metric, X)
    for n in (1, 2, 3, 7, 64):
        found = index.kneighbors(X[:n], 2)
        np.testing.assert_array_equal(found.ids[:, 0], np.arange(n))
        np.testing.assert_array_equal(found.distances[:, 0], 0.0)
        assert (found.distances[:, 1] > 0).all()


def test_rows_that_differ_by_more_than_rounding_are_apart():
    X, y = load_digits(return_X_y=True)
    metric = MetricLearner().fit(X[:300], y[:300]).metric_
    near = X[:1].copy()
    near[0, 20] += 1e-11
    found = build_index(metric, X[:300]).kneighbors(near, 1)
    np.testing.assert_allclose(found.distances, metric.pair_distances(near, X[:1])[:, None], rtol=1e-3)
    assert found.distances[0, 0] > 0
