"""What classes are called has no say in what is drawn, chosen or learned."""

from functools import cache

import dask.array as da
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone

from mahalo import MetricLearner, MetricLearnerCV, OnlineMetricLearner
from mahalo.basis import ClassBasis
from mahalo.embeddings import EmbeddingAdapter
from mahalo.pairs import PairClassifier

NAMINGS = {
    "reversed": np.array([3, 2, 1, 0]),
    "with gaps": np.array([40, 7, 90, 11]),
    "strings": np.array(["pear", "apple", "quince", "fig"]),
    "objects": np.array(["pear", "apple", "quince", "fig"], dtype=object),
}
LEARNERS = {
    "random": MetricLearner(pairs_per_class=20, random_state=1),
    "neighbours": MetricLearner(strategy="neighbors", pairs_per_class=20),
    "triplets": MetricLearner(strategy="triplets", pairs_per_class=20),
    "kernel": MetricLearner(kernel="rbf", basis=ClassBasis(6), pairs_per_class=20),
    "basis": MetricLearner(basis=ClassBasis(6), prior="within", pairs_per_class=20),
    "cv": MetricLearnerCV(gammas=[0.1, 1.0], pairs_per_class=20),
    "cv by classes": MetricLearnerCV(gammas=[0.1, 1.0], holdout="classes", scoring="map"),
    "adapter": EmbeddingAdapter(gammas=[0.1, 1.0]),
    "online": OnlineMetricLearner(basis=ClassBasis(6)),
}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 240)
    return rng.standard_normal((240, 8)) + 1.5 * np.eye(8)[y], y


@pytest.fixture(scope="module")
def fitted_to_numbers(rows):
    return cache(lambda learner: clone(LEARNERS[learner]).fit(*rows))


@pytest.mark.parametrize("naming", NAMINGS)
@pytest.mark.parametrize("learner", LEARNERS)
def test_learners_are_blind_to_names(learner, naming, rows, fitted_to_numbers):
    X, y = rows
    before, after = fitted_to_numbers(learner), clone(LEARNERS[learner]).fit(X, NAMINGS[naming][y])
    assert_array_equal(before.transform(X), after.transform(X))
    assert before.score(X, y) == after.score(X, NAMINGS[naming][y])


def test_unlabelled_rows_among_renamed_ones(rows):
    X, y = rows
    some = np.arange(len(y)) % 3 > 0
    numbers, words = np.where(some, y, -1), NAMINGS["objects"][y]
    words[~some] = None
    before, after = (MetricLearner(pairs_per_class=20).fit(X, labels) for labels in (numbers, words))
    assert_array_equal(before.transform(X), after.transform(X))


@pytest.mark.parametrize("basis", [None, ClassBasis(6)])
def test_rows_on_dask(basis, rows):
    X, y = rows
    fits = [
        MetricLearner(basis=basis, prior="within", pairs_per_class=20).fit(
            da.from_array(X, chunks=(50, -1)), da.from_array(labels, chunks=50)
        )
        for labels in (y, NAMINGS["strings"][y])
    ]
    assert_array_equal(fits[0].metric_.matrix, fits[1].metric_.matrix)


def test_same_or_not(rows):
    X, y = rows
    pairs = np.random.default_rng(1).integers(0, len(X), (50, 2))
    fits = [PairClassifier(MetricLearner(pairs_per_class=20)).fit(X, labels) for labels in (y, NAMINGS["reversed"][y])]
    assert_array_equal(*(fit.predict_proba(X, pairs) for fit in fits))


def test_doubtful_labels(rows):
    X, y = rows
    names = NAMINGS["strings"]
    learner = MetricLearner(basis=ClassBasis(6), pairs_per_class=20).fit(X, y)
    before, after = learner.suspects(X, y), learner.suspects(X, names[y])
    assert_array_equal(before.index, after.index)
    assert_array_equal(before["score"], after["score"])
    assert_array_equal(names[before["suggested"]], after["suggested"])
