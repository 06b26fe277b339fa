"""A metric learned in a kernel's feature space, in use: new objects, blocks of precomputed kernels, files, other
estimators, and the choice of γ."""

from __future__ import annotations

import copy
import itertools
import json
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from builders import known_check_failures, labelled_data, random_pair_constraints
from safetensors.numpy import load_file, save_file
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.cluster import SpectralClustering
from sklearn.decomposition import KernelPCA
from sklearn.metrics import roc_auc_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import mahalo
from mahalo import Constraints, MetricLearner, MetricLearnerCV, metric_path, persistence
from mahalo.basis import ClassBasis, KernelKMeans, RandomSubset

# -- objects that are not vectors ------------------------------------------------------------------------------------

ALPHABET = "abcd"


def shared_pairs(A, B):
    """The two-letter spectrum kernel: how many pairs of neighbouring letters two words share, with multiplicity."""

    def counts(words):
        pairs = ["".join(p) for p in itertools.product(ALPHABET, repeat=2)]
        return np.array([[sum(w[i : i + 2] == p for i in range(len(w) - 1)) for p in pairs] for w in words], float)

    return counts(A) @ counts(B).T


def random_words(rng, n, likely):
    return ["".join(rng.choice(list(ALPHABET), rng.integers(5, 12), p=likely)) for _ in range(n)]


@pytest.fixture
def words(rng):
    one, two = random_words(rng, 15, [0.6, 0.3, 0.05, 0.05]), random_words(rng, 15, [0.3, 0.1, 0.3, 0.3])
    return one + two, np.repeat([0, 1], 15)


@pytest.mark.parametrize("form", [list, tuple, lambda w: np.array(w), lambda w: np.array(w, dtype=object)])
def test_strings(rng, words, form):
    """As good as the explicit features of the kernel, on words never seen."""
    training, y = words
    new = random_words(rng, 7, [0.25] * 4)
    learner = MetricLearner(kernel=shared_pairs, gamma=2.0, tol=1e-10).fit(form(training), y)
    pairs = ["".join(p) for p in itertools.product(ALPHABET, repeat=2)]

    def features(words):
        return np.array([[sum(w[i : i + 2] == p for i in range(len(w) - 1)) for p in pairs] for w in words], float)

    explicit = MetricLearner(gamma=2.0, tol=1e-10).fit(features(training), y)
    metric = learner.metric_
    D = explicit.metric_.distances(features(new), features(training))
    np.testing.assert_allclose(metric.distances(form(new), form(training)), D, atol=1e-4 * D.max())
    np.testing.assert_allclose(metric.pair_distances(form(new), form(training[:7])), np.diag(D), atol=1e-4 * D.max())
    K = explicit.metric_.kernel(features(new))
    np.testing.assert_allclose(metric.kernel(form(new)), K, atol=1e-4 * K.max())
    assert learner.transform(form(new)).shape == (7, metric.coordinates.rank)
    assert learner.score(form(training), y) > 0.8
    assert metric.n_features is None


def test_strings_in_a_file(rng, words, tmp_path):
    training, y = words
    new = random_words(rng, 7, [0.25] * 4)
    metric = MetricLearner(kernel=shared_pairs).fit(training, y).metric_
    path = tmp_path / "words.safetensors"
    metric.save(path)
    with pytest.raises(ValueError, match=r"learned with a callable kernel, which files do not hold; pass it again"):
        mahalo.load(path)
    with pytest.raises(ValueError, match=r"support points .* are not vectors and not in the file; pass them again"):
        mahalo.load(path, kernel=shared_pairs)
    points = list(metric.coordinates.support)
    with pytest.raises(ValueError, match=rf"this metric has {len(points)} support points; got {len(points) - 1}"):
        mahalo.load(path, kernel=shared_pairs, points=points[1:])
    loaded = mahalo.load(path, kernel=shared_pairs, points=points)
    np.testing.assert_allclose(loaded.distances(new, training), metric.distances(new, training), atol=1e-12)
    stored = path.read_bytes()
    assert all(word.encode() not in stored for word in points if len(word) > 3) and b"shared_pairs.py" not in stored


