"""Every loss against a generic convex solver, and against its optimality conditions where that one is coarse."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from builders import KINDS, PlainProblem, mixture, problem_of, random_pair_constraints, satisfiable, shifted
from plain_losses import ALL_LOSSES, LOGDET, RESTING, VON_NEUMANN
from scipy.linalg import expm

from mahalo import Constraints, MetricLearner
from mahalo.solvers import dual

cp = pytest.importorskip("cvxpy")
pytestmark = pytest.mark.filterwarnings("ignore:Solution may be inaccurate:UserWarning")  # the oracle's, within bounds

losses = pytest.mark.parametrize("plain_loss", ALL_LOSSES, ids=repr)
kinds = pytest.mark.parametrize("kinds", KINDS, ids="+".join)


def loss_of(plain_loss, F, asked):
    """tr f(F) as a convex expression; what it needs beside F is added to `asked`."""
    loss, d = plain_loss.loss, F.shape[0]
    name = type(loss).__name__
    if name == "LogDet":
        return cp.trace(F) - cp.log_det(F) - d
    if name == "VonNeumann":
        return -cp.von_neumann_entr(F) - cp.trace(F) + d
    if name == "Frobenius":
        return cp.sum_squares(F - loss.eta * np.eye(d)) / 2
    if name == "SDPFrobenius":
        return loss.strength / 2 * cp.sum_squares(cp.vec(F, order="F"))  # cvxpy 1.7 errs on F itself
    if name == "SDPLogDet":
        return -loss.strength * cp.log_det(F)
    assert name == "Hellinger"
    # tr √F = max tr Y over F ⪰ Y Yᵀ.
    Y = cp.Variable((d, d), symmetric=True)
    asked.append(cp.bmat([[F, Y], [Y, np.eye(d)]]) >> 0)
    return cp.trace(F) - 2 * np.sqrt(loss.eta) * cp.trace(Y) + d * loss.eta


def oracle(plain: PlainProblem) -> np.ndarray:
    """argmin over F ⪰ 0 of  tr f(F) + tr(R_0 F) + Σ penalties, the paper's slack with its ξ where it is due."""
    F = cp.Variable((plain.rank, plain.rank), PSD=True)
    asked = []
    objective = loss_of(plain.plain_loss, F, asked)
    if plain.tilt is not None:
        objective += cp.trace(plain.tilt @ F)
    for k, R in enumerate(plain.R):
        sign, b, gamma = plain.sign[k], plain.bound[k], plain.gamma[k]
        v = plain.offset[k] + cp.trace(F @ R)
        if np.isinf(gamma):
            asked.append(sign * (v - b) / plain.scale[k] <= 0)
        elif k < plain.n_log:
            t = cp.Variable()  # ξ/b
            asked.append(sign * (v / b - t) <= 0)
            objective += gamma * (t - cp.log(t) - 1)
        else:
            objective += gamma / 2 * cp.square(cp.pos(sign * (v - b) / plain.scale[k]))
    problem = cp.Problem(cp.Minimize(objective), asked)
    problem.solve(solver=cp.CLARABEL)
    assert problem.status in ("optimal", "optimal_inaccurate")
    return F.value


def repaired(F, plain):
    """The oracle's F without the eigenvalues that it left a little below zero."""
    values, vectors = np.linalg.eigh(F)
    least = 1e-9 if np.isinf(plain.plain_loss.f(0.0)) else 0.0
    return (vectors * np.maximum(values, least)) @ vectors.T


def assert_optimal(solution, plain):
    """No worse than the oracle by an objective written down independently, the same matrix, and proved by its λ."""
    F = repaired(oracle(plain), plain)
    ours, theirs = plain.primal(solution.F), plain.primal(F)
    size = max(1.0, abs(theirs))
    hard = np.isinf(plain.gamma).any()
    assert solution.certificate.converged
    assert abs(ours - theirs) <= 3e-5 * size
    np.testing.assert_allclose(solution.F, F, rtol=0, atol=5e-3 * max(1.0, np.abs(F).max()))
    if hard:
        assert plain.relative_violation(solution.F).max() <= 1e-8
    else:
        assert ours <= theirs + 1e-8 * size
    assert ours == pytest.approx(solution.certificate.primal, rel=1e-7, abs=1e-7)
    assert plain.dual(solution.lam) == pytest.approx(ours, rel=1e-6, abs=1e-6)


def held(plain_loss, constraints, X):
    """With an objective that holds every direction, where nothing else is sure to keep the loss bounded."""
    if plain_loss.edge > 0:
        return constraints
    return constraints + Constraints.linear_objective(0.1 * np.eye(len(X)))


# -- solver ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@kinds
@losses
def test_slack(rng, plain_loss, kinds):
    X = rng.standard_normal((8, 3))
    constraints = held(plain_loss, mixture(rng, X, kinds), X)
    for gamma in (0.3, 20.0):
        solution = dual(problem_of(constraints, X, gamma, plain_loss=plain_loss), tol=1e-9)
        assert_optimal(solution, PlainProblem.of(constraints, X, gamma, plain_loss=plain_loss))


@pytest.mark.slow
@kinds
@losses
def test_hard(rng, plain_loss, kinds):
    X = rng.standard_normal((8, 4))
    constraints = held(plain_loss, satisfiable(mixture(rng, X, kinds), X, rng), X)
    solution = dual(problem_of(constraints, X, np.inf, plain_loss=plain_loss), tol=1e-9)
    assert solution.lam.any()  # something had to be learned
    assert_optimal(solution, PlainProblem.of(constraints, X, np.inf, plain_loss=plain_loss))


