"""Nearest rows, found by products in single precision and compared by differences, against all differences."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from mahalo.linalg import nearest_rows


def by_differences(Q, X, k):
    return np.argsort(cdist(Q, X, "sqeuclidean"), axis=1, kind="stable")[:, :k]


@settings(deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 60), st.integers(1, 80), st.integers(1, 20), st.integers(1, 12))
def test_nearest_rows_of_random_points(seed, n, m, d, k):
    rng = np.random.default_rng(seed)
    Q, X = rng.standard_normal((n, d)), rng.standard_normal((m, d))
    np.testing.assert_array_equal(nearest_rows(Q, X, k), by_differences(Q, X, k))


@pytest.mark.parametrize("scale", [1e-200, 1e-30, 1.0, 1e30, 1e140])
@pytest.mark.parametrize("shift", [0.0, 1e3])
def test_unit_and_origin_do_not_matter(rng, scale, shift):
    Q, X = (scale * (rng.standard_normal((n, 5)) + shift) for n in (30, 200))
    expected = by_differences(Q / scale, X / scale, 4)
    np.testing.assert_array_equal(nearest_rows(Q, X, 4), expected)


def test_points_nearer_to_each_other_than_single_precision_tells(rng):
    X = 1.0 + 1e-9 * rng.standard_normal((300, 3))
    X[0] = 50.0  # makes differences among the others rounding errors of single precision
    np.testing.assert_array_equal(nearest_rows(X[1:40], X, 5), by_differences(X[1:40], X, 5))


def test_equally_near_rows_in_their_order(rng):
    X = rng.integers(0, 2, (200, 3)).astype(np.float64)
    np.testing.assert_array_equal(nearest_rows(X, X, 7), by_differences(X, X, 7))


@pytest.mark.parametrize("kind", ["outlier", "heavy tails", "half equal", "few values", "two far clusters"])
def test_rows_that_crowd_in_single_precision(rng, kind):
    """Distances are compared exactly where the longest row, or ties, leave many candidates."""
    X = rng.standard_normal((400, 6))
    if kind == "outlier":
        X[0] = 1e6
    elif kind == "heavy tails":
        X = np.exp(4.0 * X)
    elif kind == "half equal":
        X[::2] = X[0]
    elif kind == "few values":
        X = (X > 1.0).astype(np.float64)
    else:
        X = 1e-6 * X + 1e3 * (np.arange(400) % 2)[:, None]
    np.testing.assert_array_equal(nearest_rows(X, X, 7), by_differences(X, X, 7))


def test_rows_that_are_all_equal():
    X = np.full((40, 3), 2.5)
    np.testing.assert_array_equal(nearest_rows(X[:2], X, 3), [[0, 1, 2], [0, 1, 2]])


@pytest.mark.parametrize("far", [1e15, 1e20, 1e25])
def test_outliers_that_hide_all_others(rng, far):
    """Squares of the others vanish in single precision, and their differences beside the mean."""
    X = np.vstack([np.linspace(0.0, 1.0, 60)[:, None] + [0.0, 1.0], [[far, far], [-far, far]]])
    np.testing.assert_array_equal(nearest_rows(X[:60], X, 4), by_differences(X[:60], X, 4))


def test_one_point_far_from_the_origin(recwarn):
    X = np.full((5, 2), 100.0)
    np.testing.assert_array_equal(nearest_rows(X, X, 3), np.tile(np.arange(3), (5, 1)))
    assert not recwarn