def test_sets_and_other_objects(rng):
    """Whatever the kernel takes; here the intersection of sets of different sizes."""
    X = [frozenset(rng.choice(12, rng.integers(2, 8), replace=False).tolist()) for _ in range(20)]
    y = np.array([int(3 in x) for x in X])

    def shared(A, B):
        return np.array([[len(a & b) for b in B] for a in A])  # integers will do

    for basis, strategy in itertools.product((None, 3, KernelKMeans(2), RandomSubset(4)), ("random", "neighbors")):
        learner = MetricLearner(kernel=shared, basis=basis, gamma=10.0, strategy=strategy).fit(X, y)
        D = learner.metric_.distances(X)
        assert D.shape == (20, 20) and np.isfinite(D).all()
        near = [D[i, (y == y[i]) & (np.arange(20) != i)].mean() < D[i, y != y[i]].mean() for i in range(20)]
        assert np.mean(near) > 0.7


def test_objects_and_labels_must_be_as_many(words):
    training, y = words
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        MetricLearner(kernel=shared_pairs).fit(training[:-1], y)
    with pytest.raises(ValueError, match="at least 2 objects are needed to learn a distance; got 1"):
        MetricLearner(kernel=shared_pairs).fit(training[:1], y[:1])
    with pytest.raises(ValueError, match="needs as many of each; got 3 and 2 rows"):
        MetricLearner(kernel=shared_pairs).fit(training, y).metric_.pair_distances(training[:3], training[:2])


def test_vectors_as_lists_where_the_kernel_took_vectors(rng):
    """Fitted on an array, asked with a list: the rows are vectors still."""
    X, y = labelled_data(rng, n=20)
    learner = MetricLearner(kernel=rbf_kernel).fit(X, y)
    np.testing.assert_array_equal(learner.transform(X[:3].tolist()), learner.transform(X[:3]))
    np.testing.assert_array_equal(learner.metric_.distances(X[:3].tolist()), learner.metric_.distances(X[:3]))
    assert learner.score(X.tolist(), y) == learner.score(X, y)


# -- precomputed kernels -----------------------------------------------------------------------------------------------


SQUARES = {"degree": 2, "gamma": 0.5, "coef0": 1.0}
QUARTER = {"gamma": 1 / 4}  # rbf_kernel's of four columns


def kappa(X, Y):
    """A kernel whose diagonal is not constant, so that it matters."""
    return (0.5 * X @ Y.T + 1.0) ** 2


@pytest.fixture
def blocks(rng):
    """A metric by name and by blocks, on the same data, and rows that neither has seen."""
    X, y = labelled_data(rng, n=24)
    new, other = rng.standard_normal((6, 4)), rng.standard_normal((5, 4))
    named = MetricLearner(kernel="poly", kernel_params=SQUARES, tol=1e-9).fit(X, y).metric_
    given = MetricLearner(kernel="precomputed", tol=1e-9).fit(kappa(X, X), y).metric_
    return named, given, X, new, other


def test_blocks_give_what_the_kernel_gives(blocks):
    named, given, X, new, other = blocks
    KX, KY, cross = kappa(new, X), kappa(other, X), kappa(new, other)
    own_x, own_y = np.diag(kappa(new, new)), np.diag(kappa(other, other))
    close = {"rtol": 0, "atol": 1e-5 * named.kernel(new).max()}
    np.testing.assert_allclose(given.kernel(KX, KY, cross=cross), named.kernel(new, other), **close)
    np.testing.assert_allclose(given.kernel(KX, cross=kappa(new, new)), named.kernel(new), **close)
    D = named.distances(new, other)
    np.testing.assert_allclose(given.distances(KX, KY, cross=cross, diag_x=own_x, diag_y=own_y), D, **close)
    np.testing.assert_allclose(given.distances(KX, cross=kappa(new, new)), named.distances(new), **close)
    np.testing.assert_allclose(given.distances(KX, cross=kappa(new, new), diag_x=own_x), named.distances(new), **close)
    np.testing.assert_allclose(
        given.pair_distances(KX[:5], KY, cross=np.diagonal(cross), diag_x=own_x[:5], diag_y=own_y), np.diag(D), **close
    )
    lists = given.distances(
        KX.tolist(), KY.tolist(), cross=cross.tolist(), diag_x=own_x.tolist(), diag_y=own_y.tolist(), squared=True
    )
    np.testing.assert_allclose(lists, D**2, rtol=1e-5)
    T = given.transform(KX)
    np.testing.assert_allclose(cdist(T, T), cdist(named.transform(new), named.transform(new)), **close)


