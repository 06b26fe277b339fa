"""A metric over features: its local matrix, files, index, explanations, and what it refuses."""

import dataclasses
import pickle

import numpy as np
import pytest
from builders import known_check_failures
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import make_moons
from sklearn.kernel_approximation import Nystroem
from sklearn.preprocessing import FunctionTransformer, PolynomialFeatures
from sklearn.utils.estimator_checks import parametrize_with_checks

import mahalo
from mahalo import Constraints, Metric, MetricLearner
from mahalo.features import Local, LocalMap, Quadratic
from mahalo.metric import Scaling
from mahalo.search import build_index

FEATURES = [Quadratic(), Quadratic(1), Local(), Local(2, strength=3.0, temperature=0.5)]
SETTINGS = {"strategy": "neighbors", "pairs_per_class": 30, "random_state": 0}


@pytest.fixture
def moons():
    return make_moons(80, noise=0.1, random_state=0)


def local_form(metric: Metric, x, step=1e-4):
    """Return the second-order form of the squared distance at x by differences of `distances`."""
    steps = step * np.eye(len(x))

    def sq(a, b):
        return metric.distances((x + a)[None], (x + b)[None], squared=True)[0, 0]

    def form(a):  # symmetric, so that third-order terms vanish
        return sq(a / 2, -a / 2)

    d = range(len(x))
    return np.array([[(form(steps[i] + steps[j]) - form(steps[i] - steps[j])) / (4 * step**2) for j in d] for i in d])


def test_its_name_says_what_it_is_over(moons):
    X, y = moons
    metric = MetricLearner(features=Quadratic(), **SETTINGS).fit(X, y).metric_
    assert repr(metric) == "Metric(n_features=2, features=QuadraticMap, n_columns=5)"


@pytest.mark.parametrize("features", [None, *FEATURES], ids=str)
@pytest.mark.parametrize("normalize", [False, True])
@given(seed=st.integers(0, 100), scaled=st.booleans())
def test_the_local_matrix_is_that_of_small_steps(features, normalize, seed, scaled):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, 3)) * [1, 2, 0.5] + 1
    y = (np.abs(X[:, 0]) + X[:, 1] > 2).astype(int)
    y[:2] = 0, 1
    scaling = Scaling.of(X) if scaled else None
    rows = X if scaling is None else scaling.apply(X)
    metric = MetricLearner(features=features, normalize=normalize, pairs_per_class=10).fit(rows, y).metric_
    metric = dataclasses.replace(metric, scaling=scaling)
    x = X[rng.integers(30)]
    W = metric.at(x)
    assert np.array_equal(W, W.T)
    np.testing.assert_allclose(W, local_form(metric, x), atol=1e-4 * max(1.0, np.abs(W).max()))


def test_the_local_matrix_of_a_linear_metric_is_its_matrix(moons):
    metric = MetricLearner().fit(*moons).metric_
    np.testing.assert_allclose(metric.at([0.3, 0.1]), metric.matrix, rtol=1e-10)


def test_a_kernel_has_no_local_matrix(moons):
    metric = MetricLearner(kernel="rbf", pairs_per_class=10).fit(*moons).metric_
    with pytest.raises(ValueError, match="kernel='linear'"):
        metric.at([0.3, 0.1])


@pytest.mark.parametrize("features", FEATURES, ids=str)
@pytest.mark.parametrize(
    "options", [{}, {"normalize": True}, {"n_components": 2}, {"basis": 2, "residual": 0.5}], ids=str
)
def test_files(moons, tmp_path, features, options):
    X, y = moons
    learner = MetricLearner(features=features, **options, **SETTINGS).fit(X, y)
    learner.metric_.save(tmp_path / "local.mahalo")
    loaded = mahalo.load(tmp_path / "local.mahalo")
    assert type(loaded.features) is type(learner.metric_.features)
    assert np.array_equal(loaded.distances(X), learner.metric_.distances(X))
    assert np.array_equal(loaded.transform(X), learner.transform(X))
    assert np.array_equal(loaded.at(X[0]), learner.metric_.at(X[0]))


