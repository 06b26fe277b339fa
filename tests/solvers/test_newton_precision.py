"""Precision of Newton's states: single where they are far from the optimum and it loses nothing, else double."""

from __future__ import annotations

import numpy as np
import pytest
from builders import problem_of, random_pair_constraints, random_triplets

from mahalo.linalg import cholesky_or_none
from mahalo.solvers import newton, newton_state
from mahalo.solvers.newton_state import ArrayState

RANK = 60


def large_problem(rng, n_pairs: int = 900, gamma: float = 1.0, with_triplets: bool = False):
    X = rng.standard_normal((800, RANK)) * rng.uniform(0.5, 2.0, RANK)
    constraints = random_pair_constraints(rng, X, n_pairs)
    if with_triplets:
        constraints = constraints + random_triplets(rng, X, 10)
    problem = problem_of(constraints, X, gamma)
    assert problem.points.size >= newton_state._LARGE_SIZE
    return problem


def test_states_far_from_the_optimum_are_in_single_precision_and_nearly_the_same(rng):
    problem = large_problem(rng)
    start = ArrayState.at(problem, np.eye(RANK))
    factor = np.eye(RANK) + 0.01 * np.tril(rng.standard_normal((RANK, RANK)))
    single, double = start._moved(factor, False), ArrayState.at(problem, factor)
    assert start.Y.dtype == double.Y.dtype == np.float64 and single.Y.dtype == np.float32
    assert single.relative_gap > newton_state._NEAR
    for name in ("primal", "gap", "gradient_over_gamma", "max_violation"):
        assert getattr(single, name) == pytest.approx(getattr(double, name), rel=1e-3), name
    np.testing.assert_allclose(single.v, double.v, rtol=1e-4)


def test_states_near_the_optimum_are_in_double_precision(rng):
    problem = large_problem(rng)
    A = cholesky_or_none(newton(problem, tol=1e-2).F)
    nearby = ArrayState.at(problem, A)
    assert nearby.relative_gap <= newton_state._FAR
    assert nearby._moved(A, False).Y.dtype == nearby._moved(2.0 * A, False).Y.dtype == np.float64
    far = ArrayState.at(problem, 2.0 * A)  # whose next state is the optimum itself
    assert far.relative_gap > newton_state._FAR
    assert far._moved(A, False).Y.dtype == np.float64


def test_pairs_much_shorter_than_the_rows_are_measured_in_double_precision(rng):
    problem = large_problem(rng)
    problem.points[problem.forms.head[0]] = problem.points[problem.forms.tail[0]] + 1e-6
    A = np.eye(RANK) + 0.01 * np.tril(rng.standard_normal((RANK, RANK)))
    moved = ArrayState.at(problem, np.eye(RANK))._moved(A, False)
    np.testing.assert_array_equal(moved.v, ArrayState.at(problem, A).v)


def test_differences_of_pairs_are_in_double_precision(rng):
    """A triplet's value is the difference of two squared distances, which may be small beside both."""
    problem = large_problem(rng, with_triplets=True)
    assert ArrayState.at(problem, np.eye(RANK)).single is None


@pytest.mark.parametrize("gamma", [1.0, 100.0, 1e7])
def test_precision_changes_no_answer(rng, monkeypatch, gamma):
    """Nor does it take many more steps, however stiff the penalties are."""
    problem = large_problem(rng, gamma=gamma)
    found = newton(problem, tol=1e-8)
    monkeypatch.setattr(newton_state, "_FAR", np.inf)
    monkeypatch.setattr(newton_state, "_SINGLE_RANGE", (np.inf, np.inf))
    expected = newton(problem, tol=1e-8)
    assert found.certificate.converged and expected.certificate.converged
    np.testing.assert_allclose(found.F, expected.F, rtol=0, atol=1e-3 * np.abs(expected.F).max())
    assert found.certificate.primal == pytest.approx(expected.certificate.primal, rel=1e-8)
    assert len(found.history) <= 1.2 * len(expected.history) + 3