def test_blocks_that_are_missing(blocks):
    _, given, X, new, other = blocks
    KX, KY, cross, own = kappa(new, X), kappa(other, X), kappa(new, other), np.ones(5)
    for ask in (
        lambda: given.kernel(KX),
        lambda: given.kernel(KX, KY),
        lambda: given.distances(KX),
        lambda: given.distances(KX, KY, diag_x=np.ones(6), diag_y=own),
        lambda: given.pair_distances(KX[:5], KY, diag_x=own, diag_y=own),
    ):
        with pytest.raises(ValueError, match=r"with a precomputed kernel, similarities .* pass cross="):
            ask()
    for ask in (
        lambda: given.distances(KX, KY, cross=cross),
        lambda: given.distances(KX, KY, cross=cross, diag_x=np.ones(6)),
        lambda: given.pair_distances(KX[:5], KY, cross=np.diagonal(cross), diag_y=own),
    ):
        with pytest.raises(ValueError, match="with a precomputed kernel pass diag_x= and diag_y="):
            ask()


def test_blocks_of_the_wrong_shape(blocks):
    _, given, X, new, other = blocks
    KX, KY, cross, own = kappa(new, X), kappa(other, X), kappa(new, other), np.ones(5)
    with pytest.raises(ValueError, match=r"similarities to the 24 training rows, one column each; it has 4 columns"):
        given.kernel(new, cross=np.ones((6, 6)))
    with pytest.raises(ValueError, match=r"similarities to the 24 training rows, one column each; it has 6 columns"):
        given.distances(KX, KX.T[:6, :6], cross=cross)
    for bad in (cross.T, cross[:, :4], cross[0], 1.0):
        with pytest.raises(ValueError, match=r"cross must be κ0 of the rows of X and Y, of shape \(6, 5\); got"):
            given.kernel(KX, KY, cross=bad)
        with pytest.raises(ValueError, match=r"cross must be κ0 of the rows of X and Y, of shape \(6, 5\); got"):
            given.distances(KX, KY, cross=bad, diag_x=np.ones(6), diag_y=own)
    for bad in (own, 1.0, np.ones((6, 1)), np.ones(7)):
        with pytest.raises(ValueError, match=r"diag_x must be κ0 of each row with itself, of shape \(6,\); got"):
            given.distances(KX, KY, cross=cross, diag_x=bad, diag_y=own)
    for bad in (np.ones(6), 1.0, np.ones((5, 1))):
        with pytest.raises(ValueError, match=r"diag_y must be κ0 of each row with itself, of shape \(5,\); got"):
            given.distances(KX, KY, cross=cross, diag_x=np.ones(6), diag_y=bad)
        with pytest.raises(ValueError, match=r"diag_y must be κ0 of each row with itself, of shape \(5,\); got"):
            given.pair_distances(KX[:5], KY, cross=np.diagonal(cross), diag_x=own, diag_y=bad)
        with pytest.raises(ValueError, match=r"cross must be κ0 of the rows .*, of shape \(5,\); got"):
            given.pair_distances(KX[:5], KY, cross=bad, diag_x=own, diag_y=own)
    with pytest.raises(ValueError, match=r"cross .*NaN"):
        given.kernel(KX, KY, cross=np.full((6, 5), np.nan))


def test_blocks_where_the_kernel_is_known_are_used_too(blocks):
    """κ0 between the rows compared may be at hand already; what is not passed is worked out."""
    named, _, _, new, other = blocks
    cross = kappa(new, other)
    np.testing.assert_allclose(named.distances(new, other, cross=cross), named.distances(new, other))
    np.testing.assert_allclose(
        named.pair_distances(new[:5], other, cross=np.diagonal(cross)), named.pair_distances(new[:5], other)
    )
    np.testing.assert_allclose(named.kernel(new, other, cross=cross), named.kernel(new, other))


