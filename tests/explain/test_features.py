"""What features bring adds up to the distances, in every linear space; kernels have no features."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from builders import labelled_data

from mahalo import Constraints, MetricLearner
from mahalo.embeddings import EmbeddingAdapter
from mahalo.explain.features import feature_shares, sample_pairs
from mahalo.explain.linear import LinearWeights
from mahalo.metric import Scaling, absorb_scaling
from mahalo.priors import Within

SPACES = [
    {},
    {"prior": "diagonal"},
    {"prior": "covariance"},
    {"prior": "within"},
    {"basis": 3},
    {"basis": 3, "residual": 0.0},
    {"basis": 3, "residual": 0.3, "prior": Within(extra=1.0)},
    {"n_components": 2},
    {"normalize": True, "basis": 3, "residual": 0.5},
    {"loss": "frobenius", "basis": 3},
]


@pytest.fixture
def data(rng):
    y = np.arange(60) % 3
    return rng.normal(size=(60, 8)) * np.arange(1, 9) + 2.0 * y[:, None], y


@pytest.mark.parametrize("parameters", SPACES, ids=str)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_contributions_add_up_to_the_squared_distances(data, parameters, form):
    X, y = data
    learner = MetricLearner(**parameters).fit(form(X), y)
    table = learner.explain()
    assert sorted(table.index) == [f"x{j}" for j in range(8)]
    for kind, index in sample_pairs(y, None).items():
        i, j = index.T
        mean = learner.metric_.pair_distances(X[i], X[j], squared=True)[:500].mean()
        if len(index) <= 500:
            assert table[kind].sum() == pytest.approx(mean, rel=1e-8)
    again = learner.explain(form(X), y)
    np.testing.assert_allclose(again.loc[table.index], table, rtol=1e-10)


@pytest.mark.parametrize("parameters", SPACES, ids=str)
def test_weights_are_entries_of_the_matrix(data, parameters):
    learner = MetricLearner(**parameters).fit(*data)
    W, some = learner.metric_.matrix, np.array([1, 4, 6])
    weights = LinearWeights(learner.metric_)
    close = {"rtol": 0, "atol": 1e-10 * np.abs(W).max()}
    np.testing.assert_allclose(weights.diagonal(), np.diag(W), **close)
    np.testing.assert_allclose(weights.submatrix(some), W[np.ix_(some, some)], **close)
    np.testing.assert_allclose(weights.times(data[0]), data[0] @ W, rtol=1e-8, atol=1e-8 * np.abs(data[0] @ W).max())


def test_pairs_of_features_make_up_the_rest(data):
    """Σ W_jj E δ_j² + Σ 2 W_jk E δ_j δ_k = E d²."""
    X, y = data
    learner = MetricLearner().fit(X, y)
    pairs, features = learner.explain(pairs=True), learner.explain()
    assert len(pairs) == 8 * 7 / 2
    W = learner.metric_.matrix
    first, second = (pairs.index.str[1:].astype(int), pairs["with"].str[1:].astype(int))
    deviation = X.std(axis=0)
    np.testing.assert_allclose(pairs["weight"], W[first, second] * deviation[first] * deviation[second])
    np.testing.assert_allclose(features["weight"].sort_index(), np.diag(W) * deviation**2)
    own = {kind: np.diagonal(m) @ np.diagonal(W) for kind, m in learner._training_shares().cross_parts.items()}
    for kind in ("similar", "dissimilar"):
        assert own[kind] + pairs[kind].sum() == pytest.approx(features[kind].sum())


def test_features_go_by_their_names(data):
    pandas = pytest.importorskip("pandas")
    X, y = data
    named = pandas.DataFrame(X, columns=list("abcdefgh"))
    assert set(MetricLearner().fit(named, y).explain().index) == set("abcdefgh")


def test_only_what_is_known_has_a_column(data):
    X, _ = data
    similar = Constraints.from_pairs(similar=[[0, 3], [1, 4]])
    assert list(MetricLearner().fit(X, constraints=similar).explain().columns) == ["weight", "similar"]
    triplets = Constraints.from_triplets([[0, 3, 1], [1, 4, 2]])
    assert list(MetricLearner().fit(X, constraints=triplets).explain().columns) == ["weight", "similar", "dissimilar"]


def test_wide_rows_are_never_squared(rng):
    X = sp.random_array((200, 50_000), density=1e-3, random_state=rng, format="csr")
    learner = MetricLearner(basis=5).fit(X, np.arange(200) % 2)
    assert len(learner.explain()) == 50_000
    assert len(learner.explain(pairs=True)) == 60 * 59 / 2


def test_the_rows_themselves_are_not_kept(rng):
    y = np.arange(2_000) % 2
    learner = MetricLearner(basis=2).fit(rng.normal(size=(2_000, 100)), y)
    assert len(pickle.dumps(learner)) < 400_000


def test_kernels_have_no_features(data):
    with pytest.raises(ValueError, match="Use influential and suspects"):
        MetricLearner(kernel="rbf").fit(*data).explain()


def test_a_metric_from_a_file_is_explained_by_rows(data, tmp_path):
    X, y = data
    EmbeddingAdapter().fit(X, y).save(tmp_path / "a.safetensors")
    loaded = EmbeddingAdapter.load(tmp_path / "a.safetensors")
    for ask in (loaded.explain, loaded.influential, lambda: loaded.explain(X)):
        with pytest.raises(ValueError, match="pass X and y"):
            ask()
    assert len(loaded.explain(X, y)) == 8
    with pytest.raises(ValueError, match="one label for each of the 60 rows"):
        loaded.explain(X, y[:3])
    with pytest.raises(ValueError, match="two classes or more"):
        loaded.explain(X, np.zeros(60))


def test_without_pandas_the_remedy_is_named(data, monkeypatch):
    learner = MetricLearner().fit(*data)
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        learner.explain()


def test_constraints_in_the_place_of_labels_are_refused(rng):
    X, y = labelled_data(rng)
    learner = MetricLearner(pairs_per_class=10).fit(X, y)
    with pytest.raises(ValueError, match=r"got a mahalo.Constraints. Pass it by name, as constraints="):
        learner.explain(X, learner.constraints_)


def test_weights_do_not_depend_on_units(data):
    """A model of raw columns, learned on standardised ones, weighs as the model of these."""
    X, y = data
    units = np.array([1e-3, 1, 1e3, 1, 10, 1, 1, 1])
    scaling = Scaling.of(X * units)
    learned = MetricLearner(random_state=0).fit(scaling.apply(X * units), y)
    raw = absorb_scaling(learned.metric_, scaling)
    for form in (np.asarray, sp.csr_array):
        shares = feature_shares(raw, form(X * units), {})
        expected = learned.explain()["weight"].sort_index()
        np.testing.assert_allclose(shares.features([f"x{j}" for j in range(8)])["weight"].sort_index(), expected)
