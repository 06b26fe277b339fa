"""Moments found in parts and merged are those of all rows together, by plain arithmetic."""

from __future__ import annotations

from functools import reduce
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from mahalo.linalg import ClassMoments, fourth_moment


def plain(X, codes, n_classes):
    means = np.array(
        [X[codes == c].mean(axis=0) if (codes == c).any() else np.zeros(X.shape[1]) for c in range(n_classes)]
    )
    Z = X - means[codes]
    return np.bincount(codes, minlength=n_classes), means, Z.T @ Z, float(((Z**2).sum(axis=1) ** 2).sum())


def kinds(X):
    return {"rows": X, "columns": np.asfortranarray(X), "sparse": sp.csr_array(X)}


@pytest.mark.parametrize("kind", ["rows", "columns", "sparse"])
@pytest.mark.parametrize("n_classes", [1, 3, 200])
def test_moments_of_parts_are_those_of_all(kind, n_classes, rng):
    X, codes = rng.standard_normal((300, 4)) + np.array([0.0, 1.0, 100.0, 0.0]), rng.integers(0, n_classes, 300)
    X[:, 3] *= rng.random(300) < 0.3
    sizes, means, scatter, fourth = plain(X, codes, n_classes)
    cuts = [0, 0, 7, 8, 120, 300]
    held = kinds(X)[kind]
    for order in ("none", "variances", "scatter"):
        parts = [ClassMoments.of(held[a:b], codes[a:b], n_classes, order) for a, b in pairwise(cuts)]
        found = reduce(ClassMoments.merge, parts)
        assert (found.sizes == sizes).all() and found.n == 300
        np.testing.assert_allclose(found.means, means, rtol=1e-12, atol=1e-12)
        if order == "none":
            assert found.scatter is None
            continue
        expected = scatter if order == "scatter" else np.diagonal(scatter)
        np.testing.assert_allclose(found.scatter, expected, rtol=1e-9, atol=1e-8)
        around_all = X - X.mean(axis=0)
        expected = around_all.T @ around_all
        expected = expected if order == "scatter" else np.diagonal(expected)
        np.testing.assert_allclose(found.pool().scatter, expected, rtol=1e-9, atol=1e-8)
    assert fourth_moment(held, codes, means) == pytest.approx(fourth, rel=1e-9)


@pytest.mark.parametrize("kind", ["rows", "columns"])
def test_digits_are_kept_far_from_the_origin(kind, rng):
    Z = rng.standard_normal((2_000, 3))
    codes = rng.integers(0, 2, 2_000)
    X = Z + 1e8 * (1 + codes)[:, None]
    found = ClassMoments.of(kinds(X)[kind], codes, 2, "scatter").scatter
    np.testing.assert_allclose(found, plain(X - 1e8 * (1 + codes)[:, None], codes, 2)[2], rtol=1e-6)


@given(st.lists(st.integers(0, 40), min_size=1, max_size=6), st.integers(0, 2**32 - 1))
def test_any_cuts_give_the_same(lengths, seed):
    rng = np.random.default_rng(seed)
    X, codes = rng.standard_normal((sum(lengths), 2)), rng.integers(0, 3, sum(lengths))
    whole = ClassMoments.of(X, codes, 3, "scatter")
    ends = np.cumsum([0, *lengths])
    parts = [ClassMoments.of(X[a:b], codes[a:b], 3, "scatter") for a, b in pairwise(ends)]
    found = reduce(ClassMoments.merge, parts)
    assert (found.sizes == whole.sizes).all()
    np.testing.assert_allclose(found.means, whole.means, atol=1e-12)
    np.testing.assert_allclose(found.scatter, whole.scatter, atol=1e-10)


def test_classes_take_their_places():
    found = ClassMoments.of(np.array([[1.0], [3.0]]), np.array([0, 1]), 2, "variances").renumber(np.array([2, 0]), 4)
    assert found.sizes.tolist() == [1, 0, 1, 0] and found.means.ravel().tolist() == [3.0, 0.0, 1.0, 0.0]
