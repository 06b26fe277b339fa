"""MetricKMeans: k-means under a learned metric."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from builders import labelled_data
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

from mahalo import Constraints, MetricLearner, MetricLearnerCV
from mahalo.cluster import MetricKMeans
from mahalo.pairs import PairSplit


@parametrize_with_checks([MetricKMeans(n_init=2)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture
def stretched(rng):
    """Two long parallel classes: k-means cuts them across, a learned metric lies along."""
    y = np.arange(80) % 2
    X = np.column_stack([20 * rng.standard_normal(80), 3.0 * y + 0.5 * rng.standard_normal(80)])
    return X, y


def some_pairs(rng, y, m=20):
    index = np.array([rng.choice(len(y), 2, replace=False) for _ in range(m)])
    same = y[index[:, 0]] == y[index[:, 1]]
    return Constraints.from_pairs(index[same], index[~same], n_rows=len(y))


def test_constraints_turn_the_clusters(rng, stretched):
    X, y = stretched
    assert adjusted_rand_score(y, KMeans(2, n_init=10, random_state=0).fit_predict(X)) < 0.1
    model = MetricKMeans(2).fit(X, constraints=some_pairs(rng, y))
    assert adjusted_rand_score(y, model.labels_) == 1.0
    assert model.n_violated_ == 0 and model.learner_.certificate_.converged


def test_without_constraints_it_is_kmeans_under_the_prior(rng):
    X, _ = labelled_data(rng, n=120)
    X[:, 0] *= 50.0
    plain = MetricKMeans(3, n_init=20).fit(X)
    assert plain.learner_ is None and plain.n_violated_ == 0
    assert plain.inertia_ == pytest.approx(KMeans(3, n_init=50, random_state=0).fit(X).inertia_, rel=1e-3)
    whitened = MetricKMeans(3, n_init=20, learner=MetricLearner(prior="diagonal")).fit(X)
    scaled = KMeans(3, n_init=50, random_state=0).fit(X / X.std(axis=0))
    assert whitened.inertia_ == pytest.approx(scaled.inertia_, rel=1e-3)
    assert adjusted_rand_score(whitened.labels_, scaled.labels_) > 0.95


def test_without_constraints_the_first_candidate_is_used(rng):
    X, _ = labelled_data(rng, n=60)
    X[:, 0] *= 50.0
    for learner, prior in (
        (MetricLearnerCV(), "identity"),
        (MetricLearnerCV(prior=["diagonal", "identity"]), "diagonal"),
    ):
        chosen = MetricKMeans(3, learner=learner).fit(X)
        plain = MetricKMeans(3, learner=MetricLearner(prior=prior)).fit(X)
        np.testing.assert_array_equal(chosen.labels_, plain.labels_)
        assert chosen.inertia_ == plain.inertia_


def test_of_equal_starts_the_one_that_fits_the_constraints_wins(rng):
    """Four corners of a square cut into halves: two cuts of equal inertia, and one pair that decides."""
    corners = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    X = np.repeat(corners, 10, axis=0) + 1e-3 * rng.standard_normal((40, 2))
    almost_prior = MetricLearner(gamma=1e-9)
    for other in (10, 20):  # row 0 with the corner above it, or with the one beside it
        constraints = Constraints.from_pairs(similar=[[0, other]], n_rows=40)
        model = MetricKMeans(2, learner=almost_prior, random_state=0).fit(X, constraints=constraints)
        assert model.n_violated_ == 0 and model.labels_[0] == model.labels_[other] != model.labels_[30]


def test_triplets_count_too():
    from mahalo.cluster import n_violated

    labels = np.array([0, 0, 1, 1])
    triplets = Constraints.from_triplets([[0, 1, 2], [0, 2, 1], [0, 2, 3]])
    pairs = Constraints.from_pairs(similar=[[0, 1], [0, 2]], dissimilar=[[0, 1], [1, 2]])
    assert n_violated(labels, triplets) == 1
    assert n_violated(labels, pairs) == 2
    assert n_violated(labels, pairs + triplets) == 3


def test_predict_and_transform_agree_with_the_metric(rng):
    X, y = labelled_data(rng)
    model = MetricKMeans(3).fit(X, constraints=some_pairs(rng, y))
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    D = model.transform(X)
    assert D.shape == (60, 3)
    np.testing.assert_array_equal(D.argmin(axis=1), model.labels_)
    assert (D.min(axis=1) ** 2).sum() == pytest.approx(model.inertia_)
    # Centres are means, so that for a linear metric the distance is that of the means of the rows themselves.
    means = np.array([X[model.labels_ == h].mean(axis=0) for h in range(3)])
    np.testing.assert_allclose(D, model.metric_.distances(X, means), rtol=1e-6, atol=1e-8)


def test_rows_of_a_part(rng, stretched):
    X, y = stretched
    constraints = some_pairs(rng, y, 40)
    part = np.sort(rng.choice(80, 60, replace=False))
    model = MetricKMeans(2).fit(X[part], constraints=constraints, rows=part)
    here, _ = constraints.on_rows(part)
    again = MetricKMeans(2).fit(X[part], constraints=here)
    np.testing.assert_array_equal(model.labels_, again.labels_)
    with pytest.raises(ValueError, match="rows"):
        MetricKMeans(2).fit(X[part], constraints=constraints)


@pytest.mark.parametrize(
    "learner",
    [MetricLearner(kernel="rbf", kernel_params={"gamma": 0.1}), MetricLearnerCV(gammas=[0.1, 1.0])],
    ids=["kernel", "cv"],
)
def test_any_learner(rng, stretched, learner):
    X, y = stretched
    model = MetricKMeans(2, learner=learner, random_state=0).fit(X, constraints=some_pairs(rng, y, 60))
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    assert not hasattr(learner, "metric_")
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.transform(X), model.transform(X))


def test_precomputed_kernel_is_the_linear_one(rng, stretched):
    X, y = stretched
    constraints = some_pairs(rng, y)
    linear = MetricKMeans(2).fit(X, constraints=constraints)
    model = MetricKMeans(2, learner=MetricLearner(kernel="precomputed")).fit(X @ X.T, constraints=constraints)
    assert adjusted_rand_score(model.labels_, linear.labels_) == 1.0
    assert model.__sklearn_tags__().input_tags.pairwise


def test_objects_with_a_callable_kernel():
    words = ["ab", "abb", "abbb", "xy", "xyy", "xyyy"]

    def shared(A, B):
        return np.array([[sum(min(a.count(c), b.count(c)) for c in "abxy") for b in B] for a in A], dtype=float)

    constraints = Constraints.from_pairs(similar=[[0, 2], [3, 5]], dissimilar=[[0, 3]])
    model = MetricKMeans(2, learner=MetricLearner(kernel=shared)).fit(words, constraints=constraints)
    assert model.labels_[0] == model.labels_[2] != model.labels_[3] == model.labels_[5]
    assert model.predict(["abbbb"])[0] == model.labels_[0]


def test_sparse_is_dense(rng):
    X, y = labelled_data(rng)
    X[np.abs(X) < 0.7] = 0.0
    constraints = some_pairs(rng, y)
    dense, sparse = (MetricKMeans(3).fit(data, constraints=constraints) for data in (X, sp.csr_array(X)))
    assert sparse.inertia_ == pytest.approx(dense.inertia_, rel=1e-6)
    np.testing.assert_array_equal(sparse.predict(X), dense.predict(sp.csr_array(X)))


def test_fits_repeat(rng):
    X, y = labelled_data(rng)
    constraints = some_pairs(rng, y)
    model = MetricKMeans(3)
    labels = model.fit(X, constraints=constraints).labels_
    np.testing.assert_array_equal(clone(model).fit(X, constraints=constraints).labels_, labels)
    np.testing.assert_array_equal(model.fit_predict(X, constraints=constraints), labels)


def test_grid_search_passes_constraints_on(rng, stretched):
    X, y = stretched
    constraints = some_pairs(rng, y, 60)

    def agreement(model, X, y):
        return adjusted_rand_score(y, model.predict(X))

    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(
            MetricKMeans(2, learner=MetricLearner()),
            {"learner__gamma": [1e-6, 1.0]},
            scoring=agreement,
            cv=PairSplit(constraints, n_splits=2, random_state=0),
        ).fit(X, y, constraints=constraints, rows=np.arange(80))
    assert search.best_params_ == {"learner__gamma": 1.0}


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (MetricKMeans(2, learner=KMeans()), "learner must be a MetricLearner.*got KMeans"),
        (MetricKMeans(2, n_init=0), "n_init must be a positive integer; got 0"),
        (
            MetricKMeans(2, learner=MetricLearner(kernel="rbf")),
            "without constraints.*got kernel='rbf'.*Pass constraints",
        ),
        (MetricKMeans(99), "n_samples=60 should be >= n_clusters=99"),
    ],
)
def test_errors(rng, model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(labelled_data(rng)[0])


def test_constraints_must_be_constraints(rng):
    with pytest.raises(ValueError, match="constraints must be a mahalo"):
        MetricKMeans(2).fit(labelled_data(rng)[0], constraints=[[0, 1]])


def test_constraints_in_the_place_of_labels_are_refused(rng):
    X, _ = labelled_data(rng)
    with pytest.raises(ValueError, match=r"got a mahalo.Constraints. Pass it by name, as constraints="):
        MetricKMeans(3).fit(X, Constraints.from_pairs([[0, 5]], [[0, 1]]))


def test_half_precision_is_single_afterwards(rng):
    X, _ = labelled_data(rng)
    half = X.astype(np.float16)
    assert MetricKMeans(2).fit(half).transform(half).dtype == np.float32


def test_components_count_without_constraints_too(rng):
    X, y = labelled_data(rng)
    clusters = MetricKMeans(3, learner=MetricLearner(n_components=2))
    assert clusters.fit(X).cluster_centers_.shape == (3, 2)
    assert clusters.fit(X, constraints=Constraints.from_labels(y)).cluster_centers_.shape == (3, 2)
