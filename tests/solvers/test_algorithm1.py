"""Algorithm 1 of the paper, projection by projection, against its own words."""

from __future__ import annotations

import dataclasses
import sys

import numpy as np
import pytest
from builders import (
    PlainProblem,
    problem_of,
    random_linear,
    random_pair_constraints,
    random_pairs,
    random_triplets,
)
from hypothesis import given
from hypothesis import strategies as st
from paper_algorithm import PaperAlgorithm1
from scipy.optimize import brentq

from mahalo import Constraints
from mahalo.solvers import Solution, bregman, newton
from mahalo.solvers.certificate import form_matrix

# The package attribute of this name is the function.
module = sys.modules["mahalo.solvers.bregman"]
Projections, KernelProjections = module.Projections, module.KernelProjections


def paper_in_feature_space(problem):
    """The same algorithm with K = X F Xᵀ: F starts at I, and z = x_i − x_j replaces e_i − e_j."""
    Z = problem.points[problem.forms.tail] - problem.points[problem.forms.head]
    gamma = problem.gamma * problem.weight
    F, lam, xi = np.eye(problem.rank), np.zeros(len(Z)), problem.bound.copy()
    while True:
        for k, z in enumerate(Z):
            p = z @ F @ z
            delta = problem.sign[k]
            factor = delta * (gamma[k] / (gamma[k] + 1.0) if np.isfinite(gamma[k]) else 1.0)
            alpha = min(lam[k], factor * (1.0 / p - 1.0 / xi[k]))
            beta = delta * alpha / (1.0 - delta * alpha * p)
            if np.isfinite(gamma[k]):
                xi[k] = gamma[k] * xi[k] / (gamma[k] + delta * alpha * xi[k])
            lam[k] -= alpha
            F = F + beta * np.outer(F @ z, z @ F)
        yield F, lam.copy(), xi.copy()


def feature_problem(rng, gamma, d=5, n=12, m=30, weights=True):
    X = rng.standard_normal((n, d))
    return problem_of(random_pair_constraints(rng, X, m, weights=weights), X, gamma)


@pytest.fixture(params=["plain", "blocked", "blocked in threes"])
def variant(request, monkeypatch):
    """Rank-one updates as printed, blocks longer than the problem, and blocks that divide it."""
    monkeypatch.setattr(module, "_BLOCKED_FROM", 10**6 if request.param == "plain" else 0)
    if request.param == "blocked in threes":
        monkeypatch.setattr(module, "_BLOCK", 3)
    return request.param


@pytest.mark.parametrize("gamma", [0.01, 1.0, 100.0, np.inf])
@pytest.mark.parametrize("d", [1, 5, 8, 13])
def test_feature_space_iterates(rng, variant, gamma, d):
    problem = feature_problem(rng, gamma, d=d)
    ours, paper = Projections(problem), paper_in_feature_space(problem)
    assert ours.blocked == (variant != "plain")
    for _ in range(6):
        ours.sweep()
        F, lam, xi = next(paper)
        np.testing.assert_allclose(ours.F, F, rtol=0, atol=1e-10 * np.abs(F).max())
        np.testing.assert_allclose(ours.lam, lam, rtol=0, atol=1e-10 * lam.max())
        np.testing.assert_allclose(ours.xi, xi, rtol=1e-10)


