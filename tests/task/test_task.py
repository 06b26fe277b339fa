"""A posed task: what it solves, and how answers come back into the units and row numbers of the data."""

import warnings

import numpy as np
import pytest
from builders import assert_same_metric, dense_forms, labelled_data

from mahalo import Constraints, InfeasibleError, MetricLearner
from mahalo.constraints import class_codes
from mahalo.losses import Frobenius, SDPLogDet
from mahalo.priors import Supervision
from mahalo.task import FitData, pose, start_metric


def task_of(X, y=None, constraints=None, rows=None, **settings):
    return pose(MetricLearner(pairs_per_class=15, **settings).fit_settings(), FitData(X, y, constraints, rows))


def everything(rng, X, y):
    """Pairs, triplets and a linear form."""
    pairs = Constraints.from_labels(y, pairs_per_class=10, random_state=0)
    half = rng.standard_normal((len(X), 2)) * (rng.random((len(X), 1)) < 0.1)
    half -= half.mean(axis=0)
    return (
        pairs
        + Constraints.from_triplets([[0, 3, 1], [4, 7, 2], [6, 9, 5]])
        + Constraints.from_linear([half @ half.T], [5])
    )


@pytest.mark.parametrize("exponent", [-200, -3, 5, 200])
def test_units_are_its_own_business(rng, exponent):
    """Data in units of a power of two: the same metric to the last bit, multipliers in the units of 1/bound."""
    X, y = labelled_data(rng)
    task, scaled = task_of(X, y), task_of(np.ldexp(X, exponent), y)
    one, other = task.solve(1.0), scaled.solve(1.0)
    np.testing.assert_array_equal(scaled.metric(other).matrix, task.metric(one).matrix)
    np.testing.assert_array_equal(scaled.duals(other), np.ldexp(task.duals(one), -2 * exponent))
    values, of_scaled = task.values(one), scaled.values(other)
    np.testing.assert_array_equal(of_scaled, np.ldexp(values, 2 * exponent))


