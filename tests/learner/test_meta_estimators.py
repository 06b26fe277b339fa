"""Learners inside scikit-learn's meta-estimators, their diagram, and the names of what they return."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import sklearn
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import HalvingGridSearchCV, KFold, TunedThresholdClassifierCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mahalo import Constraints, MetricLearner, MetricLearnerCV, OnlineMetricLearner
from mahalo.basis import Landmarks
from mahalo.cluster import MetricKMeans
from mahalo.compat import ITML, ITML_Supervised
from mahalo.embeddings import EmbeddingAdapter
from mahalo.explain.diagram import certificate_table
from mahalo.feedback import QueryAdapter


@pytest.fixture(scope="module")
def cells():
    X, y = load_breast_cancer(return_X_y=True)
    return X[:300], y[:300]


def pipeline(**options):
    return make_pipeline(StandardScaler(), MetricLearner(random_state=0, **options), KNeighborsClassifier(11))


def test_thresholds_are_tuned_over_a_learned_distance(cells):
    X, y = cells
    tuned = TunedThresholdClassifierCV(pipeline(), scoring="balanced_accuracy", cv=3).fit(X, y)
    plain = pipeline().fit(X, y)
    wanted = (plain.predict_proba(X)[:, 1] >= tuned.best_threshold_).astype(int)
    np.testing.assert_array_equal(tuned.predict(X), tuned.classes_[wanted])


def test_probabilities_are_calibrated_over_a_learned_distance(cells):
    X, y = cells
    calibrated = CalibratedClassifierCV(pipeline(), cv=3).fit(X[::2], y[::2])
    probability = calibrated.predict_proba(X[1::2])
    np.testing.assert_allclose(probability.sum(axis=1), 1.0)
    assert calibrated.score(X[1::2], y[1::2]) > 0.9
    assert len({id(fold.estimator["metriclearner"].metric_) for fold in calibrated.calibrated_classifiers_}) == 3


def test_halving_searches_gamma(cells):
    X, y = cells
    grid = {"metriclearner__gamma": [0.01, 1.0, 100.0]}
    search = HalvingGridSearchCV(pipeline(), grid, factor=2, min_resources=60, cv=3, random_state=0).fit(X, y)
    wanted = pipeline(gamma=search.best_params_["metriclearner__gamma"]).fit(X, y)
    np.testing.assert_array_equal(search.predict(X), wanted.predict(X))
    assert search.n_iterations_ >= 2


def test_halving_follows_constraints_through_its_samples_of_rows():
    """Rows are resampled at every stage; `rows` tell which of the constraints' rows they are."""
    X, y = load_wine(return_X_y=True)
    c = Constraints.from_labels(y, pairs_per_class=200, random_state=0)
    with sklearn.config_context(enable_metadata_routing=True):
        learner, folds = MetricLearner(prior="diagonal", random_state=0), KFold(2, shuffle=True, random_state=0)
        options = {"factor": 2, "min_resources": 80, "random_state": 0, "error_score": "raise"}
        search = HalvingGridSearchCV(learner, {"gamma": [0.1, 10.0]}, cv=folds, **options)
        search.fit(X, y, constraints=c, rows=np.arange(len(y)))
    assert search.best_score_ > 0.85
    assert search.best_estimator_.constraints_.n_constraints == c.n_constraints - search.best_estimator_.n_dropped_


# -- names of outputs ----------------------------------------------------------------------------------------


def fitted_estimators():
    X, y = load_wine(return_X_y=True)
    pairs = np.array([[X[0], X[1]], [X[0], X[60]], [X[2], X[3]], [X[5], X[100]]])
    yield MetricLearner(prior="diagonal", n_components=3).fit(X, y), 3
    yield MetricLearnerCV(kernel="linear", features=None, gammas=[1.0], cv=2, prior="diagonal").fit(X, y), 13
    yield EmbeddingAdapter(gammas=[1.0], cv=2, residual=[0.5]).fit(X, y), 13
    yield OnlineMetricLearner(prior="diagonal").fit(X, y), 13
    yield MetricKMeans(3, random_state=0).fit(X, constraints=Constraints.from_labels(y, random_state=0)), 3
    yield ITML_Supervised(random_state=0).fit(X / X.std(axis=0), y), 13
    yield ITML(random_state=0).fit(pairs / X.std(axis=0), [1, -1, 1, -1]), 13
    yield QueryAdapter(lam=0.1).fit(X[:5] / 1e3, X[5:20] / 1e3, [(k, k) for k in range(5)]), 13