@losses
@pytest.mark.parametrize("gamma", [2.0, np.inf])
def test_offsets(rng, plain_loss, gamma):
    X = rng.standard_normal((8, 3))
    constraints = mixture(rng, X, ("pairs", "triplets", "linear"))
    offset = rng.uniform(0.0, 2.0, constraints.n_constraints)
    if np.isinf(gamma):
        constraints = satisfiable(constraints, X, rng)
        p, t = len(constraints.pairs), len(constraints.triplets)
        offset = offset[: constraints.n_constraints]
        offset[p : p + t] *= -1
        constraints = shifted(constraints, offset)
    constraints = held(plain_loss, constraints, X)
    solution = dual(problem_of(constraints, X, gamma, offset, plain_loss), tol=1e-9)
    assert_optimal(solution, PlainProblem.of(constraints, X, gamma, offset, plain_loss))


@pytest.mark.slow
@losses
@pytest.mark.parametrize("gamma", [2.0, np.inf])
def test_linear_objective(rng, plain_loss, gamma):
    """C_0 positive in some directions, negative in others; losses with a finite domain get a small one."""
    X = rng.standard_normal((8, 3))
    constraints = mixture(rng, X, ("pairs", "linear"))
    if np.isinf(gamma):
        constraints = satisfiable(constraints, X, rng)
    B = rng.standard_normal((8, 8))
    C = 0.02 * (B + B.T) + (0.2 * np.eye(8) if plain_loss.edge <= 0 else 0.0)
    constraints = constraints + Constraints.linear_objective(C)
    solution = dual(problem_of(constraints, X, gamma, plain_loss=plain_loss), tol=1e-9)
    assert_optimal(solution, PlainProblem.of(constraints, X, gamma, plain_loss=plain_loss))


@pytest.mark.parametrize("gamma", [0.1, 10.0, np.inf])
def test_von_neumann_meets_its_optimality_conditions(rng, gamma):
    """F = exp S by scipy's own expm, λ ≥ 0, and each λ the slope of its penalty (hard: λ (v − b) = 0)."""
    X = rng.standard_normal((8, 5))
    constraints = mixture(rng, X, ("pairs", "triplets", "linear"))
    if np.isinf(gamma):
        constraints = satisfiable(constraints, X, rng)
    plain = PlainProblem.of(constraints, X, gamma, plain_loss=VON_NEUMANN)
    solution = dual(problem_of(constraints, X, gamma, plain_loss=VON_NEUMANN), tol=1e-12)
    F = expm(plain.dual_matrix(solution.lam))
    np.testing.assert_allclose(solution.F, F, rtol=0, atol=1e-10 * np.abs(F).max())
    assert (solution.lam >= 0).all()
    v = plain.values(F)
    excess = plain.sign * (v - plain.bound)
    if np.isinf(gamma):
        assert (excess / plain.scale).max() <= 1e-8
        assert np.abs(solution.lam * excess).max() <= 1e-7
    else:
        slope = plain.gamma * np.maximum(excess, 0.0) / plain.scale**2
        np.testing.assert_allclose(solution.lam * plain.scale, slope * plain.scale, rtol=0, atol=1e-5 * gamma)


# -- learner -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gamma", [0.5, np.inf])
@pytest.mark.parametrize("plain_loss", [p for p in ALL_LOSSES if p is not LOGDET], ids=repr)
def test_learner_solves_the_problem_it_was_given(rng, plain_loss, gamma):
    """Through the public door, in units of 40: bounds are 1600 times larger, C_0 as much smaller, W the same."""
    X = rng.standard_normal((8, 3))
    constraints = mixture(rng, X, ("pairs", "triplets", "linear"))
    if np.isinf(gamma):
        constraints = satisfiable(constraints, X, rng)
    B = rng.standard_normal((8, 8))
    C = B @ B.T / 40
    larger = shifted(constraints, 1599 * constraints.bound) + Constraints.linear_objective(C / 1600)
    learner = MetricLearner(loss=plain_loss.loss, gamma=gamma, tol=1e-9).fit(40.0 * X, constraints=larger)
    plain = PlainProblem.of(constraints + Constraints.linear_objective(C), X, gamma, plain_loss=plain_loss)
    F = repaired(oracle(plain), plain)
    np.testing.assert_allclose(learner.metric_.matrix, F, rtol=0, atol=5e-3 * max(1.0, np.abs(F).max()))
    assert learner.certificate_.primal == pytest.approx(plain.primal(F), rel=1e-4, abs=1e-4)
    assert learner.certificate_.primal == pytest.approx(plain.primal(learner.metric_.matrix), rel=1e-6, abs=1e-6)
    assert learner.certificate_.dual == pytest.approx(plain.dual(1600 * learner.duals_), rel=1e-5, abs=1e-5)


def test_losses_give_different_metrics(rng):
    """What the tests above compare is not one and the same problem."""
    X = rng.standard_normal((8, 3))
    constraints = random_pair_constraints(rng, X, 8)
    found = [dual(problem_of(constraints, X, 3.0, plain_loss=plain), tol=1e-9).F for plain in RESTING]
    for one, other in combinations(found, 2):
        assert np.abs(one - other).max() > 1e-3