@given(st.integers(0, 2**32 - 1), st.floats(1e-3, 1e3))
def test_every_single_projection_of_a_sweep(seed, gamma):
    """A sweep over the first k pairs is steps 3.1 to 3.8 k times over."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((5, 3))
    constraints = random_pair_constraints(rng, X, 8, weights=True)
    K0, pairs = X @ X.T, constraints.pairs
    paper = PaperAlgorithm1(K0, pairs.index, pairs.sign > 0, pairs.bound, gamma * pairs.weight)
    for k in range(8):
        paper.project(k)
        first = constraints.take(np.arange(8) <= k)
        rows = np.unique(first.pairs.index)
        ours = KernelProjections(problem_of(first, X, gamma), K0[np.ix_(rows, rows)])
        ours.sweep()
        np.testing.assert_allclose(ours.K, paper.K[np.ix_(rows, rows)], rtol=0, atol=1e-10 * np.abs(paper.K).max())
        np.testing.assert_allclose(ours.lam, paper.lam[: k + 1], rtol=0, atol=1e-10 * max(paper.lam.max(), 1e-12))
        np.testing.assert_allclose(ours.xi, paper.xi[: k + 1], rtol=1e-10)


@pytest.mark.parametrize("gamma", [0.01, 1.0, 100.0, np.inf])
@pytest.mark.parametrize("kernel", ["linear", "gaussian"])
def test_kernel_iterates(rng, gamma, kernel):
    n = 14
    X = rng.standard_normal((n, 4))
    sq = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    K0 = X @ X.T if kernel == "linear" else np.exp(-sq / 4)
    index = random_pairs(rng, n, 30)
    distance = np.diag(K0)[index].sum(axis=1) - 2 * K0[index[:, 0], index[:, 1]]
    constraints = Constraints.from_pairs(
        index[:15], index[15:], upper=distance[:15] * 0.6, lower=distance[15:] * 1.5, weight=rng.uniform(0.5, 2, 30)
    )
    problem = problem_of(constraints, np.zeros((n, 0)), gamma)
    assert problem.forms.n_rows == n  # every row is in some pair, so kernel rows are rows of X
    ours = KernelProjections(problem, K0)
    paper = PaperAlgorithm1(K0, index, constraints.sign > 0, constraints.bound, gamma * constraints.weight)
    for _ in range(6):
        ours.sweep()
        paper.sweep()
        np.testing.assert_allclose(ours.K, paper.K, rtol=0, atol=1e-10 * np.abs(paper.K).max())
        np.testing.assert_allclose(ours.lam, paper.lam, rtol=0, atol=1e-10 * paper.lam.max())
        np.testing.assert_allclose(ours.xi, paper.xi, rtol=1e-10)


def test_kernel_and_feature_space_are_one(rng, variant):
    """K = X F Xᵀ all the way (the paper's theorem on learning metrics and kernels)."""
    X = rng.standard_normal((9, 4))
    problem = problem_of(random_pair_constraints(rng, X, 20), X, 2.0)
    features, kernel = Projections(problem), KernelProjections(problem, problem.points @ problem.points.T)
    for _ in range(5):
        features.sweep()
        kernel.sweep()
        K = problem.points @ features.F @ problem.points.T
        np.testing.assert_allclose(kernel.K, K, rtol=0, atol=1e-10 * np.abs(K).max())


def test_kernel_input_is_not_changed_and_must_fit(rng):
    X = rng.standard_normal((5, 3))
    problem = problem_of(Constraints.from_pairs([[0, 1], [2, 3]], [[3, 4]], upper=0.5, lower=9.0), X, 1.0)
    K0 = X @ X.T
    before = K0.copy()
    KernelProjections(problem, K0).sweep()
    np.testing.assert_array_equal(K0, before)
    with pytest.raises(ValueError, match=r"K0 must be 5 × 5.*got shape \(4, 4\)"):
        KernelProjections(problem, K0[:4, :4])


# -- offsets ---------------------------------------------------------------------------------------------------


def brute_force_projection(p, xi, c, gamma):
    """s in (−1/p, γ/ξ) with c + p/(1 + s p) = ξγ/(γ − s ξ), by bisection.

    With s = −1/p + t the left side falls and the right side rises in t; both poles are outside.
    """
    if np.isinf(gamma):
        return (p / (xi - c) - 1) / p
    low, high = -1 / p, gamma / xi

    def difference(s):
        return (c + p / (1 + s * p)) - xi * gamma / (gamma - s * xi)

    width = high - low
    return brentq(difference, low + 1e-13 * width, high - 1e-13 * width, xtol=1e-300, rtol=1e-15)


def one_pair(p, xi, c, gamma, sign):
    index, bound = [[0, 1]], xi
    constraints = (
        Constraints.from_pairs(index, upper=bound) if sign > 0 else Constraints.from_pairs(None, index, lower=bound)
    )
    return problem_of(constraints, np.array([[0.0], [np.sqrt(p)]]), gamma, c)


@given(
    st.floats(1e-3, 1e3),
    st.floats(1e-3, 1e3),
    st.floats(1e-6, 1e3),
    st.floats(1e-3, 1e4),
    st.sampled_from([1.0, -1.0]),
)
def test_offset_projection_is_the_root_of_its_equations(p, xi, c, gamma, sign):
    state = Projections(one_pair(p, xi, c, gamma, sign))
    state.sweep()
    s = brute_force_projection(p, xi, c, gamma)
    s = s if sign * s > 0 else 0.0  # λ starts at 0 and may not fall below
    assert sign * state.lam[0] == pytest.approx(s, rel=1e-6, abs=1e-9 * min(1 / p, gamma / xi))
    assert state.F[0, 0] == pytest.approx(1 / (1 + s * p), rel=1e-6)
    assert state.xi[0] == pytest.approx(gamma * xi / (gamma - s * xi), rel=1e-6)
    if s:  # distance and slack meet
        assert c + p * state.F[0, 0] == pytest.approx(state.xi[0], rel=1e-6)


@pytest.mark.parametrize(("p", "xi", "c"), [(2.0, 1.5, 0.5), (2.0, 9.0, 0.5), (0.3, 0.7, 0.6)])
def test_offset_projection_of_hard_constraints(p, xi, c):
    sign = 1.0 if c + p > xi else -1.0
    state = Projections(one_pair(p, xi, c, np.inf, sign))
    state.sweep()
    assert sign * state.lam[0] == pytest.approx(brute_force_projection(p, xi, c, np.inf), rel=1e-12)
    assert c + p * state.F[0, 0] == pytest.approx(xi, rel=1e-12)
    assert state.xi[0] == xi


def test_offset_projection_goes_back_no_further_than_its_multiplier(rng):
    """λ > 0 from an earlier projection is undone as far as it goes, to exactly 0, not beyond."""
    problem = one_pair(1.0, 2.0, 0.5, 1.0, 1.0)  # 1.5 ≤ 2 holds
    start = Solution(np.eye(1), np.array([0.01]), None, 1e-4, (), 0)
    state = Projections(problem, start)
    state.sweep()
    assert state.lam[0] == 0.0
    assert state.F[0, 0] == pytest.approx(1.0, abs=1e-15)
    assert state.xi[0] == pytest.approx(2.0, abs=1e-15)


def test_tiny_offset_is_no_offset(rng, variant):
    """The quadratic passes into the paper's formula as c → 0."""
    problem = feature_problem(rng, 1.0)
    tiny = dataclasses.replace(problem, offset=np.full(problem.n_constraints, 1e-13))
    one, other = Projections(problem), Projections(tiny)
    for _ in range(5):
        one.sweep()
        other.sweep()
    np.testing.assert_allclose(other.F, one.F, rtol=0, atol=1e-10)


@pytest.mark.parametrize("gamma", [0.3, 10.0, np.inf])
def test_offsets_in_blocks_and_on_kernels(rng, monkeypatch, gamma):
    X = rng.standard_normal((10, 4))
    constraints = random_pair_constraints(rng, X, 20)
    offset = rng.uniform(0.0, 0.3, 20) * constraints.bound
    problem = problem_of(constraints, X, gamma, offset)
    plain = Projections(problem)
    monkeypatch.setattr(module, "_BLOCKED_FROM", 0)
    monkeypatch.setattr(module, "_BLOCK", 7)
    blocked = Projections(problem)
    kernel = KernelProjections(problem, problem.points @ problem.points.T)
    for _ in range(5):
        for state in (plain, blocked, kernel):
            state.sweep()
        np.testing.assert_allclose(blocked.F, plain.F, rtol=0, atol=1e-10 * np.abs(plain.F).max())
        K = problem.points @ plain.F @ problem.points.T
        np.testing.assert_allclose(kernel.K, K, rtol=0, atol=1e-10 * np.abs(K).max())


# -- over many sweeps ------------------------------------------------------------------------------------------


def exact_F(problem, lam):
    Z = problem.points[problem.forms.tail] - problem.points[problem.forms.head]
    return np.linalg.inv(np.eye(problem.rank) + (Z.T * (problem.sign * lam)) @ Z)


def test_iterate_is_what_its_multipliers_say(rng, variant):
    """F⁻¹ = I + Σ s z zᵀ and 1/ξ = 1/b − s/γ after every sweep: the invariants of Algorithm 1."""
    problem = feature_problem(rng, 3.0)
    state = Projections(problem)
    for _ in range(20):
        state.sweep()
        np.testing.assert_allclose(state.F, exact_F(problem, state.lam), rtol=0, atol=1e-10)
        gamma = problem.gamma * problem.weight
        np.testing.assert_allclose(1 / state.xi, 1 / problem.bound - problem.sign * state.lam / gamma, rtol=1e-10)


def test_drift_is_removed(rng, variant):
    problem = feature_problem(rng, 100.0)
    state = Projections(problem)
    for _ in range(1500):
        state.sweep()
    F = exact_F(problem, state.lam)
    drift = np.abs(state.F - F).max()
    state.rebuild()
    rebuilt = np.abs(state.F - F).max()
    assert rebuilt <= 1e-12 * np.abs(F).max()
    assert drift <= 1e-7 * np.abs(F).max()


def test_drift_that_has_crept_in_does_not_reach_the_answer(rng, monkeypatch, variant):
    """However F was damaged on the way, what is returned is rebuilt from λ and certified as such."""
    problem = feature_problem(rng, 1.0)
    sweep = Projections.sweep

    def drifting(self):
        largest = sweep(self)
        self._F *= 1 + 1e-6
        return largest

    monkeypatch.setattr(Projections, "sweep", drifting)
    solution = bregman(problem, tol=1e-3, max_iter=200)
    np.testing.assert_allclose(solution.F, exact_F(problem, solution.lam), rtol=0, atol=1e-12)


def test_start_continues_where_another_stopped(rng, variant):
    problem = feature_problem(rng, 1.0)
    through = Projections(problem)
    for _ in range(6):
        through.sweep()
    first = Projections(problem)
    for _ in range(3):
        first.sweep()
    second = Projections(problem, Solution(first.F, first.lam, None, 1e-4, (), 0))
    for _ in range(3):
        second.sweep()
    np.testing.assert_allclose(second.F, through.F, rtol=0, atol=1e-10)
    np.testing.assert_allclose(second.lam, through.lam, rtol=0, atol=1e-10)


def test_sweep_reports_its_largest_relative_step(rng, variant):
    X = rng.standard_normal((6, 3))
    sq = ((X[0] - X[1]) ** 2).sum()
    constraints = Constraints.from_pairs([[0, 1]], upper=sq / 4)
    problem = problem_of(constraints, X, 1.0)
    # s p = γ/(γ+1) (p/ξ − 1) = ½ (4 − 1)
    assert Projections(problem).sweep() == pytest.approx(1.5)
    satisfied = problem_of(Constraints.from_pairs([[0, 1]], upper=2 * sq), X, 1.0)
    assert Projections(satisfied).sweep() == 0.0


def test_measured_gap_is_the_certified_one(rng, variant):
    X = rng.standard_normal((8, 3))
    constraints = random_pair_constraints(rng, X, 15)
    offset = 0.2 * constraints.bound
    state = Projections(problem_of(constraints, X, 1.0, offset))
    for _ in range(3):
        state.sweep()
    step, plain = state.measure(0.0), PlainProblem.of(constraints, X, 1.0, offset)
    gap = plain.primal(state.F) - plain.dual(state.lam)
    assert step.primal == pytest.approx(plain.primal(state.F))
    assert step.relative_gap == pytest.approx(gap / max(1.0, plain.primal(state.F)))
    assert step.max_violation == pytest.approx(plain.relative_violation(state.F).max())


def test_only_pairs_and_relative_distances(rng):
    X = rng.standard_normal((8, 3))
    with pytest.raises(ValueError, match=r"solver='bregman' projects onto pairs, triplets and quadruplets.*Use solver"):
        bregman(problem_of(random_linear(rng, X, 3), X, 1.0))


# -- relative distances: projections of rank two ---------------------------------------------------------------


def best_multiplier(problem, lam, k):
    """λ_k ≥ 0 at which the dual stops rising while the others stay: where a Bregman projection ends up."""
    R = [form_matrix(problem, e) for e in np.eye(problem.n_constraints)]

    def rising(value):
        s = problem.sign * np.where(np.arange(len(lam)) == k, value, lam)
        F = np.linalg.inv(np.eye(problem.rank) + sum(s_k * R_k for s_k, R_k in zip(s, R, strict=True)))
        if np.linalg.eigvalsh(F)[0] <= 0:  # outside the domain, at the end of which the derivative is infinite
            return np.inf if value < lam[k] else -np.inf
        penalty = 0.0 if problem.hard else problem.scale[k] ** 2 * s[k] / (problem.gamma * problem.weight[k])
        return np.vdot(F, R[k]) + problem.offset[k] - problem.bound[k] - penalty

    low, high = 0.0, lam[k] + 1e-3
    while rising(high) > 0:
        high *= 2.0
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if rising(middle) > 0 else (low, middle)
    return low


@pytest.mark.parametrize("gamma", [0.3, 50.0, np.inf])
@pytest.mark.parametrize("with_offset", [False, True])
def test_each_relative_projection_maximises_the_dual_over_its_multiplier(rng, gamma, with_offset):
    X = rng.standard_normal((9, 4))
    constraints = random_triplets(rng, X, 5)
    problem = problem_of(constraints, X, gamma, rng.uniform(0, 0.3, 5) if with_offset else 0.0)
    state, lam = Projections(problem), np.zeros(5)
    for _ in range(2):
        state.sweep()
        for k in range(5):
            lam[k] = best_multiplier(problem, lam, k)
    np.testing.assert_allclose(state.lam, lam, rtol=1e-7, atol=1e-9)
    assert lam.any()
    before = state.F.copy()
    state.rebuild()
    np.testing.assert_allclose(before, state.F, rtol=0, atol=1e-10 * np.abs(before).max())


@pytest.mark.parametrize("d", [5, 130])  # as printed, and in blocks
def test_pairs_and_triplets_together_reach_the_optimum(rng, d):
    X = rng.standard_normal((40, d))
    constraints = random_pair_constraints(rng, X, 30, weights=True) + random_triplets(rng, X, 20)
    problem = problem_of(constraints, X, 0.5)
    one, other = bregman(problem, tol=1e-9, max_iter=20_000), newton(problem, tol=1e-9)
    assert one.certificate.converged and other.certificate.converged
    np.testing.assert_allclose(one.F, other.F, rtol=0, atol=1e-4 * np.abs(other.F).max())
    assert one.lam[30:].any()


def test_quadruplets_are_projected_onto_too(rng):
    X = rng.standard_normal((10, 3))
    constraints = Constraints.from_quadruplets([[0, 1, 2, 3], [4, 5, 6, 7], [0, 8, 9, 3]], margin=2.0)
    problem = problem_of(constraints, X, 1.0)
    one, other = bregman(problem, tol=1e-10, max_iter=5000), newton(problem, tol=1e-10)
    np.testing.assert_allclose(one.F, other.F, rtol=0, atol=1e-5)


def test_parallel_edges_of_a_triplet(rng):
    """z and w on one line: the determinant is linear in the step, and its domain open on one side."""
    X = np.outer(np.arange(4.0), [1.0, 2.0, -1.0])
    constraints = Constraints.from_triplets([[0, 2, 1], [3, 2, 0]], margin=[1.0, 0.5])
    one, other = (solver(problem_of(constraints, X, 2.0), tol=1e-9) for solver in (bregman, newton))
    np.testing.assert_allclose(one.F, other.F, rtol=0, atol=1e-4)


def test_identical_points_are_stepped_over(rng):
    """p = 0: the projection does not exist, F and λ stay."""
    X = np.vstack([rng.standard_normal((1, 3))] * 2)
    state = Projections(problem_of(Constraints.from_pairs(None, [[0, 1]], lower=1.0), X, 1.0))
    assert state.sweep() == 0.0
    np.testing.assert_array_equal(state.F, np.eye(3))
    assert state.lam[0] == 0.0
