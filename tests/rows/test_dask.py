"""Estimators on Dask rows: equal to those on rows in memory, in few passes, for any division into blocks."""

from __future__ import annotations

import warnings

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from running import run_python
from sklearn.datasets import load_wine
from sklearn.exceptions import DataConversionWarning

from mahalo import Constraints, MetricLearner, MetricLearnerCV, metric_path
from mahalo.basis import BetweenBasis, ClassBasis, KMeansBasis, RandomSubset, SingularVectors
from mahalo.constraints import as_labels
from mahalo.embeddings import EmbeddingAdapter
from mahalo.priors import Covariance, Within
from mahalo.rows import Needs
from mahalo.rows.dask import DaskRows, passes
from mahalo.rows.moments import as_block

FEW = 1_000  # rows drawn, in place of 20,000


@pytest.fixture(autouse=True)
def one_thread():
    with dask.config.set(scheduler="synchronous"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The inplace keyword")  # of pandas, in Dask
        yield


@pytest.fixture
def few_drawn(monkeypatch):
    monkeypatch.setattr(passes, "_SAMPLE_ROWS", FEW)
    monkeypatch.setattr(passes, "_MIN_SAMPLE_ROWS", FEW)
    monkeypatch.setattr(passes, "_ROWS_PER_CLASS", 50)


def classes_of(n: int, d: int = 6, c: int = 4, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, c, n)
    X = 2.0 * rng.standard_normal((c, d))[y] + rng.standard_normal((n, d)) @ rng.standard_normal((d, d)) + 3.0
    return X, y


def lazy(X, y, rows=777):
    return da.from_array(X, chunks=(rows, -1)), da.from_array(y, chunks=rows)


def assert_same(one, other, tol=1e-9):
    A, B = one.metric_.matrix, other.metric_.matrix
    assert np.abs(A - B).max() <= tol * np.abs(B).max()


SETTINGS = [
    {},
    {"prior": "diagonal"},
    {"prior": "covariance", "n_components": 3},
    {"prior": "within"},
    {"prior": Within(shrinkage=0.1, extra=0.3)},
    {"prior": Covariance("auto")},
    {"prior": "within", "basis": BetweenBasis(), "residual": 0.3},
    {"prior": "within", "basis": 4, "residual": False},
    {"prior": "diagonal", "basis": ClassBasis(2)},
    {"basis": ClassBasis(2, random_classes=True)},
    {"basis": SingularVectors(3)},
    {"prior": "diagonal", "basis": SingularVectors(2), "residual": 0.3},
    {"prior": "within", "basis": SingularVectors(2)},
]
DRAWN = [{"basis": ClassBasis(6)}, {"basis": KMeansBasis(5)}, {"basis": RandomSubset(3)}]


# -- equal to the fit in memory ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [*SETTINGS, *DRAWN, {"strategy": "neighbors", "prior": "within"}], ids=str)
def test_few_rows_give_the_fit_in_memory(settings):
    X, y = classes_of(1500)
    assert_same(MetricLearner(**settings).fit(*lazy(X, y)), MetricLearner(**settings).fit(X, y))


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_many_rows_give_the_fit_in_memory_with_the_same_pairs(settings, few_drawn):
    X, y = classes_of(5_000)
    learner = MetricLearner(**settings).fit(*lazy(X, y))
    pairs = learner.constraints_
    assert pairs.n_rows == 5_000 and pairs.pairs.index.max() > FEW
    assert (np.equal(*y[pairs.pairs.index].T) == (pairs.pairs.sign > 0)).all()
    expected = MetricLearner(**settings).fit(X, y, constraints=pairs)
    if "random_classes=True" not in str(settings):  # which classes are drawn depends on what was drawn before
        assert_same(learner, expected)
    assert learner.certificate_.converged


@pytest.mark.parametrize("d", [6, 300])
def test_singular_vectors_are_those_of_all_rows(d, few_drawn):
    """Far from the origin, in columns of very different units, whether or not they are few."""
    X, y = classes_of(3_000, d)
    X = 1e3 + X * np.logspace(-3, 3, d)
    U = MetricLearner(basis=SingularVectors(3)).fit(*lazy(X, y)).metric_.coordinates.basis
    V = np.linalg.svd(X, full_matrices=False)[2][:3].T
    np.testing.assert_allclose(U @ U.T, V @ V.T, atol=1e-9)


def test_singular_vectors_of_very_many_columns_are_of_drawn_rows(few_drawn, monkeypatch):
    """No matrix of all pairs of columns is computed."""
    monkeypatch.setattr("mahalo.basis.elementary.EIGEN_ROWS", 5)
    monkeypatch.setattr("mahalo.rows.in_memory.MAX_CONDENSED_COLUMNS", 5)
    X, y = classes_of(3_000)
    learner = MetricLearner(basis=SingularVectors(2)).fit(*lazy(X, y))
    assert learner._needs(True, False, 6).order == "none"
    U, V = learner.metric_.coordinates.basis, np.linalg.svd(X, full_matrices=False)[2][:2].T
    assert 1e-6 < np.abs(U @ U.T - V @ V.T).max() < 0.3


@pytest.mark.parametrize("prior", ["identity", "within"])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_cluster_centres_are_those_of_all_rows(prior, form, few_drawn):
    """Clusters so far apart that the nearest centre is that of one's own: their means are the basis."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 4_000)
    X = 100.0 * np.eye(6)[y] + rng.standard_normal((4_000, 6))
    rows = da.from_array(X, chunks=(777, -1)).map_blocks(form)
    learner = MetricLearner(prior=prior, basis=KMeansBasis(3)).fit(rows, y)
    means = np.array([X[y == c].mean(axis=0) for c in range(3)])
    assert_same(learner, MetricLearner(prior=prior, basis=means.T).fit(X, y, constraints=learner.constraints_))


@pytest.mark.parametrize("settings", [*SETTINGS, *DRAWN], ids=str)
def test_blocks_do_not_matter(settings, few_drawn):
    X, y = classes_of(5_000)
    uneven = da.from_array(X, chunks=((1, 0, 3000, 7, 0, 1992), (2, 4)))
    fits = [MetricLearner(**settings, random_state=3).fit(*lazy(X, y, rows)) for rows in (5_000, 333)]
    fits.append(MetricLearner(**settings, random_state=3).fit(uneven, y))
    first, *others = fits
    for other in others:
        assert (first.constraints_.pairs.index == other.constraints_.pairs.index).all()
        assert_same(first, other)
    again = MetricLearner(**settings, random_state=3).fit(*lazy(X, y, 333))
    assert (again.metric_.F == fits[1].metric_.F).all()  # to the last bit on the same blocks


def test_another_seed_draws_other_rows(few_drawn):
    X, y = lazy(*classes_of(5_000))
    one, other = (MetricLearner(random_state=k).fit(X, y).constraints_.pairs.index for k in (0, 1))
    assert not np.isin(one, other).all()


def test_constraints_by_number_of_row(few_drawn):
    X, y = classes_of(5_000)
    given = Constraints.from_labels(y, pairs_per_class=20, random_state=1)
    given = given + Constraints.from_triplets([[4999, 4998, 0]], margin=0.1)
    given = given + Constraints.from_quadruplets([[17, 4000, 3, 2500]], margin=0.1)
    settings = {"prior": "within", "bounds": (1.0, 9.0), "tol": 1e-10}
    for labels in (y, None):
        learner = MetricLearner(**settings).fit(lazy(X, y)[0], labels, constraints=given)
        expected = MetricLearner(**settings).fit(X, labels, constraints=given)
        assert_same(learner, expected, 1e-7)
        assert (learner.constraints_.pairs.index == given.pairs.index).all()
        assert np.array_equal(learner.constraints_.linear.matrix[0].nonzero(), given.linear.matrix[0].nonzero())
    with pytest.raises(ValueError, match="refer to row 5000, but X has 5000 rows"):
        MetricLearner().fit(lazy(X, y)[0], constraints=Constraints.from_pairs([[0, 5000]]))


def test_messages_name_rows_by_their_number(few_drawn):
    X, y = classes_of(5_000)
    X[4321] = X[1234]
    impossible = Constraints.from_pairs([[1, 2]], [[4321, 1234], [3, 4]])
    with pytest.warns(UserWarning, match=r"\(4321, 1234\)"):
        MetricLearner().fit(lazy(X, y)[0], constraints=impossible)


def test_all_gammas_at_once():
    X, y = classes_of(1500)
    ours, expected = (metric_path(*data, gammas=[0.1, 1.0], prior="within") for data in (lazy(X, y), (X, y)))
    for one, other in zip(ours.metrics, expected.metrics, strict=True):
        np.testing.assert_allclose(one.matrix, other.matrix, rtol=1e-8, atol=1e-10)


# -- choosing ---------------------------------------------------------------------------------------------------------


def test_few_rows_give_the_choice_in_memory():
    X, y = load_wine(return_X_y=True)
    ours, expected = (MetricLearnerCV(gammas=[0.1, 1.0]).fit(*data) for data in (lazy(X, y, 50), (X, y)))
    assert (ours.gamma_, ours.prior_, ours.strategy_) == (expected.gamma_, expected.prior_, expected.strategy_)
    assert ours.best_score_ == expected.best_score_
    assert_same(ours, expected)


def test_adapter_on_many_rows(few_drawn):
    X, y = classes_of(6_000, d=8, c=5)
    X = X.astype(np.float32)
    adapters = [EmbeddingAdapter(gammas=[0.1]).fit(*lazy(X, y, rows)) for rows in (1_000, 700)]
    assert adapters[0].best_score_ == adapters[1].best_score_
    np.testing.assert_allclose(adapters[0].matrix_, adapters[1].matrix_, rtol=1e-7, atol=1e-9)
    assert adapters[0].before_after_.after["MAP"] > adapters[0].before_after_.before["MAP"]
    moved = adapters[0].transform(lazy(X, y)[0])
    assert moved.dtype == np.float32
    np.testing.assert_allclose(moved.compute(), adapters[0].transform(X), atol=1e-6)


def test_choice_from_pairs_alone(few_drawn):
    X, y = classes_of(3_000)
    given = Constraints.from_labels(y[:400], pairs_per_class=60, random_state=0).pairs
    pairs = Constraints.from_pairs(given.index[given.sign > 0] + 2_600, given.index[given.sign < 0] + 2_600)
    settings = {"gammas": [0.1, 1.0], "prior": "within", "bounds": (1.0, 9.0), "residual": [0.0, 0.5], "basis": 3}
    ours = MetricLearnerCV(**settings).fit(lazy(X, y)[0], constraints=pairs)
    assert ours.constraints_.pairs.index.min() >= 2_600 and ours.certificate_.converged
    chosen = {"gamma": ours.gamma_, "residual": ours.residual_, "prior": "within", "basis": BetweenBasis(3)}
    learner = MetricLearner(**chosen, bounds=(1.0, 9.0)).fit(lazy(X, y)[0], constraints=pairs)
    expected = MetricLearner(**chosen, bounds=(1.0, 9.0)).fit(X, constraints=pairs)
    assert_same(learner, expected, 1e-6)


def test_custom_scoring_gets_the_original_labels(few_drawn):
    X, y = classes_of(3_000)
    names = np.array(["ash", "birch", "elm", "yew"])[y]
    seen = set()

    def score(metric, X_train, y_train, X_test, y_test):
        seen.update(y_test)
        return 0.0

    MetricLearnerCV(gammas=[1.0], scoring=score, strategy="random", cv=2).fit(*lazy(X, names))
    assert seen == {"ash", "birch", "elm", "yew"}


def test_custom_folds_are_refused():
    X, y = classes_of(200)
    with pytest.raises(ValueError, match="cv must be a number of folds"):
        MetricLearnerCV(cv=[(np.arange(100), np.arange(100, 200))]).fit(*lazy(X, y))


# -- passes, and what is collected ------------------------------------------------------------------------------------


class CountingSource:
    """An array that counts how often each row is read."""

    def __init__(self, X):
        self.X, self.shape, self.dtype, self.ndim = X, X.shape, X.dtype, X.ndim
        self.reads = np.zeros(len(X), dtype=int)

    def __getitem__(self, index):
        self.reads[index[0]] += 1
        return self.X[index]


def counted(X, rows=500):
    source = CountingSource(X)
    return source, da.from_array(source, chunks=(rows, -1), asarray=False, meta=np.empty((0, 0), X.dtype))


@pytest.mark.parametrize(
    "settings, passes_needed",
    [
        ({}, 1),
        ({"prior": "diagonal"}, 1),
        ({"basis": SingularVectors(2)}, 1),
        ({"prior": "within"}, 2),
        ({"prior": "within", "basis": ClassBasis(4)}, 2),
        ({"prior": "within", "basis": SingularVectors(2)}, 2),
        ({"basis": KMeansBasis(4)}, 2),
        ({"prior": "within", "basis": KMeansBasis(4)}, 3),
    ],
    ids=str,
)
def test_number_of_passes(settings, passes_needed, few_drawn):
    X, y = classes_of(5_000)
    source, rows = counted(X)
    MetricLearner(**settings).fit(rows, y)
    assert (source.reads == passes_needed).all()


def test_unknown_lengths_cost_a_third_pass(few_drawn):
    X, y = classes_of(5_000)
    source, rows = counted(X)
    unknown = rows[rows[:, 0] > -np.inf]
    MetricLearner(prior="within", basis=ClassBasis(4)).fit(unknown, y)
    assert (source.reads == 3).all()


def test_rare_classes_take_a_second_pass(few_drawn):
    X, y = classes_of(5_000)
    y[y == 3] = 0
    y[:30] = 3
    source, rows = counted(X)
    learner = MetricLearner(pairs_per_class=25).fit(rows, y)
    assert (source.reads == 2).all()
    assert (y[learner.constraints_.pairs.index] == 3).all(axis=1).sum() == 25


def test_bytes_collected_do_not_grow_with_rows(monkeypatch, few_drawn):
    d, c = 6, 4
    collected = []
    plain = passes.run

    def counting(tasks, what, show):
        found = plain(tasks, what, show)
        collected.append(sum(_bytes(one) for one in found))
        return found

    monkeypatch.setattr(passes, "run", counting)
    for n in (4_000, 16_000):
        X, y = classes_of(n, d, c)
        collected.clear()
        learner = MetricLearner(prior="within", basis=BetweenBasis()).fit(*lazy(X, y, 500))
        first, second = collected
        sample = DaskRows(*lazy(X, y), as_labels).sampled(Needs(), np.empty(0, int), key=_key_of(learner))
        row = 8 * d + 8 + 8  # numbers, its own number and its class
        moments = 8 * (c + c * d + d * d) + 8 * (1 + d + d * d) + 8 * c  # labelled, unlabelled, names of classes
        assert first == moments + sample.n_uniform * row
        assert abs(sample.n_uniform - FEW) < 5 * FEW**0.5
        assert second == 8  # one fourth moment, and no class is rare


def _key_of(learner):
    return int(np.random.default_rng(0).integers(2**63))


def _bytes(thing) -> int:
    if isinstance(thing, np.ndarray):
        return thing.nbytes
    return sum(_bytes(part) for part in vars(thing).values()) if hasattr(thing, "__dict__") else 0


def test_leading_rows_are_a_uniform_sample(few_drawn):
    X, y = classes_of(20_000)
    sample = DaskRows(*lazy(X, y, 3_000), as_labels).sampled(Needs(), np.empty(0, int), key=5)
    assert (np.diff(sample.numbers[: sample.n_uniform]) > 0).all()
    assert (X[sample.numbers] == sample.X).all() and (sample.codes == y[sample.numbers]).all()
    share = np.bincount(y[sample.numbers[: sample.n_uniform]]) / sample.n_uniform
    np.testing.assert_allclose(share, np.bincount(y) / len(y), atol=0.06)
    np.testing.assert_allclose(np.histogram(sample.numbers, 4)[0], FEW / 4, rtol=0.25)


# -- what may be given ------------------------------------------------------------------------------------------------


def test_frames_and_series(few_drawn, tmp_path):
    X, y = classes_of(3_000)
    frame = pd.DataFrame(X.astype(np.float32), columns=list("abcdef"))
    frame["label"] = pd.Categorical(np.array(["u", "v", "w", "x"])[y])
    dd.from_pandas(frame, npartitions=5).to_parquet(tmp_path / "rows")
    table = dd.read_parquet(tmp_path / "rows")
    learner = MetricLearner(prior="within").fit(table.drop(columns="label"), table["label"])
    assert list(learner.feature_names_in_) == list("abcdef")
    expected = MetricLearner(prior="within").fit(
        frame.drop(columns="label"), frame["label"], constraints=learner.constraints_
    )
    assert_same(learner, expected, 1e-6)
    moved = learner.transform(table.drop(columns="label"))
    np.testing.assert_allclose(moved.compute(), expected.transform(frame.drop(columns="label")), rtol=1e-3, atol=1e-4)
    with pytest.raises(ValueError, match=r"columns of X must be numbers; got 'label' \(category\)"):
        MetricLearner().fit(table, table["label"])
    with pytest.raises(ValueError, match="feature names should match"):
        learner.transform(table[["b", "a", "c", "d", "e", "f"]])


@pytest.mark.parametrize("kind", ["Float64", "Int32", "float64[pyarrow]"])
def test_frames_of_other_numbers(kind):
    X, y = classes_of(300)
    X = np.round(X)
    frame = dd.from_pandas(pd.DataFrame(X).astype(kind).rename(columns=str), npartitions=3)
    assert_same(MetricLearner().fit(frame, y), MetricLearner().fit(X, y))


def test_zarr_and_memory_maps(tmp_path, few_drawn):
    zarr = pytest.importorskip("zarr", minversion="3")
    X, y = classes_of(3_000)
    stored = zarr.create_array(str(tmp_path / "rows.zarr"), shape=X.shape, chunks=(400, 6), dtype="f8")
    stored[:] = X
    mapped = np.memmap(tmp_path / "rows.bin", dtype="f8", mode="w+", shape=X.shape)
    mapped[:] = X
    expected = MetricLearner(prior="within").fit(*lazy(X, y))
    for rows in (da.from_zarr(stored), da.from_array(mapped, chunks=(500, 6))):
        assert_same(MetricLearner(prior="within").fit(rows, y), expected)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"prior": "diagonal"},
        {"prior": "within"},
        {"prior": "covariance"},
        {"basis": 4},
        {"basis": SingularVectors(2)},
        {"prior": "within", "basis": SingularVectors(2)},
    ],
    ids=str,
)
def test_sparse_blocks(settings, few_drawn):
    X, y = classes_of(4_000)
    X[np.random.default_rng(1).random(X.shape) < 0.3] = 0.0
    dense, labels = lazy(X, y)
    for kind in (sp.csr_matrix, sp.csr_array):
        rows = dense.map_blocks(kind)
        learner = MetricLearner(**settings).fit(rows, labels)
        expected = MetricLearner(**settings).fit(sp.csr_array(X), y, constraints=learner.constraints_)
        assert_same(learner, expected)
        np.testing.assert_allclose(learner.transform(rows).compute(), expected.transform(X), atol=1e-8)


@pytest.mark.parametrize("unlabelled", [-1, None])
def test_unlabelled_rows(unlabelled, few_drawn):
    X, y = classes_of(4_000)
    y = y.astype(object) if unlabelled is None else y
    y[::3] = unlabelled
    for settings in (
        {"prior": "within"},
        {"prior": "covariance"},
        {"prior": Covariance("auto")},
        {"prior": "diagonal"},
    ):
        learner = MetricLearner(**settings).fit(*lazy(X, y))
        assert_same(learner, MetricLearner(**settings).fit(X, y, constraints=learner.constraints_))


def test_masked_labels_are_none(few_drawn):
    X, y = classes_of(4_000)
    rows, _ = lazy(X, y)
    masked = np.ma.array(y, mask=y == 1)
    expected = MetricLearner(prior="within").fit(rows, np.where(y == 1, -1, y))
    for labels in (masked, da.from_array(masked, chunks=1000)):
        assert_same(MetricLearner(prior="within").fit(rows, labels), expected)


def test_labels_of_any_kind_and_anywhere(few_drawn):
    X, y = classes_of(3_000)
    rows, labels = lazy(X, y)
    expected = MetricLearner(prior="within").fit(rows, labels)
    names = np.array(["a", "bb", "ccc", "dd"], dtype=object)[y]
    column = pd.Series(y, name="y")
    given = (y, y.tolist(), labels[:, None], names, lazy(X, names)[1], column, da.from_array(y, chunks=200), y + 0.0)
    for other in given:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataConversionWarning)  # y in one column of two dimensions
            assert_same(MetricLearner(prior="within").fit(rows, other), expected)
    frame = dd.from_pandas(column, npartitions=4)
    with pytest.raises(ValueError, match=r"X comes in 4 blocks, y in 3"):
        MetricLearner().fit(rows, frame.repartition(npartitions=3))


def test_blocks_of_no_rows_and_of_unknown_length(few_drawn):
    X, y = classes_of(3_000)
    table = pd.DataFrame(np.column_stack([X, y, np.arange(3_000)]), columns=list("abcdefyn"))
    frame = dd.from_pandas(table, npartitions=6)
    kept = frame[frame["n"] > 700]  # a whole block falls out
    learner = MetricLearner(prior="within").fit(kept[list("abcdef")], kept["y"].astype(int))
    expected = MetricLearner(prior="within").fit(X[701:], y[701:], constraints=learner.constraints_)
    assert_same(learner, expected)
    assert learner.transform(kept[list("abcdef")]).compute().shape == (3_000 - 701, 6)
    values = kept[list("abcdef")].to_dask_array()
    assert np.isnan(values.shape[0])
    assert_same(MetricLearner(prior="within").fit(values, kept["y"].astype(int)), expected)


def test_single_precision_stays_single():
    X, y = classes_of(1_000)
    rows, labels = lazy(X.astype(np.float32), y)
    learner = MetricLearner(prior="within").fit(rows, labels)
    assert learner.transform(rows).dtype == learner.transform(rows).compute().dtype == np.float32
    assert_same(learner, MetricLearner(prior="within").fit(X.astype(np.float32), y), 1e-4)


@pytest.mark.parametrize(
    "change, message",
    [
        (
            lambda X, y: {"X": da.where(da.arange(600, chunks=100)[:, None] == 321, np.nan, X)},
            "row 321 of X contains NaN",
        ),
        (lambda X, y: {"y": y[:-1]}, "X has 600 rows, y has 599"),
        (lambda X, y: {"y": da.zeros(600, chunks=100)}, "y has 1 class"),
        (lambda X, y: {"y": da.random.default_rng(0).random(600, chunks=100)}, "continuous"),
        (lambda X, y: {"X": X[:, 0]}, "must have rows and columns"),
        (lambda X, y: {"X": X.astype(complex)}, "must hold numbers"),
        (lambda X, y: {"X": X[:1], "y": y[:1]}, "at least 2 rows"),
        (lambda X, y: {"rows": np.arange(600)}, "leave rows= out"),
        (lambda X, y: {"y": None}, "requires y to be passed"),
        (lambda X, y: {"X": X.compute()}, "y.compute()"),
    ],
)
def test_unusable_input_is_refused(change, message):
    X, y = lazy(*classes_of(600), rows=100)
    with pytest.raises(ValueError, match=message.replace("(", r"\(").replace(")", r"\)")):
        MetricLearner().fit(**{"X": X, "y": y} | change(X, y))


@pytest.mark.parametrize(
    "settings, message", [({"kernel": "rbf"}, "rows in memory"), ({"prior": "within"}, "at most 5000")]
)
def test_settings_that_rows_on_dask_do_not_suit(settings, message):
    X = da.zeros((100, 6_000), chunks=(50, -1))
    with pytest.raises(ValueError, match=message):
        MetricLearner(**settings).fit(X, np.arange(100) % 2)


def test_labels_of_different_kinds_in_different_blocks():
    X, y = classes_of(200)
    mixed = np.where(np.arange(200) < 100, "a", y).astype(object)
    mixed[100:] = y[100:]
    with pytest.raises(ValueError, match="mixes labels of different kinds"):
        MetricLearner().fit(*lazy(X, mixed, 100))


def test_scores_and_kernels_want_rows_in_memory():
    X, y = lazy(*classes_of(300))
    learner = MetricLearner().fit(X, y)
    with pytest.raises(ValueError, match="score takes rows in memory"):
        learner.score(X, y)
    with pytest.raises(ValueError, match=r"X\.compute\(\)"):
        learner.metric_.kernel(X)


# -- lazy answers -----------------------------------------------------------------------------------------------------


@pytest.fixture
def learned():
    X, y = classes_of(400)
    return X, MetricLearner(prior="within").fit(X, y).metric_


@pytest.mark.parametrize(
    "settings", [{}, {"normalize": True}, {"basis": 4, "residual": 0.5}, {"n_components": 2}], ids=str
)
def test_transform_is_lazy_and_the_same(settings):
    X, y = classes_of(400)
    learner = MetricLearner(**settings).fit(X, y)
    source, rows = counted(X, 90)
    moved = learner.transform(rows)
    assert isinstance(moved, da.Array) and moved.chunks[0] == rows.chunks[0] and not source.reads.any()
    np.testing.assert_allclose(moved.compute(), learner.transform(X), atol=1e-12)
    assert moved.shape == learner.transform(X).shape


def test_distances_by_blocks(learned):
    X, metric = learned
    rows = da.from_array(X, chunks=(90, 4))
    expected = metric.distances(X[:50], X, squared=True)
    for a, b in ((X[:50], rows), (rows[:50], X), (rows[:50], rows)):
        np.testing.assert_allclose(metric.distances(a, b, squared=True).compute(), expected, atol=1e-9)
    own = metric.distances(rows).compute()
    assert (np.diagonal(own) == 0).all()
    np.testing.assert_allclose(own, metric.distances(X), atol=1e-6)
    np.testing.assert_allclose(metric.pair_distances(rows, X[::-1]).compute(), metric.pair_distances(X, X[::-1]))
    with pytest.raises(ValueError, match="got 400 and 399"):
        metric.pair_distances(rows, rows[1:])


def test_nearest_rows_by_blocks(learned):
    X, metric = learned
    rows = da.from_array(X, chunks=((3, 0, 97, 300), -1))
    D = metric.distances(X[:40], X)
    expected = np.argsort(D, axis=1, kind="stable")[:, :7]
    for a, b in ((X[:40], X), (X[:40], rows), (rows[:40], X), (rows[:40], rows)):
        distances, found = dask.compute(*metric.kneighbors(a, b, 7))
        assert (found == expected).all()
        np.testing.assert_allclose(distances, np.take_along_axis(D, expected, axis=1), atol=1e-6)
    assert dask.compute(*metric.kneighbors(X[:2], rows, 1_000))[1].shape == (2, 400)
    source, seen = counted(X, 90)
    dask.compute(*metric.kneighbors(X[:40], seen, 7))
    assert (source.reads == 1).all()


def test_nearest_rows_of_no_rows_are_an_error(learned):
    X, metric = learned
    none = da.from_array(X, chunks=(100, -1))
    for left in (none[:0], none[none[:, 0] > np.inf]):  # of a length that is known, and of one that is not
        with pytest.raises(ValueError, match="Y has no rows"):
            metric.kneighbors(X[:2], left)
    with pytest.raises(ValueError, match="nothing to merge"):
        passes.merge_tree([], list)


# -- apart from that --------------------------------------------------------------------------------------------------


def test_dask_is_imported_only_for_dask_rows(tmp_path):
    script = tmp_path / "plain.py"
    script.write_text(
        "import sys, mahalo, mahalo.embeddings\n"
        "mahalo.MetricLearner().fit([[0.0], [1.0], [5.0], [6.0]], [0, 0, 1, 1])\n"
        "print(any(name.partition('.')[0] in ('dask', 'distributed') for name in sys.modules))\n"
    )
    assert run_python(script, cwd=tmp_path).stdout.strip() == "False"


def test_progress_is_shown(capsys):
    X, y = lazy(*classes_of(1_000))
    MetricLearner(prior="within", verbose=2).fit(X, y)
    shown = capsys.readouterr().err
    assert "first pass: [" in shown and "second pass: [████████████████████]" in shown
    assert capsys.readouterr().out == ""


def test_threads_give_the_same(few_drawn):
    X, y = classes_of(5_000)
    alone = MetricLearner(prior="within").fit(*lazy(X, y, 100))
    with dask.config.set(scheduler="threads", num_workers=4):
        together = MetricLearner(prior="within").fit(*lazy(X, y, 100))
    assert (alone.metric_.F == together.metric_.F).all()


def test_blocks_stay_as_they_are():
    """Entries that are listed twice are added up in a copy."""
    doubled = sp.csr_array(([1.0, 2.0, 4.0], [0, 0, 1], [0, 2, 3]), shape=(2, 2))
    block = as_block(doubled, 0, np.dtype(np.float64))
    assert block.toarray().tolist() == [[3.0, 0.0], [0.0, 4.0]] and block.nnz == 2
    assert doubled.nnz == 3 and doubled.data.tolist() == [1.0, 2.0, 4.0]


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("prior", [Within(), Covariance("auto"), Within(shrinkage=0.1, extra=0.3)])
@pytest.mark.parametrize("unit", [1e-140, 1e-100, 2.0**-300, 2.0**300, 1e100, 1e140])
def test_priors_from_moments_in_any_unit(unit, prior, sparse, few_drawn):
    X, y = classes_of(1_200)
    learner = MetricLearner(prior=prior, random_state=0, tol=1e-10)

    def distances(X):
        rows, labels = lazy(X, y)
        learner.fit(rows.map_blocks(sp.csr_array) if sparse else rows, labels)
        return learner.metric_.distances(X[:100])

    one = distances(X)
    np.testing.assert_allclose(distances(unit * X), unit * one, rtol=0, atol=1e-9 * unit * one.max())


def test_constraints_in_the_place_of_labels_are_refused(rng):
    X = da.from_array(rng.standard_normal((60, 3)), chunks=(20, 3))
    with pytest.raises(ValueError, match=r"got a mahalo.Constraints. Pass it by name, as constraints="):
        MetricLearner().fit(X, Constraints.from_pairs([[0, 5]], [[0, 1]]))


def test_the_space_of_few_rows_on_dask_is_chosen_as_in_memory():
    """All of them are held, so that a curved space, which needs rows in memory, may win."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 4))
    y = (np.linalg.norm(X, axis=1) > 1.9).astype(int)
    held = MetricLearnerCV(random_state=0).fit(X, y)
    lazy = MetricLearnerCV(random_state=0).fit(da.from_array(X, chunks=(100, 4)), da.from_array(y, chunks=100))
    assert held.space_ == lazy.space_ in ("quadratic", "local", "rbf")
    np.testing.assert_allclose(lazy.metric_.distances(X), held.metric_.distances(X), rtol=1e-6, atol=1e-8)


def test_no_kernel_of_a_list_suits_rows_on_dask(rng):
    X, y = da.from_array(rng.standard_normal((60, 3)), chunks=(20, 3)), da.from_array(np.arange(60) % 2, chunks=20)
    with pytest.raises(ValueError, match="kernel='rbf' needs rows in memory"):
        MetricLearnerCV(kernel=["linear", "rbf"]).fit(X, y)
