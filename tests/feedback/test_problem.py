"""The convex problem, its solver and its certificate, against a general solver and against definitions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp

from mahalo.feedback.certificate import certify
from mahalo.feedback.problem import Basis, FeedbackProblem, ReducedObjective, spanning_basis
from mahalo.feedback.solver import minimise

WHOLE = Basis(None, None, True)


def random_problem(seed: int, n=6, m=12, d=4, k=3, lam=0.1, temperature=0.5) -> FeedbackProblem:
    """Two relevant documents a query, k − 1 or k negatives that are others."""
    rng = np.random.default_rng(seed)
    order = np.array([rng.permutation(m) for _ in range(n)])
    negatives = order[:, 2 : 2 + k].copy()
    negatives[::2, -1] = -1
    pairs = np.column_stack([np.repeat(np.arange(n), 2), order[:, :2].ravel()])
    weight = rng.uniform(0.5, 2.0, len(pairs))
    return FeedbackProblem(
        rng.normal(size=(n, d)), rng.normal(size=(m, d)), pairs, negatives, weight / weight.sum(), temperature, lam
    )


def plain_objective(p: FeedbackProblem, B: np.ndarray) -> float:
    """P(B), pair by pair."""
    total = 0.5 * p.lam * np.sum((B - np.eye(len(B))) ** 2)
    for (q, relevant), w in zip(p.pairs, p.weight, strict=True):
        listed = [relevant, *p.negatives[q][p.negatives[q] >= 0]]
        score = p.queries[q] @ B @ p.documents[listed].T / p.temperature
        total += w * (logsumexp(score) - score[0])
    return float(total)


def solved(p: FeedbackProblem, tol=1e-12, basis=WHOLE) -> np.ndarray:
    return basis.full(minimise(p, basis, tol=tol, max_iter=10_000).M)


seeds = st.integers(0, 10_000)


@given(seeds)
def test_value_is_the_definition_and_gradient_its_difference_quotient(seed):
    p = random_problem(seed)
    rng = np.random.default_rng(seed)
    M, direction = rng.normal(size=(2, 4, 4))
    value, gradient = ReducedObjective(p, WHOLE)(M)
    assert value == pytest.approx(plain_objective(p, np.eye(4) + M), rel=1e-12)
    h = 1e-5
    slope = (plain_objective(p, np.eye(4) + M + h * direction) - plain_objective(p, np.eye(4) + M - h * direction)) / 2
    assert np.vdot(gradient, direction) == pytest.approx(slope / h, rel=1e-5, abs=1e-6)


@given(seeds, st.floats(0.05, 0.95))
def test_objective_is_strongly_convex_along_segments(seed, t):
    p = random_problem(seed)
    A, B = np.random.default_rng(seed).normal(scale=3.0, size=(2, 4, 4))
    between = plain_objective(p, t * A + (1 - t) * B)
    curvature = 0.5 * p.lam * t * (1 - t) * np.sum((A - B) ** 2)
    assert between <= t * plain_objective(p, A) + (1 - t) * plain_objective(p, B) - curvature + 1e-9


@pytest.mark.parametrize("lam", [0.01, 1.0])
def test_optimum_is_that_of_cvxpy(lam):
    cp = pytest.importorskip("cvxpy")
    p = random_problem(1, lam=lam)
    B = cp.Variable((4, 4))
    losses = []
    for (q, relevant), w in zip(p.pairs, p.weight, strict=True):
        listed = [relevant, *p.negatives[q][p.negatives[q] >= 0]]
        score = p.documents[listed] @ B.T @ p.queries[q] / p.temperature
        losses.append(w * (cp.log_sum_exp(score) - score[0]))
    problem = cp.Problem(cp.Minimize(sum(losses) + lam / 2 * cp.sum_squares(B - np.eye(4))))
    problem.solve(solver=cp.CLARABEL)
    ours = solved(p)
    assert plain_objective(p, ours) == pytest.approx(problem.value, rel=1e-7)
    np.testing.assert_allclose(ours, B.value, atol=1e-4)


@given(seeds, st.integers(1, 15))
def test_bound_of_the_certificate_holds_after_any_number_of_steps(seed, n_steps):
    p = random_problem(seed, lam=0.02)
    least = plain_objective(p, solved(p))
    early = WHOLE.full(minimise(p, WHOLE, tol=1e-15, max_iter=n_steps).M)
    found = certify(p, early, tol=1e-4)
    assert found.objective == pytest.approx(plain_objective(p, early), rel=1e-12)
    assert found.objective - least <= found.bound + 1e-10
    assert found.relative_bound == found.bound / max(1.0, found.objective)


def test_certificate_is_tight_for_a_quadratic_and_refuses_nan():
    p = random_problem(3, lam=1e6)  # the loss hardly matters
    B = np.eye(4) + np.random.default_rng(0).normal(size=(4, 4))
    found = certify(p, B, tol=1e-4)
    assert found.bound == pytest.approx(found.objective - plain_objective(p, solved(p)), rel=1e-3)
    assert not certify(p, np.full((4, 4), np.nan), tol=1e-4).converged


def test_bases_that_span_lose_nothing():
    p = random_problem(5, n=3, m=6, d=20)
    basis = spanning_basis(p, None)
    assert basis.spans and basis.U.shape == (20, 3) and basis.V.shape == (20, 6)
    np.testing.assert_allclose(basis.U.T @ basis.U, np.eye(3), atol=1e-12)
    wide, whole = solved(p, basis=basis), solved(p)
    np.testing.assert_allclose(wide, whole, atol=1e-5)
    found = certify(p, wide, 1e-8, basis)  # of the full gradient: the proof that nothing was lost
    assert found.converged and not found.restricted


def test_fewer_directions_are_certified_for_the_restricted_problem():
    p = random_problem(6, n=8, m=20, d=6, lam=0.05)
    basis = spanning_basis(p, 2)
    assert not basis.spans and basis.U.shape == basis.V.shape == (6, 2)
    B = solved(p, basis=basis)
    restricted, whole = certify(p, B, 1e-8, basis), certify(p, B, 1e-8)
    assert restricted.converged and restricted.restricted
    assert not whole.converged
    assert plain_objective(p, B) > plain_objective(p, solved(p)) + 1e-3
    rng = np.random.default_rng(0)
    for _ in range(20):
        other = B + 0.1 * basis.U @ rng.normal(size=(2, 2)) @ basis.V.T
        assert plain_objective(p, other) >= restricted.objective - restricted.bound


def test_matrix_tends_to_the_identity_as_lam_grows():
    distance = [np.linalg.norm(solved(random_problem(2, lam=lam)) - np.eye(4)) for lam in (0.01, 1.0, 100.0, 1e6)]
    assert distance == sorted(distance, reverse=True)
    assert distance[-1] < 1e-5


def test_scaling_queries_and_temperature_together_changes_nothing():
    p = random_problem(4)
    larger = replace(p, queries=100 * p.queries, temperature=100 * p.temperature)
    np.testing.assert_allclose(solved(larger), solved(p), atol=1e-5)


def test_large_scores_do_not_overflow():
    p = random_problem(0, temperature=1e-4)
    value, gradient = ReducedObjective(p, WHOLE)(10 * np.ones((4, 4)))
    assert np.isfinite(value) and np.isfinite(gradient).all()
    assert value == pytest.approx(plain_objective(p, np.eye(4) + 10), rel=1e-12)
