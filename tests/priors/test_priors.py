"""Priors: what W0 is, that it is whitened away, and that awkward data have one."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.covariance import ledoit_wolf

from mahalo import Constraints, MetricLearner, NotPositiveDefiniteError
from mahalo.priors import Prior, Supervision
from mahalo.rows import InMemoryRows


def satisfied(X):
    """A constraint that every fit here meets at the prior, so that W = W0 exactly."""
    return Constraints.from_pairs([[0, 1]], upper=1e12)


def prior_matrix(prior, X):
    return MetricLearner(prior=prior).fit(X, constraints=satisfied(X)).metric_.matrix


@pytest.fixture
def X(rng):
    return rng.standard_normal((40, 4)) @ rng.standard_normal((4, 4)) + 3.0


def test_identity(X):
    np.testing.assert_array_equal(prior_matrix("identity", X), np.eye(4))


def test_diagonal_is_one_over_variance(X):
    np.testing.assert_allclose(prior_matrix("diagonal", X), np.diag(1 / X.var(axis=0)), atol=1e-12)


def test_covariance_is_the_inverse_covariance(X):
    np.testing.assert_allclose(prior_matrix("covariance", X), np.linalg.inv(np.cov(X.T, bias=True)), rtol=1e-8)


def test_any_spd_matrix(rng, X):
    B = rng.standard_normal((4, 4))
    W0 = B @ B.T + 0.1 * np.eye(4)
    np.testing.assert_allclose(prior_matrix(W0, X), W0, atol=1e-12)
    np.testing.assert_allclose(prior_matrix(W0.tolist(), X), W0, atol=1e-12)


@pytest.mark.parametrize("prior", ["diagonal", "covariance"])
def test_sparse_is_dense(rng, prior):
    X = sp.random_array((40, 5), density=0.4, random_state=rng, format="csr")
    np.testing.assert_allclose(prior_matrix(prior, X), prior_matrix(prior, X.toarray()), rtol=1e-8, atol=1e-10)


def test_covariance_with_more_columns_than_rows_is_shrunk(rng):
    """Documented: (1−ρ) R + ρ I between correlations, ρ of Ledoit and Wolf on the standardised data."""
    X = rng.standard_normal((10, 30)) * 10 ** rng.uniform(-3, 3, 30)
    learner = MetricLearner(prior="covariance").fit(X, constraints=satisfied(X))
    W0 = learner.metric_.matrix
    rho = learner.metric_.coordinates.prior.shrinkage
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    correlation, expected_rho = ledoit_wolf(Z, assume_centered=True)
    assert 0 < rho < 1
    assert rho == pytest.approx(expected_rho)
    standardised = W0 * np.outer(X.std(axis=0), X.std(axis=0))
    np.testing.assert_allclose(standardised, np.linalg.inv(correlation), rtol=0, atol=1e-8)


def test_covariance_is_not_shrunk_where_it_need_not_be(X):
    assert Prior.of("covariance", InMemoryRows(X), Supervision()).shrinkage == 0.0


@pytest.mark.parametrize("prior", ["diagonal", "covariance"])
def test_units_of_columns_may_differ_by_any_power_of_ten(X, prior):
    """The covariance has a condition number of 10³⁰ then; W0 is as exact as in units of one."""
    units = np.array([1e-12, 1e-3, 1.0, 1e12])
    W0 = prior_matrix(prior, X * units) * np.outer(units, units)
    expected = prior_matrix(prior, X)
    np.testing.assert_allclose(W0, expected, rtol=0, atol=1e-10 * np.abs(expected).max())


@pytest.mark.parametrize("prior", ["diagonal", "covariance"])
@pytest.mark.parametrize("sparse", [False, True])
def test_constant_columns_get_the_usual_variance(X, prior, sparse):
    X = np.column_stack([X, np.full(len(X), 3.7), np.zeros(len(X))])
    usual = X[:, :4].var(axis=0).mean()
    W0 = prior_matrix(prior, sp.csr_array(X) if sparse else X)
    assert np.isfinite(W0).all()
    np.testing.assert_allclose(np.diag(W0)[4:], 1 / usual, rtol=1e-6)
    np.testing.assert_allclose(W0[4:, :4], 0.0, atol=1e-8)


@pytest.mark.parametrize("prior", ["diagonal", "covariance"])
def test_dependent_columns(X, prior):
    X = np.column_stack([X, X[:, 0] - 2 * X[:, 1], X[:, 2]])
    W0 = prior_matrix(prior, X)
    assert np.linalg.eigvalsh(W0)[0] > 0


@pytest.mark.parametrize(
    ("prior", "error", "message"),
    [
        ("euclid", ValueError, r"prior must be 'identity', .*, 'within', one of mahalo.priors or .*; got 'euclid'"),
        (np.eye(3), ValueError, r"prior must be 4 × 4, one row a feature; got 3 × 3"),
        (np.ones(4), ValueError, r"prior must be a square matrix; got an array of shape \(4,\)"),
        (np.ones((4, 3)), ValueError, r"prior must be a square matrix; got an array of shape \(4, 3\)"),
        (np.diag([1, 1, 1, np.nan]), ValueError, r"prior contains NaN or infinity"),
        (np.diag([1, 1, 1, -1.0]), NotPositiveDefiniteError, r"prior must be positive definite; its smallest .* -1 "),
        (np.diag([1, 1, 1, 0.0]), NotPositiveDefiniteError, r"positive definite.*Add a small multiple of the identity"),
        (np.eye(4) + np.eye(4, k=1), NotPositiveDefiniteError, r"prior must be symmetric; it differs .* by 1\."),
    ],
)  # fmt: skip
def test_bad_priors_say_what_is_wrong(X, prior, error, message):
    with pytest.raises(error, match=message):
        MetricLearner(prior=prior).fit(X, constraints=satisfied(X))
    assert issubclass(NotPositiveDefiniteError, ValueError)