@pytest.mark.parametrize(
    ("changed", "value"),
    [
        ("features", "cubic"),
        ("features_scale", -1.0),
        ("features_scale", "one"),
        ("features_strength", 0.0),
        ("features_width", None),
        ("features_mean", np.zeros(5)),
        ("features_mean", np.full(2, np.nan)),
        ("features_centres", np.zeros((3, 7))),
        ("features_centres", np.zeros((2, 2))),
        ("features_centres", None),
    ],
    ids=str,
)
def test_damaged_files_are_refused(moons, tmp_path, monkeypatch, changed, value):
    metric = MetricLearner(features=Local(3), **SETTINGS).fit(*moons).metric_
    original = LocalMap.file_parts

    def damage(features):
        fields, arrays = original(features)
        for part in (fields, arrays):
            if changed in part and value is None:
                del part[changed]
            elif changed in part:
                part[changed] = value
        return fields, arrays

    monkeypatch.setattr(LocalMap, "file_parts", damage)
    metric.save(tmp_path / "damaged.mahalo")
    with pytest.raises(ValueError, match=r"damaged\.mahalo"):
        mahalo.load(tmp_path / "damaged.mahalo")


@pytest.mark.parametrize("features", FEATURES, ids=str)
@pytest.mark.parametrize("normalize", [False, True])
def test_an_index_finds_the_nearest_rows(moons, features, normalize):
    X, y = moons
    metric = MetricLearner(features=features, normalize=normalize, **SETTINGS).fit(X, y).metric_
    index = build_index(metric, X[20:])
    D = metric.distances(X[:20], X[20:])
    for distances, rows in (index.kneighbors(X[:20], k=5), metric.kneighbors(X[:20], X[20:], k=5)):
        np.testing.assert_allclose(distances, np.sort(D, axis=1)[:, :5], rtol=1e-6, atol=1e-7)
        assert np.array_equal(rows, np.argsort(D, axis=1, kind="stable")[:, :5])


@pytest.mark.parametrize("features", FEATURES, ids=str)
def test_all_ways_to_distances_agree(moons, features):
    X, y = moons
    learner = MetricLearner(features=features, **SETTINGS).fit(X, y)
    metric, T = learner.metric_, learner.transform(X)
    D = metric.distances(X)
    np.testing.assert_allclose(D, np.linalg.norm(T[:, None] - T, axis=2), atol=1e-7)
    np.testing.assert_allclose(D[0], metric.pair_distances(np.repeat(X[:1], len(X), axis=0), X), atol=1e-7)
    K = metric.kernel(X)
    np.testing.assert_allclose(D**2, np.diag(K)[:, None] + np.diag(K) - 2 * K, atol=1e-8)
    assert learner.get_feature_names_out().shape == (T.shape[1],)


@pytest.mark.parametrize("features", [Quadratic(), Local()], ids=str)
@pytest.mark.parametrize("form", ["matrix", "linear_map", "query_side"])
def test_forms_of_linear_metrics_are_refused_with_the_remedy(moons, features, form):
    metric = MetricLearner(features=features, **SETTINGS).fit(*moons).metric_
    with pytest.raises(ValueError, match="kernel='linear', features=None"):
        found = getattr(metric, form)
        found()


@pytest.mark.parametrize("kernel", ["rbf", "precomputed"])
def test_features_and_kernels_exclude_each_other(moons, kernel):
    with pytest.raises(ValueError, match="Use kernel='linear', or features=None"):
        MetricLearner(features=Local(), kernel=kernel).fit(*moons)


def test_suspects_and_influential_constraints(moons):
    X, y = moons
    wrong = y.copy()
    wrong[[3, 8]] = 1 - wrong[[3, 8]]
    learner = MetricLearner(features=Local(), **SETTINGS).fit(X, wrong)
    assert set(learner.suspects(X, wrong, n=4).index) >= {3, 8}
    assert len(learner.influential(5)) == 5


def test_it_learns_what_a_linear_metric_cannot(moons):
    X, y = make_moons(400, noise=0.15, random_state=1)

    def error(**features):
        metric = MetricLearner(gamma=10.0, **SETTINGS | {"pairs_per_class": None}, **features).fit(X[::2], y[::2])
        D = metric.metric_.distances(X[1::2], X[::2])
        return np.mean(y[::2][D.argmin(axis=1)] != y[1::2])

    assert error(features=Local()) <= error()


