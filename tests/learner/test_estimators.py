"""MetricLearner and MetricLearnerCV as scikit-learn estimators."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from builders import known_check_failures, labelled_data
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import mahalo
from mahalo import Constraints, MetricLearner, MetricLearnerCV
from mahalo.coordinates import span
from mahalo.embeddings import EmbeddingAdapter
from mahalo.metric import metric as metric_module

LEARNERS = [MetricLearner(), MetricLearnerCV(gammas=[0.1, 1])]
# One estimator of each kind, with few candidates and folds: the checks fit each of them a hundred times.
FEW = {"gammas": [0.1, 1], "cv": 2}
CHECKED = [
    MetricLearner(),
    MetricLearnerCV(prior="identity", strategy="random", **FEW),
    EmbeddingAdapter(prior="within", residual=[0.2, 0.0], **FEW),
]


@pytest.mark.filterwarnings("ignore:.*dissimilar pairs? of identical points:UserWarning")
@parametrize_with_checks(CHECKED, expected_failed_checks=known_check_failures)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    "learner", [MetricLearner(), MetricLearnerCV(gammas=[0.1, 1], prior="identity")], ids=["one", "cv"]
)
def test_fit_sets_what_is_documented(rng, learner):
    X, y = labelled_data(rng)
    fitted = clone(learner).fit(X, y)
    assert isinstance(fitted.metric_, mahalo.Metric)
    assert isinstance(fitted.constraints_, Constraints)
    assert not np.isnan(fitted.constraints_.bound).any()
    assert fitted.duals_.shape == (fitted.constraints_.n_constraints,)
    assert fitted.n_iter_ >= 1 and len(fitted.history_) >= 1
    assert fitted.n_dropped_ == fitted.n_outside_ == 0
    assert fitted.n_features_in_ == 4
    assert fitted.certificate_.converged
    assert fitted.history_[-1].gamma == getattr(fitted, "gamma_", 1.0)


def test_parameters_are_left_alone(rng):
    X, y = labelled_data(rng)
    prior = np.eye(4)
    learner = MetricLearner(prior=prior, percentiles=[1, 99], gamma=2)
    before = {k: repr(v) for k, v in learner.get_params().items()}
    learner.fit(X, y)
    assert {k: repr(v) for k, v in learner.get_params().items()} == before
    assert learner.prior is prior


def test_input_is_left_alone(rng):
    X, y = labelled_data(rng)
    for data in (X.copy(), sp.csr_array(X)):
        for prior in ("identity", "diagonal", "covariance"):
            kept, labels = data.copy(), y.copy()
            learner = MetricLearner(prior=prior, n_components=2).fit(data, labels)
            learner.transform(data)
            learner.metric_.distances(data)
            assert (data != kept).sum() == 0
            np.testing.assert_array_equal(labels, y)
    X.flags.writeable = False
    MetricLearner().fit(X, y).transform(X)


@pytest.mark.parametrize("learner", LEARNERS, ids=["one", "cv"])
def test_clone_and_pickle(rng, learner):
    X, y = labelled_data(rng)
    fitted = clone(learner).fit(X, y)
    copy = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(copy.transform(X), fitted.transform(X))
    assert copy.certificate_ == fitted.certificate_
    fresh = clone(fitted)
    assert not hasattr(fresh, "metric_")
    np.testing.assert_array_equal(fresh.fit(X, y).transform(X), fitted.transform(X))


def test_refitting_forgets(rng):
    X, y = labelled_data(rng)
    learner = MetricLearner(n_components=2).fit(X, y)
    other = rng.standard_normal((30, 7))
    learner.set_params(n_components=None).fit(other, np.arange(30) % 2)
    assert learner.transform(other).shape == (30, 7)
    assert len(learner.get_feature_names_out()) == 7


def test_not_fitted(rng):
    X, y = labelled_data(rng)
    for call in (lambda: MetricLearner().transform(X), lambda: MetricLearner().score(X, y)):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            call()


def test_in_a_pipeline(rng):
    X, y = labelled_data(rng, n=90)
    pipeline = make_pipeline(StandardScaler(), MetricLearner(gamma=0.1), KNeighborsClassifier(5))
    assert pipeline.fit(X[::2], y[::2]).score(X[1::2], y[1::2]) > 0.8
    by_hand = MetricLearner(gamma=0.1).fit(StandardScaler().fit_transform(X[::2]), y[::2])
    np.testing.assert_array_equal(pipeline[1].metric_.matrix, by_hand.metric_.matrix)


def test_fit_transform(rng):
    X, y = labelled_data(rng)
    learner = MetricLearner()
    np.testing.assert_array_equal(learner.fit_transform(X, y), learner.transform(X))
    constraints = Constraints.from_labels(y)
    np.testing.assert_array_equal(
        MetricLearner().fit(X, constraints=constraints).transform(X), learner.fit(X, y).transform(X)
    )


def test_feature_names(rng):
    pd = pytest.importorskip("pandas")
    X, y = labelled_data(rng)
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"], index=np.arange(100, 160))
    learner = MetricLearner().set_output(transform="pandas").fit(frame, y)
    out = learner.transform(frame)
    assert list(out.columns) == [f"metriclearner{k}" for k in range(4)]
    assert list(out.index) == list(frame.index)
    np.testing.assert_array_equal(out.to_numpy(), MetricLearner().fit(X, y).transform(X))
    np.testing.assert_array_equal(learner.feature_names_in_, ["a", "b", "c", "d"])
    np.testing.assert_array_equal(learner.get_feature_names_out(), out.columns)
    assert list(MetricLearner(n_components=2).fit(X, y).get_feature_names_out()) == ["metriclearner0", "metriclearner1"]
    assert MetricLearnerCV(gammas=[1.0]).fit(X, y).get_feature_names_out()[0] == "metriclearnercv0"
    with pytest.raises(ValueError, match="feature names should match"):
        learner.transform(frame[["b", "a", "c", "d"]])


# -- sparse data -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_array, sp.coo_matrix, sp.csr_matrix])
@pytest.mark.parametrize("parameters", [{}, {"prior": "diagonal"}, {"prior": "covariance"}, {"strategy": "neighbors"}])
def test_sparse_is_dense(rng, form, parameters):
    X, y = labelled_data(rng)
    X[np.abs(X) < 0.7] = 0.0
    learner = MetricLearner(tol=1e-10, **parameters)
    W, T = learner.fit(X, y).metric_.matrix, learner.transform(X)
    learner.fit(form(X), y)
    np.testing.assert_allclose(learner.metric_.matrix, W, rtol=0, atol=1e-6 * np.abs(W).max())
    for data in (X, form(X)):
        np.testing.assert_allclose(learner.transform(data), T, rtol=0, atol=1e-6 * np.abs(T).max())


def test_sparse_constraints_of_every_kind(rng):
    X, _ = labelled_data(rng, n=12, d=20)
    X[np.abs(X) < 0.7] = 0.0
    constraints = Constraints.from_pairs([[0, 1], [1, 2]], [[3, 4]]) + Constraints.from_triplets([[5, 6, 7]])
    constraints = constraints + Constraints.from_linear([np.diag(np.arange(12.0))], [10.0])
    dense = MetricLearner(tol=1e-10).fit(X, constraints=constraints)
    sparse = MetricLearner(tol=1e-10).fit(sp.csr_array(X), constraints=constraints)
    np.testing.assert_allclose(sparse.metric_.matrix, dense.metric_.matrix, rtol=0, atol=1e-6)
    np.testing.assert_allclose(sparse.duals_, dense.duals_, rtol=0, atol=1e-5 * dense.duals_.max())


@pytest.fixture
def nothing_large_becomes_dense(monkeypatch):
    def guarded(toarray):
        def method(self, *args, **kwargs):
            assert np.prod(self.shape) < 1e6, f"a sparse matrix of shape {self.shape} was made dense"
            return toarray(self, *args, **kwargs)

        return method

    for kind in (sp.csr_array, sp.csc_array, sp.coo_array, sp.csr_matrix, sp.csc_matrix, sp.coo_matrix):
        monkeypatch.setattr(kind, "toarray", guarded(kind.toarray))


@pytest.mark.parametrize("prior", ["identity", "diagonal"])
def test_wide_sparse_data_never_become_dense(rng, prior, nothing_large_becomes_dense):
    """300 × 100 000 with a thousandth filled: 240 MB if it were dense, and 80 GB for a matrix W."""
    X = sp.random_array((300, 100_000), density=1e-3, random_state=rng, format="csr")
    with pytest.raises(AssertionError, match="was made dense"):
        X.todense()
    pairs = Constraints.from_labels(np.arange(300) % 2, pairs_per_class=5)
    learner = MetricLearner(prior=prior).fit(X, constraints=pairs)
    D = learner.metric_.distances(X)
    paired = learner.metric_.pair_distances(X[:50], X[50:100])
    assert learner.certificate_.converged
    assert learner.metric_.coordinates.rank <= 20
    np.testing.assert_allclose(paired, D[np.arange(50), np.arange(50, 100)], rtol=1e-6)
    # against the formula, for a few rows, in the columns they use
    rows = X[:6]
    columns = np.unique(rows.indices)
    Q, F = learner.metric_.coordinates.basis, learner.metric_.F
    root = learner.metric_.coordinates.prior.root
    Z = rows.toarray()[:, columns] * (1.0 if root is None else root[columns])
    P = Z @ Q[columns]
    K = Z @ Z.T + P @ (F - np.eye(len(F))) @ P.T
    expected = np.sqrt(np.maximum(np.diag(K)[:, None] + np.diag(K)[None, :] - 2 * K, 0))
    np.testing.assert_allclose(D[:6, :6], expected, rtol=0, atol=1e-6 * expected.max())
    with pytest.raises(ValueError, match=r"dense array with 100000 columns. Use metric\.distances"):
        learner.transform(X)


def test_components_of_wide_sparse_data(rng, nothing_large_becomes_dense):
    X = sp.random_array((200, 100_000), density=1e-3, random_state=rng, format="csr")
    y = np.arange(200) % 2
    learner = MetricLearner(pairs_per_class=5, n_components=2).fit(X, y)
    T = learner.transform(X)
    K = learner.metric_.kernel(X)
    K = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    assert T.shape == (200, 2)
    np.testing.assert_allclose(T.var(axis=0) * 200, np.linalg.eigvalsh(K)[:-3:-1], rtol=1e-6)


def test_wide_sparse_data_saved_and_loaded(rng, tmp_path):
    X = sp.random_array((40, 30_000), density=1e-3, random_state=rng, format="csr")
    learner = MetricLearner().fit(X, constraints=Constraints.from_pairs([[0, 1]], [[2, 3]]))
    learner.metric_.save(tmp_path / "metric")
    np.testing.assert_array_equal(mahalo.load(tmp_path / "metric").distances(X), learner.metric_.distances(X))


def test_too_many_dimensions_for_a_matrix(rng, monkeypatch):
    monkeypatch.setattr(span, "_LARGEST_RANK", 20)
    monkeypatch.setattr(metric_module, "_MAX_DENSE_COLUMNS", 20)
    X = sp.random_array((60, 200), density=0.1, random_state=rng, format="csr")
    with pytest.raises(ValueError, match=r"span up to \d+ of 200 dimensions.*basis=100"):
        MetricLearner().fit(X, np.arange(60) % 2)


# -- progress --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["newton", "bregman"])
def test_verbose_goes_to_standard_error_only(rng, capsys, solver):
    X, y = labelled_data(rng)
    W = MetricLearner(solver=solver, gamma=0.1).fit(X, y).metric_.matrix
    assert capsys.readouterr() == ("", "")
    loud = MetricLearner(solver=solver, gamma=0.1, verbose=2).fit(X, y)
    out, err = capsys.readouterr()
    assert out == ""
    assert "relative gap" in err and "steps" in err
    assert err.count("relative gap") == len(loud.history_)
    np.testing.assert_array_equal(loud.metric_.matrix, W)


def test_verbose_cross_validation(rng, capsys):
    X, y = labelled_data(rng)
    MetricLearnerCV(gammas=[0.1], strategy="random", verbose=1).fit(X, y)
    assert "choosing: 1 of 9, fold 1" in capsys.readouterr().err
