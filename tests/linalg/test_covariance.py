"""Moments of columns over blocks of rows: sparse as dense, and no digits lost to a mean far from zero."""

from __future__ import annotations

import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from mahalo.linalg import column_variances, covariance, moments, row_blocks, second_moment, shrunk_correlation

FAR = [0.0, 1.0, 10.0, 1e4, 1e7]


def columns(rng, n: int, mean: float) -> np.ndarray:
    """Some columns with many zeros, some with none and `mean` deviations from zero; related all of them."""
    common = rng.standard_normal((n, 1))
    thin = (rng.random((n, 4)) < 0.2) * (1.0 + rng.random((n, 4)) + common)
    return np.hstack([thin, mean + common + rng.standard_normal((n, 3))])[:, [0, 4, 1, 5, 2, 6, 3]]


@pytest.mark.parametrize("mean", FAR)
def test_sparse_rows_have_the_correlation_of_dense_ones(rng, mean):
    X = columns(rng, 300, mean)
    exact = np.corrcoef((X - X[0]).T)
    for given in (X, sp.csr_array(X), sp.csc_array(X)):
        R, deviation, shrinkage = shrunk_correlation(row_blocks(given))
        assert shrinkage == 0.0
        np.testing.assert_allclose(R, exact, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(deviation, (X - X[0]).std(axis=0), rtol=1e-10)


@pytest.mark.parametrize("mean", FAR)
def test_sparse_rows_are_shrunk_as_much_as_dense_ones(rng, mean):
    X = columns(rng, 6, mean)
    R, _, shrinkage = shrunk_correlation(row_blocks(sp.csr_array(X)))
    expected, _, as_dense = shrunk_correlation(row_blocks(X))
    assert 0 < as_dense < 1
    assert shrinkage == pytest.approx(as_dense, rel=1e-10)
    np.testing.assert_allclose(R, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_moments_are_those_of_exact_arithmetic(rng, make):
    X = columns(rng, 40, 1e7)
    found = moments(row_blocks(make(X), 7))
    for j, column in enumerate(X.T):
        numbers = [Fraction(x) for x in column]
        mean = sum(numbers) / len(numbers)
        assert found.mean[j] == pytest.approx(float(mean), rel=1e-15, abs=1e-15)
        assert found.variance[j] == pytest.approx(
            float(sum((x - mean) ** 2 for x in numbers) / len(numbers)), rel=1e-13
        )


@pytest.mark.parametrize("size", [1, 7, 40, 1000])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_blocks_of_any_size_give_the_same(rng, make, size):
    X = columns(rng, 40, 100.0)
    found, whole = moments(row_blocks(make(X), size)), moments(row_blocks(X))
    assert found.n == whole.n == 40
    np.testing.assert_allclose(found.mean, whole.mean, rtol=1e-14)
    np.testing.assert_allclose(found.variance, whole.variance, rtol=1e-12)
    scale = np.sqrt(whole.variance)
    np.testing.assert_allclose(
        second_moment(row_blocks(make(X), size), whole.mean, scale),
        second_moment(row_blocks(X), whole.mean, scale),
        rtol=1e-12,
        atol=1e-13,
    )


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_second_moments_are_about_any_centre(rng, make):
    X, centre, scale = columns(rng, 20, 5.0), rng.standard_normal(7) * 3, 0.5 + rng.random(7)
    Z = (X - centre) / scale
    np.testing.assert_allclose(second_moment(row_blocks(make(X), 6), centre, scale), Z.T @ Z / 20, rtol=1e-12)


def test_entries_given_in_parts_are_summed_and_left_as_they_were():
    X = sp.csr_array((np.array([1.0, 2.0, 5.0]), np.array([0, 0, 1]), np.array([0, 2, 3])), shape=(2, 2))
    np.testing.assert_allclose(column_variances(row_blocks(X)), [2.25, 6.25])
    assert X.nnz == 3


def test_columns_with_many_zeros_stay_sparse(rng):
    X = sp.csr_array(columns(rng, 300, 1e7))
    found = moments(row_blocks(X))
    far, D, S, _ = covariance._split_columns(X, found.mean, np.sqrt(found.variance))
    np.testing.assert_array_equal(np.flatnonzero(far), [1, 3, 5])
    assert D.shape == (300, 3) and S.shape == (300, 4)
    assert S.nnz < 0.3 * 300 * 4


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.uint8])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_moments_are_of_double_precision_whatever_the_type(make, dtype):
    X = np.array([[200, 0], [201, 3], [203, 0]], dtype=dtype)
    found = moments(row_blocks(make(X)))
    np.testing.assert_allclose(found.mean, [604 / 3, 1.0], rtol=1e-15)
    np.testing.assert_allclose(found.variance, [14 / 9, 2.0], rtol=1e-14)
    assert shrunk_correlation(row_blocks(make(X)))[0].dtype == np.float64


def test_memory_is_that_of_a_block(rng):
    X = rng.standard_normal((400_000, 20))
    tracemalloc.start()
    shrunk_correlation(row_blocks(X))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.7 * X.nbytes