# -- rows of all kinds ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("features", [Quadratic(), Local()], ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int64])
def test_other_types_of_numbers(features, dtype):
    rng = np.random.default_rng(0)
    X = np.round(8 * rng.normal(size=(60, 3)))
    y = (np.abs(X[:, 0]) > 5).astype(int)
    learner = MetricLearner(features=features, **SETTINGS).fit(X.astype(dtype), y)
    exact = MetricLearner(features=features, **SETTINGS).fit(X, y)
    D = learner.metric_.distances(X.astype(dtype))
    assert D.dtype == (np.float64 if dtype == np.int64 else np.float32)
    np.testing.assert_allclose(D, exact.metric_.distances(X), rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("features", [Quadratic(), Local()], ids=str)
def test_duplicates_constant_columns_and_small_classes(rng, features):
    X = np.repeat(rng.normal(size=(12, 3)), 3, axis=0)
    X[:, 1] = 4.0
    y = np.repeat(np.arange(12) % 3, 3)
    y[0], y[1] = 7, 8  # one row each
    with pytest.warns(UserWarning, match="identical points"), pytest.warns(UserWarning, match="constant column"):
        learner = MetricLearner(features=features, pairs_per_class=20).fit(X, y)
    D = learner.metric_.distances(X)
    assert learner.certificate_.converged and np.isfinite(D).all()
    assert D[0, 1] <= 1e-7 * D.max()  # the square root of rounding in squared distances
    assert np.isfinite(learner.metric_.at(X[5])).all()


def test_more_regions_than_rows(rng):
    X, y = rng.normal(size=(6, 2)), np.arange(6) % 2
    learner = MetricLearner(features=Local(n_regions=50), pairs_per_class=5).fit(X, y)
    assert len(learner.metric_.features.centres) == 6
    assert np.isfinite(learner.metric_.distances(X)).all()


@pytest.mark.parametrize("features", [Quadratic(), Local()], ids=str)
def test_sparse_rows_are_refused_with_the_remedy(moons, features):
    import scipy.sparse as sp

    X, y = moons
    with pytest.raises(ValueError, match=r"features=None, or X\.toarray\(\)"):
        MetricLearner(features=features).fit(sp.csr_array(X), y)
    learner = MetricLearner(features=features, **SETTINGS).fit(X, y)
    for call in (learner.metric_.distances, learner.transform):
        with pytest.raises((TypeError, ValueError), match=r"dense|toarray"):
            call(sp.csr_array(X))


def test_dask_rows_are_refused_with_the_remedy(moons):
    da = pytest.importorskip("dask.array")
    X, y = moons
    with pytest.raises(ValueError, match=r"features=None, or X\.compute\(\)"):
        MetricLearner(features=Local()).fit(da.from_array(X, chunks=(40, 2)), da.from_array(y, chunks=40))


def test_a_fitted_metric_transforms_dask_rows_by_blocks(moons):
    da = pytest.importorskip("dask.array")
    X, y = moons
    learner = MetricLearner(features=Local(), **SETTINGS).fit(X, y)
    blocks = learner.transform(da.from_array(X, chunks=(30, 2))).compute()
    np.testing.assert_allclose(blocks, learner.transform(X), rtol=1e-12)


def test_constraints_alone(moons):
    X, y = moons
    constraints = Constraints.from_labels(y, pairs_per_class=30, random_state=0)
    metric = MetricLearner(features=Local()).fit(X, constraints=constraints).metric_
    assert metric.n_features == 2 and metric.n_outputs == 10


# -- transformers of other libraries -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "transformer", [PolynomialFeatures(2, include_bias=False), Nystroem(n_components=8, random_state=0)], ids=str
)
def test_transformers_of_scikit_learn(moons, tmp_path, transformer):
    X, y = moons
    pairs = Constraints.from_labels(y, pairs_per_class=30, random_state=0)
    learner = MetricLearner(features=transformer).fit(X, constraints=pairs)
    columns = clone(transformer).fit(X).transform(X)
    plain = MetricLearner().fit(columns, constraints=pairs)
    np.testing.assert_allclose(learner.metric_.distances(X), plain.metric_.distances(columns), rtol=1e-6, atol=1e-7)
    assert not hasattr(transformer, "n_features_in_")  # the parameter is not fitted
    W = learner.metric_.at(X[0])
    np.testing.assert_allclose(W, local_form(learner.metric_, X[0]), atol=1e-3 * np.abs(W).max())
    with pytest.raises(ValueError, match=rf"are a {type(transformer).__name__}, which a file without code cannot hold"):
        learner.metric_.save(tmp_path / "model.mahalo")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("features", [Quadratic(), Local(), PolynomialFeatures(2)], ids=str)
