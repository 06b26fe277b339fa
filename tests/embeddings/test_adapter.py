"""EmbeddingAdapter: the same estimator, other defaults, and what it says about itself."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import average_precision_score
from sklearn.model_selection import ShuffleSplit

from mahalo import Constraints, load
from mahalo.embeddings import EmbeddingAdapter
from mahalo.metric import Metric


@pytest.fixture(scope="module")
def vectors():
    """Twelve classes apart in a few of thirty directions, noisy in others."""
    rng = np.random.default_rng(0)
    centres = np.zeros((12, 30))
    centres[:, :6] = rng.standard_normal((12, 6))
    y = np.repeat(np.arange(12), 15)
    noise = rng.standard_normal((180, 30)) * np.r_[0.3 * np.ones(6), 1.5 * np.ones(8), 0.2 * np.ones(16)]
    E = centres[y] + noise
    return (E / np.linalg.norm(E, axis=1, keepdims=True)).astype(np.float32), y


@pytest.fixture(scope="module")
def adapter(vectors):
    return EmbeddingAdapter(random_state=0).fit(*vectors)


def mean_average_precision(T, y):
    values = []
    for i in range(len(y)):
        others = np.arange(len(y)) != i
        values.append(average_precision_score(y[others] == y[i], -np.linalg.norm(T[others] - T[i], axis=1)))
    return np.mean(values)


def test_adapted_vectors_find_their_class(vectors, adapter):
    E, y = vectors
    T = adapter.transform(E)
    assert T.dtype == np.float32
    assert mean_average_precision(T, y) > mean_average_precision(E, y) + 0.2
    assert adapter.certificate_.converged
    np.testing.assert_allclose(np.linalg.norm(T, axis=1), 1.0, atol=1e-5)


def test_one_matrix_does_it(vectors, adapter):
    E, _ = vectors
    T = E.astype(np.float64) @ adapter.matrix_
    T /= np.linalg.norm(T, axis=1, keepdims=True)
    np.testing.assert_allclose(adapter.transform(E), T, atol=1e-5)


def test_before_and_after_are_those_of_held_out_rows(vectors, adapter):
    found = adapter.before_after_
    measures = {"10-NN", "P@1", "P@10", "MAP", "AUC", "retrieval"}
    assert set(found.before) == set(found.after) == set(found.interval) == measures
    assert found.primary == "retrieval"
    assert found.after["retrieval"] == pytest.approx(np.mean([found.after[name] for name in ("P@1", "P@10", "MAP")]))
    assert found.after["MAP"] > found.before["MAP"] + found.interval["MAP"] > 0
    assert "held-out queries" in str(found) and "frozen" in str(found)


def test_labels_that_mean_nothing_promise_nothing(vectors):
    """Each fold is judged by what the others chose: noise is not sold as gain."""
    E, y = vectors
    shuffled = np.random.default_rng(1).permutation(y)
    told = EmbeddingAdapter(random_state=0).fit(E, shuffled).before_after_
    for name in told.before:
        assert told.after[name] - told.before[name] < 0.05


def test_saved_and_loaded(vectors, adapter, tmp_path):
    E, _ = vectors
    adapter.save(tmp_path / "adapter.safetensors")
    loaded = EmbeddingAdapter.load(tmp_path / "adapter.safetensors")
    np.testing.assert_array_equal(loaded.transform(E), adapter.transform(E))
    np.testing.assert_array_equal(loaded.matrix_, adapter.matrix_)
    assert isinstance(load(tmp_path / "adapter.safetensors"), Metric)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(adapter)).transform(E), adapter.transform(E))
    assert clone(adapter).get_params() == adapter.get_params()


def test_pairs_alone(vectors):
    E, y = vectors
    pairs = Constraints.from_labels(y, pairs_per_class=60, random_state=0)
    adapter = EmbeddingAdapter(random_state=0).fit(E, constraints=pairs)
    assert set(adapter.before_after_.before) == {"pair AUC"}
    assert mean_average_precision(adapter.transform(E), y) > mean_average_precision(E, y) + 0.1


def test_classes_never_seen(vectors):
    E, y = vectors
    seen = y < 8
    adapter = EmbeddingAdapter(holdout="classes", random_state=0).fit(E[seen], y[seen])
    assert mean_average_precision(adapter.transform(E[~seen]), y[~seen]) > mean_average_precision(E[~seen], y[~seen])


def test_one_split_leaves_none_to_choose_by_and_nothing_is_told(vectors):
    E, y = vectors
    adapter = EmbeddingAdapter(cv=ShuffleSplit(1, test_size=0.3, random_state=0), gammas=[0.1]).fit(E, y)
    assert adapter.before_after_ is None
    assert adapter.cv_results_["scores"].shape[1] == 1


@pytest.mark.parametrize("n_labels", [3, 4, 5])
def test_few_labels_a_class_are_held_out_in_twos(vectors, n_labels):
    E, y = vectors
    few = np.arange(len(y)) % 15 < n_labels
    adapter = EmbeddingAdapter(gammas=[0.1], random_state=0).fit(E[few], y[few])
    assert np.isfinite(adapter.best_score_) and adapter.before_after_ is not None


@pytest.mark.parametrize("n_labels", [1, 2])
def test_too_few_labels_a_class_are_named(vectors, n_labels):
    E, y = vectors
    few = np.arange(len(y)) % 15 < n_labels
    with pytest.raises(ValueError, match=rf"retrieval needs three labels or more .* y has at most {n_labels} a class"):
        EmbeddingAdapter().fit(E[few], y[few])


def test_classes_are_held_out_by_their_labels(vectors):
    E, y = vectors
    pairs = Constraints.from_labels(y, pairs_per_class=60, random_state=0)
    with pytest.raises(ValueError, match=r"holdout='classes' needs labels y.*holdout='rows'"):
        EmbeddingAdapter(holdout="classes").fit(E, constraints=pairs)