def test_precomputed_without_the_residual_needs_no_blocks(rng):
    X, y = labelled_data(rng, n=24)
    new = rng.standard_normal((6, 4))
    options = {"basis": 3, "residual": False, "tol": 1e-9}
    named = MetricLearner(kernel="rbf", kernel_params=QUARTER, **options).fit(X, y).metric_
    given = MetricLearner(kernel="precomputed", **options).fit(rbf_kernel(X), y).metric_
    K = rbf_kernel(new, X)
    np.testing.assert_allclose(given.distances(K), named.distances(new), atol=1e-5)
    np.testing.assert_allclose(given.kernel(K, K[:3]), named.kernel(new, new[:3]), atol=1e-5)
    np.testing.assert_allclose(given.pair_distances(K[:3], K[3:]), named.pair_distances(new[:3], new[3:]), atol=1e-5)


def test_pairwise_tag_and_cross_validation(rng):
    """scikit-learn slices both sides of a precomputed matrix."""
    X, y = labelled_data(rng, n=45)
    learner = MetricLearner(kernel="precomputed", pairs_per_class=15)
    assert learner.__sklearn_tags__().input_tags.pairwise
    assert not MetricLearner(kernel="rbf").__sklearn_tags__().input_tags.pairwise
    by_blocks = cross_val_score(make_pipeline(learner, KNeighborsClassifier(3)), rbf_kernel(X), y, cv=3)
    named = clone(learner).set_params(kernel="rbf", kernel_params=QUARTER)
    by_name = cross_val_score(make_pipeline(named, KNeighborsClassifier(3)), X, y, cv=3)
    np.testing.assert_allclose(by_blocks, by_name)
    search = GridSearchCV(learner, {"gamma": [0.1, 1.0]}, cv=3).fit(rbf_kernel(X), y)
    assert 0.5 < search.best_score_ <= 1.0


# -- with other estimators ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{"kernel": "rbf"}, {"kernel": "rbf", "basis": 3}, {"basis": 2}], ids=str)
def test_other_estimators_take_the_learned_kernel(rng, options):
    X, y = labelled_data(rng, n=60)
    train, test = np.arange(40), np.arange(40, 60)
    metric = MetricLearner(**options).fit(X[train], y[train]).metric_
    machine = SVC(kernel=metric.kernel).fit(X[train], y[train])
    K = metric.kernel(X[test], X[train])
    blocks = SVC(kernel="precomputed").fit(metric.kernel(X[train]), y[train])
    np.testing.assert_array_equal(machine.predict(X[test]), blocks.predict(K))
    assert clone(machine).fit(X[train], y[train]).score(X[test], y[test]) == machine.score(X[test], y[test]) > 0.5
    components = KernelPCA(2, kernel="precomputed").fit(metric.kernel(X[train]))
    T = components.transform(K)
    assert T.shape == (20, 2) and np.isfinite(T).all()
    everything = KernelPCA(kernel="precomputed", remove_zero_eig=True).fit_transform(metric.kernel(X[train]))
    np.testing.assert_allclose(cdist(everything, everything), metric.distances(X[train]), atol=1e-5)


def test_spectral_clustering_of_the_learned_kernel(rng):
    """Learned from half the labels, the clusters of all rows are closer to the classes than under the base kernel."""
    X, y = labelled_data(rng, n=60, n_classes=2)
    X = X * [1, 1, 1, 0] + rng.standard_normal((60, 4)) * [0, 0, 0, 4]  # one direction of noise
    params = {"gamma": 0.05}
    half = np.where(np.arange(60) < 30, y, -1)
    metric = MetricLearner(kernel="rbf", kernel_params=params, gamma=10.0).fit(X, half).metric_

    def agreement(K):
        label = SpectralClustering(2, affinity="precomputed", random_state=0).fit_predict(np.maximum(K, 0))
        return max((label == y).mean(), (label != y).mean())

    assert agreement(metric.kernel(X)) > max(0.9, agreement(rbf_kernel(X, **params)))


def test_nearest_neighbours_of_sparse_rows(rng):
    X = sp.random_array((60, 40), density=0.1, random_state=rng, format="csr")
    y = np.arange(60) % 3
    metric = MetricLearner(kernel="cosine", basis=3).fit(X, y).metric_
    D = metric.distances(X[:20], X[20:])
    search = KNeighborsClassifier(3, metric="precomputed").fit(metric.distances(X[20:]), y[20:])
    np.testing.assert_array_equal(search.kneighbors(D, return_distance=False), np.argsort(D, axis=1)[:, :3])


