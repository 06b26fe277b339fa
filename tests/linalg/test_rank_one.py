"""Steps made in a block are the steps made one by one, and nothing below the diagonal is read."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mahalo.linalg.rank_one import add_outer, from_upper, log_det_of_upper, rank_one_steps, times_upper


def _halved(A):
    """The upper triangle alone; who reads the rest gets NaN."""
    return np.where(np.tri(len(A), k=-1, dtype=bool), np.nan, A)


def _definite(rng, rank):
    A = rng.standard_normal((rank, rank))
    return A @ A.T / rank + np.eye(rank)


def _choice(p, t):
    """A step that depends on what earlier ones have left; every third pair is passed over."""
    return 0.0 if t % 3 == 2 else (-0.4 if t % 2 else 0.3) / p


def _decide(G, beta):
    for t in range(len(G)):
        beta[t] = _choice(G[t, t], t)
        row = G[t].copy()
        G[t + 1 :, t:] += beta[t] * np.outer(row[t + 1 :], row[t:])
    G[np.tril_indices(len(G), -1)] = np.nan  # as if never written


@given(seed=st.integers(0, 2**32 - 1), rank=st.integers(1, 24), n=st.integers(0, 40))
def test_a_block_makes_the_steps_that_are_made_one_by_one(seed, rank, n):
    rng = np.random.default_rng(seed)
    F, Z = _definite(rng, rank), rng.standard_normal((n, rank))
    expected, betas = F.copy(), np.empty(n)
    for t, z in enumerate(Z):
        y = expected @ z
        betas[t] = _choice(z @ y, t)
        expected = expected + betas[t] * np.outer(y, y)
    found, moved = rank_one_steps(_halved(F), Z, _decide)
    np.testing.assert_allclose(from_upper(found), expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())
    np.testing.assert_array_equal(moved, np.flatnonzero(betas))


def test_outer_products_of_either_sign_are_added(rng):
    A, Y, weight = _definite(rng, 7), rng.standard_normal((5, 7)), np.array([1.0, -2.0, 0.0, 0.5, -0.1])
    found = from_upper(add_outer(_halved(A), weight, Y.copy()))
    np.testing.assert_allclose(found, A + (Y.T * weight) @ Y, rtol=1e-12)


def test_products_read_the_upper_triangle(rng):
    F, Z = _definite(rng, 9), rng.standard_normal((4, 9))
    np.testing.assert_allclose(times_upper(_halved(F), Z), Z @ F, rtol=1e-12)


def test_nothing_to_do_is_no_complaint(capfd):
    assert times_upper(np.eye(0), np.zeros((3, 0))).shape == (3, 0)
    assert log_det_of_upper(np.eye(0)) == 0.0
    np.testing.assert_array_equal(rank_one_steps(np.eye(8), np.zeros((0, 8)), _decide)[0], np.eye(8))
    assert capfd.readouterr() == ("", "")


def test_determinants_read_the_upper_triangle(rng):
    F = _definite(rng, 9)
    assert log_det_of_upper(_halved(F)) == pytest.approx(np.linalg.slogdet(F)[1], rel=1e-12)
    assert log_det_of_upper(_halved(F - 100.0 * np.eye(9))) == -np.inf
    assert log_det_of_upper(np.full((9, 9), np.nan)) == log_det_of_upper(np.diag([np.inf] * 9)) == -np.inf


def test_the_whole_is_symmetric(rng):
    A = _definite(rng, 6)
    np.testing.assert_array_equal(from_upper(_halved(A)), np.triu(A) + np.triu(A, 1).T)
