"""P(F) ≥ D(s) for whatever F ≻ 0 and admissible s; the numbers reported are those a plain computation finds."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from builders import (
    PlainProblem,
    labelled_data,
    problem_of,
    random_linear,
    random_pair_constraints,
    random_triplets,
)
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from mahalo import Constraints, MetricLearner, metric_path
from mahalo.losses import slack
from mahalo.solvers import bregman, certify, dual, newton, newton_state

seeds = st.integers(0, 2**32 - 1)
gammas = st.floats(1e-3, 1e4)


def random_problem(rng, gamma, pairs_only=False):
    n, d = rng.integers(4, 9), rng.integers(1, 5)
    X = rng.standard_normal((n, d)) * 10 ** rng.uniform(-2, 2)
    constraints = random_pair_constraints(rng, X, rng.integers(1, 10), weights=True)
    if not pairs_only:
        constraints = constraints + random_triplets(rng, X, 3) + random_linear(rng, X, 3)
    offset = rng.uniform(0, 1, constraints.n_constraints) * constraints.scale * rng.integers(0, 2)
    return constraints, X, offset


def random_spd(rng, d):
    Q = np.linalg.qr(rng.standard_normal((d, d)))[0]
    return (Q * 10 ** rng.uniform(-3, 3, d)) @ Q.T


def random_admissible(rng, problem, X):
    """λ ≥ 0 inside the domain of the dual, by halving until it is."""
    lam = 10 ** rng.uniform(-3, 3, problem.n_constraints) / problem.scale
    plain_inside = problem.sign * lam * problem.bound < problem.gamma * problem.weight
    if not problem.hard:
        log = np.arange(problem.n_constraints) < problem.n_log
        lam = np.where(log & ~plain_inside, 0.9 * problem.gamma * problem.weight / np.abs(problem.bound), lam)
    lam *= rng.random(problem.n_constraints) < 0.7
    while not np.isfinite(certify(problem, np.eye(problem.rank), lam, 1.0).dual):
        lam = lam / 2
    return lam


@given(seeds, gammas | st.just(np.inf))
def test_gap_is_not_negative_for_any_answer(seed, gamma):
    rng = np.random.default_rng(seed)
    constraints, X, offset = random_problem(rng, gamma)
    problem = problem_of(constraints, X, gamma, offset)
    F, lam = random_spd(rng, problem.rank), random_admissible(rng, problem, X)
    certificate = certify(problem, F, lam, 1e-4)
    # Hard constraints: P leaves out violation, which its multipliers price.
    missing = 0.0
    if problem.hard:
        plain = PlainProblem.of(constraints, X, gamma, offset)
        missing = float((lam * problem.scale) @ plain.relative_violation(F))
    assert certificate.gap >= -1e-9 * max(1.0, abs(certificate.primal)) - missing * (1 + 1e-9)


@given(seeds, gammas | st.just(np.inf))
def test_certificate_is_what_a_plain_computation_finds(seed, gamma):
    rng = np.random.default_rng(seed)
    constraints, X, offset = random_problem(rng, gamma)
    problem = problem_of(constraints, X, gamma, offset)
    F, lam = random_spd(rng, problem.rank), random_admissible(rng, problem, X)
    certificate, plain = certify(problem, F, lam, 1e-4), PlainProblem.of(constraints, X, gamma, offset)
    violation = plain.relative_violation(F)
    assert certificate.primal == pytest.approx(plain.primal(F), rel=1e-8)
    assert certificate.dual == pytest.approx(plain.dual(lam), rel=1e-8, abs=1e-8)
    assert certificate.max_violation == pytest.approx(violation.max(), rel=1e-8, abs=1e-12)
    assert certificate.n_violated == (violation > 1e-9).sum()
    assert certificate.gap == certificate.primal - certificate.dual
    assert certificate.relative_gap == certificate.gap / max(1.0, abs(certificate.primal))


@given(seeds, gammas)
def test_newton_ends_with_a_gap_within_tolerance_and_not_negative(seed, gamma):
    constraints, X, offset = random_problem(np.random.default_rng(seed), gamma)
    solution = newton(problem_of(constraints, X, gamma, offset), tol=1e-8)
    certificate = solution.certificate
    assert certificate.converged
    assert -1e-9 <= certificate.relative_gap <= 1e-8
    assert (solution.lam >= 0).all()
    plain = PlainProblem.of(constraints, X, gamma, offset)
    assert plain.primal(solution.F) - plain.dual(solution.lam) == pytest.approx(
        certificate.gap, abs=1e-8 * max(1.0, abs(certificate.primal))
    )


@given(seeds, st.floats(1e-3, 1.0))
def test_projections_end_with_a_gap_within_tolerance_and_not_negative(seed, gamma):
    constraints, X, offset = random_problem(np.random.default_rng(seed), gamma, pairs_only=True)
    solution = bregman(problem_of(constraints, X, gamma, offset), tol=1e-6, max_iter=20_000)
    assert solution.certificate.converged
    assert -1e-9 <= solution.certificate.relative_gap <= 1e-6
    assert (solution.lam >= 0).all()


@given(seeds)
def test_history_comes_closer_and_names_the_gap_it_ends_with(seed):
    constraints, X, offset = random_problem(np.random.default_rng(seed), 1.0)
    solution = newton(problem_of(constraints, X, 1.0, offset), tol=1e-8)
    assert all(np.isfinite(step.primal) and step.max_violation >= 0 for step in solution.history)
    if solution.history:
        last = solution.history[-1]
        assert last.gamma == 1.0
        assert last.primal == pytest.approx(solution.certificate.primal, rel=1e-8, abs=1e-8)
        assert last.relative_gap == pytest.approx(solution.certificate.relative_gap, abs=1e-8)


# -- stopping early ------------------------------------------------------------------------------------------


def label_problem(learner, X):
    """The problem a learner with the identity as prior has solved, at the bounds it reports."""
    return PlainProblem.of(learner.constraints_, X, learner.gamma)


@pytest.mark.parametrize("solver", ["newton", "bregman"])
@pytest.mark.parametrize("gamma", [1.0, 100.0])
def test_one_iteration_warns_and_reports_the_gap_found_independently(rng, solver, gamma):
    X, y = labelled_data(rng)
    with pytest.warns(ConvergenceWarning, match=r"stopped after 1 steps with relative duality gap (\S+)") as caught:
        learner = MetricLearner(solver=solver, gamma=gamma, max_iter=1, tol=1e-6).fit(X, y)
    certificate = learner.certificate_
    assert certificate.converged is False
    assert learner.n_iter_ == 1
    plain, W = label_problem(learner, X), learner.metric_.matrix
    primal, dual = plain.primal(W), plain.dual(learner.duals_)
    assert certificate.primal == pytest.approx(primal, rel=1e-9)
    assert certificate.dual == pytest.approx(dual, rel=1e-9)
    assert certificate.gap == pytest.approx(primal - dual, rel=1e-8)
    assert certificate.relative_gap > 1e-6
    assert certificate.max_violation == pytest.approx(plain.relative_violation(W).max(), rel=1e-9)
    assert f"{certificate.relative_gap:.2e}" in str(caught[0].message)
    assert caught[0].filename == __file__


def test_one_iteration_of_hard_constraints_warns(rng):
    X = rng.standard_normal((8, 4))
    constraints = random_pair_constraints(rng, X, 3)
    with pytest.warns(ConvergenceWarning, match="largest violation"):
        learner = MetricLearner(gamma=np.inf, max_iter=1).fit(X, constraints=constraints)
    assert learner.certificate_.converged is False
    plain = PlainProblem.of(constraints, X, np.inf)
    W = learner.metric_.matrix
    assert learner.certificate_.max_violation == pytest.approx(plain.relative_violation(W).max(), rel=1e-6)
    assert learner.certificate_.gap == pytest.approx(plain.primal(W) - plain.dual(learner.duals_), rel=1e-8)


def test_path_warns_for_every_gamma_it_did_not_finish(rng):
    X, y = labelled_data(rng)
    with pytest.warns(ConvergenceWarning) as caught:
        path = metric_path(X, y, gammas=[1.0, 10.0], max_iter=1, tol=1e-10)
    assert len([w for w in caught if w.category is ConvergenceWarning]) == 2
    assert not any(c.converged for c in path.certificates)


def test_converged_fits_are_silent(wine):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for gamma in (0.01, 1.0, 1000.0):
            assert MetricLearner(prior="diagonal", gamma=gamma, tol=1e-6).fit(*wine).certificate_.converged


def test_inadmissible_multipliers_prove_nothing(rng):
    """Beyond the dual's domain D = −∞: the gap is infinite and nothing is called converged."""
    X = rng.standard_normal((6, 2))
    constraints = random_pair_constraints(rng, X, 4)
    problem = problem_of(constraints, X, 1.0)
    beyond = np.where(problem.sign > 0, 2.0 / problem.bound, 0.0)
    certificate = certify(problem, np.eye(2), beyond, 1e-4)
    assert certificate.dual == -np.inf
    assert certificate.relative_gap == np.inf
    assert not certificate.converged
    singular = certify(problem, np.diag([1.0, 0.0]), np.zeros(4), 1e-4)
    assert singular.primal == np.inf
    assert not singular.converged


