"""Weights of rows: unit weights are none, zero is left out, and a pair weighs the product of its rows."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.datasets import load_wine
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mahalo import Constraints, MetricLearner, MetricLearnerCV
from mahalo.embeddings import EmbeddingAdapter
from mahalo.features import Local

X, y = load_wine(return_X_y=True)
X = StandardScaler().fit_transform(X)
N = len(y)
LEARNERS = {
    "linear": MetricLearner(random_state=0),
    "neighbours": MetricLearner(strategy="neighbors", prior="within", random_state=0),
    "rbf": MetricLearner(kernel="rbf", random_state=0),
    "local": MetricLearner(features=Local(n_regions=2), random_state=0),
    "basis": MetricLearner(basis=3, normalize=True, random_state=0),
    "chosen": MetricLearnerCV(gammas=[0.1, 1.0], cv=2, random_state=0),
    "adapter": EmbeddingAdapter(gammas=[0.1, 1.0], residual=[0.5], cv=2, random_state=0),
}
every_learner = pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS)


def same(a, b) -> None:
    np.testing.assert_array_equal(a.transform(X), b.transform(X))
    np.testing.assert_array_equal(a.duals_, b.duals_)


@every_learner
def test_unit_weights_are_none(learner):
    plain = sklearn.clone(learner).fit(X, y)
    for weight in (np.ones(N), [1] * N, 1.0):
        same(plain, sklearn.clone(learner).fit(X, y, sample_weight=weight))


@every_learner
def test_zero_is_left_out(learner):
    """Labels are names, so that the classes of the rows that are left appear in another order."""
    names = np.array(["b", "c", "a"])[y]
    kept = np.random.default_rng(0).random(N) < 0.7
    kept[:70] = False  # the first class, and some of the second
    kept[65:70] = True
    weight = np.where(kept, 1.0, 0.0)
    same(sklearn.clone(learner).fit(X[kept], names[kept]), sklearn.clone(learner).fit(X, names, sample_weight=weight))


def test_zero_is_left_out_of_constraints_too():
    c = Constraints.from_labels(y, pairs_per_class=50, random_state=0)
    kept = np.arange(N) % 3 > 0
    learner = MetricLearner(random_state=0).fit(X, constraints=c, sample_weight=kept)
    other = MetricLearner(random_state=0).fit(X[kept], constraints=c, rows=np.flatnonzero(kept))
    same(learner, other)
    assert learner.n_outside_ == other.n_outside_ > 0


@pytest.mark.parametrize("gamma", [0.1, 10.0])
def test_a_pair_weighs_the_product_of_its_rows(gamma):
    rng = np.random.default_rng(0)
    weight = rng.uniform(0.2, 3.0, N)
    c = Constraints.from_labels(y, pairs_per_class=50, random_state=0)
    i, j = c.pairs.index.T
    similar = c.pairs.sign > 0
    by_hand = Constraints.from_pairs(c.pairs.index, same=similar, weight=2.0 * weight[i] * weight[j])
    once = Constraints.from_pairs(c.pairs.index, same=similar, weight=2.0)
    found = MetricLearner(gamma=gamma, random_state=0).fit(X, constraints=once, sample_weight=weight)
    same(found, MetricLearner(gamma=gamma, random_state=0).fit(X, constraints=by_hand))
    plain = MetricLearner(gamma=gamma, random_state=0).fit(X, constraints=once)
    assert np.abs(found.transform(X) - plain.transform(X)).max() > 1e-3


def test_a_triplet_weighs_the_product_of_its_rows():
    rng = np.random.default_rng(0)
    weight = rng.uniform(0.2, 3.0, N)
    triplets = np.column_stack([rng.choice(np.flatnonzero(y == k), 60) for k in (0, 0, 1)])
    triplets = triplets[triplets[:, 0] != triplets[:, 1]]
    by_hand = Constraints.from_triplets(triplets, weight=weight[triplets].prod(axis=1))
    found = MetricLearner(random_state=0).fit(X, constraints=Constraints.from_triplets(triplets), sample_weight=weight)
    same(found, MetricLearner(random_state=0).fit(X, constraints=by_hand))


def test_weights_count_in_the_folds_of_a_choice():
    """Rows of wrong classes at next to no weight change what is chosen, and what is learned, by next to nothing."""
    rng = np.random.default_rng(0)
    wrong = rng.random(N) < 0.3
    noisy = np.where(wrong, (y + 1) % 3, y)
    weight = np.where(wrong, 1e-6, 1.0)
    learner = MetricLearnerCV(kernel="linear", features=None, prior="identity", gammas=[0.1], cv=2, random_state=0)
    weighted = sklearn.clone(learner).fit(X, noisy, sample_weight=weight)
    plain = sklearn.clone(learner).fit(X, noisy)
    clean = np.flatnonzero(~wrong)
    assert weighted.score(X[clean], y[clean]) > plain.score(X[clean], y[clean]) + 0.01
    scores = [fitted.cv_results_["mean_score"][0] for fitted in (weighted, plain)]
    assert scores[0] != scores[1]


def test_sparse_rows_and_pipelines_take_weights():
    weight = np.random.default_rng(0).integers(0, 3, N)
    dense = MetricLearner(random_state=0).fit(X, y, sample_weight=weight)
    sparse = MetricLearner(random_state=0).fit(sp.csr_array(X), y, sample_weight=weight)
    np.testing.assert_allclose(dense.transform(X), sparse.transform(X), atol=1e-6)
    pipeline = make_pipeline(StandardScaler(), MetricLearner(random_state=0))
    piped = pipeline.fit(X, y, metriclearner__sample_weight=weight)
    np.testing.assert_allclose(piped.transform(X), dense.transform(X), atol=1e-6)


def test_weights_are_routed():
    with sklearn.config_context(enable_metadata_routing=True):
        learner = MetricLearner(random_state=0).set_fit_request(sample_weight=True)
        search = GridSearchCV(learner, {"gamma": [0.1, 1.0]}, cv=StratifiedKFold(3), error_score="raise")
        search.fit(X, y, sample_weight=np.ones(N))
    assert search.best_estimator_.certificate_.converged and search.best_score_ > 0.9


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.ones(5), r"one number for each of the 178 rows of X; got an array of shape \(5,\)"),
        (np.ones((N, 1)), r"got an array of shape \(178, 1\)"),
        (-np.ones(N), "finite numbers ≥ 0; got -1.0 for row 0"),
        (np.where(np.arange(N) == 7, np.nan, 1.0), "got nan for row 7"),
        (np.zeros(N), "all weights but 0 of sample_weight are zero"),
        (np.where(y == 0, 1.0, 0.0), "class"),
        (np.full(N, 1e-15), "weight must lie between 1e-20 and 1e20"),
    ],
)
def test_wrong_weights_are_refused(weight, message):
    for learner in (MetricLearner(), MetricLearnerCV(gammas=[1.0], cv=2)):
        with pytest.raises(ValueError, match=message):
            learner.fit(X, y, sample_weight=weight)


def test_what_weights_cannot_mean_is_refused():
    zero = (np.arange(N) > 3).astype(float)
    with pytest.raises(ValueError, match="leave out their rows and columns"):
        MetricLearner(kernel="precomputed").fit(X @ X.T, y, sample_weight=zero)
    quadruplets = Constraints.from_quadruplets([[0, 1, 2, 100]], margin=1.0, n_rows=N)
    with pytest.raises(ValueError, match="linear forms and quadruplets have none"):
        MetricLearner().fit(X, constraints=quadruplets, sample_weight=np.ones(N))
    splits = [(np.arange(0, N, 2), np.arange(1, N, 2)), (np.arange(1, N, 2), np.arange(0, N, 2))]
    with pytest.raises(ValueError, match="cv may split rows by their number"):
        MetricLearnerCV(cv=splits, gammas=[1.0]).fit(X, y, sample_weight=zero)
    da = pytest.importorskip("dask.array")
    with pytest.raises(ValueError, match="needs rows in memory"):
        MetricLearner().fit(da.from_array(X), da.from_array(y), sample_weight=np.ones(N))
