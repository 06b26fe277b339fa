"""Our optimum against a generic convex solver's, from the paper's own statement of the problem (ξ not eliminated)."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from builders import KINDS, PlainProblem, labelled_data, mixture, problem_of, satisfiable, shifted
from sklearn.covariance import ledoit_wolf

from mahalo import Constraints, MetricLearner
from mahalo.basis import BetweenBasis
from mahalo.solvers import bregman, dual, newton

cp = pytest.importorskip("cvxpy")


def oracle(plain: PlainProblem, hard: bool) -> np.ndarray:
    """argmin over F ≻ 0, ξ of  tr F − log det F + Σ γ (ξ/b − log ξ/b) + Σ γ/2 (excess/scale)²."""
    F = cp.Variable((plain.rank, plain.rank), PSD=True)
    objective = cp.trace(F) - cp.log_det(F)
    asked = []
    for k, R in enumerate(plain.R):
        v = plain.offset[k] + cp.trace(F @ R)
        sign, b, gamma = plain.sign[k], plain.bound[k], plain.gamma[k]
        if hard:
            asked.append(sign * (v - b) / plain.scale[k] <= 0)
        elif k < plain.n_log:
            t = cp.Variable()  # ξ/b
            asked.append(sign * (v / b - t) <= 0)
            objective += gamma * (t - cp.log(t))
        else:
            objective += gamma / 2 * cp.square(cp.pos(sign * (v - b) / plain.scale[k]))
    problem = cp.Problem(cp.Minimize(objective), asked)
    try:
        problem.solve(solver=cp.CLARABEL)
    except cp.SolverError:
        problem.solve(solver=cp.SCS, eps=1e-8)
    assert problem.status in ("optimal", "optimal_inaccurate")
    return F.value


def assert_same_optimum(solution, plain, constraints_hold=False):
    """As good as the oracle's answer in an objective written down independently, and the same matrix."""
    F = oracle(plain, constraints_hold)
    ours, theirs = plain.primal(solution.F), plain.primal(F)
    assert solution.certificate.converged
    assert ours == pytest.approx(theirs, rel=1e-5, abs=1e-5)
    np.testing.assert_allclose(solution.F, F, rtol=0, atol=3e-3 * np.abs(F).max())
    if constraints_hold:
        assert plain.relative_violation(solution.F).max() <= 1e-8
    else:
        assert ours <= theirs + 1e-9 * abs(theirs)


@pytest.mark.parametrize("gamma", [0.1, 3.0, 100.0])
@pytest.mark.parametrize("kinds", KINDS, ids="+".join)
def test_slack(rng, gamma, kinds):
    X = rng.standard_normal((8, 3))
    constraints = mixture(rng, X, kinds)
    solution = newton(problem_of(constraints, X, gamma), tol=1e-10)
    assert_same_optimum(solution, PlainProblem.of(constraints, X, gamma))


@pytest.mark.parametrize("kinds", KINDS, ids="+".join)
def test_slack_with_offsets(rng, kinds):
    X = rng.standard_normal((8, 3))
    constraints = mixture(rng, X, kinds)
    offset = rng.uniform(0.0, 4.0, constraints.n_constraints)
    solution = newton(problem_of(constraints, X, 2.0, offset), tol=1e-10)
    assert_same_optimum(solution, PlainProblem.of(constraints, X, 2.0, offset))


@pytest.mark.parametrize("gamma", [0.1, 1.0])
@pytest.mark.parametrize("largest_offset", [0.0, 4.0])
def test_slack_by_projections(rng, gamma, largest_offset):
    X = rng.standard_normal((8, 3))
    constraints = mixture(rng, X, ("pairs",))
    offset = largest_offset * rng.random(constraints.n_constraints)
    solution = bregman(problem_of(constraints, X, gamma, offset), tol=1e-8, max_iter=20_000)
    assert_same_optimum(solution, PlainProblem.of(constraints, X, gamma, offset))


