"""Problems built backwards: choose the answer, derive the bounds that make it optimal, get it back.

At the optimum F⁻¹ = I + Σ s_k R_k and s_k is the slope of constraint k's penalty at v_k = c_k + tr(F R_k). So any s
with I + Σ s_k R_k ≻ 0 gives F and v, and each bound follows from the slope alone.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from builders import (
    dense_forms,
    problem_of,
    random_linear,
    random_pair_constraints,
    random_pairs,
    random_triplets,
)

from mahalo import Constraints, MetricLearner
from mahalo.linalg import inverse_factor
from mahalo.solvers import bregman, dual, newton, newton_state

# Algorithm 1 would need tens of thousands of sweeps for large γ.
SOLVER_AND_GAMMA = [(newton, 0.1), (newton, 1.0), (newton, 30.0), (bregman, 0.1), (bregman, 1.0)]


def log_slack_bound(v, s, gamma):
    """b with s = γ (1/b − 1/v)."""
    return 1.0 / (s / gamma + 1.0 / v)


def hinge_margin(v, lam, gamma):
    """Margin m = scale = −b with λ = γ (v + m) / m²."""
    return (gamma + np.sqrt(gamma**2 + 4 * lam * gamma * v)) / (2 * lam)


def hinge_bound(v, s, gamma):
    """b = ±scale with s = γ (v − b) / b²."""
    return 2 * gamma * v / (gamma + np.sqrt(gamma**2 + 4 * s * gamma * v))


def constructed_pairs(rng, gamma, offset=0.0, n=9, d=4, m=14):
    """(constraints, X, F, λ): pairs of both signs, a third of them inactive."""
    X = rng.standard_normal((n, d))
    index = random_pairs(rng, n, m)
    sign = np.repeat([1.0, -1.0], [m // 2, m - m // 2])
    Z = X[index[:, 0]] - X[index[:, 1]]
    lam = rng.uniform(0.02, 0.15, m) * (rng.random(m) > 0.33)
    while True:
        s = sign * lam
        inverse = np.eye(d) + (Z.T * s) @ Z
        if np.linalg.eigvalsh(inverse)[0] > 0.1:
            F = np.linalg.inv(inverse)
            v = offset + np.einsum("kd,de,ke->k", Z, F, Z)
            far = s * v < -0.8 * gamma  # beyond what a lower bound can ask for
            if not far.any():
                break
            lam[far] *= 0.7
        else:
            lam *= 0.7
    active = log_slack_bound(v, s, gamma) if np.isfinite(gamma) else v
    bound = np.where(lam > 0, active, v * np.where(sign > 0, 1.3, 0.7))
    half = m // 2
    constraints = Constraints.from_pairs(index[:half], index[half:], upper=bound[:half], lower=bound[half:])
    return constraints, X, F, lam


@pytest.mark.parametrize(("solver", "gamma"), SOLVER_AND_GAMMA)
def test_pairs_recover_the_chosen_metric_and_multipliers(rng, gamma, solver):
    constraints, X, F, lam = constructed_pairs(rng, gamma)
    solution = solver(problem_of(constraints, X, gamma), tol=1e-13, max_iter=20_000)
    assert solution.certificate.converged
    np.testing.assert_allclose(solution.F, F, rtol=0, atol=3e-6 * np.abs(F).max())
    np.testing.assert_allclose(solution.lam, lam, rtol=0, atol=1e-5)


@pytest.mark.parametrize(("solver", "gamma"), SOLVER_AND_GAMMA)
def test_pairs_with_offsets(rng, gamma, solver):
    offset = rng.uniform(0.0, 20.0, 14)
    constraints, X, F, lam = constructed_pairs(rng, gamma, offset)
    problem = problem_of(constraints, X, gamma, offset)
    if gamma <= 1:  # u < c, an upper bound that no metric meets, must be no obstacle
        assert (problem.bound < problem.offset)[problem.sign > 0].any()
    solution = solver(problem, tol=1e-13, max_iter=20_000)
    assert solution.certificate.converged
    np.testing.assert_allclose(solution.F, F, rtol=0, atol=3e-6 * np.abs(F).max())
    np.testing.assert_allclose(solution.lam, lam, rtol=0, atol=1e-5)


@pytest.mark.parametrize("solver", [dual, bregman])
@pytest.mark.parametrize("with_offset", [False, True])
def test_hard_pairs_are_met_with_equality_where_active(rng, solver, with_offset):
    offset = rng.uniform(0.0, 0.5, 8) if with_offset else np.zeros(8)
    constraints, X, F, lam = constructed_pairs(rng, np.inf, offset, d=6, m=8)
    solution = solver(problem_of(constraints, X, np.inf, offset), tol=1e-10, max_iter=20_000)
    assert solution.certificate.converged
    assert solution.certificate.max_violation <= 1e-8
    np.testing.assert_allclose(solution.F, F, rtol=0, atol=1e-6 * np.abs(F).max())
    np.testing.assert_allclose(solution.lam, lam, rtol=0, atol=1e-6)


def constructed_mixture(rng, gamma):
    """Pairs, triplets and linear forms (through the origin) of one metric."""
    n, d = 10, 4
    X = rng.standard_normal((n, d))
    index = random_pairs(rng, n, 6)
    parts = (
        Constraints.from_pairs(index[:3], index[3:], weight=rng.uniform(0.5, 2.0, 6)),
        random_triplets(rng, X, 4),
        random_linear(rng, X, 4),
    )
    constraints = parts[0] + parts[1] + parts[2]
    R = np.array([X.T @ C @ X for C in dense_forms(constraints, n)])
    sign, weight = constraints.sign, gamma * constraints.weight
    lam = rng.uniform(0.02, 0.1, len(sign)) * (np.arange(len(sign)) % 3 > 0)
    while True:
        s = sign * lam
        inverse = np.eye(d) + np.einsum("k,kij->ij", s, R)
        if np.linalg.eigvalsh(inverse)[0] > 0.1:
            F = np.linalg.inv(inverse)
            v = np.einsum("ij,kij->k", F, R)
            if np.all(4 * s * v > -0.8 * weight):
                break
        lam *= 0.7
    far = np.where(sign > 0, 1.3, 0.7)
    bound = np.where(lam[:6] > 0, log_slack_bound(v[:6], s[:6], weight[:6]), v[:6] * far[:6])
    safe = np.maximum(lam, 1e-300)
    margin = np.where(lam[6:10] > 0, hinge_margin(v[6:10], safe[6:10], weight[6:10]), 0.5 * np.abs(v[6:10]))
    # An inactive triplet must hold with room: its value below minus its margin.
    keep = np.ones(len(sign), dtype=bool)
    keep[6:10] = (lam[6:10] > 0) | (v[6:10] < 0)
    level = np.where(lam[10:] > 0, hinge_bound(v[10:], s[10:], weight[10:]), v[10:] * far[10:])
    constraints = Constraints(
        dataclasses.replace(constraints.pairs, bound=bound),
        dataclasses.replace(constraints.triplets, margin=margin),
        dataclasses.replace(constraints.linear, bound=level),
    )
    return constraints.take(keep), X, F, lam[keep]


@pytest.mark.parametrize("gamma", [0.3, 10.0])
@pytest.mark.parametrize("seed", range(3))
def test_mixtures_of_pairs_triplets_and_forms(gamma, seed):
    constraints, X, F, lam = constructed_mixture(np.random.default_rng(seed), gamma)
    solution = newton(problem_of(constraints, X, gamma), tol=1e-13)
    assert solution.certificate.converged
    np.testing.assert_allclose(solution.F, F, rtol=0, atol=3e-6 * np.abs(F).max())
    np.testing.assert_allclose(solution.lam, lam, rtol=0, atol=1e-5)


@pytest.mark.parametrize("scale", [1.0, 1e-3, 700.0])
def test_learner_recovers_the_chosen_metric_in_any_units(rng, scale):
    """In units `scale` times smaller, bounds are scale² as large, W the same, multipliers of 1/bound."""
    constraints, X, F, lam = constructed_mixture(rng, 1.0)
    larger = Constraints(
        dataclasses.replace(constraints.pairs, bound=constraints.pairs.bound * scale**2),
        dataclasses.replace(constraints.triplets, margin=constraints.triplets.margin * scale**2),
        dataclasses.replace(constraints.linear, bound=constraints.linear.bound * scale**2),
    )
    learner = MetricLearner(gamma=1.0, tol=1e-13).fit(X * scale, constraints=larger)
    np.testing.assert_allclose(learner.metric_.matrix, F, rtol=0, atol=3e-6 * np.abs(F).max())
    np.testing.assert_allclose(learner.duals_ * scale**2, lam, rtol=0, atol=1e-5)


def test_prior_is_whitened_away(rng):
    """Points W0^{-1/2} x under the prior W0 are points x under the identity: W = W0^½ F W0^½."""
    constraints, X, F, _ = constructed_pairs(rng, 1.0)
    B = rng.standard_normal((4, 6))
    W0 = B @ B.T
    values, vectors = np.linalg.eigh(W0)
    root, inverse_root = (vectors * values**0.5) @ vectors.T, (vectors * values**-0.5) @ vectors.T
    learner = MetricLearner(prior=W0, tol=1e-13).fit(X @ inverse_root, constraints=constraints)
    W = root @ F @ root
    np.testing.assert_allclose(learner.metric_.matrix, W, rtol=0, atol=1e-5 * np.abs(W).max())


def test_satisfied_constraints_leave_the_prior_untouched(rng):
    X = rng.standard_normal((8, 3))
    sq = ((X[0] - X[1]) ** 2).sum(), ((X[2] - X[3]) ** 2).sum()
    constraints = Constraints.from_pairs([[0, 1]], [[2, 3]], upper=1.01 * sq[0], lower=0.99 * sq[1])
    for gamma in (1.0, np.inf):
        learner = MetricLearner(gamma=gamma).fit(X, constraints=constraints)
        np.testing.assert_array_equal(learner.metric_.matrix, np.eye(3))
        assert not learner.duals_.any()
        assert learner.certificate_.gap == 0.0


@pytest.mark.parametrize("gamma", [0.3, 30.0])
def test_what_large_problems_do_changes_nothing(rng, monkeypatch, gamma):
    X = rng.standard_normal((60, 5))
    pairs = random_pair_constraints(rng, X, 40)
    for constraints in (pairs, pairs + random_triplets(rng, X, 10) + random_linear(rng, X, 5)):
        problem = problem_of(constraints, X, gamma)
        everything = newton(problem, tol=1e-10)
        with monkeypatch.context() as patch:
            patch.setattr(newton_state, "_SMALL_RANK", 0)
            patch.setattr(newton_state, "_LARGE_SIZE", 0)
            large = newton(problem, tol=1e-10)
        assert [step.gamma for step in large.history] == [step.gamma for step in everything.history]
        np.testing.assert_allclose(large.F, everything.F, rtol=0, atol=1e-7 * np.abs(everything.F).max())


@pytest.mark.parametrize("scale", [1e-45, 1e-20, 1.0, 1e20, 1e45])
def test_directions_are_found_in_single_precision_unless_it_would_lose_numbers(rng, scale):
    rows = scale * rng.standard_normal((400, 100))
    kept = scale != 1.0
    assert newton_state._for_directions(rows).dtype == (np.float64 if kept else np.float32)
    assert newton_state._for_directions(rows[:10]).dtype == np.float64  # a small matrix


@pytest.mark.parametrize("n", [1, 7, 32, 33, 100])
def test_inverse_of_a_triangular_factor(rng, n):
    L = np.tril(rng.standard_normal((n, n))) + 3 * np.sqrt(n) * np.eye(n)
    inverse = inverse_factor(L)
    np.testing.assert_allclose(inverse @ L, np.eye(n), atol=1e-12)
    assert not np.triu(inverse, 1).any()


@pytest.mark.parametrize("rank", [6, 40])
def test_a_start_at_a_much_smaller_gamma_is_as_good_as_none(rng, rank):
    X = rng.standard_normal((100, rank)) * rng.uniform(0.3, 3.0, rank)
    constraints = random_pair_constraints(rng, X, 150)
    near, far = problem_of(constraints, X, 1.0), problem_of(constraints, X, 3000.0)
    alone, started = newton(far, tol=1e-8), newton(far, tol=1e-8, start=newton(near, tol=1e-8))
    assert started.certificate.converged
    assert started.n_iter <= 1.3 * alone.n_iter + 3
    np.testing.assert_allclose(started.F, alone.F, rtol=0, atol=1e-4 * np.abs(alone.F).max())
    again = newton(near, tol=1e-8, start=started)  # at a larger γ
    assert again.certificate.converged
