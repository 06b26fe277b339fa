"""Labels that were made wrong are found, in every space; clean ones are not accused; nonsense is refused."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits, load_wine
from sklearn.metrics import average_precision_score
from sklearn.preprocessing import StandardScaler

from mahalo import Constraints, MetricLearner, MetricLearnerCV
from mahalo.basis import BetweenBasis
from mahalo.embeddings import EmbeddingAdapter
from mahalo.explain.doubt import log_ratio
from mahalo.priors import Within

WRONG = {3: 1, 20: 2, 70: 2, 100: 0, 150: 0, 160: 1}


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    flipped = y.copy()
    flipped[list(WRONG)] = list(WRONG.values())
    return StandardScaler().fit_transform(X), y, flipped


def shared_words(A, B):
    return np.asarray(A) @ np.asarray(B).T


@pytest.mark.parametrize(
    "learner",
    [
        MetricLearner(),
        MetricLearner(prior="within", basis=4, residual=0.2, normalize=True),
        MetricLearner(n_components=2),
        MetricLearner(kernel="rbf", kernel_params={"gamma": 0.03}),
        MetricLearner(kernel=shared_words, basis=5),
        MetricLearner(strategy="triplets"),
        MetricLearnerCV(gammas=[0.01, 0.1]),
        EmbeddingAdapter(),
    ],
)
def test_planted_labels_come_first(wine, learner):
    X, y, flipped = wine
    found = learner.fit(X, flipped).suspects(X, flipped, 12)
    assert len(set(found.index) & set(WRONG)) >= 5
    planted = found[found.index.isin(list(WRONG))]
    assert (planted["suggested"] == y[planted.index]).mean() >= 0.8
    assert (planted["given"] == flipped[planted.index]).all()
    for row, near in zip(found.index, found["neighbours"], strict=True):
        assert row not in near and (flipped[list(near)] == found.loc[row, "suggested"]).all()
    assert (np.diff(found["score"]) <= 0).all() and found["score"].between(0, 1).all()


def test_sparse_rows_and_precomputed_kernels_are_judged_the_same(wine):
    X, _, flipped = wine
    dense = MetricLearner(tol=1e-8).fit(X, flipped).suspects(X, flipped, 10)
    sparse = MetricLearner(tol=1e-8).fit(sp.csr_array(X), flipped).suspects(sp.csr_array(X), flipped, 10)
    kernel = MetricLearner(kernel="precomputed", tol=1e-8).fit(X @ X.T, flipped).suspects(X @ X.T, flipped, 10)
    np.testing.assert_allclose(sparse["score"], dense["score"], atol=1e-6)
    np.testing.assert_allclose(kernel["score"], dense["score"], atol=1e-4)


def test_no_label_has_a_say_in_its_own_trial():
    """Where labels are noise, rows must not look better placed than a coin would place them."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(120, 60)), rng.integers(2, size=120)
    learner = MetricLearner(prior=Within(shrinkage=0.01), basis=BetweenBasis(), residual=0.0).fit(X, y)
    score = learner.suspects(X, y, 120)["score"]
    assert abs(score.mean() - 0.5) < 3 * score.std() / np.sqrt(120)
    T = learner.transform(X)
    D = np.sqrt(((T[:, None] - T) ** 2).sum(axis=2))
    np.fill_diagonal(D, np.inf)
    assert log_ratio(D, y, y)[0].mean() < -0.2  # what the metric that was told would say


def test_better_than_plain_distances_on_digits():
    X, y = load_digits(return_X_y=True)
    X, y = X[:900], y[:900]
    rng = np.random.default_rng(7)
    wrong = rng.choice(900, 45, replace=False)
    flipped = y.copy()
    flipped[wrong] = (y[wrong] + rng.integers(1, 10, 45)) % 10
    found = MetricLearner(gamma=0.03).fit(X, flipped).suspects(X, flipped, 900)
    assert average_precision_score(np.isin(found.index, wrong), found["score"]) > 0.97