@pytest.mark.parametrize("options", [{"kernel": "rbf"}, {"kernel": rbf_kernel, "basis": 3}], ids=["named", "callable"])
def test_pickle_copy_and_repr(rng, options):
    X, y = labelled_data(rng, n=20)
    learner = MetricLearner(**options).fit(X, y)
    for twin in (pickle.loads(pickle.dumps(learner)), copy.deepcopy(learner)):
        np.testing.assert_array_equal(twin.metric_.distances(X), learner.metric_.distances(X))
    assert repr(learner.metric_).startswith("Metric(n_features=4, kernel=")
    with pytest.raises(ValueError, match=r"space of a kernel.* has no d × d matrix; use transform, distances"):
        _ = learner.metric_.matrix


def test_many_rows_at_once_and_one_by_one(rng):
    X, y = labelled_data(rng, n=30)
    new = rng.standard_normal((40, 4))
    for options in (
        {"kernel": "rbf"},
        {"kernel": "poly", "basis": 4},
        {"kernel": "laplacian", "basis": RandomSubset(5)},
    ):
        metric = MetricLearner(**options).fit(X, y).metric_
        D = metric.distances(new, X)
        rows = np.vstack([metric.distances(new[k : k + 1], X) for k in range(40)])
        np.testing.assert_allclose(rows, D, rtol=0, atol=1e-6 * D.max())
        i, j = np.divmod(np.arange(1200), 30)
        np.testing.assert_allclose(metric.pair_distances(new[i], X[j]), D.ravel(), rtol=0, atol=1e-6 * D.max())
        np.testing.assert_allclose(np.sqrt(sq_from_kernel(metric, new, X)), D, rtol=0, atol=1e-6 * D.max())
        assert (np.diag(metric.distances(X)) == 0).all()


def sq_from_kernel(metric, X, Y):
    K, KX, KY = metric.kernel(X, Y), metric.kernel(X), metric.kernel(Y)
    return np.maximum(np.diag(KX)[:, None] + np.diag(KY) - 2 * K, 0.0)


# -- all γ at once -----------------------------------------------------------------------------------------------------


def spaces(rng):
    X, y = labelled_data(rng, n=30)
    named = [tuple(np.round(row, 6)) for row in X]

    def kernel(A, B):
        return rbf_kernel(np.array([*A]), np.array([*B]))

    rbf = {"kernel": "rbf", "kernel_params": QUARTER}
    return {
        "rbf": (X, y, rbf),
        "width": (X, y, {"kernel": "rbf", "kernel_params": {"width": 1}}),
        "precomputed": (kappa(X, X), y, {"kernel": "precomputed"}),
        "objects": (named, y, {"kernel": kernel}),
        "basis": (X, y, {"basis": 3}),
        "kernel basis": (X, y, rbf | {"basis": ClassBasis(5)}),
        "low rank": (X, y, rbf | {"basis": 4, "residual": False}),
        "sparse": (sp.csr_array(X * (rng.random(X.shape) < 0.7)), y, rbf | {"basis": 3}),
        "own J": (X, y, rbf | {"basis": rng.standard_normal((30, 4))}),
    }


every_space = pytest.mark.parametrize("space", spaces(np.random.default_rng(0)))


@every_space
def test_path_is_one_fit_for_each_gamma(rng, space):
    X, y, options = spaces(rng)[space]
    gammas = [1.0, 0.05, 20.0]
    path = metric_path(X, y, gammas=gammas, tol=1e-9, pairs_per_class=15, **options)
    for gamma, metric, certificate, duals in zip(gammas, path.metrics, path.certificates, path.duals, strict=True):
        learner = MetricLearner(gamma=gamma, tol=1e-9, pairs_per_class=15, **options).fit(X, y)
        assert certificate.converged
        assert certificate.primal == pytest.approx(learner.certificate_.primal, rel=1e-7)
        np.testing.assert_allclose(metric.F, learner.metric_.F, rtol=0, atol=1e-3 * np.abs(metric.F).max())
        np.testing.assert_allclose(duals, learner.duals_, rtol=0, atol=1e-3 * duals.max())
        assert metric.coordinates is path.metrics[0].coordinates


