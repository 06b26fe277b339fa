"""river: a transformer in its pipelines, by its own checks and against the learner alone."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.utils import check_random_state

from mahalo import OnlineMetricLearner

pytest.importorskip("river")

from river import datasets, metrics, neighbors, preprocessing
from river.checks import common

from mahalo.integrations.river import MetricTransformer

ON_DATA = [
    common.check_learn_one,
    common.check_pickling,
    common.check_shuffle_features_no_impact,
    common.check_emerging_features,
    common.check_disappearing_features,
    common.check_radically_disappearing_features,
    common.check_clone_is_independent,
    common.check_no_state_aliasing_with_input,
    common.check_transform_one,
]
WITHOUT_DATA = [
    common.check_repr,
    common.check_doc,
    common.check_clone_same_class,
    common.check_clone_is_idempotent,
    common.check_init_has_default_params_for_tests,
    common.check_init_default_params_are_not_mutable,
    common.check_pickling_supports_roundtrip,
    common.check_get_params_matches_signature,
]


def stream(n: int) -> list[tuple[dict, str]]:
    """Rows of ImageSegments in another order: the classes come one after the other there."""
    rows = list(datasets.ImageSegments())
    order = check_random_state(0).permutation(len(rows))
    return [rows[k] for k in order[:n]]


@pytest.mark.parametrize("check", ON_DATA, ids=lambda check: check.__name__)
def test_checks_of_river_on_classes(check):
    """Its own data for supervised transformers are regressions, which have no classes to learn from."""
    check(MetricTransformer(n_start=20), stream(60))


@pytest.mark.parametrize("check", WITHOUT_DATA, ids=lambda check: check.__name__)
def test_checks_of_river_without_data(check):
    check(MetricTransformer(n_start=20))


@pytest.mark.parametrize("options", [{}, {"normalize": True}, {"basis": 3}, {"prior": "covariance"}], ids=str)
def test_rows_are_those_of_the_learner(options):
    rows = [(x, y) for x, y in stream(120)]
    names = sorted(rows[0][0])
    X, y = np.array([[x[name] for name in names] for x, _ in rows]), [label for _, label in rows]
    transformer = MetricTransformer(OnlineMetricLearner(random_state=0, **options), n_start=50)
    learner = OnlineMetricLearner(random_state=0, **options)
    for k, (x, label) in enumerate(rows[:100]):
        transformer.learn_one(x, label)
        if k == 49:
            learner.partial_fit(X[:50], y[:50])
        elif k > 49:
            learner.partial_fit(X[k : k + 1], y[k : k + 1])
    wanted = learner.transform(X[100:])
    found = [transformer.transform_one(x) for x, _ in rows[100:]]
    assert list(found[0]) == [f"metric{k}" for k in range(wanted.shape[1])]
    np.testing.assert_allclose([list(row.values()) for row in found], wanted, rtol=1e-9, atol=1e-12)
    assert transformer.online_learner.n_pairs_ == learner.n_pairs_


def test_rows_pass_until_learning_starts():
    transformer = MetricTransformer(n_start=3)
    for k, (x, y) in enumerate(stream(3)):
        assert transformer.transform_one(x) == x
        with pytest.raises(ValueError, match=f"{k} of 3 rows to start with have been seen"):
            _ = transformer.online_learner
        transformer.learn_one(x, y)
    assert set(transformer.transform_one(x)) == {f"metric{k}" for k in range(len(x))}


def test_a_pipeline_learns_and_classifies():
    model = preprocessing.StandardScaler() | MetricTransformer(n_start=100) | neighbors.KNNClassifier(n_neighbors=5)
    accuracy = metrics.Accuracy()
    for k, (x, y) in enumerate(stream(600)):
        if k >= 300:
            accuracy.update(y, model.predict_one(x))
        model.learn_one(x, y)
    assert accuracy.get() > 0.8  # of seven classes
    assert model["MetricTransformer"].online_learner.consolidate().converged


def test_rows_without_a_label_are_learned_around():
    transformer = MetricTransformer(n_start=20)
    for k, (x, y) in enumerate(stream(60)):
        transformer.learn_one(x, None if k % 3 == 0 else y)
    assert transformer.online_learner.n_pairs_ > 0


def test_the_learner_that_is_passed_is_not_changed():
    learner = OnlineMetricLearner(eta=0.3)
    transformer = MetricTransformer(learner, n_start=10)
    for x, y in stream(20):
        transformer.learn_one(x, y)
    assert not hasattr(learner, "n_features_in_") and transformer.online_learner.eta == 0.3


def test_a_wrong_number_of_first_rows_is_refused():
    with pytest.raises(ValueError, match="n_start"):
        MetricTransformer(n_start=0)