def test_unlabelled_rows_neither_judge_nor_are_judged(wine):
    X, _, flipped = wine
    some = flipped.copy()
    some[::4] = -1
    found = MetricLearner().fit(X, some).suspects(X, some, 1000)
    assert len(found) == (some >= 0).sum() and (some[found.index] >= 0).all()
    assert all((some[list(near)] >= 0).all() for near in found["neighbours"])


def test_labels_and_rows_go_by_their_names(wine):
    X, _, flipped = wine
    names = np.array(["red", "rosé", "white"], dtype=object)[flipped]
    found = MetricLearner().fit(X, names).suspects(X, names, 5, index=[f"bottle {i}" for i in range(178)])
    assert set(found["given"]) <= {"red", "rosé", "white"}
    assert list(found["name"]) == [f"bottle {i}" for i in found.index]


def test_identical_rows_of_two_labels_do_no_harm(rng):
    X = np.repeat(rng.normal(size=(10, 3)), 4, axis=0)
    y = np.arange(40) % 2
    score = MetricLearner().fit(X + 0.0, np.arange(40) // 20).suspects(X, y, 40)["score"]
    assert np.isfinite(score).all()


@pytest.mark.parametrize("kernel", ["linear", "rbf", "precomputed"])
def test_wrong_pairs_come_first(wine, kernel):
    X, y, _ = wine
    rows = X @ X.T if kernel == "precomputed" else X
    pairs = Constraints.from_labels(y, pairs_per_class=60, random_state=0).pairs
    wrong = np.random.default_rng(0).choice(len(pairs), 15, replace=False)
    same = pairs.sign > 0
    same[wrong] = ~same[wrong]
    learner = MetricLearner(kernel=kernel).fit(rows, constraints=Constraints.from_pairs(pairs.index, same=same))
    found = learner.suspects(rows, n=len(pairs))
    assert average_precision_score(np.isin(found.index, wrong), found["score"]) > 0.5
    assert (found["given"] != found["suggested"]).all()


def test_wrong_triplets_come_first(wine):
    X, y, _ = wine
    triplets = Constraints.from_labels(y, X, strategy="triplets", pairs_per_class=60).triplets.index
    triplets[:5] = triplets[:5, [0, 2, 1]]
    found = MetricLearner().fit(X, constraints=Constraints.from_triplets(triplets)).suspects(X, n=10)
    assert set(range(5)) & set(found.index) and (found["suggested"] == "the other way round").all()


def test_pairs_of_one_kind_are_held_against_random_ones(wine):
    X, y, _ = wine
    pairs = Constraints.from_labels(y, pairs_per_class=60).pairs
    similar = np.concatenate([pairs.index[pairs.sign > 0], [[0, 177], [1, 176], [2, 175]]])
    score = MetricLearner().fit(X, constraints=Constraints.from_pairs(similar)).suspects(X, n=1000)["score"]
    planted = score.index >= len(similar) - 3
    assert score[planted].min() > 2 * score[~planted].mean()


def test_nonsense_is_refused(wine):
    X, y, _ = wine
    learner = MetricLearner().fit(X, y)
    with pytest.raises(ValueError, match="one label for each of the 178 rows"):
        learner.suspects(X, y[:4])
    with pytest.raises(ValueError, match="two classes with two rows each"):
        learner.suspects(X, np.zeros(178))
    with pytest.raises(ValueError, match="positive integer"):
        learner.suspects(X, y, 0)
    with pytest.raises(ValueError, match="each of the 178 rows"):
        learner.suspects(X, y, index=["a"])
    with pytest.raises(ValueError, match="the constraints are about 178 rows"):
        learner.suspects(X[:50])
    with pytest.raises(ValueError, match="there are none"):
        learner.suspects(X, constraints=Constraints.from_linear([np.eye(178)], [1.0]))
    K = MetricLearner(kernel="precomputed").fit(X @ X.T, y)
    with pytest.raises(ValueError, match="n × n"):
        K.suspects((X @ X.T)[:50], y[:50])