@every_space
@pytest.mark.parametrize("scoring", ["accuracy", "auc"])
def test_gamma_is_chosen_as_by_hand(rng, exact_folds, space, scoring):
    """Each fold by hand: learn from its training rows, judge the held-out ones by the metric's own distances."""
    X, y, options = spaces(rng)[space]
    gammas = np.array([0.01, 1.0, 30.0])
    cv = MetricLearnerCV(
        gammas=gammas, cv=3, strategy="random", pairs_per_class=15, scoring=scoring, tol=1e-8, **options
    )
    cv.set_params(prior=options.get("prior", "identity")).fit(X, y)
    gammas = np.array([1e-8, *gammas])  # the first is the prior itself
    assert cv.cv_results_["scores"].shape == (4, 3)
    assert cv.gamma_ in gammas and cv.best_score_ >= cv.cv_results_["mean_score"].max() - 1 / 30
    final = MetricLearner(gamma=cv.gamma_, pairs_per_class=15, tol=1e-8, **options).fit(X, y)
    np.testing.assert_allclose(cv.metric_.F, final.metric_.F, rtol=0, atol=1e-8 * np.abs(final.metric_.F).max())
    for fold, (train, test) in enumerate(StratifiedKFold(3).split(np.zeros(30), y)):
        expected = [by_hand(X, y, train, test, scoring, gamma, options) for gamma in gammas]
        np.testing.assert_allclose(cv.cv_results_["scores"][:, fold], expected, atol=1e-9)


def by_hand(X, y, train, test, scoring, gamma, options):
    def take(rows):
        return [X[k] for k in rows] if isinstance(X, list) else X[rows]

    if isinstance(options.get("basis"), np.ndarray):
        options = options | {"basis": options["basis"][train]}
    learner = MetricLearner(gamma=gamma, pairs_per_class=15, tol=1e-8, **options)
    if options.get("kernel") == "precomputed":
        metric = learner.fit(X[np.ix_(train, train)], y[train]).metric_
        KX, KY, own = X[np.ix_(test, train)], X[np.ix_(train, train)], np.diag(X)
        D = metric.distances(KX, KY, cross=KX, diag_x=own[test], diag_y=own[train])
        among = metric.distances(KX, cross=X[np.ix_(test, test)])
    else:
        metric = learner.fit(take(train), y[train]).metric_
        D, among = metric.distances(take(test), take(train)), metric.distances(take(test))
    if scoring == "accuracy":
        nearest = np.argsort(D, axis=1)[:, :10]
        votes = []
        for near in y[train][nearest]:
            groups = {c: np.flatnonzero(near == c) for c in set(near.tolist())}
            votes.append(max(groups, key=lambda c: (len(groups[c]), -groups[c][-1])))
        return np.mean(np.array(votes) == y[test])
    i, j = np.triu_indices(len(test), 1)  # so few rows that every pair is drawn
    return roc_auc_score(y[test][i] == y[test][j], -among[i, j])


@pytest.mark.parametrize("space", ["rbf", "precomputed", "objects", "kernel basis", "own J"])
def test_gamma_from_constraints_alone(rng, space):
    X, y, options = spaces(rng)[space]
    constraints = Constraints.from_labels(y, pairs_per_class=60, random_state=0)
    if space == "kernel basis":
        options = options | {"basis": KernelKMeans(4)}
    cv = MetricLearnerCV(gammas=[0.1, 10.0], **options).fit(X, constraints=constraints)
    assert cv.gamma_ in (1e-7, 0.1, 10.0)
    assert 0.5 < cv.best_score_ <= 1.0
    assert cv.certificate_.converged


# -- files -------------------------------------------------------------------------------------------------------------


