"""Labels none of which is one: beside constraints as good as no y, alone an error that says so."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from builders import labelled_data

from mahalo import Constraints, MetricLearner, MetricLearnerCV, OnlineMetricLearner, metric_path
from mahalo.basis import BetweenBasis

NONE = np.full(60, -1)

SPACES = [{"prior": "within"}, {"basis": 3}, {"basis": BetweenBasis()}, {"basis": 3, "kernel": "rbf"}]


@pytest.fixture
def known(rng):
    X, y = labelled_data(rng)
    return X, Constraints.from_labels(y, pairs_per_class=50, random_state=0)


@pytest.mark.parametrize("options", SPACES)
def test_beside_constraints_they_are_no_labels(known, options):
    X, constraints = known
    without = MetricLearner(**options).fit(X, constraints=constraints).metric_
    found = MetricLearner(**options).fit(X, NONE, constraints=constraints).metric_
    np.testing.assert_array_equal(found.distances(X), without.distances(X))


def test_a_choice_is_that_of_the_constraints(known):
    X, constraints = known
    options = {"gammas": [0.1], "random_state": 0}
    without = MetricLearnerCV(**options).fit(X, constraints=constraints)
    found = MetricLearnerCV(**options).fit(X, NONE, constraints=constraints)
    np.testing.assert_array_equal(found.cv_results_["scores"], without.cv_results_["scores"])


def test_on_dask_too(known):
    da = pytest.importorskip("dask.array")
    X, constraints = known
    rows = da.from_array(X, chunks=(20, -1))
    without = MetricLearner(prior="within", basis=BetweenBasis()).fit(rows, constraints=constraints).metric_
    labels = da.from_array(NONE, chunks=20)
    found = MetricLearner(prior="within", basis=BetweenBasis()).fit(rows, labels, constraints=constraints).metric_
    np.testing.assert_allclose(found.distances(X), without.distances(X), atol=1e-10)


def test_a_fold_may_have_no_label_to_learn_from(known):
    X, constraints = known
    few = np.where(np.arange(60) < 6, np.arange(60) % 3, -1)
    split = [(np.arange(6, 60), np.arange(6)), (np.arange(60), np.arange(6))]
    learner = MetricLearnerCV(basis=BetweenBasis(), gammas=[0.1], cv=split, scoring="auc")
    assert np.isfinite(learner.fit(X, few, constraints=constraints).best_score_)


@pytest.mark.parametrize("options", SPACES)
def test_alone_they_say_nothing(known, options):
    X, _ = known
    for fit in (MetricLearner(**options).fit, MetricLearnerCV(**options).fit):
        with pytest.raises(ValueError, match="y has 0 class beside unlabelled rows"):
            fit(X, NONE)
    with pytest.raises(ValueError, match="y has 0 class beside unlabelled rows"):
        metric_path(X, NONE, **options)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_a_stream_may_begin_with_them(known, form):
    X, constraints = known
    with pytest.warns(UserWarning, match="the identity takes its place"):
        learner = OnlineMetricLearner(prior="within").partial_fit(form(X), NONE)
    np.testing.assert_allclose(learner.metric_.matrix, np.eye(X.shape[1]))
    for basis in (3, BetweenBasis()):
        with pytest.raises(ValueError, match=r"Basis needs labels"):
            OnlineMetricLearner(basis=basis).partial_fit(form(X), NONE)
    both = [
        OnlineMetricLearner(prior="within", basis=BetweenBasis()).partial_fit(form(X), y, constraints=constraints)
        for y in (None, NONE)
    ]
    np.testing.assert_array_equal(both[0].metric_.matrix, both[1].metric_.matrix)
