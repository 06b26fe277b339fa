"""The dual engine: certified for every loss, unmoved by what must not matter, and honest where nothing is optimal."""

from __future__ import annotations

import dataclasses
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from builders import (
    KINDS,
    PlainProblem,
    known_check_failures,
    labelled_data,
    mixture,
    problem_of,
    random_linear,
    random_pair_constraints,
    random_triplets,
    satisfiable,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_losses import ALL_LOSSES, LOGDET, RESTING, VON_NEUMANN, frobenius, hellinger, sdp_frobenius, sdp_logdet
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from mahalo import Constraints, InfeasibleError, MetricLearner, metric_path
from mahalo.losses import Frobenius, SDPFrobenius, SDPLogDet, resting_point
from mahalo.solvers import certify, dual, newton
from mahalo.solvers.barrier_free_steps import newton_multipliers
from mahalo.solvers.dual_path import DualPath
from mahalo.solvers.dual_state import DualState
from mahalo.solvers.result import StepLog
from mahalo.task import FitData, pose

losses = pytest.mark.parametrize("plain_loss", ALL_LOSSES, ids=repr)
resting = pytest.mark.parametrize("plain_loss", RESTING, ids=repr)
seeds = st.integers(0, 2**32 - 1)

# Any three points: d(0,1) = d(1,2) = 1 and d(0,2) ≥ 2 leave only a straight line.
TRIANGLE = np.array([[0.0, 0.0], [1.0, 0.2], [0.3, 1.0]])


def triangle(lower):
    return Constraints.from_pairs([[0, 1], [1, 2]], [[0, 2]], upper=1.0, lower=lower)


def with_objective(plain_loss, constraints, n_rows):
    """Held by an objective where the loss alone is not bounded."""
    if plain_loss.edge > 0:
        return constraints
    return constraints + Constraints.linear_objective(np.eye(n_rows))


# -- the same as Newton's --------------------------------------------------------------------------------------


@pytest.mark.parametrize("gamma", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("kinds", KINDS, ids="+".join)
def test_logdet_by_either_solver(rng, gamma, kinds):
    X = rng.standard_normal((10, 5))
    constraints = mixture(rng, X, kinds)
    for offset in (0.0, rng.uniform(0.0, 2.0, constraints.n_constraints)):
        problem = problem_of(constraints, X, gamma, offset)
        one, other = dual(problem, tol=1e-11), newton(problem, tol=1e-11)
        assert one.certificate.converged and other.certificate.converged
        assert one.certificate.primal == pytest.approx(other.certificate.primal, rel=1e-9, abs=1e-10)
        np.testing.assert_allclose(one.F, other.F, rtol=0, atol=1e-5 * np.abs(other.F).max())
        np.testing.assert_allclose(one.lam, other.lam, rtol=0, atol=1e-4 * other.lam.max())


def test_logdet_by_either_solver_on_data(wine):
    X, y = wine
    fits = [
        MetricLearner(prior="diagonal", solver=s, tol=1e-8, pairs_per_class=40).fit(X, y) for s in ("dual", "newton")
    ]
    np.testing.assert_allclose(fits[0].metric_.matrix, fits[1].metric_.matrix, rtol=0, atol=1e-3)
    np.testing.assert_array_equal(fits[0].constraints_.pairs.index, fits[1].constraints_.pairs.index)


def test_logdet_by_either_solver_at_large_gamma(wine):
    """Where the domain of the dual cuts steps short, and a γ too far ahead would leave them short for good."""
    X, y = wine
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    constraints = Constraints.from_labels(y, pairs_per_class=100, random_state=0)
    fits = [MetricLearner(solver=s, gamma=1000.0, tol=1e-6).fit(X, constraints=constraints) for s in ("dual", "newton")]
    assert all(fit.certificate_.converged for fit in fits)
    assert fits[0].certificate_.primal == pytest.approx(fits[1].certificate_.primal, rel=2e-6)
    assert fits[0].n_iter_ < 150


# -- without a barrier -----------------------------------------------------------------------------------------


@resting
def test_constraints_with_room_to_spare_have_no_multiplier(rng, plain_loss):
    """Exactly none, which a barrier alone would not give."""
    X, y = labelled_data(rng)
    constraints = Constraints.from_labels(y, pairs_per_class=60, random_state=0)
    learner = MetricLearner(loss=plain_loss.loss, solver="dual", gamma=0.1, tol=1e-8).fit(X, constraints=constraints)
    pairs = learner.constraints_.pairs
    D = learner.metric_.pair_distances(X[pairs.index[:, 0]], X[pairs.index[:, 1]], squared=True)
    room = pairs.sign * (pairs.bound - D) / pairs.bound
    assert (room > 1e-3).sum() > 10
    assert not learner.duals_[room > 1e-3].any()
    assert (learner.duals_[room < -1e-3] > 0).all()


@losses
@pytest.mark.parametrize("gamma", [0.1, 1.0])
def test_moderate_gammas_need_neither_a_barrier_nor_smaller_ones(rng, plain_loss, gamma):
    """Multipliers may be negative on the way, not at the end."""
    X, y = labelled_data(rng)
    constraints = with_objective(plain_loss, Constraints.from_labels(y, pairs_per_class=60, random_state=0), len(X))
    learner = MetricLearner(loss=plain_loss.loss, solver="dual", gamma=gamma, tol=1e-8).fit(X, constraints=constraints)
    assert learner.certificate_.converged and (learner.duals_ >= 0).all()
    assert {step.gamma for step in learner.history_} == {gamma}
    assert learner.n_iter_ <= 15
    assert all(step.relative_gap >= -1e-12 for step in learner.history_)


def indefinite_forms(rng, X, m):
    """Symmetric forms over three rows each, of both signs and senses, with bounds a part of their size away."""
    matrices, bounds = [], []
    senses = ["<=" if k % 2 == 0 else ">=" for k in range(m)]
    for sense in senses:
        rows = rng.choice(len(X), 3, replace=False)
        B = rng.standard_normal((3, 3))
        C = np.zeros((len(X), len(X)))
        C[np.ix_(rows, rows)] = B + B.T
        v = np.trace(C @ X @ X.T)
        matrices.append(C)
        bounds.append(v + (1 if sense == ">=" else -1) * rng.uniform(-0.2, 1.0) * abs(v))
    return Constraints.from_linear(matrices, bounds, sense=senses)


@pytest.mark.parametrize("plain_loss", [VON_NEUMANN, frobenius(0.0), frobenius(0.4), frobenius(1.0)], ids=repr)
def test_triplets_and_forms_take_hardly_more_steps_than_pairs(plain_loss):
    """Although some are far stiffer than others, and F is singular in the end."""
    steps = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((30, 6))
        triplets = np.array([rng.choice(30, 3, replace=False) for _ in range(25)])
        constraints = (
            random_pair_constraints(rng, X, 25)
            + Constraints.from_triplets(triplets, margin=1.0)
            + indefinite_forms(rng, X, 25)
        )
        solution = dual(problem_of(constraints, X, 2.0, plain_loss=plain_loss))
        assert solution.certificate.converged
        steps.append(solution.n_iter)
    assert np.median(steps) <= 13 and max(steps) <= 30, steps


@pytest.mark.parametrize("n_features, seed, gamma", [(6, 1, 3.0), (15, 0, 30.0), (15, 1, 30.0), (15, 2, 3.0)])
@pytest.mark.parametrize("loss", [Frobenius(), SDPFrobenius()], ids=lambda loss: type(loss).__name__)
def test_steps_that_go_to_and_fro_are_made_to_climb(loss, n_features, seed, gamma):
    """Classes that overlap: pairs of either kind contradict each other, and many eigenvalues of the optimum are 0."""
    X, y = make_classification(
        400, n_features, n_informative=n_features // 2, n_classes=3, n_clusters_per_class=1, random_state=seed
    )
    X *= np.random.default_rng(seed).lognormal(0.0, 0.7, n_features)
    constraints = Constraints.from_labels(y, pairs_per_class=250, random_state=seed)
    if isinstance(loss, SDPFrobenius):
        constraints += Constraints.linear_objective(np.eye(len(X)) / np.square(X).sum())
    problem = pose(MetricLearner(loss=loss, gamma=gamma).fit_settings(), FitData(X, None, constraints, None)).problem
    solution = dual(problem, tol=1e-6)
    assert solution.certificate.converged
    assert solution.n_iter <= 40


def test_steps_that_go_too_far_are_taken_back_without_a_word():
    """exp of what a long step adds to S overflows when it is squared."""
    X, y = labelled_data(np.random.default_rng(6))
    constraints = Constraints.from_labels(y, pairs_per_class=60, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        learner = MetricLearner(loss="vonneumann", gamma=1000.0, tol=1e-6).fit(X, constraints=constraints)
    assert learner.certificate_.converged


@pytest.mark.parametrize("lower", [600.0, 709.0])
def test_a_step_to_where_the_objective_overflows_is_not_an_answer(lower):
    """exp(709) is finite, what it costs is not."""
    constraints = Constraints.from_pairs(dissimilar=[[0, 1]], lower=lower)
    learner = MetricLearner(loss="vonneumann", gamma=1e8, prior="identity", tol=1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        learner.fit(np.array([[0.0], [1.0]]), constraints=constraints)
    assert learner.metric_.matrix[0, 0] == pytest.approx(lower, rel=1e-3)


def test_bounds_out_of_reach_are_an_error_not_an_endless_search():
    X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    constraints = Constraints.from_pairs([[0, 1], [2, 3]], upper=1e-80)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match=r"violated by up to 1e\+80 of their bounds or margins, more than"):
            MetricLearner(loss="frobenius").fit(X, constraints=constraints)


def test_numbers_beyond_all_bounds_end_with_a_warning():
    X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    constraints = Constraints.from_pairs([[0, 1]], [[2, 3]], upper=1e100, lower=1e100, weight=1e20)
    with pytest.warns(ConvergenceWarning):
        MetricLearner(loss="logdet", solver="dual", gamma=1e200).fit(X, constraints=constraints)


@pytest.mark.parametrize("solver", ["newton", "dual"])
@pytest.mark.parametrize("gamma", [1e160, 1e200])
def test_prices_whose_squares_leave_float64_are_certified_or_end_with_a_warning(rng, solver, gamma):
    X, y = labelled_data(rng, apart=0.5)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        learner = MetricLearner(gamma=gamma, solver=solver).fit(X, y)
    certificate, warned = learner.certificate_, any(w.category is ConvergenceWarning for w in caught)
    assert certificate.converged != warned
    assert warned or certificate.primal - certificate.dual <= 1e-4 * certificate.primal
    assert np.isfinite(learner.metric_.matrix).all()


@resting
@pytest.mark.parametrize("gamma", [1.0, 300.0])
def test_more_budget_never_leaves_less_and_the_last_step_is_the_answer(rng, plain_loss, gamma):
    X, y = labelled_data(rng)
    constraints = Constraints.from_labels(y, pairs_per_class=60, random_state=0)
    at_rest = certify(*_at_rest(plain_loss, constraints, X, gamma), 1.0).relative_gap
    for max_iter in (1, 3, 6, 40):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            learner = MetricLearner(loss=plain_loss.loss, solver="dual", gamma=gamma, max_iter=max_iter, tol=1e-8)
            learner.fit(X, constraints=constraints)
        gap = learner.certificate_.relative_gap
        assert gap <= 1.001 * at_rest and (learner.duals_ >= 0).all()
        if gamma == 1.0:  # otherwise it may end at a smaller γ on the way
            assert learner.history_[-1].relative_gap == pytest.approx(gap, rel=1e-3, abs=1e-10)


def _at_rest(plain_loss, constraints, X, gamma):
    problem = pose(
        MetricLearner(loss=plain_loss.loss).fit_settings(), FitData(X, None, constraints, None)
    ).problem.with_gamma(gamma)
    return problem, resting_point(plain_loss.loss) * np.eye(problem.rank), np.zeros(problem.n_constraints)


def test_a_budget_is_spent_on_getting_closer(rng):
    X, y = labelled_data(rng)
    constraints = Constraints.from_labels(y, pairs_per_class=60, random_state=0)
    gaps = []
    for max_iter in (1, 3, 5, 7):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            learner = MetricLearner(loss="vonneumann", max_iter=max_iter, tol=1e-10).fit(X, constraints=constraints)
        assert learner.n_iter_ == max_iter
        gaps.append(learner.certificate_.relative_gap)
    assert gaps[-1] < 0.5 * gaps[0]


# -- the certificate -------------------------------------------------------------------------------------------


@losses
@settings(max_examples=20)
@given(seeds, st.sampled_from([1e-2, 1.0, 1e3, np.inf]))
def test_gap_is_not_negative_for_any_answer(plain_loss, seed, gamma):
    """P(F) ≥ D(λ) whoever chose F ⪰ 0 and λ ≥ 0; hard constraints: up to what F violates, times λ."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 5))
    X = rng.standard_normal((7, d))
    constraints = random_pair_constraints(rng, X, 5, weights=True) + random_triplets(rng, X, 2)
    constraints = constraints + random_linear(rng, X, 2)
    if plain_loss.edge <= 0 or rng.random() < 0.5:
        B = rng.standard_normal((7, 7))
        constraints = constraints + Constraints.linear_objective(0.1 * (B @ B.T if plain_loss.edge <= 0 else B + B.T))
    offset = rng.uniform(0, 1, constraints.n_constraints) * rng.integers(0, 2)
    problem = problem_of(constraints, X, gamma, offset, plain_loss)
    plain = PlainProblem.of(constraints, X, gamma, offset, plain_loss)
    Q = np.linalg.qr(rng.standard_normal((d, d)))[0]
    w = 10 ** rng.uniform(-3, 2, d) * (rng.random(d) < (0.7 if np.isfinite(plain_loss.f(0.0)) else 1.1))
    F = (Q * w) @ Q.T
    lam = 10 ** rng.uniform(-3, 1, problem.n_constraints) * (rng.random(problem.n_constraints) < 0.7)
    certificate = certify(problem, F, lam, 1.0)
    violated = float(lam @ np.maximum(plain.sign * (plain.values(F) - plain.bound), 0.0)) if np.isinf(gamma) else 0.0
    assert not np.isnan(certificate.primal) and not np.isnan(certificate.dual)
    assert certificate.gap >= -violated - 1e-9 * max(1.0, abs(certificate.primal), violated)
    assert certificate.primal == pytest.approx(plain.primal(F), rel=1e-7, abs=1e-7)
    assert certificate.dual == pytest.approx(plain.dual(lam), rel=1e-7, abs=1e-7)


@pytest.mark.slow
@losses
@given(seeds, st.floats(1e-3, 1e3))
def test_every_random_problem_is_solved(plain_loss, seed, gamma):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((8, int(rng.integers(1, 6)))) * 10 ** rng.uniform(-1, 1)
    constraints = random_pair_constraints(rng, X, int(rng.integers(1, 10)), weights=True)
    if rng.random() < 0.5:
        constraints = constraints + random_triplets(rng, X, 2) + random_linear(rng, X, 2)
    constraints = with_objective(plain_loss, constraints, len(X))
    learner = MetricLearner(loss=plain_loss.loss, solver="dual", gamma=gamma, tol=1e-6).fit(X, constraints=constraints)
    assert learner.certificate_.converged
    assert np.isfinite(learner.metric_.matrix).all()
    plain = PlainProblem.of(constraints, X, gamma, plain_loss=plain_loss)
    P, D = plain.primal(learner.metric_.matrix), plain.dual(learner.duals_)
    assert -1e-7 <= (P - D) / max(1.0, abs(P)) <= 2e-6


@pytest.mark.parametrize("constant", [-100.0, 100.0])
def test_what_the_coordinates_leave_out_of_the_objective_counts_in_the_gap(rng, constant):
    """relative_gap is relative to |P| with all its terms: small where they cancel."""
    X = rng.standard_normal((8, 3))
    plain_loss = sdp_frobenius(1.0)
    constraints = random_pair_constraints(rng, X, 8) + Constraints.linear_objective(constant / 20 * -np.eye(8))
    problem = problem_of(constraints, X, 1.0, plain_loss=plain_loss)
    P = dual(problem, tol=1e-8).certificate.primal
    shifted = dataclasses.replace(problem, constant=-P)
    for tol in (1e-2, 1e-4, 1e-6):
        certificate = dual(shifted, tol=tol).certificate
        assert certificate.converged
        assert abs(certificate.primal) <= 1e-2
        assert certificate.gap <= tol


# -- what must not matter --------------------------------------------------------------------------------------


@losses
def test_weights_count_like_repeated_constraints(rng, plain_loss):
    X = rng.standard_normal((8, 3))
    once = with_objective(plain_loss, mixture(rng, X, ("pairs", "triplets", "linear")), len(X))
    times = rng.integers(1, 4, once.n_constraints)
    both = _repeated(once, times), _weighted(once, once.weight * times)
    one, other = (dual(problem_of(c, X, 0.7, plain_loss=plain_loss), tol=1e-11) for c in both)
    np.testing.assert_allclose(one.F, other.F, rtol=0, atol=1e-5 * max(1.0, np.abs(other.F).max()))
    assert one.certificate.primal == pytest.approx(other.certificate.primal, rel=1e-8, abs=1e-9)


def _weighted(constraints, weight):
    p, t = len(constraints.pairs), len(constraints.triplets)
    return Constraints(
        dataclasses.replace(constraints.pairs, weight=weight[:p]),
        dataclasses.replace(constraints.triplets, weight=weight[p : p + t]),
        dataclasses.replace(constraints.linear, weight=weight[p + t :]),
        objective=constraints.objective,
    )


def _repeated(constraints, times):
    p, t = len(constraints.pairs), len(constraints.triplets)
    index = np.arange(constraints.n_constraints)
    parts = [
        group.take(np.repeat(index[: len(group)], n))
        for group, n in zip(
            (constraints.pairs, constraints.triplets, constraints.linear),
            (times[:p], times[p : p + t], times[p + t :]),
            strict=True,
        )
    ]
    return Constraints(*parts, objective=constraints.objective)


@losses
def test_order_of_constraints_and_rows_does_not_matter(rng, plain_loss):
    X = rng.standard_normal((8, 3))
    constraints = with_objective(plain_loss, random_pair_constraints(rng, X, 8), len(X))
    constraints.n_rows = None
    order, rows = rng.permutation(8), rng.permutation(8)
    moved, _ = constraints.on_rows(rows)
    moved = Constraints(moved.pairs.take(order), objective=moved.objective)
    learner = MetricLearner(loss=plain_loss.loss, solver="dual", tol=1e-11)
    one = learner.fit(X, constraints=constraints)
    W, lam = one.metric_.matrix, one.duals_
    other = learner.fit(X[rows], constraints=moved)
    np.testing.assert_allclose(other.metric_.matrix, W, rtol=0, atol=1e-5 * max(1.0, np.abs(W).max()))
    np.testing.assert_allclose(other.duals_, lam[order], rtol=0, atol=1e-4 * lam.max())


@pytest.mark.parametrize("plain_loss", [LOGDET, VON_NEUMANN, frobenius(1.0), frobenius(0.4), hellinger(0.7)], ids=repr)
@pytest.mark.parametrize("gamma", [1.0, np.inf])
def test_learned_distances_scale_with_the_data(rng, plain_loss, gamma):
    X, y = labelled_data(rng, apart=4.0)
    learner = MetricLearner(
        loss=plain_loss.loss, gamma=gamma, solver="dual", pairs_per_class=3, percentiles=(40, 60), tol=1e-9
    )
    D = learner.fit(X, y).metric_.distances(X)
    np.testing.assert_allclose(learner.fit(100 * X, y).metric_.distances(100 * X), 100 * D, rtol=0, atol=1e-3 * D.max())


@losses
def test_fits_repeat_exactly(rng, plain_loss):
    X = rng.standard_normal((10, 4))
    constraints = with_objective(plain_loss, mixture(rng, X, ("pairs", "triplets", "linear")), len(X))
    learner = MetricLearner(loss=plain_loss.loss, solver="dual")
    one = learner.fit(X, constraints=constraints)
    F, certificate = one.metric_.F, one.certificate_
    other = learner.fit(X, constraints=constraints)
    np.testing.assert_array_equal(other.metric_.F, F)
    assert other.certificate_ == certificate


# -- along γ ----------------------------------------------------------------------------------------------------


@losses
def test_path_equals_cold_fits(rng, plain_loss):
    X = rng.standard_normal((10, 4))
    constraints = with_objective(plain_loss, mixture(rng, X, ("pairs", "triplets")), len(X))
    gammas = [0.1, 3.0, 0.01, 30.0]
    options = {"loss": plain_loss.loss, "solver": "dual", "tol": 1e-9}
    path = metric_path(X, constraints=constraints, gammas=gammas, **options)
    for gamma, metric, certificate, lam in zip(gammas, path.metrics, path.certificates, path.duals, strict=True):
        cold = MetricLearner(gamma=gamma, **options).fit(X, constraints=constraints)
        assert certificate.converged
        assert certificate.primal == pytest.approx(cold.certificate_.primal, rel=1e-7, abs=1e-8)
        W = cold.metric_.matrix
        np.testing.assert_allclose(metric.matrix, W, rtol=0, atol=1e-4 * max(1.0, np.abs(W).max()))
        np.testing.assert_allclose(lam, cold.duals_, rtol=0, atol=1e-3 * cold.duals_.max())


@resting
def test_large_gamma_approaches_hard_constraints(rng, plain_loss):
    X = rng.standard_normal((8, 4))
    constraints = satisfiable(mixture(rng, X, ("pairs", "linear")), X, rng)
    hard = dual(problem_of(constraints, X, np.inf, plain_loss=plain_loss), tol=1e-9)
    for gamma, near in ((1e3, 0.1), (1e6, 1e-3)):
        soft = dual(problem_of(constraints, X, gamma, plain_loss=plain_loss), tol=1e-9)
        assert soft.certificate.converged
        np.testing.assert_allclose(soft.F, hard.F, rtol=0, atol=near * max(1.0, np.abs(hard.F).max()))


# -- stopped early, refused, refuted ------------------------------------------------------------------------------


@losses
@pytest.mark.parametrize("gamma", [1.0, np.inf])
def test_stopped_after_one_step_says_so(rng, plain_loss, gamma):
    X = rng.standard_normal((10, 4))
    constraints = mixture(rng, X, ("pairs", "triplets"))
    if np.isinf(gamma):
        constraints = satisfiable(constraints, X, rng)
    constraints = with_objective(plain_loss, constraints, len(X))
    learner = MetricLearner(loss=plain_loss.loss, solver="dual", gamma=gamma, max_iter=1, tol=1e-10)
    with pytest.warns(ConvergenceWarning, match=r"stopped after 1 steps with relative duality gap"):
        learner.fit(X, constraints=constraints)
    assert not learner.certificate_.converged
    assert learner.n_iter_ == 1
    plain = PlainProblem.of(constraints, X, gamma, plain_loss=plain_loss)
    W = learner.metric_.matrix
    gap = plain.primal(W) - plain.dual(learner.duals_)
    assert learner.certificate_.gap == pytest.approx(gap, rel=1e-6, abs=1e-8)
    assert learner.certificate_.max_violation == pytest.approx(plain.relative_violation(W).max(), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("solver", ["newton", "bregman"])
def test_solvers_that_cannot_do_a_loss_say_which_can(rng, solver):
    X, y = labelled_data(rng)
    for loss in ("vonneumann", "frobenius", SDPFrobenius(), hellinger(1.0).loss):
        with pytest.raises(ValueError, match=rf"solver='{solver}' cannot do the loss \w+; use solver='dual' or 'auto'"):
            MetricLearner(loss=loss, solver=solver).fit(X, y)
    constraints = random_pair_constraints(rng, X, 4) + Constraints.linear_objective(np.eye(len(X)))
    with pytest.raises(ValueError, match=rf"solver='{solver}' cannot do a linear objective; use solver='dual'"):
        MetricLearner(solver=solver).fit(X, constraints=constraints)


def test_newton_needs_a_finite_gamma(rng):
    X, y = labelled_data(rng)
    with pytest.raises(ValueError, match=r"solver='newton' needs a finite gamma; .* solver='dual' or 'auto'"):
        MetricLearner(solver="newton", gamma=np.inf).fit(X, y)


def assert_farkas(error, constraints, X):
    """Σ s R ⪰ 0 and Σ s b < 0, from the multipliers alone: tr(W Σ s R) ≥ 0 for every W ⪰ 0 that there is."""
    plain = PlainProblem.of(constraints, X, np.inf)
    s = plain.sign * error.multipliers
    assert (error.multipliers >= 0).all() and error.multipliers.sum() == pytest.approx(1.0)
    R = sum(s_k * R for s_k, R in zip(s, plain.R, strict=True))
    size = sum(abs(s_k) * np.linalg.norm(R) for s_k, R in zip(s, plain.R, strict=True))
    assert np.linalg.eigvalsh(R)[0] >= -1e-10 * size
    assert s @ plain.bound < -1e-10 * (np.abs(s) @ np.abs(plain.bound))


@losses
def test_contradictions_are_proved_whatever_the_loss(rng, plain_loss):
    X = np.vstack([TRIANGLE, rng.standard_normal((4, 2))])
    C = np.zeros((7, 7))
    C[1, 1] = 1.0
    contradictions = {
        "triangle": triangle(4.5),
        "one pair": Constraints.from_pairs([[0, 1]], [[1, 0]], upper=0.5, lower=9.0),
        "triplets": Constraints.from_triplets([[0, 1, 2], [0, 2, 1]], margin=0.1),
        "forms": Constraints.from_linear([C, C], [1.0, 2.0], sense=["<=", ">="]),
        "among others": Constraints.from_pairs([[3, 4]], [[5, 6]], upper=1e3, lower=1e-6) + triangle(9.0),
    }
    for constraints in contradictions.values():
        constraints = with_objective(plain_loss, constraints, 7)
        with pytest.raises(InfeasibleError, match="no metric satisfies all hard constraints") as caught:
            MetricLearner(loss=plain_loss.loss, gamma=np.inf).fit(X, constraints=constraints)
        assert caught.value.outcome == "infeasible"
        assert_farkas(caught.value, constraints, X)


@losses
@pytest.mark.parametrize("lower", [1.0, 3.0, 3.9, 3.99])
def test_within_the_triangle_inequality_there_is_an_optimum(plain_loss, lower):
    constraints = with_objective(plain_loss, triangle(lower), 3)
    learner = MetricLearner(loss=plain_loss.loss, gamma=np.inf, tol=1e-8).fit(TRIANGLE, constraints=constraints)
    assert learner.certificate_.converged
    assert PlainProblem.of(constraints, TRIANGLE, np.inf).relative_violation(learner.metric_.matrix).max() <= 1e-8


@pytest.mark.parametrize("plain_loss", [VON_NEUMANN, frobenius(1.0), frobenius(0.0), sdp_frobenius(1.0)], ids=repr)
def test_singular_optima_are_found_where_the_loss_allows_them(plain_loss):
    """At equality in the triangle inequality one metric is left, a straight line: W has rank 1, and f(0) is finite."""
    learner = MetricLearner(loss=plain_loss.loss, gamma=np.inf, tol=1e-6).fit(TRIANGLE, constraints=triangle(4.0))
    d = learner.metric_.distances(TRIANGLE)
    np.testing.assert_allclose(d[[0, 1, 0], [1, 2, 2]], [1, 1, 2], rtol=1e-6)


@pytest.mark.parametrize("plain_loss", [LOGDET, sdp_logdet(0.5)], ids=repr)
def test_singular_optima_are_refused_where_the_loss_is_infinite_there(plain_loss):
    constraints = with_objective(plain_loss, triangle(4.0), 3)
    with pytest.raises(InfeasibleError, match="only singular metrics satisfy") as caught:
        MetricLearner(loss=plain_loss.loss, gamma=np.inf).fit(TRIANGLE, constraints=constraints)
    assert caught.value.outcome == "singular"


@pytest.mark.slow
@losses
@given(seeds)
def test_every_random_hard_problem_is_solved_or_refuted(plain_loss, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((8, int(rng.integers(2, 6))))
    constraints = random_pair_constraints(rng, X, int(rng.integers(2, 12)))
    if rng.random() < 0.5:
        constraints = constraints + random_triplets(rng, X, 2) + random_linear(rng, X, 2)
    constraints = with_objective(plain_loss, constraints, len(X))
    plain = PlainProblem.of(constraints, X, np.inf, plain_loss=plain_loss)
    try:
        learner = MetricLearner(loss=plain_loss.loss, gamma=np.inf).fit(X, constraints=constraints)
    except InfeasibleError as error:
        if error.outcome == "infeasible":
            assert_farkas(error, constraints, X)
        else:
            assert error.outcome == "bounded" or np.isinf(plain_loss.f(0.0))
        return
    W = learner.metric_.matrix
    assert plain.relative_violation(W).max() <= 1e-8 * (1 + 1e-6)
    gap = plain.primal(W) - plain.dual(learner.duals_)
    assert -1e-6 <= gap / max(1.0, abs(plain.primal(W))) <= 1e-4


# -- SDP + log det ------------------------------------------------------------------------------------------------


def test_sdp_logdet_is_unbounded_where_nothing_holds_a_direction(rng):
    X = rng.standard_normal((8, 3))
    message = (
        r"SDPLogDet is unbounded on these constraints.*: some direction is limited neither by the linear objective"
    )
    dissimilar = Constraints.from_pairs(None, [[0, 1], [2, 3], [4, 5]], lower=1.0)
    in_one_direction = Constraints.from_pairs([[0, 1]], [[2, 3], [4, 5]], upper=1.0, lower=1.0)
    missing = Constraints.linear_objective(np.diag([1.0, 1.0, 0, 0, 0, 0, 0, 0]))  # two of three directions
    for gamma in (1.0, np.inf):
        learner = MetricLearner(loss=SDPLogDet(), gamma=gamma)
        for constraints in (dissimilar, in_one_direction, dissimilar + missing):
            with pytest.raises(ValueError, match=message):
                learner.fit(X, constraints=constraints)


@pytest.mark.parametrize("gamma", [1.0, np.inf])
def test_sdp_logdet_is_fine_where_every_direction_is_held(rng, gamma):
    X = rng.standard_normal((8, 3))
    dissimilar = Constraints.from_pairs(None, [[0, 1], [2, 3], [4, 5]], lower=1.0)
    similar = Constraints.from_pairs([[0, 2], [1, 3], [4, 6]], upper=1.0)
    triplets = Constraints.from_triplets([[0, 1, 2]], margin=0.1)
    by_objective = dissimilar + Constraints.linear_objective(np.eye(8))
    partly = similar.take(np.array([True, False, False])) + dissimilar
    by_both = partly + Constraints.linear_objective(np.diag([1.0, 1.0, 0, 0, 0, 0, 0, 0]))
    for constraints in (by_objective, similar, dissimilar + similar, triplets + similar, by_both):
        learner = MetricLearner(loss=SDPLogDet(0.5), gamma=gamma, tol=1e-8).fit(X, constraints=constraints)
        assert learner.certificate_.converged
        plain = PlainProblem.of(constraints, X, gamma, plain_loss=sdp_logdet(0.5))
        P = plain.primal(learner.metric_.matrix)
        assert pytest.approx(plain.dual(learner.duals_), rel=1e-6, abs=1e-6) == P


def test_sdp_logdet_lives_on_the_span_of_the_constraints(rng):
    """W = U F Uᵀ: zero on what no constraint sees, the same in whatever space the span lies."""
    X = rng.standard_normal((6, 3))
    wide = X @ np.linalg.qr(rng.standard_normal((5, 5)))[0][:3]
    constraints = random_pair_constraints(rng, X, 6) + Constraints.from_pairs([[0, 1], [1, 2], [2, 3]], upper=1.0)
    fits = [MetricLearner(loss=SDPLogDet(), tol=1e-10).fit(Z, constraints=constraints) for Z in (X, wide)]
    W = fits[1].metric_.matrix
    assert (np.linalg.eigvalsh(W) > 1e-6).sum() == 3
    np.testing.assert_allclose(fits[0].metric_.distances(X), fits[1].metric_.distances(wide), atol=1e-5)
    assert fits[0].certificate_.primal == pytest.approx(fits[1].certificate_.primal, abs=1e-8)


@pytest.mark.parametrize("plain_loss", [LOGDET, hellinger(0.7)], ids=repr)
@pytest.mark.parametrize("gamma", [20.0, np.inf])
def test_an_objective_that_outweighs_the_loss_needs_constraints_that_hold_it(rng, plain_loss, gamma):
    """These losses grow no faster than w, so −R_0 ⪰ I is more than they can hold."""
    X = rng.standard_normal((8, 3))
    outwards = Constraints.linear_objective(-0.5 * np.eye(8))
    assert np.linalg.eigvalsh(0.5 * X.T @ X)[-1] > 1.5
    similar = Constraints.from_pairs([[0, 2], [1, 3], [4, 6], [5, 7]], upper=1.0)
    learner = MetricLearner(loss=plain_loss.loss, gamma=gamma, tol=1e-8).fit(X, constraints=similar + outwards)
    plain = PlainProblem.of(similar + outwards, X, gamma, plain_loss=plain_loss)
    assert plain.primal(learner.metric_.matrix) == pytest.approx(plain.dual(learner.duals_), rel=1e-6)
    with pytest.raises(ValueError, match=rf"{type(plain_loss.loss).__name__} is unbounded on these constraints"):
        learner.fit(X, constraints=similar.take(np.array([True, False, False, False])) + outwards)


@pytest.mark.parametrize(("strength", "gamma"), [(1.0, 1.0), (1.0, 1000.0), (0.01, 1.0), (0.01, 100.0)])
def test_sdp_logdet_on_rows_of_any_scale(wine, strength, gamma):
    """Whether anything is unbounded depends neither on γ nor on the strength of the loss."""
    learner = MetricLearner(loss=SDPLogDet(strength), gamma=gamma, tol=1e-6).fit(*wine)
    assert learner.certificate_.converged


# -- awkward ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gamma", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("loss", [Frobenius(0.0), SDPFrobenius(), SDPFrobenius(0.01)], ids=repr)
def test_losses_that_begin_at_zero_on_rows_of_any_scale(wine, loss, gamma):
    """F = 0 promises nothing about where a step leads; it must be taken all the same."""
    learner = MetricLearner(loss=loss, gamma=gamma, tol=1e-6).fit(*wine)
    assert learner.certificate_.converged


@pytest.mark.parametrize("loss", ["logdet", "vonneumann", "frobenius"])
def test_few_hard_constraints_on_data_are_met(wine, loss):
    """Feasible, but only just: far more than conjugate gradients can do."""
    X, y = wine
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    for seed in range(3):
        learner = MetricLearner(loss=loss, gamma=np.inf, pairs_per_class=5, random_state=seed).fit(X, y)
        assert learner.certificate_.converged and learner.certificate_.max_violation <= 1e-8


@pytest.mark.parametrize("options", [{"max_iter": 500}, {"max_iter": 30}, {"solver": "bregman"}], ids=str)
@pytest.mark.parametrize(("lower", "outcome"), [(4.0, "singular"), (9.0, "infeasible")])
def test_contradictions_are_found_whatever_solver_and_budget(options, lower, outcome):
    with pytest.raises(InfeasibleError) as caught:
        MetricLearner(gamma=np.inf, **options).fit(TRIANGLE, constraints=triangle(lower))
    assert caught.value.outcome == outcome


@pytest.mark.parametrize("upper, weight, gamma", [(1e140, 1e-20, 1e-10), (1e155, 1.0, 1.0)])
def test_bounds_whose_squares_leave_float64_do_no_harm(rng, upper, weight, gamma):
    X = rng.standard_normal((10, 3))
    constraints = Constraints.from_pairs([[0, 1], [2, 3], [4, 5]], upper=[0.1, 0.1, upper], weight=[1, 1, weight])
    learner = MetricLearner(loss="frobenius", gamma=gamma, tol=1e-6).fit(X, constraints=constraints)
    assert learner.certificate_.converged


def test_callbacks_keep_their_own_floating_point_warnings(rng):
    X, y = labelled_data(rng)
    problem = pose(MetricLearner(loss="frobenius").fit_settings(), FitData(X, y, None, None)).problem
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        dual(problem, on_step=lambda step: np.log(np.zeros(1)))


@pytest.mark.parametrize("gamma", [1.0, 1e4, np.inf])
def test_von_neumann_near_rank_deficiency(gamma):
    """Similar pairs that ask for 1e-12 of a direction's length, dissimilar ones for 1e3 of another's."""
    X = np.vstack([np.zeros(3), np.eye(3), [[1.0, 1.0, 0.0]]])
    constraints = Constraints.from_pairs([[0, 1], [0, 2]], [[0, 3], [1, 4]], upper=[1e-12, 1.0], lower=[1e3, 0.5])
    learner = MetricLearner(loss="vonneumann", gamma=gamma).fit(X, constraints=constraints)
    W = learner.metric_.matrix
    assert np.isfinite(W).all() and np.isfinite(learner.transform(X)).all()
    assert np.isfinite(learner.duals_).all()
    values = np.linalg.eigvalsh(W)
    assert values[0] >= -1e-15 and values[0] < 1e-3
    if np.isinf(gamma):
        assert values[0] <= 1.01e-12 and values[-1] >= 999


def test_rank_deficient_metrics_transform_exactly(rng):
    X = rng.standard_normal((10, 4))
    constraints = Constraints.from_pairs([[0, 1], [2, 3], [4, 5]], [[6, 7]], upper=1e-3, lower=3.0)
    learner = MetricLearner(loss=Frobenius(), gamma=100.0, tol=1e-10).fit(X, constraints=constraints)
    W = learner.metric_.matrix
    assert np.linalg.eigvalsh(learner.metric_.F)[0] <= 1e-12
    T = learner.transform(X)
    difference = X[:, None] - X
    expected = np.einsum("ijk,kl,ijl->ij", difference, W, difference)
    np.testing.assert_allclose(((T[:, None] - T) ** 2).sum(axis=2), expected, atol=1e-10)
    np.testing.assert_allclose(learner.metric_.distances(X, squared=True), expected, atol=1e-10)


@pytest.mark.parametrize("loss", [Frobenius(eta=0.0), SDPFrobenius()], ids=repr)
def test_a_metric_that_is_zero_is_warned_of(rng, loss):
    X = rng.standard_normal((8, 3))
    similar = Constraints.from_pairs([[0, 1], [2, 3]], upper=1.0)
    with pytest.warns(UserWarning, match="the learned metric is zero: under this loss nothing keeps distances up"):
        learner = MetricLearner(loss=loss).fit(X, constraints=similar)
    assert not learner.metric_.distances(X).any()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MetricLearner(loss=loss).fit(X, constraints=similar + Constraints.from_pairs(None, [[4, 5]], lower=1.0))
        MetricLearner(loss=Frobenius(0.1)).fit(X, constraints=similar)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*dissimilar pairs? of identical points:UserWarning")
@parametrize_with_checks(
    [MetricLearner(loss="frobenius"), MetricLearner(loss="vonneumann")], expected_failed_checks=known_check_failures
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# -- steps -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tilted", [False, True])
@pytest.mark.parametrize("plain_loss", [frobenius(0.0), sdp_frobenius(1.0)], ids=repr)
def test_a_shifted_state_is_that_of_the_shifted_problem(rng, plain_loss, tilted):
    X = rng.standard_normal((12, 5))
    problem = problem_of(mixture(rng, X, ("pairs", "triplets")), X, 1.0, plain_loss=plain_loss)
    if tilted:
        problem = dataclasses.replace(problem, tilt=np.cov(X.T))
    state = DualState.at(problem, rng.uniform(0.0, 0.1, problem.n_constraints))
    shifted = state.shifted(0.7)
    anew = DualState.at(shifted.problem, state.lam)
    np.testing.assert_allclose(shifted.F, anew.F, rtol=0, atol=1e-12 * np.abs(anew.F).max())
    np.testing.assert_allclose([shifted.dual, shifted.gap], [anew.dual, anew.gap], rtol=1e-10)
    tilt = 0.0 if problem.tilt is None else problem.tilt
    np.testing.assert_allclose(shifted.problem.tilt, tilt - 0.7 * np.eye(5), atol=1e-15)


@pytest.mark.parametrize("rank", [6, 14], ids=["written out", "implicit"])
@pytest.mark.parametrize("shift", [0.0, 0.4])
def test_a_step_solves_for_multipliers_as_if_F_were_linear_in_S(rng, rank, shift):
    """Where all eigenvalues are positive Ω is 1, F moves by A*(s − s⁺) − τI, and λ⁺ = penalty′ where it arrives."""
    X = rng.standard_normal((20, rank))
    problem = problem_of(mixture(rng, X, ("pairs", "triplets")), X, 1.0, plain_loss=frobenius(1.0))
    state = DualState.at(problem, rng.uniform(0.0, 0.5 / rank**2, problem.n_constraints))
    state = state.shifted(shift) if shift else state
    assert (state.w > 0).all()
    lam, _ = newton_multipliers(state, problem, 1e-10, shift)
    s, s_new = problem.sign * state.lam, problem.sign * lam
    change = problem.forms.adjoint(problem.points, s - s_new) - shift * np.eye(rank)
    v = state.v + problem.forms.apply(problem.points @ change, problem.points)
    np.testing.assert_allclose(problem.slack.slope(v), s_new, rtol=0, atol=1e-9 * np.abs(s_new).max())


@pytest.mark.parametrize(
    "gap, wanted", [(1e300, 0.4), (0.5, 0.4), (1.1e-3, 0.4), (0.9e-3, 0.7 / 30), (1e-4, 0.07), (2e-6, 0.4)]
)
def test_only_the_last_step_is_exact(rng, gap, wanted):
    X = rng.standard_normal((12, 5))
    problem = problem_of(mixture(rng, X, ("pairs",)), X, 1.0, plain_loss=frobenius(1.0))
    path = DualPath(problem, 1e-6, StepLog(10))
    assert path._inexact(SimpleNamespace(relative_gap=gap)) == pytest.approx(wanted, rel=1e-6)