def test_clones_and_pickles(moons, features):
    X, y = moons
    learner = MetricLearner(features=features, **SETTINGS)
    assert clone(learner).get_params()["features"].get_params() == features.get_params()
    fitted = pickle.loads(pickle.dumps(learner.fit(X, y)))
    assert np.array_equal(fitted.metric_.distances(X), learner.metric_.distances(X))
    again = clone(learner).fit(X, y)
    assert np.array_equal(again.metric_.distances(X), learner.metric_.distances(X))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*dissimilar pairs? of identical points:UserWarning")
@parametrize_with_checks(
    [MetricLearner(features=Quadratic()), MetricLearner(features=Local(2))], expected_failed_checks=known_check_failures
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# -- explanations ------------------------------------------------------------------------------------------------


def test_explain_shows_weights_by_region(moons):
    pytest.importorskip("pandas")
    X, y = moons
    learner = MetricLearner(features=Local(3), **SETTINGS).fit(X, y)
    table = learner.explain()
    assert table.index.name == "feature" and set(table.index) == {"x0", "x1"}
    assert list(table.columns) == ["weight", "region 1", "region 2", "region 3"]
    metric, deviation = learner.metric_, X.std(axis=0)
    local = np.array([np.diagonal(metric.at(x)) * deviation**2 for x in X])
    nearest = metric.features.memberships(X).argmax(axis=1)
    for j, name in enumerate(["x0", "x1"]):
        np.testing.assert_allclose(table.loc[name, "weight"], local[:, j].mean())
        np.testing.assert_allclose(table.loc[name, "region 2"], local[nearest == 1, j].mean())
    assert np.array_equal(learner.explain(X, y).to_numpy(), table.to_numpy())
    pairs = learner.explain(pairs=True)
    cross = np.mean([metric.at(x)[0, 1] for x in X]) * deviation.prod()
    np.testing.assert_allclose(pairs["weight"], [cross])
    assert list(pairs.columns) == ["with", "weight"]


def test_explain_without_regions(moons):
    pytest.importorskip("pandas")
    learner = MetricLearner(features=Quadratic(), **SETTINGS).fit(*moons)
    assert list(learner.explain().columns) == ["weight"]
    with pytest.raises(ValueError, match="Pass X"):
        pickle.loads(pickle.dumps(learner)).explain()


@pytest.mark.parametrize("scaled", [False, True])
def test_the_report_of_a_local_metric(moons, tmp_path, scaled):
    pytest.importorskip("jinja2")
    X, y = moons
    scaling = Scaling.of(X)
    rows = scaling.apply(X) if scaled else X
    learner = MetricLearner(features=Local(3), **SETTINGS).fit(rows, y)
    model = dataclasses.replace(learner.metric_, scaling=scaling) if scaled else learner
    page = mahalo.report.write(model, X, y, tmp_path / "page.html").read_text()
    assert "The weights of this metric vary with place" in page
    assert "Region 3" in page


def test_features_that_are_not_numbers_are_refused(rng):
    X = rng.standard_normal((40, 3))
    message = r"the features FunctionTransformer return NaN or infinity for \d+ of 40 rows \("
    with np.errstate(invalid="ignore"), pytest.raises(ValueError, match=message):
        MetricLearner(features=FunctionTransformer(np.log)).fit(X, np.arange(40) % 2)