def assert_same_answers(loaded, metric, *arguments, **blocks):
    np.testing.assert_allclose(
        loaded.distances(*arguments, **blocks), metric.distances(*arguments, **blocks), atol=1e-12
    )
    assert loaded.F.tobytes() == metric.F.tobytes()
    assert loaded.coordinates.T.tobytes() == metric.coordinates.T.tobytes()
    assert loaded.n_features == metric.n_features and repr(loaded) == repr(metric)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize(
    "options",
    [
        {"kernel": "rbf"},
        {"kernel": "rbf", "kernel_params": {"gamma": 0.3}},
        {"kernel": "poly", "kernel_params": {"degree": np.int64(2), "coef0": np.float32(0.5)}},
        {"kernel": "laplacian", "basis": 3},
        {"kernel": "cosine", "basis": 3, "residual": False},
        {"kernel": "sigmoid", "psd": "clip"},
        {"kernel": "sigmoid", "psd": "shift"},
        {"kernel": "rbf", "n_components": 2},
        {"basis": 3},
        {"basis": 3, "residual": False, "n_components": 2},
        {"basis": 3, "prior": "covariance"},
    ],
    ids=str,
)
def test_save_and_load(rng, tmp_path, form, options):
    X, y = labelled_data(rng, n=24)
    new = form(rng.standard_normal((6, 4)))
    metric = MetricLearner(pairs_per_class=20, **options).fit(form(X), y).metric_
    metric.save(tmp_path / "metric.safetensors")
    loaded = mahalo.load(tmp_path / "metric.safetensors")
    np.testing.assert_allclose(loaded.distances(new, form(X)), metric.distances(new, form(X)), atol=1e-12)
    np.testing.assert_allclose(loaded.kernel(form(X)), metric.kernel(form(X)), atol=1e-12)
    np.testing.assert_allclose(loaded.transform(new), metric.transform(new), atol=1e-12)
    assert loaded.F.tobytes() == metric.F.tobytes()
    assert repr(loaded) == repr(metric) and loaded.coordinates.residual == metric.coordinates.residual


def test_save_and_load_precomputed(rng, tmp_path):
    X, y = labelled_data(rng, n=24)
    new, constraints = rng.standard_normal((6, 4)), random_pair_constraints(rng, X[:10], 8)
    metric = MetricLearner(kernel="precomputed").fit(rbf_kernel(X), y, constraints=constraints).metric_
    metric.save(tmp_path / "metric")
    loaded = mahalo.load(tmp_path / "metric")
    assert_same_answers(loaded, metric, rbf_kernel(new, X), cross=rbf_kernel(new))
    assert loaded.coordinates.support.dtype.kind == "i" and loaded.n_features == 24


def test_save_and_load_callables(rng, tmp_path):
    """The file keeps the parameters of the kernel; the kernel itself is passed again."""

    def wide(A, B, gamma=1.0):
        return rbf_kernel(A, B, gamma=gamma)

    X, y = labelled_data(rng, n=24)
    new = rng.standard_normal((6, 4))
    metric = MetricLearner(kernel=wide, kernel_params={"gamma": 0.05}).fit(X, y).metric_
    metric.save(tmp_path / "metric")
    with pytest.raises(ValueError, match=r"learned with a callable kernel, .* mahalo.load\(path, kernel=...\)"):
        mahalo.load(tmp_path / "metric")
    loaded = mahalo.load(tmp_path / "metric", kernel=wide)
    assert_same_answers(loaded, metric, new, X)
    with pytest.raises(ValueError, match=r"X has 3 features, but this metric was learned on 4"):
        loaded.distances(new[:, :3])


def test_parameters_no_file_can_hold(rng, tmp_path):
    X, y = labelled_data(rng, n=24)

    def taught(A, B, teacher=None):
        return rbf_kernel(A, B)

    metric = MetricLearner(kernel=taught, kernel_params={"teacher": print}).fit(X, y).metric_
    with pytest.raises(ValueError, match=r"kernel_params .*teacher.* cannot be written to a file"):
        metric.save(tmp_path / "metric")
    assert not list(tmp_path.iterdir())


@pytest.fixture
def saved(rng, tmp_path):
    """Damage a saved metric: change its arrays or header, and load it."""

    def load(change, form=np.asarray, **options):
        X, y = labelled_data(rng, n=24)
        data = rbf_kernel(X) if options.get("kernel") == "precomputed" else form(X)
        path = tmp_path / "metric.safetensors"
        MetricLearner(**({"kernel": "rbf"} | options)).fit(data, y).metric_.save(path)
        arrays = load_file(path)
        length = int.from_bytes(path.read_bytes()[:8], "little")
        header = json.loads(json.loads(path.read_bytes()[8 : 8 + length])["__metadata__"]["mahalo"])
        del header["sha256"]
        change(arrays, header)
        header["sha256"] = persistence._digest(header, arrays)  # well made, all the same
        save_file(arrays, path, metadata={"mahalo": json.dumps(header)})
        return mahalo.load(path)

    return load


def damage(**arrays):
    def change(kept, header):
        for name, new in arrays.items():
            if new is None:
                del kept[name]
            else:
                kept[name] = np.ascontiguousarray(new(kept[name]))

    return change


