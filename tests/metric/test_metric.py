"""The learned metric as a small object: every way to ask for a distance gives the one of W."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from builders import labelled_data
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from sklearn.metrics import roc_auc_score
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

from mahalo import Constraints, Metric, MetricLearner, load
from mahalo.coordinates import LinearCoordinates
from mahalo.losses import Frobenius
from mahalo.metric import leading
from mahalo.metric import metric as metric_module
from mahalo.priors import Prior


def random_metric(rng, d, rank=None, prior="identity"):
    """A metric from its parts: W = root [I + Q (F − I) Qᵀ] rootᵀ."""
    root = {
        "identity": None,
        "diagonal": rng.uniform(0.1, 10.0, d),
        "full": rng.standard_normal((d, d)) + 2 * np.eye(d),
    }[prior]
    basis = None if rank is None else np.linalg.qr(rng.standard_normal((d, rank)))[0]
    r = d if rank is None else rank
    B = rng.standard_normal((r, r + 2))
    F = B @ B.T / r
    inner = F if basis is None else np.eye(d) + basis @ (F - np.eye(r)) @ basis.T
    R = {"identity": np.eye(d), "diagonal": np.diag(root) if prior == "diagonal" else None, "full": root}[prior]
    return Metric(LinearCoordinates(Prior(root), d, basis), F), R @ inner @ R.T


@pytest.fixture(params=[(p, r) for p in ("identity", "diagonal", "full") for r in (None, 2)], ids=str)
def metric_and_matrix(request, rng):
    prior, rank = request.param
    return random_metric(rng, 6, rank, prior)


def test_matrix_is_the_formula(metric_and_matrix):
    metric, W = metric_and_matrix
    np.testing.assert_allclose(metric.matrix, W, rtol=1e-10, atol=1e-10 * np.abs(W).max())
    np.testing.assert_array_equal(metric.matrix, metric.matrix.T)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, sp.csc_matrix], ids=["dense", "sparse", "csc"])
def test_every_way_to_ask(metric_and_matrix, rng, form):
    metric, W = metric_and_matrix
    X, Y = rng.standard_normal((7, 6)) + 1.0, rng.standard_normal((5, 6))
    K = X @ W @ Y.T
    D2 = np.array([[(x - y) @ W @ (x - y) for y in Y] for x in X])
    close = {"rtol": 1e-9, "atol": 1e-9 * D2.max()}
    np.testing.assert_allclose(metric.kernel(form(X), form(Y)), K, **close)
    np.testing.assert_allclose(metric.kernel(form(X)), X @ W @ X.T, **close)
    np.testing.assert_allclose(metric.distances(form(X), form(Y), squared=True), D2, **close)
    np.testing.assert_allclose(metric.distances(form(X), form(Y)), np.sqrt(D2), **close)
    np.testing.assert_allclose(metric.pair_distances(form(X[:5]), form(Y), squared=True), np.diag(D2), **close)
    np.testing.assert_allclose(metric.pair_distances(form(X[:5]), form(Y)), np.sqrt(np.diag(D2)), **close)
    np.testing.assert_allclose(metric.transform(form(X)) @ metric.transform(form(Y)).T, K, **close)
    np.testing.assert_allclose(cdist(metric.transform(form(X)), metric.transform(form(Y))), np.sqrt(D2), **close)


def test_dense_against_sparse(metric_and_matrix, rng):
    metric, _ = metric_and_matrix
    X, Y = rng.standard_normal((7, 6)), rng.standard_normal((7, 6))
    for A, B in ((sp.csr_array(X), Y), (X, sp.csr_array(Y)), (sp.csr_matrix(X), Y), (X, sp.csr_matrix(Y))):
        np.testing.assert_allclose(metric.distances(A, B), metric.distances(X, Y), atol=1e-8)
        np.testing.assert_allclose(metric.kernel(A, B), metric.kernel(X, Y), atol=1e-9)
        paired = metric.pair_distances(A, B)
        assert type(paired) is np.ndarray and paired.shape == (7,)
        np.testing.assert_allclose(paired, metric.pair_distances(X, Y), atol=1e-8)


@given(st.integers(0, 2**32 - 1))
def test_axioms_of_a_metric(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 6))
    metric, _ = random_metric(rng, d, prior=["identity", "diagonal", "full"][seed % 3])
    D = metric.distances(rng.standard_normal((8, d)) * 10 ** rng.uniform(-3, 3))
    np.testing.assert_array_equal(np.diag(D), 0.0)
    np.testing.assert_allclose(D, D.T, rtol=1e-6)
    assert (D >= 0).all()
    assert (D[:, None, :] <= (D[:, :, None] + D[None, :, :]) * (1 + 1e-6) + 1e-9 * D.max()).all()


def test_distances_of_rows_to_themselves_are_zero(metric_and_matrix, rng):
    metric, _ = metric_and_matrix
    X = rng.standard_normal((9, 6)) + 100.0
    for form in (np.asarray, sp.csr_array):
        np.testing.assert_array_equal(np.diag(metric.distances(form(X))), 0.0)
        np.testing.assert_allclose(metric.pair_distances(form(X), form(X)), 0.0, atol=1e-12)


def test_learned_distances_are_those_the_constraints_are_about(rng):
    """distances, squared, against the bounds of a hard fit."""
    X = rng.standard_normal((8, 5))
    c = Constraints.from_pairs([[0, 1], [2, 3]], [[4, 5]], upper=0.5, lower=30.0)
    metric = MetricLearner(gamma=np.inf, tol=1e-8).fit(X, constraints=c).metric_
    D2 = metric.distances(X, squared=True)
    np.testing.assert_allclose([D2[0, 1], D2[2, 3], D2[4, 5]], [0.5, 0.5, 30.0], rtol=1e-6)


# -- transform -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prior", ["identity", "diagonal", "covariance"])
@pytest.mark.parametrize("d", [4, 30])
@pytest.mark.parametrize("sparse", [False, True])
def test_n_components_keeps_the_leading_directions(rng, prior, d, sparse):
    """The kept coordinates are the principal components of the transformed training rows."""
    X, y = labelled_data(rng, n=24, d=d)
    data = sp.csr_array(X) if sparse else X
    whole = MetricLearner(prior=prior).fit(data, y)
    T = whole.transform(data)
    for k in (1, 2, 4):
        part = MetricLearner(prior=prior, n_components=k).fit(data, y)
        P = part.transform(data)
        assert P.shape == (24, k)
        centred = T - T.mean(axis=0)
        U, s, _ = np.linalg.svd(centred, full_matrices=False)
        kept = P - P.mean(axis=0)
        scale = s[0] ** 2
        np.testing.assert_allclose(kept @ kept.T, (U[:, :k] * s[:k] ** 2) @ U[:, :k].T, atol=1e-8 * scale)
        # distances, kernel and matrix are those of what is kept
        np.testing.assert_allclose(part.metric_.distances(data), cdist(P, P), atol=1e-6 * s[0])
        np.testing.assert_allclose(part.metric_.kernel(data), P @ P.T, atol=1e-9 * scale)
        np.testing.assert_allclose(X @ part.metric_.matrix @ X.T, P @ P.T, atol=1e-9 * scale)
        assert repr(part.metric_) == f"Metric(n_features={d}" + (f", rank={k})" if k < d else ")")


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("eta", [1.0, 0.4])
def test_components_from_rows_are_those_from_columns(rng, sparse, eta):
    X, y = labelled_data(rng, n=12, d=30)
    X = sp.csr_array(X) if sparse else X + 100.0
    metric = MetricLearner(loss=Frobenius(eta), prior="diagonal").fit(X, y).metric_
    few = leading._directions_of_few_rows(metric, X, 5)
    many = leading._directions_of_many_rows(metric, X, 5)
    np.testing.assert_allclose(np.abs(few.T @ many), np.eye(5), atol=1e-6)


def test_more_components_than_rows(rng):
    """The rows lie in 11 dimensions; the transform of all of them loses no distance."""
    X, y = labelled_data(rng, n=12, d=30)
    for k in (11, 12, 30):
        learner = MetricLearner(n_components=k).fit(X, y)
        D = learner.metric_.distances(X)
        np.testing.assert_allclose(cdist(learner.transform(X), learner.transform(X)), D, atol=1e-7 * D.max())
        np.testing.assert_allclose(learner.metric_.rotation @ learner.metric_.rotation.T, np.eye(k), atol=1e-9)


def test_all_components_are_a_rotation(rng):
    X, y = labelled_data(rng)
    learner = MetricLearner(n_components=4, prior="covariance").fit(X, y)
    D = learner.metric_.distances(X)
    np.testing.assert_allclose(cdist(learner.transform(X), learner.transform(X)), D, atol=1e-8 * D.max())


def test_transform_keeps_the_precision_it_is_given(rng):
    X, y = labelled_data(rng)
    for parameters in ({}, {"n_components": 2}, {"prior": "diagonal"}, {"prior": "covariance"}):
        learner = MetricLearner(**parameters).fit(X, y)
        single = learner.transform(X.astype(np.float32))
        double = learner.transform(X)
        assert single.dtype == np.float32 and double.dtype == np.float64
        np.testing.assert_allclose(single, double, rtol=0, atol=1e-5 * np.abs(double).max())


def test_single_precision_data(rng):
    X, y = labelled_data(rng)
    single, double = MetricLearner().fit(X.astype(np.float32), y), MetricLearner().fit(X, y)
    assert single.transform(X.astype(np.float32)).dtype == np.float32
    assert single.metric_.F.dtype == np.float64  # solved and certified in double precision
    np.testing.assert_allclose(single.metric_.matrix, double.metric_.matrix, rtol=0, atol=1e-4)
    assert single.certificate_.converged


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("size", [1e-30, 1e30])
def test_single_precision_rows_of_any_size(rng, form, size):
    X, y = labelled_data(rng)
    learner = MetricLearner().fit(X, y)
    expected = learner.metric_.pair_distances(X[:9], X[9:18])
    rows = (size * X).astype(np.float32)
    found = learner.metric_.pair_distances(form(rows[:9]), form(rows[9:18]))
    np.testing.assert_allclose(found / size, expected, rtol=1e-4)
    assert learner.score(form(rows), y) == pytest.approx(learner.score(X, y), abs=1e-3)


# -- as others use it ------------------------------------------------------------------------------------------


def test_neighbours_and_kernels_of_scikit_learn(rng):
    X, y = labelled_data(rng)
    learner = MetricLearner().fit(X, y)
    by_map = KNeighborsClassifier(3).fit(learner.transform(X), y).predict(learner.transform(X))
    by_distance = KNeighborsClassifier(3, metric="precomputed").fit(learner.metric_.distances(X), y)
    np.testing.assert_array_equal(by_distance.predict(learner.metric_.distances(X)), by_map)
    svc = SVC(kernel=learner.metric_.kernel).fit(X, y)
    assert svc.score(X, y) > 0.8


def test_wide_sparse_rows_are_not_made_dense(rng, monkeypatch):
    metric, _ = random_metric(rng, 40, rank=2)
    X = sp.random_array((6, 40), density=0.1, random_state=rng, format="csr")
    expected = metric.distances(X)
    monkeypatch.setattr(metric_module, "_MAX_DENSE_COLUMNS", 39)
    with pytest.raises(ValueError, match=r"dense array with 40 columns. Use metric\.distances or\s+metric\.kernel"):
        metric.transform(X)
    with pytest.raises(ValueError, match=r"matrix of this metric would be 40 × 40. Use distances"):
        _ = Metric(metric.coordinates, metric.F).matrix
    np.testing.assert_array_equal(metric.distances(X), expected)


def test_pickle_copy_and_repr(rng):
    X = rng.standard_normal((5, 6))
    metric, _ = random_metric(rng, 6, rank=2)
    D = metric.distances(X)
    for other in (pickle.loads(pickle.dumps(metric)), copy.deepcopy(metric)):
        np.testing.assert_array_equal(other.distances(X), D)
    assert repr(metric) == "Metric(n_features=6, rank=2)"
    assert repr(random_metric(rng, 3)[0]) == "Metric(n_features=3)"


def test_metric_is_frozen(rng):
    metric, _ = random_metric(rng, 3)
    with pytest.raises(AttributeError):
        metric.F = np.eye(3)


# -- distances in single precision ----------------------------------------------------------------------------------


def near_and_far(rng):
    """Rows 1e-4 apart, ten away from the origin."""
    X = (10.0 + rng.standard_normal((40, 20))).astype(np.float32)
    return np.vstack([X, (X + 1e-4 * rng.standard_normal(X.shape)).astype(np.float32)])


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize(
    ("parameters", "form"),
    [
        ({}, np.asarray),
        ({"prior": "covariance"}, np.asarray),
        ({"n_components": 5}, np.asarray),
        ({"basis": 6}, np.asarray),
        ({"basis": 6}, sp.csr_array),
        ({"basis": 6, "residual": 0.3}, sp.csr_array),
        ({"basis": 6, "residual": False}, np.asarray),
        ({"kernel": "rbf", "kernel_params": {"gamma": 0.05}}, np.asarray),
    ],
    ids=str,
)
def test_single_precision_rows_keep_small_distances(rng, parameters, form, normalize):
    """As exact as float32 rows allow; formed in single precision they would all be zero or noise."""
    X = near_and_far(rng)
    y = np.arange(80) % 40 % 3
    metric = MetricLearner(**parameters, normalize=normalize).fit(form(X), y).metric_
    D = metric.distances(form(X[:40]), form(X[40:]))
    assert D.dtype == np.float32
    exact = metric.distances(form(X[:40].astype(np.float64)), form(X[40:].astype(np.float64)))
    np.testing.assert_allclose(D, exact, rtol=1e-6, atol=1e-6 * np.diagonal(exact).min())
    pairs = metric.pair_distances(form(X[:40]), form(X[40:]))
    assert pairs.min() > 0
    np.testing.assert_allclose(np.diagonal(D), pairs, rtol=1e-2)


def test_half_precision_comes_back_as_single(rng):
    X, y = labelled_data(rng)
    half = X.astype(np.float16)
    learner = MetricLearner().fit(half, y)
    for T in (learner.transform(half), learner.metric_.transform(half), learner.metric_.distances(half)):
        assert T.dtype == np.float32
    np.testing.assert_allclose(learner.transform(half), learner.transform(half.astype(np.float32)))


# -- a metric with n_components is the reduced metric ---------------------------------------------------------------


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"prior": "covariance"},
        {"basis": 5},
        {"basis": 5, "residual": 0.4},
        {"basis": 5, "residual": False},
        {"kernel": "rbf"},
        {"kernel": "rbf", "basis": 5, "residual": 0.4},
    ],
    ids=str,
)
@pytest.mark.parametrize("normalize", [False, True])
def test_reduced_metric_says_what_transform_says(rng, tmp_path, parameters, normalize):
    X, y = labelled_data(rng, n=40, d=6)
    learner = MetricLearner(n_components=2, normalize=normalize, **parameters).fit(X, y)
    new = rng.standard_normal((9, 6))
    T, T_new = learner.transform(X), learner.transform(new)
    assert T.shape == (40, 2) and learner.metric_.n_outputs == 2
    learner.metric_.save(tmp_path / "reduced.safetensors")
    for metric in (learner.metric_, load(tmp_path / "reduced.safetensors")):
        np.testing.assert_array_equal(metric.transform(new), T_new)
        np.testing.assert_allclose(metric.distances(new, X), cdist(T_new, T), atol=1e-7)
        np.testing.assert_allclose(metric.pair_distances(new, X[:9]), np.diagonal(cdist(T_new, T)), atol=1e-7)
        np.testing.assert_allclose(metric.kernel(new, X), T_new @ T.T, atol=1e-9)
        assert "rank=2" in repr(metric)
    pairs = Constraints.from_labels(y, pairs_per_class=1000, random_state=0).pairs
    i, j = pairs.index.T
    by_hand = roc_auc_score(pairs.sign > 0, -np.linalg.norm(T[i] - T[j], axis=1))
    assert learner.score(X, y) == pytest.approx(by_hand, abs=1e-9)


def test_grid_search_tells_components_apart(rng):
    X, y = labelled_data(rng, n=60, d=6, apart=0.5)
    search = GridSearchCV(MetricLearner(), {"n_components": [1, 2, 6]}, cv=3).fit(X, y)
    assert len(set(search.cv_results_["mean_test_score"])) == 3


# -- cosine -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "form"),
    [
        ({}, np.asarray),
        ({"prior": "diagonal"}, sp.csr_array),
        ({"basis": 3}, np.asarray),
        ({"basis": 3}, sp.csr_array),
        ({"basis": 3, "residual": 0.4}, sp.csr_array),
        ({"basis": 3, "residual": False}, sp.csr_array),
        ({"kernel": "rbf"}, np.asarray),
        ({"kernel": "poly"}, np.asarray),
        ({"kernel": "poly", "basis": 3, "residual": 0.2}, np.asarray),
    ],
    ids=str,
)
def test_normalized_is_the_cosine_of_the_kernel(rng, tmp_path, parameters, form):
    X, y = labelled_data(rng, n=30, d=5)
    new = rng.standard_normal((7, 5))
    X, new = form(X), form(new)
    plain = MetricLearner(**parameters).fit(X, y)
    cosine = MetricLearner(**parameters, normalize=True).fit(X, y)
    np.testing.assert_array_equal(plain.metric_.F, cosine.metric_.F)  # what is learned is the same
    assert plain.certificate_ == cosine.certificate_
    own, own_new = (np.sqrt(np.diagonal(plain.metric_.kernel(rows))) for rows in (X, new))
    expected = plain.metric_.kernel(new, X) / np.outer(own_new, own)
    cosine.metric_.save(tmp_path / "cosine.safetensors")
    for metric in (cosine.metric_, load(tmp_path / "cosine.safetensors")):
        assert metric.normalize
        np.testing.assert_allclose(metric.kernel(new, X), expected, atol=1e-10)
        np.testing.assert_allclose(metric.distances(new, X, squared=True), 2 - 2 * expected, atol=1e-9)
        paired = metric.pair_distances(new, X[:7], squared=True)
        np.testing.assert_allclose(paired, 2 - 2 * np.diagonal(expected), atol=1e-9)
    if "kernel" not in parameters:
        T, T_new = cosine.transform(X), cosine.transform(new)
        np.testing.assert_allclose(np.linalg.norm(T, axis=1), 1.0)
        np.testing.assert_allclose(T_new @ T.T, expected, atol=1e-10)


@pytest.mark.parametrize("scale", [1e-100, 1e-60, 1e60, 1e100])
@pytest.mark.parametrize("residual", [False, 0.4, True])
def test_cosines_of_sparse_rows_in_any_unit(rng, scale, residual):
    X, y = labelled_data(rng, n=30, d=5)
    X = sp.csr_array(X * scale)
    metric = MetricLearner(basis=3, residual=residual, normalize=True).fit(X, y).metric_
    np.testing.assert_allclose(metric.pair_distances(X, X), 0.0, atol=1e-7)
    D = metric.distances(X)
    np.testing.assert_allclose(metric.pair_distances(X[:10], X[10:20]), D[np.arange(10), np.arange(10, 20)], atol=1e-7)


def test_similarities_that_are_given_are_those_of_these_rows(rng):
    X, y = labelled_data(rng, n=30, d=5)
    metric = MetricLearner(kernel="poly", basis=4, normalize=True).fit(X, y).metric_
    cross = pairwise_kernels(X[:7], X[9:16], metric="poly")
    np.testing.assert_allclose(metric.kernel(X[:7], X[9:16], cross=cross), metric.kernel(X[:7], X[9:16]), atol=1e-12)


def test_a_row_of_length_zero_has_no_direction(rng):
    X, y = labelled_data(rng)
    X[3] = 0.0
    metric = MetricLearner(normalize=True).fit(X, y).metric_
    assert not metric.transform(X)[3].any()
    D = metric.distances(X)
    np.testing.assert_allclose(np.delete(D[3], 3), 1.0)
    np.testing.assert_allclose(metric.pair_distances(X, X[[3] * len(X)]), D[:, 3], atol=1e-12)
    assert np.isfinite(D).all() and np.isfinite(metric.kernel(X)).all()


def test_files_of_the_first_format_load_as_the_reduced_metric(rng, tmp_path):
    """They held the whole metric, and the directions that `transform` alone kept."""
    from mahalo.persistence import METRIC

    X, y = labelled_data(rng)
    whole = MetricLearner().fit(X, y).metric_
    directions = np.linalg.qr(rng.standard_normal((4, 2)))[0].T
    header = {"format": "mahalo-metric", "version": 1, "eta": 1.0, "n_features": 4, "residual": True}
    header |= {"kernel": "linear", "shrinkage": 0.0}
    METRIC.of_header(header, {"core": whole.F, "directions": directions}).write(tmp_path / "old.safetensors")
    loaded = load(tmp_path / "old.safetensors")
    T = whole.transform(X) @ directions.T
    np.testing.assert_allclose(loaded.transform(X), T, atol=1e-10)
    np.testing.assert_allclose(loaded.distances(X), cdist(T, T), atol=1e-6)
    assert repr(loaded) == "Metric(n_features=4, rank=2)"


def test_leading_directions_of_sparse_rows_far_from_zero(rng):
    """Fewer rows than columns, some of which have a mean of 1e8 deviations: the same directions as of dense rows."""
    X, y = rng.standard_normal((40, 60)) * (rng.random((40, 60)) < 0.5), np.arange(40) % 2
    X[:, :5] = 1e8 + 3 * rng.standard_normal((40, 5))
    pairs = Constraints.from_labels(y, pairs_per_class=15, random_state=0)
    dense, sparse = (
        MetricLearner(n_components=2, bounds=(50, 300)).fit(form(X), constraints=pairs).metric_
        for form in (np.asarray, sp.csr_array)
    )
    np.testing.assert_allclose(
        sparse.pair_distances(sp.csr_array(X[:20]), sp.csr_array(X[20:])),
        dense.pair_distances(X[:20], X[20:]),
        rtol=1e-3,
    )
