"""Rows are known again, and told from others, whichever row is changed."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from mahalo.explain import fingerprint
from mahalo.explain.fingerprint import checksum


@settings(max_examples=50, deadline=None)
@given(cut=st.integers(0, 40), seed=st.integers(0, 1000))
def test_parts_add_up(cut, seed):
    X = np.random.default_rng(seed).standard_normal((40, 3))
    assert (checksum(X[:cut]) + checksum(X[cut:], cut)) % 2**64 == checksum(X)


@settings(max_examples=100, deadline=None)
@given(row=st.integers(0, 2999), column=st.integers(0, 4))
def test_any_number_counts(row, column):
    X = np.random.default_rng(0).standard_normal((3000, 5))
    other = X.copy()
    other[row, column] = np.nextafter(X[row, column], np.inf)
    assert fingerprint(X) != fingerprint(other)


def test_order_counts_and_how_rows_are_held_does_not():
    X = np.random.default_rng(0).standard_normal((50, 4)).round() + 0.0
    assert fingerprint(X) != fingerprint(X[::-1]) != fingerprint(X[:, ::-1])
    same = [np.asfortranarray(X), sp.csr_array(X), np.where(X == 0, -0.0, X), X.astype(np.float32)]
    assert all(fingerprint(rows) == fingerprint(X) for rows in same)


def test_sparse_rows_of_many_blocks_have_the_sums_of_dense_ones():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 150)) * (rng.random((3000, 150)) < np.linspace(0.0, 0.9, 3000)[:, None])
    assert checksum(sp.csr_array(X)) == checksum(X)
    assert sum(checksum(sp.csr_array(X[a : a + 700]), a) for a in range(0, 3000, 700)) % 2**64 == checksum(X)
    assert checksum(sp.csr_array(np.zeros((0, 3)))) == checksum(np.zeros((0, 3)))
    assert checksum(sp.csr_array(np.zeros((9, 3)))) == checksum(np.zeros((9, 3)))


@pytest.mark.parametrize("y", [np.arange(50) % 3, np.array(list("ab") * 25)])
def test_labels_count(y):
    X = np.zeros((50, 2))
    other = y.copy()
    other[0] = y[1]
    assert fingerprint(X, y).rows == fingerprint(X, other).rows
    assert fingerprint(X, y).labels != fingerprint(X, other).labels