@pytest.mark.parametrize("loss", ["logdet", "frobenius"])
def test_values_are_those_of_the_constraints_under_the_metric(rng, loss):
    X, y = labelled_data(rng)
    task = task_of(X, constraints=everything(rng, X, y), loss=loss, prior="diagonal")
    solution = task.solve(1.0)
    W, duals, values = task.metric(solution).matrix, task.duals(solution), task.values(solution)
    plain = [np.trace(W @ X.T @ C @ X) for C in dense_forms(task.constraints, len(X))]
    np.testing.assert_allclose(values, plain, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(duals, task.duals(solution))


def test_duals_of_logdet_pairs_belong_to_their_values(rng):
    """s = γ (1/b − 1/v) on the violated side, 0 elsewhere, in the units of X."""
    X, y = labelled_data(rng)
    task = task_of(1e3 * X, y, tol=1e-12)
    solution = task.solve(0.7)
    duals, values = task.duals(solution), task.values(solution)
    c = task.constraints
    expected = np.maximum(c.sign * 0.7 * (1 / c.bound - 1 / values), 0.0)
    np.testing.assert_allclose(duals, expected, atol=1e-5 * duals.max())


def test_outside_the_span_of_the_constraints_the_loss_rests(rng):
    """Two pairs in five dimensions: everywhere else the metric is η times the identity."""
    X = rng.standard_normal((8, 5))
    pairs = Constraints.from_pairs(similar=[[0, 1]], dissimilar=[[2, 3]], upper=1.0, lower=4.0)
    edges = np.array([[1, -1, 0, 0, 0, 0, 0, 0], [0, 0, 1, -1, 0, 0, 0, 0]])
    directions = np.linalg.svd(edges @ X)[2]
    inside, outside = directions[:2], directions[2:]
    held = Constraints.linear_objective(edges.T @ edges)
    for loss, constraints, eta in ((Frobenius(eta=0.4), pairs, 0.4), (SDPLogDet(), pairs + held, 0.0)):
        task = task_of(X, constraints=constraints, loss=loss)
        W = task.metric(task.solve(1.0)).matrix
        np.testing.assert_allclose(outside @ W @ outside.T, eta * np.eye(3), atol=1e-9)
        np.testing.assert_allclose(outside @ W @ inside.T, 0.0, atol=1e-9)


def test_a_path_is_walked_upwards_and_answers_as_single_solves_do(rng):
    X, y = labelled_data(rng)
    task = task_of(X, y, tol=1e-8)
    gammas = np.array([10.0, 0.01, 1.0])
    walked = list(task.path(gammas))
    assert [k for k, _ in walked] == [1, 2, 0]
    for k, solution in walked:
        alone = task.solve(gammas[k])
        assert_same_metric(
            task.metric(solution).matrix, task.metric(alone).matrix, solution.certificate, alone.certificate
        )


def test_hard_constraints_at_the_end_of_a_path_start_anew(rng):
    X = rng.standard_normal((8, 5))
    pairs = Constraints.from_pairs(similar=[[0, 1]], dissimilar=[[2, 3]], upper=0.5, lower=9.0)
    task = task_of(X, constraints=pairs, gamma=np.inf, tol=1e-8)
    (_, soft), (_, hard) = task.path(np.array([0.5, np.inf]))
    assert soft.certificate.max_violation > 1e-3 >= 1e-8 >= hard.certificate.max_violation
    alone = task.solve(np.inf)
    np.testing.assert_array_equal(hard.F, alone.F)


def test_what_is_left_out_is_counted_and_the_rest_keeps_its_rows(rng):
    """Row 9 is not there; rows 2 and 3 are identical."""
    X = rng.standard_normal((9, 3))
    X[3] = X[2]
    pairs = Constraints.from_pairs(similar=[[0, 1], [2, 3], [8, 9]], dissimilar=[[4, 5]], upper=1.0, lower=2.0)
    task = task_of(X, constraints=pairs, rows=np.arange(9))
    assert (task.n_dropped, task.n_outside) == (1, 1)
    np.testing.assert_array_equal(task.constraints.pairs.index, [[0, 1], [4, 5]])
    assert len(task.duals(task.solve(1.0))) == 2


def test_a_contradiction_has_a_multiplier_for_every_constraint_given(rng):
    """Of four, one mentions a row that is not there; those that contradict are named by the caller's rows."""
    X, rows = rng.standard_normal((6, 3)), np.arange(10, 16)
    pairs = Constraints.from_pairs(similar=[[0, 1], [12, 13], [10, 11]], dissimilar=[[12, 13]], upper=1.0, lower=2.0)
    with pytest.raises(InfeasibleError, match=r"\(12, 13\)") as caught:
        task_of(X, constraints=pairs, rows=rows, gamma=np.inf).solve(np.inf)
    assert len(caught.value.multipliers) == 4
    np.testing.assert_array_equal(np.flatnonzero(caught.value.multipliers), [1, 3])


def test_another_residual_changes_what_lies_outside_the_basis_alone(rng):
    X, y = labelled_data(rng, d=6)
    R = np.linalg.qr(rng.standard_normal((6, 2)))[0]
    task = task_of(X, y, basis=R, residual=0.5)
    solution = task.solve(1.0)
    W, other = task.metric(solution).matrix, task.metric(solution, residual=0.2).matrix
    outside = np.eye(6) - R @ R.T
    np.testing.assert_allclose(R.T @ W @ R, R.T @ other @ R, atol=1e-12)
    np.testing.assert_allclose(outside @ W @ outside, 0.5 * outside, atol=1e-12)
    np.testing.assert_allclose(outside @ other @ outside, 0.2 * outside, atol=1e-12)


def test_of_several_metrics_that_are_zero_one_is_warned_of(rng):
    X = rng.standard_normal((6, 3))
    task = task_of(X, constraints=Constraints.from_pairs(similar=[[0, 1]], upper=1.0), loss=Frobenius(eta=0.0))
    solutions = [task.solve(gamma) for gamma in (0.1, 1.0, 10.0)]
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        metrics = task.metrics(solutions)
    assert [str(w.message).partition(":")[0] for w in said] == ["the learned metric is zero"]
    assert all(not metric.matrix.any() for metric in metrics)


@pytest.mark.parametrize("prior", ["identity", "diagonal", "covariance", "within"])
def test_what_a_task_starts_from_is_what_a_tiny_gamma_learns(rng, prior):
    X, y = labelled_data(rng)
    task = task_of(X, y, prior=prior)
    np.testing.assert_allclose(
        task.metric(task.solve(1e-12)).matrix,
        start_metric(MetricLearner(prior=prior).fit_settings(), X, Supervision(class_codes(y))).matrix,
        rtol=1e-6,
        atol=1e-9,
    )
