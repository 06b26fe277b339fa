"""Data as they come: duplicates, constants, few rows, any scale. Work, or say why; never NaN."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from builders import labelled_data

from mahalo import Constraints, MetricLearner

PRIORS = ["identity", "diagonal", "covariance"]


def assert_sound(learner, X):
    """Certified, finite and positive definite, and distances are distances."""
    c = learner.certificate_
    assert c.converged
    assert np.isfinite([c.primal, c.dual, c.gap, c.relative_gap, c.max_violation]).all()
    assert np.isfinite(learner.duals_).all() and (learner.duals_ >= 0).all()
    for numbers in (learner.transform(X), learner.metric_.distances(X), learner.metric_.matrix):
        assert np.isfinite(numbers).all()
    assert np.linalg.eigvalsh(learner.metric_.F)[0] > 0


# -- points that coincide --------------------------------------------------------------------------------------


def test_similar_pairs_of_identical_points_are_dropped_and_counted(rng):
    X = rng.standard_normal((6, 3))
    X[4] = X[1]
    constraints = Constraints.from_pairs([[0, 1], [1, 4], [2, 2]], [[3, 5]], upper=0.5, lower=9.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        learner = MetricLearner().fit(X, constraints=constraints)
    assert learner.n_dropped_ == 2
    assert learner.constraints_.n_constraints == 2
    np.testing.assert_array_equal(learner.constraints_.pairs.index, [[0, 1], [3, 5]])
    assert_sound(learner, X)


def test_dissimilar_pairs_of_identical_points_are_named_and_dropped(rng):
    X = rng.standard_normal((6, 3))
    X[4] = X[1]
    constraints = Constraints.from_pairs([[0, 1]], [[1, 4], [3, 5]], upper=0.5, lower=9.0)
    message = r"1 dissimilar pair of identical points, such as rows \(1, 4\), can never be satisfied; dropped"
    with pytest.warns(UserWarning, match=message) as caught:
        learner = MetricLearner().fit(X, constraints=constraints)
    assert caught[0].filename == __file__
    assert learner.n_dropped_ == 1
    assert_sound(learner, X)
    without = MetricLearner().fit(X, constraints=Constraints.from_pairs([[0, 1]], [[3, 5]], upper=0.5, lower=9.0))
    np.testing.assert_array_equal(learner.metric_.matrix, without.metric_.matrix)


def test_self_pairs_are_identical_points(rng):
    X = rng.standard_normal((6, 3))
    constraints = Constraints.from_pairs([[0, 1], [3, 3]], [[2, 2], [4, 5]], upper=0.5, lower=9.0)
    with pytest.warns(UserWarning, match=r"rows \(2, 2\), can never be satisfied"):
        learner = MetricLearner().fit(X, constraints=constraints)
    assert learner.n_dropped_ == 2
    assert_sound(learner, X)


def test_nothing_but_identical_points():
    X = np.ones((6, 3))
    constraints = Constraints.from_pairs([[0, 1]], upper=1.0)
    with pytest.raises(ValueError, match=r"no constraint is left .*1 join identical points.*constraints\.report\(X\)"):
        MetricLearner().fit(X, constraints=constraints)
    with pytest.warns(UserWarning, match="dropped"), pytest.raises(ValueError, match="no constraint is left"):
        MetricLearner().fit(X, [0, 0, 0, 1, 1, 1])


def test_rows_that_are_all_identical():
    constraints = Constraints.from_triplets([[0, 1, 2]])
    with (
        pytest.raises(ValueError, match=r"no constraint is left to learn from \(0 .* 1 join identical points\)"),
        pytest.warns(UserWarning, match=r"1 triplet of identical points, such as rows \(0, 1, 2\)"),
    ):
        MetricLearner().fit(np.ones((6, 3)), constraints=constraints)


@pytest.mark.parametrize("prior", PRIORS)
def test_every_row_twice(rng, prior):
    X, y = labelled_data(rng, n=20)
    assert_sound(MetricLearner(prior=prior).fit(np.vstack([X, X]), np.concatenate([y, y])), X)


def test_the_same_point_in_two_classes(rng):
    X, y = labelled_data(rng, n=21, n_classes=3)
    X_twice, y_twice = np.vstack([X, X]), np.concatenate([y, (y + 1) % 3])
    with pytest.warns(UserWarning, match="identical points"):
        assert_sound(MetricLearner(pairs_per_class=None).fit(X_twice, y_twice), X)
    neighbors = MetricLearner(strategy="neighbors").fit(X_twice, y_twice)  # passes over copies
    assert neighbors.n_dropped_ == 0
    assert_sound(neighbors, X)


def test_contradictions_are_paid_for(rng):
    """One pair both similar and dissimilar: the metric settles between the two bounds."""
    X = rng.standard_normal((4, 3))
    constraints = Constraints.from_pairs([[0, 1]], [[1, 0]], upper=1.0, lower=4.0)
    learner = MetricLearner(gamma=1e4, tol=1e-8).fit(X, constraints=constraints)
    assert_sound(learner, X)
    assert learner.certificate_.n_violated == 2
    # γ (1/u − 1/v) = γ (1/v − 1/ℓ) where the prior has no say: 2/v = 1/u + 1/ℓ
    assert learner.metric_.distances(X, squared=True)[0, 1] == pytest.approx(2 / (1 + 1 / 4), rel=1e-3)


def test_contradictory_triplets_are_paid_for(rng):
    X = rng.standard_normal((4, 3))
    learner = MetricLearner(gamma=10.0).fit(X, constraints=Constraints.from_triplets([[0, 1, 2], [0, 2, 1]]))
    assert_sound(learner, X)
    assert learner.certificate_.n_violated == 2


# -- classes ---------------------------------------------------------------------------------------------------


def test_singleton_class(rng):
    X, _ = labelled_data(rng, n=20)
    y = np.r_[np.zeros(10), np.ones(9), 2]
    for strategy in ("random", "neighbors"):
        learner = MetricLearner(strategy=strategy).fit(X, y)
        assert_sound(learner, X)
        index, sign = learner.constraints_.pairs.index, learner.constraints_.pairs.sign
        assert not (index[sign > 0] == 19).any()
        assert (index[sign < 0] == 19).any()


def test_only_singletons_have_no_similar_pairs(rng):
    X = rng.standard_normal((5, 2))
    learner = MetricLearner().fit(X, np.arange(5))
    assert (learner.constraints_.pairs.sign < 0).all()
    assert_sound(learner, X)


@pytest.mark.parametrize("y", [np.zeros(20), ["a"] * 20])
def test_one_class(rng, y):
    with pytest.raises(ValueError, match=r"y has 1 class; at least 2 classes.*Constraints\.from_pairs\(similar"):
        MetricLearner().fit(rng.standard_normal((20, 2)), y)


def test_minus_one_is_unlabelled(rng):
    X, y = labelled_data(rng, n=40)
    y[::4] = -1
    learner = MetricLearner(pairs_per_class=500).fit(X, y)
    assert not np.isin(learner.constraints_.pairs.index, np.flatnonzero(y == -1)).any()
    labelled = MetricLearner(pairs_per_class=500, bounds=(1, 9)).fit(X[y >= 0], y[y >= 0]).metric_.matrix
    np.testing.assert_allclose(MetricLearner(pairs_per_class=500, bounds=(1, 9)).fit(X, y).metric_.matrix, labelled)


@pytest.mark.parametrize(("labels", "others"), [((-1, 1), 1), ((-1,), 0)])
def test_minus_one_and_plus_one_is_a_mistake_worth_a_word(rng, labels, others):
    y = np.resize(labels, 20)
    with pytest.raises(ValueError, match=rf"y has {others} class beside unlabelled rows \(−1, .*relabel"):
        MetricLearner().fit(rng.standard_normal((20, 2)), y)


def test_labels_of_any_kind_mean_the_same(rng):
    X, y = labelled_data(rng)
    W = MetricLearner().fit(X, y).metric_.matrix
    for other in (y.astype(float), y.astype(np.uint8), np.array(["ant", "bee", "cat"])[y], (y * 10 + 5).tolist()):
        np.testing.assert_array_equal(MetricLearner().fit(X, other).metric_.matrix, W)


# -- shapes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("gamma", [0.1, 100.0])
def test_more_columns_than_rows(rng, prior, gamma):
    X = rng.standard_normal((12, 60))
    learner = MetricLearner(prior=prior, gamma=gamma).fit(X, np.arange(12) % 3)
    assert learner.metric_.coordinates.rank <= 11
    assert_sound(learner, X)


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("sparse", [False, True])
def test_constant_columns(rng, prior, sparse):
    X, y = labelled_data(rng)
    D = MetricLearner(prior=prior, tol=1e-10).fit(X, y).metric_.distances(X)
    X = np.column_stack([X, np.full(len(X), 3.7), np.zeros(len(X))])
    learner = MetricLearner(prior=prior, tol=1e-10).fit(sp.csr_array(X) if sparse else X, y)
    assert_sound(learner, X)
    if prior != "covariance":  # which is shrunk where columns are constant
        np.testing.assert_allclose(learner.metric_.distances(X), D, rtol=0, atol=1e-4 * D.max())


def test_one_column_two_rows():
    X = np.array([[0.0], [2.0]])
    learner = MetricLearner(tol=1e-12).fit(X, constraints=Constraints.from_pairs([[0, 1]], upper=1.0))
    # w − ln w − 1 + h(4w): 1 − 1/w + 4 − 1/w = 0
    assert learner.metric_.matrix[0, 0] == pytest.approx(2 / 5, rel=1e-6)


def test_integers_and_lists_are_data_too(rng):
    X = np.unique(rng.integers(0, 9, (20, 3)), axis=0)
    y = np.arange(len(X)) % 2
    W = MetricLearner().fit(X.astype(float), y).metric_.matrix
    np.testing.assert_array_equal(MetricLearner().fit(X, y).metric_.matrix, W)
    np.testing.assert_array_equal(MetricLearner().fit(X.tolist(), y.tolist()).metric_.matrix, W)


def test_far_from_the_origin(rng):
    """Differences are what counts: an offset of a million costs the digits it costs in the data, no more."""
    X, y = labelled_data(rng)
    X = np.round(X * 2**20) / 2**20  # so that adding an integer is exact
    learner = MetricLearner(tol=1e-10)
    W = learner.fit(X, y).metric_.matrix
    np.testing.assert_allclose(learner.fit(X + 2.0**20, y).metric_.matrix, W, rtol=0, atol=1e-6 * np.abs(W).max())


# -- scales ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1e-120, 1e-40, 1e40, 1e120])
@pytest.mark.parametrize("prior", PRIORS)
def test_any_scale_of_the_data(rng, scale, prior):
    X, y = labelled_data(rng)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ordinary = MetricLearner(prior=prior, tol=1e-8).fit(X, y)
        learner = MetricLearner(prior=prior, tol=1e-8).fit(X * scale, y)
        assert_sound(learner, X * scale)
        D = learner.metric_.distances(X * scale)
    unit = scale if prior == "identity" else 1.0
    np.testing.assert_allclose(D / unit, ordinary.metric_.distances(X), rtol=0, atol=1e-6 * D.max() / unit)
    assert learner.certificate_.primal == pytest.approx(ordinary.certificate_.primal, rel=1e-6)


@pytest.mark.parametrize("scale", [1e-120, 1e120])
def test_any_scale_of_everything_else(rng, scale):
    X = rng.standard_normal((8, 4))
    unit = scale**2
    pairs = Constraints.from_pairs([[0, 1]], [[2, 3]], upper=0.2 * unit, lower=20 * unit)
    triplets = Constraints.from_triplets([[4, 5, 6]], margin=5 * unit)
    forms = Constraints.from_linear([np.diag([0, 0, 0, 0, 0, 0, 0, 1.0])], [0.1 * unit])
    for gamma, solver, constraints in (
        (1.0, "newton", pairs + triplets + forms),
        (np.inf, "dual", pairs + triplets + forms),
        (0.1, "bregman", pairs),
    ):
        learner = MetricLearner(gamma=gamma, solver=solver).fit(X * scale, constraints=constraints)
        assert_sound(learner, X * scale)
        assert learner.duals_.max() * unit > 1e-3


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_squares_of_float32_fit_into_float64(rng, scale, sparse):
    X, y = labelled_data(rng)
    X32 = (X * scale).astype(np.float32)
    learner = MetricLearner().fit(sp.csr_array(X32) if sparse else X32, y)
    assert learner.certificate_.primal == pytest.approx(MetricLearner().fit(X, y).certificate_.primal, rel=1e-4)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"prior": "diagonal"},
        {"prior": "covariance"},
        {"prior": "within"},
        {"basis": 3},
        {"basis": 3, "residual": 0.4, "prior": "covariance"},
        {"basis": 3, "residual": False, "prior": "covariance"},
        {"kernel": "poly", "kernel_params": {"degree": 2}},
        {"kernel": "rbf", "prior": "within"},
    ],
    ids=str,
)
def test_single_precision_far_from_the_origin(rng, options):
    """What is certified are the distances of the metric that is returned; whitened in single precision they are not."""
    X, y = labelled_data(rng, n=60, d=5)
    offset = 30.0 if options.get("kernel") == "poly" else 1e4
    X = (X + offset).astype(np.float32)
    learner = MetricLearner(pairs_per_class=50, **options).fit(X, y)
    assert learner.certificate_.converged
    i, j = learner.constraints_.pairs.index.T
    v = learner.metric_.pair_distances(X[i], X[j], squared=True)
    np.testing.assert_allclose(learner.values_, v, rtol=1e-6, atol=1e-6 * v.max())


@pytest.mark.parametrize("scale", [1e-170, 1e-300, 1e155, 1e300])
@pytest.mark.parametrize("prior", PRIORS)
def test_squares_that_float64_cannot_hold(rng, scale, prior):
    X, y = labelled_data(rng)
    with pytest.raises(ValueError, match=r"largest value in X is .*; squared distances would not fit.*Rescale X"):
        MetricLearner(prior=prior).fit(X * scale, y)


@pytest.mark.parametrize("exponent", [-100, -40, -16, 16, 40, 100])
@pytest.mark.parametrize("gamma", [1e-3, 1.0, 100.0])
def test_bounds_in_other_units_than_the_data(rng, exponent, gamma):
    """A mistake, but a convex problem all the same."""
    X, y = labelled_data(rng)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_sound(MetricLearner(bounds=(10.0**exponent, 3 * 10.0**exponent), gamma=gamma).fit(X, y), X)


def test_bounds_far_above_distances_of_many_pairs(rng):
    """As many pairs as are summed in single precision, which cannot hold such distances."""
    X = 1e-42 * rng.standard_normal((300, 60))
    index = np.column_stack([np.tile(np.arange(300), 6), (np.arange(1800) * 7 + 1) % 300])
    index = index[index[:, 0] != index[:, 1]]
    pairs = Constraints.from_pairs(index, same=np.arange(len(index)) % 2, n_rows=300)
    assert MetricLearner(bounds=(1.0, 2.0), solver="newton").fit(X, constraints=pairs).certificate_.converged


@pytest.mark.parametrize(("exponent", "relation"), [(-200, "≤"), (200, "≥")])
def test_bounds_out_of_reach(rng, exponent, relation):
    X, y = labelled_data(rng)
    with pytest.raises(ValueError, match=rf"pair .* {relation} .* is out of reach: under the prior .*units of X"):
        MetricLearner(bounds=(10.0**exponent, 10.0**exponent)).fit(X, y)


def test_columns_of_all_scales(rng):
    X, y = labelled_data(rng)
    X = X * [1e-100, 1.0, 1e3, 1e100]
    for prior in PRIORS:
        assert_sound(MetricLearner(prior=prior).fit(X, y), X)
