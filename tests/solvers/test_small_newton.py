"""Steps on small problems, compiled, against the same in NumPy."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from builders import problem_of, random_pair_constraints
from hypothesis import given, settings
from hypothesis import strategies as st

from mahalo._core.small_newton import SmallProblem, SmallState
from mahalo.solvers import newton
from mahalo.solvers.newton_state import ArrayState, state_at

NUMBERS = ("gamma", "primal", "gap", "relative_gap", "gradient_over_gamma", "max_violation", "share")


def small_problem(seed: int, rank: int, gamma: float = 1.0, offset: float = 0.0, n_pairs: int = 40):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((25, rank)) * rng.uniform(0.3, 3.0, rank)
    problem = problem_of(random_pair_constraints(rng, X, n_pairs, weights=True), X, gamma)
    return dataclasses.replace(problem, offset=np.full(problem.n_constraints, offset))


def random_factor(rank: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.tril(0.2 * rng.standard_normal((rank, rank)), -1) + np.diag(rng.uniform(0.3, 1.5, rank))


def both_states(problem, A):
    compiled = state_at(problem, A)
    assert isinstance(compiled, SmallState)
    return compiled, ArrayState.at(problem, A)


def assert_same_state(compiled, in_numpy) -> None:
    for name in NUMBERS:
        assert getattr(compiled, name) == pytest.approx(getattr(in_numpy, name), rel=1e-8, abs=1e-9), name
    for name in ("A", "v", "s"):
        np.testing.assert_allclose(getattr(compiled, name), getattr(in_numpy, name), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("rank", [1, 2, 4, 7, 8, 9, 13, 16])
@pytest.mark.parametrize("offset", [0.0, 0.3])
@pytest.mark.parametrize("gamma", [0.01, 1.0, 300.0])
def test_states_have_the_same_numbers(rank, offset, gamma):
    for seed in range(3):
        compiled, in_numpy = both_states(small_problem(seed, rank, gamma, offset), random_factor(rank, seed))
        assert_same_state(compiled, in_numpy)
        assert_same_state(compiled.at_gamma(3.0 * gamma), in_numpy.at_gamma(3.0 * gamma))


@pytest.mark.parametrize("gamma", [1e6, 1e12])
def test_penalties_of_tiny_violations_lose_no_digits(gamma):
    """All violations are a billionth of the bound, where ln(v/b) from v/b would leave nothing but rounding."""
    problem = small_problem(0, 4)
    v = problem.forms.apply(problem.points, problem.points)
    problem = dataclasses.replace(problem, bound=v * (1.0 - 1e-9 * problem.sign), gamma=gamma)
    compiled, in_numpy = both_states(problem, np.eye(4))
    penalty = 0.5 * gamma * float(problem.weight.sum()) * 1e-18
    assert in_numpy.primal == pytest.approx(penalty, rel=1e-5)
    assert compiled.primal == pytest.approx(penalty, rel=1e-5)
    assert compiled.gap == pytest.approx(in_numpy.gap, rel=1e-6)


@pytest.mark.parametrize("rank", [1, 3, 8, 11, 16])
@pytest.mark.parametrize("primal_dual", [False, True])
@pytest.mark.parametrize("inexact", [0.1, 0.01])
def test_steps_are_the_same(rank, primal_dual, inexact):
    n_full = 0
    for seed in range(8):
        for gamma in (0.1, 10.0):
            problem = small_problem(seed, rank, gamma)
            near = np.linalg.cholesky(newton(problem.with_gamma(0.8 * gamma), tol=1e-3).F)
            compiled, in_numpy = both_states(problem, near if seed % 2 else random_factor(rank, seed))
            following, t, n_products = compiled.step(primal_dual, inexact, 50)
            expected, t_expected, n_expected = in_numpy.step(primal_dual, inexact, 50)
            assert n_products == n_expected
            assert (t == 1.0) == (t_expected == 1.0)
            if t == 1.0:  # a shorter one is searched for to two digits
                n_full += 1
                assert_same_state(following, expected)
            else:
                assert t == pytest.approx(t_expected, rel=0.05)
    assert n_full


def test_a_damped_step_stops_where_the_objective_stops_falling():
    n_damped = 0
    for seed in range(30):
        state, _ = both_states(small_problem(seed, 4, 100.0), np.eye(4))
        following, t, _ = state.step(True, 0.1, 50)
        assert following.primal < state.primal
        n_damped += 0.0 < t < 1.0
    assert n_damped


@settings(deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 16), st.sampled_from([0.03, 1.0, 30.0]))
def test_solutions_are_certified(seed, rank, gamma):
    problem = small_problem(seed, rank, gamma)
    solution = newton(problem, tol=1e-6)
    assert solution.certificate.converged
    assert solution.history[-1].primal == pytest.approx(solution.certificate.primal, rel=1e-9, abs=1e-9)
    assert solution.history[-1].relative_gap == pytest.approx(solution.certificate.relative_gap, abs=1e-8)


def test_only_small_problems_of_pairs_are_compiled(rng):
    X = rng.standard_normal((25, 17))
    assert isinstance(state_at(problem_of(random_pair_constraints(rng, X, 30), X, 1.0), np.eye(17)), ArrayState)
    assert isinstance(state_at(small_problem(0, 4), np.eye(4)), SmallState)


def test_no_step_where_the_gradient_is_zero():
    # One pair, at its bound: F = I is the optimum.
    arrays = [np.array([value]) for value in (1.0, 1.0, 1.0, 1.0, 0.0)]
    problem = SmallProblem(np.array([[0.0], [1.0]]), np.array([0]), np.array([1]), *arrays)
    state = SmallState(problem, np.eye(1), 1.0)
    assert state.gap == 0.0
    assert state.step(False, 0.1, 10)[:2] == (None, 0.0)


def test_arrays_that_do_not_fit_are_refused():
    one, two = np.ones(1), np.ones(2)
    points, tail, head = np.zeros((2, 1)), np.array([0]), np.array([1])
    with pytest.raises(ValueError, match="bound must be of length 1"):
        SmallProblem(points, tail, head, one, two, one, one, one)
    with pytest.raises(ValueError, match="head must be in"):
        SmallProblem(points, tail, np.array([2]), one, one, one, one, one)
    with pytest.raises(ValueError, match="got 0 pairs"):
        SmallProblem(points, tail[:0], head[:0], one[:0], one[:0], one[:0], one[:0], one[:0])
    with pytest.raises(ValueError, match="A must be 1 × 1"):
        SmallState(SmallProblem(points, tail, head, one, one, one, one, one), np.eye(2), 1.0)