def test_undamaged_files_load(saved):
    for options in ({}, {"form": sp.csr_array}, {"kernel": "precomputed"}):
        assert saved(damage(), **options).coordinates.rank > 3


def spoiled(array):
    array = array.copy()
    array.flat[0] = np.nan
    return array


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (damage(map=None), "the coordinate map is missing or does not fit the core matrix"),
        (damage(map=lambda T: T[1:]), "'map' of shape .* does not belong"),
        (damage(map=lambda T: T[0]), "'map' of shape .* does not belong"),
        (damage(map=spoiled), "'map' has numbers that are not finite"),
        (damage(core=lambda F: F + np.triu(F, 1)), "the core matrix is not symmetric"),
        (damage(core=None), "the core matrix is missing"),
        (damage(support=None), "support points"),
        (damage(support=spoiled), "'support' has numbers that are not finite"),
        (damage(support=lambda s: s[1:]), r"support points of shape \(\d+, 4\) do not fit"),
        (damage(support=lambda s: s[:, 1:]), r"'support' of shape \(\d+, 3\), float64, does not belong"),
        (damage(support=lambda s: s[:, 0]), r"'support' of shape \(\d+,\), float64, does not belong"),
        (damage(support=lambda s: np.ones_like(s, dtype=np.int32)), "'support' has numbers that are not finite"),
    ],
)
def test_damaged_files(saved, change, message):
    with pytest.raises(ValueError, match=message):
        saved(change)


def test_damaged_sparse_support(saved):
    def beyond(indices):
        return np.where(np.arange(len(indices)) == 3, 99, indices)

    for change in (
        damage(support_indices=beyond),
        damage(support_indices=lambda i: i - 1),
        damage(support_indices=lambda i: i[1:]),
        damage(support_indptr=lambda p: p[::-1]),
        damage(support_indptr=lambda p: p[:-1]),
        damage(support_shape=lambda s: np.add(s, [1, 0])),
        damage(support_shape=lambda s: np.add(s, [0, 1])),
        damage(support_shape=lambda s: -s),
        damage(support_shape=lambda s: s[:1]),
        damage(support_shape=lambda s: s.astype(float)),
        damage(support_data=lambda d: d[1:]),
    ):
        with pytest.raises(ValueError, match=r"damaged: .*support"):
            saved(change, form=sp.csr_array)
    with pytest.raises(ValueError, match="support"):
        saved(damage(support_data=None), form=sp.csr_array)


def test_damaged_precomputed_support(saved):
    for change in (
        damage(support=lambda s: s + 24),
        damage(support=lambda s: s - 24),
        damage(support=lambda s: s.astype(float)),
        damage(support=lambda s: s[:, None]),
        damage(support=lambda s: s[1:]),
    ):
        with pytest.raises(ValueError, match=r"damaged: .*support"):
            saved(change, kernel="precomputed")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kernel": "os.system"}, r"kernel must be 'precomputed', a callable or one of"),
        ({"kernel": 7}, r"kernel must be a name"),
        ({"kernel": None}, r"learned with a callable kernel"),
        ({"kernel_params": [1]}, r"the coordinate map is missing or does not fit"),
        ({"kernel_params": {"width": 1}}, r"takes the kernel_params \['gamma'\]; got \['width'\]"),
        ({"shift": "much"}, r"shift is 'much'"),
        ({"shift": float("nan")}, r"shift is nan"),
        ({"n_features": None}, r"support points of shape .* do not fit"),
        ({"n_features": 5}, r"'support' of shape .* does not belong"),
        ({"n_features": -4}, r"n_features is -4"),
        ({"residual": "yes"}, r"the header says .*residual='yes'"),
    ],
    ids=str,
)
def test_damaged_headers(saved, change, message):
    with pytest.raises(ValueError, match=message):
        saved(lambda arrays, header: header.update(change))


# -- scikit-learn's own checks -----------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:.*identical points:UserWarning")
@parametrize_with_checks(
    [
        MetricLearner(kernel="rbf"),
        MetricLearner(basis=2),
        MetricLearner(basis=2, residual=False),
        # Some of the checks take any numbers for a kernel matrix.
        MetricLearner(kernel="precomputed", psd="clip"),
        MetricLearner(kernel="poly", basis=RandomSubset(3)),
    ],
    expected_failed_checks=known_check_failures,
)
def test_scikit_learn(estimator, check):
    check(estimator)