@pytest.mark.filterwarnings("ignore")
def test_every_transformer_names_its_outputs():
    for estimator, n_outputs in fitted_estimators():
        prefix = type(estimator).__name__.lower()
        assert estimator.get_feature_names_out().tolist() == [f"{prefix}{k}" for k in range(n_outputs)]


# -- the diagram ---------------------------------------------------------------------------------------------


def test_the_diagram_shows_the_certificate():
    X, y = load_wine(return_X_y=True)
    learner = MetricLearner(prior="diagonal")
    before = learner._repr_mimebundle_()["text/html"]
    assert "Certificate" not in before and "MetricLearner" in before
    learner.fit(X, y)
    bundle = learner._repr_mimebundle_()
    for html in (bundle["text/html"], learner._repr_html_()):
        assert html.count("Certificate: converged") == 1
        assert f"{learner.certificate_.dual:.6g}" in html and f"{learner.certificate_.relative_gap:.1e}" in html
        assert f"of {len(learner.duals_)}" in html
    assert bundle["text/plain"] == repr(learner)
    with sklearn.config_context(display="text"):
        assert set(learner._repr_mimebundle_()) == {"text/plain"} and not hasattr(learner, "_repr_html_")


def test_the_diagram_says_over_which_basis_the_bound_holds():
    X, y = load_wine(return_X_y=True)
    learner = MetricLearner(prior="diagonal").fit(X, y)
    assert learner.certified_over_ == "" and "lower bound on that of any metric<" in learner._repr_html_()
    learner = MetricLearner(prior="diagonal", basis=1, n_components=1).fit(X, y)
    assert learner.certified_over_ == "1 direction"
    over = {"kernel": "rbf", "kernel_params": {"width": 1.0}, "basis": Landmarks(12)}
    learner = MetricLearner(**over, n_components=3).fit(X, y)
    assert learner.rank_ == 12 and "lower bound on that of any metric over 12 landmarks<" in learner._repr_html_()


def test_the_diagram_says_when_a_fit_stopped_early():
    X, y = load_wine(return_X_y=True)
    with pytest.warns(sklearn.exceptions.ConvergenceWarning):
        learner = MetricLearner(prior="diagonal", max_iter=1, tol=1e-12).fit(X, y)
    assert "Certificate: not converged" in learner._repr_html_()


class Named(str):
    """Parameter whose text would be markup."""

    def __repr__(self) -> str:
        return "<script>alert(1)</script>"


@pytest.mark.filterwarnings("ignore")
def test_the_diagram_of_every_certified_estimator_has_its_certificate_and_is_escaped():
    for estimator, _ in fitted_estimators():
        if isinstance(estimator, OnlineMetricLearner):
            assert "Certificate" not in estimator._repr_html_()
            estimator.consolidate()
        html = estimator.set_params(random_state=Named("x"))._repr_html_()
        assert html.count("Certificate: converged") == hasattr(estimator, "certificate_"), type(estimator)
        assert "<script>alert" not in html
        if isinstance(estimator, QueryAdapter):
            assert f"<td>{estimator.certificate_.bound:.1e}</td>" in html


def test_rows_of_the_certificate_are_escaped():
    found = certificate_table(SimpleNamespace(converged=False), {"<b>": "a & b"})
    assert "&lt;b&gt;" in found and "a &amp; b" in found and "<b>" not in found


# -- pandas --------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
def test_pipelines_return_data_frames_with_names():
    pytest.importorskip("pandas")
    for estimator, n_outputs in fitted_estimators():
        if isinstance(estimator, (QueryAdapter, ITML)):
            continue  # they are fitted to two tables, or to pairs
        data, options = load_wine(as_frame=True), {}
        if isinstance(estimator, MetricKMeans):
            options = {"metrickmeans__constraints": Constraints.from_labels(data.target, random_state=0)}
        model = make_pipeline(StandardScaler(), sklearn.clone(estimator)).set_output(transform="pandas")
        frame = model.fit(data.data, data.target, **options).transform(data.data[3:9])
        assert frame.columns.tolist() == model.get_feature_names_out().tolist()
        assert frame.shape == (6, n_outputs) and frame.index.tolist() == list(range(3, 9))