def test_hard_constraints_must_hold_whatever_the_gap(rng):
    """A violation of 1e-6 changes the gap by no more than that, and is not called converged."""
    X = rng.standard_normal((6, 3))
    constraints = random_pair_constraints(rng, X, 3)
    problem = problem_of(constraints, X, np.inf)
    solution = dual(problem, tol=1e-8)
    assert solution.certificate.converged
    F = solution.F * np.where(problem.sign[solution.lam.argmax()] > 0, 1 + 1e-6, 1 - 1e-6)
    certificate = certify(problem, F, solution.lam, 1e-4)
    assert abs(certificate.relative_gap) < 1e-5
    assert certificate.max_violation == pytest.approx(1e-6, rel=0.1)
    assert not certificate.converged


def test_nan_is_never_converged(rng):
    X = rng.standard_normal((6, 2))
    problem = problem_of(random_pair_constraints(rng, X, 4), X, 1.0)
    certificate = certify(problem, np.eye(2), np.full(4, np.nan), 1e-4)
    assert not certificate.converged


def test_points_that_are_not_numbers_prove_nothing(rng):
    X = rng.standard_normal((4, 2))
    constraints = Constraints.from_pairs(similar=[[0, 1]], dissimilar=[[2, 3]], upper=0.5, lower=2.0)
    problem = problem_of(constraints, X, 1.0)
    for points in (np.full_like(problem.points, np.nan), np.where(np.arange(4)[:, None] == 0, np.nan, problem.points)):
        assert not certify(replace(problem, points=points), np.eye(2), np.zeros(2), 1e-4).converged


def test_a_wrong_slack_of_the_solvers_is_found_out(rng, monkeypatch):
    """Solvers that agree with each other on another price of violations do not agree with the certificate."""
    X = rng.standard_normal((20, 4))
    problem = problem_of(random_pair_constraints(rng, X, 30), X, 2.0)
    assert newton(problem, tol=1e-6).certificate.converged
    for name in ("log_values", "log_slopes", "log_curvatures", "log_duals"):
        right = getattr(slack, name)
        monkeypatch.setattr(slack, name, lambda *values, right=right: right(*values[:-1], 2.0 * values[-1]))
    monkeypatch.setattr(newton_state, "_SMALL_RANK", 0)  # compiled states have formulas of their own
    assert not newton(problem, tol=1e-6).certificate.converged