@pytest.mark.parametrize("kinds", KINDS, ids="+".join)
@pytest.mark.parametrize("with_offset", [False, True])
def test_hard(rng, kinds, with_offset):
    X = rng.standard_normal((8, 4))
    constraints = satisfiable(mixture(rng, X, kinds), X, rng)
    offset = 0.0
    if with_offset:  # c on the left, and bounds moved along with it
        offset = rng.uniform(0.0, 2.0, constraints.n_constraints)
        p, t = len(constraints.pairs), len(constraints.triplets)
        offset[p : p + t] = -offset[p : p + t]
        constraints = shifted(constraints, offset)
    plain = PlainProblem.of(constraints, X, np.inf, offset)
    assert plain.relative_violation(np.eye(4)).max() > 0.01  # something has to be learned
    solution = dual(problem_of(constraints, X, np.inf, offset), tol=1e-10)
    assert_same_optimum(solution, plain, constraints_hold=True)
    if kinds == ("pairs",):
        solution = bregman(problem_of(constraints, X, np.inf, offset), tol=1e-6, max_iter=50_000)
        assert_same_optimum(solution, plain, constraints_hold=True)


@pytest.mark.parametrize("gamma", [0.5, np.inf])
def test_learner_solves_the_problem_it_was_given(rng, gamma):
    """Through the public door: units, centring and the origin of linear forms undone."""
    X = 40.0 * rng.standard_normal((8, 3)) + 100.0
    constraints = mixture(rng, X, ("pairs", "triplets", "linear"))
    if np.isinf(gamma):
        constraints = satisfiable(constraints, X, rng)
    learner = MetricLearner(gamma=gamma, tol=1e-10).fit(X, constraints=constraints)
    # The generic solver likes numbers of order one: in units of 40 W is the same and bounds are 1600 times smaller.
    smaller = Constraints(
        dataclasses.replace(constraints.pairs, bound=constraints.pairs.bound / 1600),
        dataclasses.replace(constraints.triplets, margin=constraints.triplets.margin / 1600),
        dataclasses.replace(constraints.linear, bound=constraints.linear.bound / 1600),
    )
    plain = PlainProblem.of(smaller, X / 40.0, gamma)
    F = oracle(plain, np.isinf(gamma))
    np.testing.assert_allclose(learner.metric_.matrix, F, rtol=0, atol=3e-3 * np.abs(F).max())
    assert learner.certificate_.primal == pytest.approx(plain.primal(F), rel=1e-4)


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("rho", [0.0, 0.3, 1.0])
def test_a_better_start_is_the_same_problem_in_its_coordinates(rng, rho, normalize):
    """Prior within classes, directions between them, weight ρ outside: all of it written out, then solved by cvxpy."""
    X, y = labelled_data(rng, n=30, d=5)
    #  z = L⁻¹x, W0 = (LLᵀ)⁻¹ with LLᵀ the shrunk covariance within classes, in units that make tr W0 = 5; U spans the
    #  class means among the z; φ = Uᵀz
    means = np.array([X[y == c].mean(axis=0) for c in np.unique(y)])
    S = ledoit_wolf(X - means[y], assume_centered=True)[0]
    L = np.linalg.cholesky(S * np.trace(np.linalg.inv(S)) / 5)
    Z = np.linalg.solve(L, X.T).T
    U = np.linalg.svd(np.linalg.solve(L, (means - means.mean(axis=0)).T), full_matrices=False)[0][:, : len(means) - 1]
    phi = Z @ U

    drawn = Constraints.from_labels(y, pairs_per_class=4, random_state=0).pairs
    alike, unalike = drawn.index[drawn.sign > 0], drawn.index[drawn.sign < 0]

    def sq(points, pairs):
        return ((points[pairs[:, 0]] - points[pairs[:, 1]]) ** 2).sum(axis=1)

    upper, lower = np.median(sq(Z, alike)) / 2, np.median(sq(Z, unalike)) * 2
    constraints = Constraints.from_pairs(alike, unalike, upper=upper, lower=lower)
    learner = MetricLearner(
        prior="within", basis=BetweenBasis(), residual=rho, normalize=normalize, gamma=2.0, tol=1e-10
    ).fit(X, y, constraints=constraints)

    pairs = constraints.pairs.index
    plain = PlainProblem.of(constraints, phi, 2.0, offset=rho * (sq(Z, pairs) - sq(phi, pairs)))
    F = oracle(plain, hard=False)
    certificate = learner.certificate_
    assert certificate.converged
    assert certificate.primal == pytest.approx(plain.primal(F), rel=1e-5)
    assert certificate.dual <= plain.primal(F) + 1e-9
    inner = phi @ F @ phi.T + rho * (Z @ Z.T - phi @ phi.T)
    if normalize:
        length = np.sqrt(np.diagonal(inner))
        inner = inner / np.outer(length, length)
    own = np.diagonal(inner)
    expected = own[:, None] + own - 2 * inner
    np.testing.assert_allclose(learner.metric_.distances(X, squared=True), expected, atol=3e-3 * expected.max())
