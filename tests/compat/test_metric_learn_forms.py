"""metric-learn's calling forms give what `MetricLearner` gives."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from builders import labelled_data
from sklearn.datasets import load_iris
from sklearn.utils.estimator_checks import parametrize_with_checks

from mahalo import Constraints, MetricLearner
from mahalo.compat import ITML, ITML_Supervised


@pytest.fixture
def pairs():
    X, y = load_iris(return_X_y=True)
    index = np.random.default_rng(0).integers(0, 150, (80, 2))
    index = index[(X[index[:, 0]] != X[index[:, 1]]).any(axis=1)]
    return X, index, np.where(y[index[:, 0]] == y[index[:, 1]], 1, -1)


def test_tuples_are_pairs_of_rows(pairs):
    X, index, y = pairs
    itml = ITML(tol=1e-6).fit(X[index], y, bounds=(1.0, 4.0))
    constraints = Constraints.from_pairs(index, same=y == 1, upper=1.0, lower=4.0)
    learner = MetricLearner(tol=1e-6).fit(X, constraints=constraints)
    np.testing.assert_allclose(itml.get_mahalanobis_matrix(), learner.metric_.matrix, atol=1e-2)
    assert itml.learner_.certificate_.converged
    np.testing.assert_array_equal(itml.bounds_, [1.0, 4.0])


def test_a_preprocessor_turns_numbers_into_rows(pairs):
    X, index, y = pairs
    by_rows, by_number = ITML().fit(X[index], y), ITML(preprocessor=X).fit(index, y)
    by_call = ITML(preprocessor=lambda numbers: X[numbers]).fit(index, y)
    for other in (by_number, by_call):
        np.testing.assert_array_equal(by_rows.components_, other.components_)
        np.testing.assert_array_equal(by_rows.predict(X[index]), other.predict(index))


def test_a_preprocessor_is_pickled_along(pairs):
    X, index, y = pairs
    labels = load_iris(return_X_y=True)[1]
    by_pairs = ITML(preprocessor=X).fit(index, y)
    by_labels = ITML_Supervised(preprocessor=X.tolist(), random_state=0).fit(np.arange(150), labels)
    again, supervised = (pickle.loads(pickle.dumps(itml)) for itml in (by_pairs, by_labels))
    np.testing.assert_array_equal(again.predict(index), by_pairs.predict(index))
    np.testing.assert_array_equal(supervised.transform(np.arange(150)), by_labels.transform(np.arange(150)))


def test_distances_agree(pairs):
    X, index, y = pairs
    itml = ITML().fit(X[index], y)
    T, distance = itml.transform(X), itml.get_metric()
    plain = np.linalg.norm(T[index[:, 0]] - T[index[:, 1]], axis=1)
    np.testing.assert_allclose(itml.pair_distance(X[index]), plain, atol=1e-10)
    np.testing.assert_allclose(-itml.decision_function(X[index]), plain, atol=1e-10)
    assert distance(*X[index[0]]) == pytest.approx(plain[0])
    assert distance(*X[index[0]], squared=True) == pytest.approx(plain[0] ** 2)


@pytest.mark.parametrize("strategy", ["accuracy", "f_beta", "max_tpr", "max_tnr"])
def test_threshold_is_the_best_there_is(pairs, strategy):
    X, index, y = pairs
    itml = ITML().fit(X[index], y)
    options = {"min_rate": 0.8} if strategy.startswith("max") else {}
    itml.calibrate_threshold(X[index], y, strategy=strategy, **options)

    def value(threshold):
        predicted = np.where(itml.pair_distance(X[index]) <= threshold, 1, -1)
        tpr, tnr = (predicted == 1)[y == 1].mean(), (predicted == -1)[y == -1].mean()
        if strategy == "accuracy":
            return (predicted == y).mean()
        if strategy == "f_beta":
            return 2 * ((predicted == 1) & (y == 1)).sum() / ((predicted == 1).sum() + (y == 1).sum())
        best, other = (tpr, tnr) if strategy == "max_tpr" else (tnr, tpr)
        return best if other >= 0.8 else -1.0

    everywhere = [value(threshold) for threshold in (-1.0, *itml.pair_distance(X[index]))]
    assert value(itml.threshold_) == pytest.approx(max(everywhere))
    assert itml.score(X[index], y) > 0.9


@parametrize_with_checks([ITML_Supervised()])
def test_supervised_is_an_estimator_of_scikit_learn(estimator, check):
    check(estimator)


def test_bad_input_says_so(pairs):
    X, index, y = pairs
    with pytest.raises(ValueError, match=r"shape \(n, 2, n_features\)"):
        ITML().fit(index, y)
    with pytest.raises(ValueError, match="1 for similar and -1"):
        ITML().fit(X[index], y > 0)
    with pytest.raises(ValueError, match="must have the same length; got 80 and 79"):
        ITML().fit(X[index], y[1:])
    with pytest.raises(ValueError, match="min_rate"):
        ITML().fit(X[index], y, calibration_params={"strategy": "max_tpr"})
    with pytest.raises(ValueError, match="two elements"):
        ITML().fit(X[index], y, bounds=[1.0])


def test_half_precision_is_single_afterwards(rng):
    X, y = labelled_data(rng)
    half = X.astype(np.float16)
    assert ITML_Supervised().fit(half, y).transform(half).dtype == np.float32
