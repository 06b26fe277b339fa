"""Cross-validation over labels and over pairs, against loops written by hand."""

from __future__ import annotations

import warnings
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from builders import assert_same_metric, labelled_data
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.metrics import roc_auc_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    ShuffleSplit,
    StratifiedKFold,
    cross_val_score,
    cross_validate,
)
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mahalo import Constraints, InfeasibleError, MetricLearner, MetricLearnerCV, metric_path
from mahalo.losses import Frobenius
from mahalo.metric import metric as metric_module
from mahalo.pairs import PairSplit
from mahalo.selection import fold_tasks

GAMMAS = [0.01, 1.0, 30.0]


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.fixture
def pairs(rng):
    """(X, constraints): three classes known only through pairs, bounds left open."""
    X, y = labelled_data(rng, n=90, apart=0.5)
    return X, Constraints.from_labels(y, pairs_per_class=150, random_state=1)


def auc_by_hand(W, X, constraints, rows):
    """Over pairs with both ends among `rows`: how often a similar one is nearer than a dissimilar one."""
    inside = np.isin(constraints.pairs.index, rows).all(axis=1)
    difference = X[constraints.pairs.index[inside, 0]] - X[constraints.pairs.index[inside, 1]]
    distance = np.einsum("kd,de,ke->k", difference, W, difference)
    return roc_auc_score(constraints.pairs.sign[inside] > 0, -distance)


def pairs_by_hand(constraints, train):
    """Constraints inside the fold, renumbered with a dictionary."""
    position = {row: p for p, row in enumerate(train)}
    kept = [
        (position[i], position[j], s)
        for (i, j), s in zip(constraints.pairs.index.tolist(), constraints.pairs.sign, strict=True)
        if i in position and j in position
    ]
    return Constraints.from_pairs([(i, j) for i, j, s in kept if s > 0], [(i, j) for i, j, s in kept if s < 0])


# -- scikit-learn's tools over pairs ---------------------------------------------------------------------------


def test_cross_val_score_over_pairs(routing, pairs):
    X, constraints = pairs
    cv = KFold(3, shuffle=True, random_state=0)
    scores = cross_val_score(
        MetricLearner(gamma=0.5), X, cv=cv, params={"constraints": constraints, "rows": np.arange(len(X))}
    )
    expected = []
    for train, test in cv.split(X):
        learner = MetricLearner(gamma=0.5).fit(X[train], constraints=pairs_by_hand(constraints, train))
        expected.append(auc_by_hand(learner.metric_.matrix, X, constraints, test))
    np.testing.assert_allclose(scores, expected, atol=1e-12)
    assert 0.5 < np.mean(expected) < 0.99


def test_grid_search_over_pairs(routing, pairs):
    X, constraints = pairs
    cv = ShuffleSplit(3, test_size=0.5, random_state=0)
    grid = {"gamma": GAMMAS, "prior": ["identity", "diagonal"]}
    search = GridSearchCV(MetricLearner(), grid, cv=cv)
    search.fit(X, constraints=constraints, rows=np.arange(len(X)))
    for k, parameters in enumerate(search.cv_results_["params"]):
        for f, (train, test) in enumerate(cv.split(X)):
            learner = MetricLearner(**parameters).fit(X[train], constraints=pairs_by_hand(constraints, train))
            expected = auc_by_hand(learner.metric_.matrix, X, constraints, test)
            assert search.cv_results_[f"split{f}_test_score"][k] == pytest.approx(expected, abs=1e-12)
    best = MetricLearner(**search.best_params_).fit(X, constraints=constraints)
    np.testing.assert_array_equal(search.best_estimator_.metric_.matrix, best.metric_.matrix)


def test_splitting_by_pairs_under_grid_search(routing, pairs):
    X, constraints = pairs
    splitter = PairSplit(constraints, n_splits=2, random_state=3)
    rows = np.arange(len(X))
    search = GridSearchCV(MetricLearner(), {"gamma": [0.1]}, cv=splitter).fit(X, constraints=constraints, rows=rows)
    for f, (train, test) in enumerate(splitter.split(X)):
        learner = MetricLearner(gamma=0.1).fit(X[train], constraints=constraints, rows=train)
        expected = auc_by_hand(learner.metric_.matrix, X, constraints, test)
        assert search.cv_results_[f"split{f}_test_score"][0] == pytest.approx(expected, abs=1e-12)


def test_rows_of_a_part_of_the_data(routing, pairs):
    """Cross-validation inside a part: rows are global indices throughout."""
    X, constraints = pairs
    part = np.random.default_rng(5).permutation(len(X))[:70]
    cv = KFold(2)
    scores = cross_val_score(MetricLearner(), X[part], cv=cv, params={"constraints": constraints, "rows": part})
    for score, (train, test) in zip(scores, cv.split(X[part]), strict=True):
        learner = MetricLearner().fit(X[part[train]], constraints=pairs_by_hand(constraints, part[train]))
        assert score == pytest.approx(auc_by_hand(learner.metric_.matrix, X, constraints, part[test]), abs=1e-12)


def test_folds_without_rows_raise(routing, pairs):
    """The trap: constraints by global index, on a fold that numbers its rows anew."""
    X, constraints = pairs
    for parameters in ({"constraints": constraints}, {"constraints": constraints, "rows": None}):
        with pytest.raises(ValueError, match=r"constraints are about 90 rows, X has 60.*pass rows="):
            cross_val_score(MetricLearner(), X, cv=3, params=parameters, error_score="raise")


def test_pipeline_passes_constraints_to_the_learner(routing, pairs, rng):
    X, constraints = pairs
    y = np.arange(90) % 3
    pipeline = make_pipeline(StandardScaler(), MetricLearner(gamma=0.1), KNeighborsClassifier(5))
    cv = StratifiedKFold(3)
    found = cross_validate(
        pipeline, X, y, cv=cv, params={"constraints": constraints, "rows": np.arange(90)}, return_estimator=True
    )
    for (train, test), estimator, score in zip(cv.split(X, y), found["estimator"], found["test_score"], strict=True):
        scaler = StandardScaler().fit(X[train])
        Z = scaler.transform(X[train])
        learner = MetricLearner(gamma=0.1).fit(Z, constraints=pairs_by_hand(constraints, train))
        np.testing.assert_allclose(estimator[1].metric_.matrix, learner.metric_.matrix)
        classifier = KNeighborsClassifier(5).fit(learner.transform(Z), y[train])
        assert score == classifier.score(learner.transform(scaler.transform(X[test])), y[test])


def test_grid_search_over_labels(rng):
    X, y = labelled_data(rng, n=90, apart=0.5)
    pipeline = make_pipeline(MetricLearner(), KNeighborsClassifier(5))
    search = GridSearchCV(pipeline, {"metriclearner__gamma": GAMMAS}, cv=3).fit(X, y)
    for k, gamma in enumerate(GAMMAS):
        for f, (train, test) in enumerate(StratifiedKFold(3).split(X, y)):
            learner = MetricLearner(gamma=gamma).fit(X[train], y[train])
            classifier = KNeighborsClassifier(5).fit(learner.transform(X[train]), y[train])
            expected = classifier.score(learner.transform(X[test]), y[test])
            assert search.cv_results_[f"split{f}_test_score"][k] == expected


def test_score_from_labels_is_the_auc_of_random_pairs(rng):
    X, y = labelled_data(rng, n=30, apart=0.5)
    learner = MetricLearner().fit(X, y)
    every = Constraints.from_labels(y, pairs_per_class=1000)
    assert learner.score(X, y) == pytest.approx(auc_by_hand(learner.metric_.matrix, X, every, np.arange(30)))


def test_score_of_one_class_names_the_splitter(rng):
    X, y = labelled_data(rng, n=30)
    learner = MetricLearner().fit(X, y)
    message = r"score needs rows of at least two classes; these have one\. Use a shuffled or stratified splitter, such"
    for labels in (y[y == 1], np.where(y[y == 1] == 1, "a", "b"), np.r_[y[y == 1][:-1], -1]):
        with pytest.raises(ValueError, match=message):
            learner.score(X[y == 1], labels)
    with pytest.raises(ValueError, match="these have none"):
        learner.score(X, np.full(30, -1))
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    order = np.argsort(y)
    assert np.isfinite(cross_val_score(MetricLearner(), X[order], y[order], cv=folds)).all()


def test_score_of_similarities(rng):
    X, y = labelled_data(rng, n=30, apart=0.5)
    K = rbf_kernel(X)
    whole, part = (MetricLearner(kernel="precomputed", n_components=k).fit(K, y) for k in (None, 1))
    assert part.score(K, y) != whole.score(K, y)
    every = Constraints.from_labels(y, pairs_per_class=1000)
    i, j = every.pairs.index.T
    distance = whole.metric_.distances(K, cross=K)[i, j]
    assert whole.score(K, y) == pytest.approx(roc_auc_score(every.pairs.sign > 0, -distance), abs=1e-3)


def test_score_of_triplets(rng):
    """(a, b, c) counts as a similar pair (a, b) and a dissimilar one (a, c)."""
    X, y = labelled_data(rng, n=30, apart=0.5)
    learner = MetricLearner().fit(X, y)
    triplets = [[0, 3, 1], [1, 4, 2], [5, 8, 10]]
    as_pairs = Constraints.from_pairs([[0, 3], [1, 4], [5, 8]], [[0, 1], [1, 2], [5, 10]])
    score = learner.score(X, constraints=Constraints.from_triplets(triplets))
    assert score == learner.score(X, constraints=as_pairs)


# -- splitting by rows -----------------------------------------------------------------------------------------


@given(st.integers(0, 2**32 - 1), st.floats(0.1, 0.9))
def test_pair_split_divides_the_rows(seed, test_size):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(10, 80))
    constraints = Constraints.from_pairs(rng.integers(0, n, (int(rng.integers(1, 100)), 2)))
    splitter = PairSplit(constraints, n_splits=4, test_size=test_size, random_state=seed)
    splits = list(splitter.split(np.zeros((n, 1))))
    assert len(splits) == splitter.get_n_splits() == 4
    for train, test in splits:
        np.testing.assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(n))
        assert len(train) and len(test)
        assert abs(len(test) - test_size * n) <= max(1, 0.2 * n)


def test_pair_split_keeps_small_groups_together():
    """Forty people with three photos each: whoever is tested has not been learned from."""
    index = [[3 * k + a, 3 * k + b] for k in range(40) for a, b in ((0, 1), (1, 2))]
    constraints = Constraints.from_pairs(index) + Constraints.from_triplets([[0, 1, 2]])
    for train, test in PairSplit(constraints, n_splits=10).split(np.zeros((120, 1))):
        assert not set(train // 3) & set(test // 3)
        assert len(test) == 48


@pytest.mark.parametrize("test_size", [0.2, 0.5])
def test_disjoint_quadruplets_are_split_whole(test_size):
    quadruplets = np.random.default_rng(0).permutation(120).reshape(30, 4)
    constraints = Constraints.from_quadruplets(quadruplets, margin=1.0, n_rows=120)
    for train, test in PairSplit(constraints, test_size=test_size, random_state=0).split(np.zeros((120, 1))):
        sides = [int(constraints.on_rows(rows)[1].sum()) for rows in (train, test)]
        assert sides == [30 - 30 * test_size, 30 * test_size]


def test_pair_split_draws_rows_singly_where_all_are_connected():
    constraints = Constraints.from_pairs([[0, k] for k in range(1, 50)])
    for train, test in PairSplit(constraints, test_size=0.5).split(np.zeros((50, 1))):
        assert len(train) == len(test) == 25


def test_pair_split_repeats_with_its_seed(pairs):
    X, constraints = pairs

    def tests(seed):
        return [test.tolist() for _, test in PairSplit(constraints, random_state=seed).split(X)]

    assert tests(1) == tests(1)
    assert tests(1) != tests(2)
    assert len({tuple(t) for t in tests(1)}) == 5


def test_pair_split_of_a_part_of_the_data():
    """`rows` says which constraints tie which positions together."""
    constraints = Constraints.from_pairs([[10 * k, 10 * k + 1] for k in range(30)], n_rows=300)
    rows = np.sort(np.concatenate([np.arange(0, 300, 10), np.arange(1, 300, 10)]))[::-1]
    for train, test in PairSplit(constraints).split(np.zeros((60, 1)), rows=rows):
        assert not set(rows[train] // 10) & set(rows[test] // 10)


# -- the whole path --------------------------------------------------------------------------------------------


def test_path_is_one_fit_for_each_gamma_in_the_callers_order(rng):
    X, y = labelled_data(rng)
    gammas = [3.0, 0.01, 100.0, 0.3]
    path = metric_path(X, y, gammas=gammas, tol=1e-10, prior="diagonal", random_state=4)
    np.testing.assert_array_equal(path.gammas, gammas)
    assert path.duals.shape == (4, path.constraints.n_constraints)
    for k, gamma in enumerate(gammas):
        cold = MetricLearner(gamma=gamma, tol=1e-10, prior="diagonal", random_state=4).fit(X, y)
        np.testing.assert_array_equal(path.constraints.bound, cold.constraints_.bound)
        assert_same_metric(path.metrics[k].matrix, cold.metric_.matrix, path.certificates[k], cold.certificate_)
        assert path.certificates[k].converged
        assert path.certificates[k].primal == pytest.approx(cold.certificate_.primal, rel=1e-8)
        np.testing.assert_allclose(path.duals[k], cold.duals_, rtol=0, atol=1e-3 * cold.duals_.max())


def test_path_of_constraints_ends_in_hard_ones(rng):
    X = rng.standard_normal((8, 4))
    constraints = Constraints.from_pairs([[0, 1]], [[2, 3]], upper=0.5, lower=30.0)
    path = metric_path(X, constraints=constraints, gammas=[np.inf, 1.0, 1e4], tol=1e-8)
    hard = MetricLearner(gamma=np.inf, tol=1e-8).fit(X, constraints=constraints)
    np.testing.assert_allclose(path.metrics[0].matrix, hard.metric_.matrix, rtol=0, atol=1e-6)
    assert path.certificates[0].max_violation <= 1e-8 < path.certificates[2].max_violation


def test_path_by_projections(rng):
    X, y = labelled_data(rng, n=20)
    path = metric_path(X, y, gammas=[0.3, 0.1], solver="bregman", pairs_per_class=10, tol=1e-8, max_iter=20_000)
    newton = metric_path(X, y, gammas=[0.3, 0.1], pairs_per_class=10, tol=1e-8)
    for k in range(2):
        a, b = path.certificates[k], newton.certificates[k]
        assert_same_metric(path.metrics[k].matrix, newton.metrics[k].matrix, a, b)


def test_default_path(wine):
    path = metric_path(*wine, prior="diagonal", tol=1e-6)
    np.testing.assert_allclose(path.gammas, np.logspace(-2, 3, 21))
    assert all(c.converged and c.relative_gap <= 1e-6 for c in path.certificates)
    primal = [c.primal for c in path.certificates]
    assert primal == sorted(primal)  # a dearer violation never lowers the optimum


def test_path_with_components_and_rows(rng):
    X, y = labelled_data(rng)
    constraints = Constraints.from_labels(y)
    rows = np.arange(60)[::-1]
    path = metric_path(X[rows], constraints=constraints, rows=rows, gammas=[1.0], n_components=2)
    learner = MetricLearner(n_components=2).fit(X[rows], constraints=constraints, rows=rows)
    np.testing.assert_array_equal(path.metrics[0].transform(X), learner.transform(X))


def test_path_warns_of_zero_metrics_as_a_fit_does(rng):
    X = rng.standard_normal((10, 3))
    similar = Constraints.from_pairs([[0, 1], [2, 3]])
    with pytest.warns(UserWarning, match="the learned metric is zero") as caught:
        metric_path(X, constraints=similar, gammas=[1.0], loss=Frobenius(0.0))
    assert caught[0].filename == __file__


def test_path_says_once_that_metrics_are_zero(rng):
    X = rng.standard_normal((10, 3))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        metric_path(X, constraints=Constraints.from_pairs([[0, 1], [2, 3]]), loss=Frobenius(0.0))
    assert ["the learned metric is zero" in str(w.message) for w in caught] == [True]


def test_path_takes_gammas_not_gamma(rng):
    X, y = labelled_data(rng)
    with pytest.raises(ValueError, match="gammas="):
        metric_path(X, y, gamma=1.0)


# -- choosing γ and strategy -----------------------------------------------------------------------------------


def knn_accuracy_by_hand(W, X, y, train, test, k=10):
    train, test = train[y[train] >= 0], test[y[test] >= 0]
    n_right = 0
    for i in test:
        nearest = train[np.argsort([(X[i] - X[j]) @ W @ (X[i] - X[j]) for j in train], kind="stable")[:k]].tolist()
        # The largest group of neighbours; of groups of one size that whose farthest member is the nearest.
        groups = {c: [p for p, j in enumerate(nearest) if y[j] == c] for c in set(y[nearest].tolist())}
        n_right += max(groups, key=lambda c: (len(groups[c]), -groups[c][-1])) == y[i]
    return n_right / len(test)


@pytest.mark.parametrize("unlabelled", [False, True])
def test_choice_by_accuracy_against_a_loop(rng, exact_folds, unlabelled):
    X, y = labelled_data(rng, n=72, apart=0.5)
    if unlabelled:
        y[rng.random(72) < 0.25] = -1
    settings = {"gammas": [1.0, 0.01, 30.0], "random_state": 0, "pairs_per_class": 60, "tol": 1e-8}
    learner = MetricLearnerCV(kernel="linear", features=None, **settings).fit(X, y)
    expected, names = [], []
    for prior, strategy in product(("identity", "within"), ("random", "neighbors")):
        for gamma in (1e-8, 0.01, 1.0, 30.0):  # the first is the prior itself
            row = []
            for train, test in StratifiedKFold(3, shuffle=True, random_state=0).split(X, y):
                fold = MetricLearner(gamma=gamma, prior=prior, strategy=strategy, random_state=0, tol=1e-8)
                W = fold.set_params(pairs_per_class=60).fit(X[train], y[train]).metric_.matrix
                row.append(knn_accuracy_by_hand(W, X, y, train, test))
            expected.append(row)
            names.append((prior, strategy, gamma))
    results = learner.cv_results_
    assert list(zip(results["prior"], results["strategy"], results["gamma"], strict=True)) == names
    np.testing.assert_allclose(results["scores"], expected)
    np.testing.assert_allclose(results["mean_score"], results["scores"].mean(axis=1))
    np.testing.assert_allclose(results["std_score"], results["scores"].std(axis=1))
    # The first within one row of the best.
    best = int(np.argmax(results["mean_score"] >= results["mean_score"].max() - 1 / 72))
    assert (learner.prior_, learner.strategy_, learner.gamma_) == names[best]
    assert learner.best_score_ == results["mean_score"][best]
    chosen = {"gamma": learner.gamma_, "strategy": learner.strategy_, "prior": learner.prior_}
    again = MetricLearner(**chosen, random_state=0, pairs_per_class=60, tol=1e-8)
    np.testing.assert_array_equal(again.fit(X, y).metric_.matrix, learner.metric_.matrix)


@pytest.mark.parametrize("kernel", ["linear", "precomputed"])
def test_components_are_judged_in_the_space_they_span(rng, exact_folds, kernel):
    X, y = labelled_data(rng, n=60, apart=0.5)
    X = X if kernel == "linear" else rbf_kernel(X)
    shared = {"kernel": kernel, "prior": "identity", "n_components": 1, "random_state": 0, "tol": 1e-8}
    learner = MetricLearnerCV(gammas=[1.0], strategy="random", pairs_per_class=60, **shared).fit(X, y)
    expected = []
    for train, test in StratifiedKFold(3, shuffle=True, random_state=0).split(X, y):
        columns = slice(None) if kernel == "linear" else train
        fold = MetricLearner(pairs_per_class=60, **shared).fit(X[train][:, columns], y[train])
        expected.append(knn_accuracy_by_hand(np.eye(1), fold.transform(X[:, columns]), y, train, test))
    np.testing.assert_allclose(learner.cv_results_["scores"][1], expected)


def test_folds_may_have_fewer_components(rng):
    X, y = labelled_data(rng, n=30)
    learner = MetricLearnerCV(gammas=[1.0], kernel="laplacian", n_components=25, strategy="random").fit(X, y)
    assert learner.transform(X).shape == (30, 25)


def test_choice_by_pairs_against_a_loop(pairs, exact_folds):
    """With constraints only: five splits by rows, AUC over held-out pairs."""
    X, constraints = pairs
    options = {"prior": "identity", "tol": 1e-8}
    learner = MetricLearnerCV(gammas=GAMMAS, random_state=2, **options).fit(X, constraints=constraints)
    splits = list(PairSplit(constraints, random_state=2).split(X))
    scores, mean = learner.cv_results_["scores"], learner.cv_results_["mean_score"]
    assert scores.shape == (4, 5)
    for k, gamma in enumerate(GAMMAS):
        for f, (train, test) in enumerate(splits):
            fold = MetricLearner(gamma=gamma, tol=1e-8).fit(X[train], constraints=pairs_by_hand(constraints, train))
            expected = auc_by_hand(fold.metric_.matrix, X, constraints, test)
            assert scores[k + 1, f] == pytest.approx(expected, abs=2e-3)
    n_judged = sum(len(test) for _, test in splits)
    assert learner.gamma_ == [1e-6 * GAMMAS[0], *GAMMAS][int(np.argmax(mean >= mean.max() - 1 / n_judged))]


def test_ties_go_to_the_prior(rng):
    X, y = labelled_data(rng, n=30, apart=0.5)
    learner = MetricLearnerCV(gammas=[5.0, 0.5], scoring=lambda *_: 1.0).fit(X, y)
    assert (learner.gamma_, learner.strategy_, learner.prior_) == (0.5e-6, "random", "identity")
    np.testing.assert_allclose(learner.metric_.matrix, np.eye(X.shape[1]), atol=1e-4)
    assert learner.certificate_.converged


def test_own_scoring_gets_the_fold(rng):
    X, y = labelled_data(rng, n=30)
    seen = []

    def scoring(metric, X_train, y_train, X_test, y_test):
        seen.append((len(X_train), len(y_train), len(X_test), len(y_test)))
        return -metric.distances(X_test).mean()

    MetricLearnerCV(gammas=[0.1], prior="identity", strategy="random", cv=KFold(5), scoring=scoring).fit(X, y)
    assert seen == [(24, 24, 6, 6)] * 10  # the prior itself and one γ


@pytest.mark.parametrize("missing", [np.nan, None])
def test_own_scoring_gets_what_is_missing_as_missing(rng, missing):
    X, _ = labelled_data(rng, n=60)
    y = ["a", "b", missing] * 20
    seen = set()

    def scoring(metric, X_train, y_train, X_test, y_test):
        seen.update(y_train.tolist() + y_test.tolist())
        return 0.0

    MetricLearnerCV(gammas=[0.1], prior="identity", strategy="random", scoring=scoring).fit(X, y)
    assert seen == {"a", "b", missing}


def test_own_scoring_gets_what_is_masked_masked(rng):
    X, y = labelled_data(rng, n=60)
    y = np.ma.array(y, mask=y == 2)
    n_masked = []

    def scoring(metric, X_train, y_train, X_test, y_test):
        n_masked.append(y_train.mask.sum() + y_test.mask.sum())
        return 0.0

    MetricLearnerCV(gammas=[0.1], prior="identity", strategy="random", scoring=scoring).fit(X, y)
    assert set(n_masked) == {y.mask.sum()}


def test_units_of_own_scores_do_not_matter(rng):
    X, y = labelled_data(rng, n=90, apart=0.5)

    def in_units_of(unit):
        def scoring(metric, X_train, y_train, X_test, y_test):
            votes = KNeighborsClassifier(5).fit(metric.transform(X_train), y_train)
            return unit * votes.score(metric.transform(X_test), y_test)

        return MetricLearnerCV(gammas=[0.01, 0.1, 1.0, 10.0], strategy="random", scoring=scoring).fit(X, y)

    one = in_units_of(1.0)
    assert np.ptp(one.cv_results_["scores"]) > 0.1
    for unit in (1e-3, 100.0):
        other = in_units_of(unit)
        np.testing.assert_allclose(other.cv_results_["scores"], unit * one.cv_results_["scores"], rtol=1e-12)
        assert (other.gamma_, other.prior_) == (one.gamma_, one.prior_)


def test_own_scores_may_fall_before_they_rise(rng):
    X, y = labelled_data(rng, n=60, apart=0.5)
    seen = []

    def scoring(metric, *_):
        seen.append(metric)
        return (len(seen) % 5 - 3) ** 2  # 4, 1, 0, 1, 9 along every path, the prior first

    learner = MetricLearnerCV(
        gammas=[0.1, 0.2, 0.3, 0.4], prior="identity", strategy="random", cv=2, scoring=scoring
    ).fit(X, y)
    np.testing.assert_array_equal(learner.cv_results_["mean_score"], [4, 1, 0, 1, 9])
    assert learner.gamma_ == 0.4


def test_auc_of_labels(rng, exact_folds):
    X, y = labelled_data(rng, n=60, apart=0.5)
    cv = list(StratifiedKFold(2).split(X, y))
    settings = {"kernel": "linear", "gammas": [0.1], "strategy": "random", "scoring": "auc", "tol": 1e-8}
    learner = MetricLearnerCV(cv=cv, **settings).fit(X, y)
    for f, (train, test) in enumerate(cv):
        fold = MetricLearner(gamma=0.1, pairs_per_class=None, tol=1e-8).fit(X[train], y[train])
        assert learner.cv_results_["scores"][1, f] == pytest.approx(fold.score(X[test], y[test]), abs=2e-3)


def test_choice_among_rows_of_a_part(pairs):
    X, constraints = pairs
    part = np.random.default_rng(0).permutation(90)[:80]
    for rows in (part, part.tolist()):
        learner = MetricLearnerCV(gammas=[0.1, 1.0]).fit(X[part], constraints=constraints, rows=rows)
        assert learner.n_outside_ > 0
        chosen = MetricLearner(gamma=learner.gamma_, prior=learner.prior_)
        by_hand = chosen.fit(X[part], constraints=pairs_by_hand(constraints, part))
        np.testing.assert_allclose(learner.metric_.matrix, by_hand.metric_.matrix)


def test_choice_without_rows_raises_where_constraints_know_better(pairs):
    X, constraints = pairs
    with pytest.raises(ValueError, match=r"constraints are about 90 rows, X has 80.*pass rows="):
        MetricLearnerCV(gammas=[1.0]).fit(X[:80], constraints=constraints)
    with pytest.raises(ValueError, match=r"refer to row 89"):
        MetricLearnerCV(gammas=[1.0]).fit(X[:80], constraints=Constraints.from_pairs([[0, 89], [1, 2]]))


def test_errors_of_folds_speak_of_the_rows_of_all(exact_folds):
    X, y = load_iris(return_X_y=True)
    similar, dissimilar = [[100, 120], [1, 2], [3, 4]], [[100, 120], [5, 100], [6, 101]]
    constraints = Constraints.from_pairs(similar, dissimilar, upper=0.1, lower=200.0)
    with pytest.raises(InfeasibleError, match=r"pair \(100, 120\): .*pair \(100, 120\): "):
        MetricLearnerCV(gammas=[1.0, np.inf]).fit(X, y, constraints=constraints)
    few = Constraints.from_pairs([[0, 100]], [[1, 60]])
    with pytest.raises(ValueError, match=r"none of the 2 constraints has all its rows among the 50 that fold 1 of 3"):
        MetricLearnerCV(gammas=[1.0], cv=[(np.arange(50), np.arange(50, 150))] * 3).fit(X, constraints=few)
    with pytest.raises(ValueError, match=r"pairs among the rows to score; got 0 and 0\. Use more"):
        MetricLearnerCV(gammas=[1.0], cv=[(np.arange(1, 120), np.arange(120, 150))]).fit(X, constraints=few)


def test_labels_score_and_constraints_define_the_problem(pairs, exact_folds):
    X, constraints = pairs
    y = np.arange(90) % 3
    learner = MetricLearnerCV(gammas=[0.1, 1.0], prior="identity", random_state=0, tol=1e-8)
    learner.fit(X, y, constraints=constraints)
    assert learner.constraints_.n_constraints == constraints.n_constraints
    assert learner.cv_results_["scores"].shape == (3, 3)
    for k, gamma in enumerate((0.1, 1.0)):
        for f, (train, test) in enumerate(StratifiedKFold(3, shuffle=True, random_state=0).split(X, y)):
            fold = MetricLearner(gamma=gamma, tol=1e-8).fit(X[train], constraints=constraints, rows=train)
            expected = knn_accuracy_by_hand(fold.metric_.matrix, X, y, train, test)
            assert learner.cv_results_["scores"][k + 1, f] == pytest.approx(expected, abs=0.04)


def test_choice_on_wide_sparse_rows(rng, monkeypatch):
    """Scoring measures distances; it needs no dense copy of the rows."""
    X, y = labelled_data(rng, n=60, d=4, apart=0.5)
    wide = sp.hstack([sp.csr_array(X), sp.csr_array((60, 36))], format="csr")
    dense = MetricLearnerCV(gammas=[0.1, 10.0], prior="identity").fit(wide.toarray(), y)
    monkeypatch.setattr(metric_module, "_MAX_DENSE_COLUMNS", 39)
    sparse = MetricLearnerCV(gammas=[0.1, 10.0]).fit(wide, y)
    np.testing.assert_allclose(sparse.cv_results_["scores"], dense.cv_results_["scores"], atol=0.06)


def test_clone_keeps_what_is_chosen_among(rng):
    constraints = Constraints.from_pairs([[0, 1]], [[2, 3]])
    learner = MetricLearnerCV(gammas=[1, 2], cv=PairSplit(constraints, n_splits=2), strategy=("neighbors",))
    copy = clone(learner)
    assert copy.gammas == [1, 2] and copy.strategy == ("neighbors",) and copy.cv.n_splits == 2


def test_identical_points_are_reported_once(rng):
    """By the fit to all rows, not by every fold."""
    X, y = labelled_data(rng, n=40)
    X = np.vstack([X, X])
    index = np.column_stack([np.arange(40), np.arange(40, 80)])
    others = np.column_stack([rng.integers(0, 40, 60), rng.integers(0, 39, 60) + 41])
    constraints = Constraints.from_pairs([[0, 3], [40, 43], [2, 5]], np.vstack([index, others]), upper=0.5, lower=9.0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        MetricLearnerCV(gammas=[0.1, 1.0], cv=2).fit(X, np.concatenate([y, y]), constraints=constraints)
    assert ["identical points" in str(w.message) for w in caught].count(True) == 1


@pytest.mark.parametrize("cv", [None, 3])
def test_a_class_of_one_row_is_told_of_once(rng, cv):
    X, y = labelled_data(rng)
    y[0] = 9
    with pytest.warns(UserWarning, match=r"The least populated class has 1 row, fewer than the [23] folds") as caught:
        MetricLearnerCV(gammas=[1.0], cv=cv).fit(X, y)
    assert [w.filename for w in caught] == [__file__]


@pytest.mark.parametrize("make", [np.random.RandomState, np.random.default_rng])
def test_folds_follow_the_generator_given(rng, make):
    """With 0 for a seed whatever was given, all of these would be cut alike."""
    X, y = labelled_data(rng, n=60, apart=0.5)
    cuts = [MetricLearnerCV(random_state=make(k)).make_search(X, y).folds[0] for k in range(5)]
    assert len({tuple(fold.test) for fold in cuts}) == 5
    fits = [MetricLearnerCV(gammas=[0.1, 1.0], random_state=make(3)).fit(X, y) for _ in range(2)]
    np.testing.assert_array_equal(fits[0].cv_results_["scores"], fits[1].cv_results_["scores"])


@pytest.mark.parametrize("make", [np.random.RandomState, np.random.default_rng])
def test_rows_to_choose_by_follow_the_generator_given(rng, make):
    """Of more rows than folds are made of."""
    X, y = labelled_data(rng, n=3_600)
    seen = [MetricLearnerCV(random_state=make(k)).make_search(X, y).folds[0] for k in (1, 2)]
    assert set(seen[0].rows) != set(seen[1].rows)


def test_warnings_point_at_the_callers_line(rng):
    X, y = labelled_data(rng)
    calls = [
        lambda: MetricLearner(max_iter=1, gamma=100.0).fit(X, y),
        lambda: metric_path(X, y, gammas=[1.0, 100.0], max_iter=1),
        lambda: MetricLearnerCV(gammas=[100.0], kernel="linear", features=None, max_iter=1).fit(X, y),
        lambda: metric_path(X, constraints=Constraints.from_pairs([[0, 3]]), loss=Frobenius(eta=0.0), gammas=[1.0]),
        lambda: MetricLearner(basis=100).fit(X, y),
    ]
    for call in calls:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call()
        assert caught and {w.filename for w in caught} == {__file__}


@pytest.mark.parametrize(
    ("n_classes", "n_columns", "directions"),
    [(10, 120, 64), (40, 120, 80), (55, 120, 110), (60, 120, None), (40, 90, None)],
)
def test_no_class_is_merged_with_another_to_choose_on_wide_rows(monkeypatch, rng, n_classes, n_columns, directions):
    asked = []
    found = fold_tasks.as_basis

    def noted(basis, **values):
        asked.append(basis)
        return found(basis, **values)

    monkeypatch.setattr(fold_tasks, "as_basis", noted)
    y = np.repeat(np.arange(n_classes), 4)
    X = rng.standard_normal((len(y), n_columns)) + y[:, None] % 7
    MetricLearnerCV(gammas=[0.1], cv=2, prior="identity", strategy="random", pairs_per_class=5, random_state=0).fit(
        X, y
    )
    assert set(asked) == ({directions} if directions else set())


def test_five_labels_a_class_are_enough_to_choose_by():
    """If all of ten training rows voted, the class of a held-out row, with fewer there, would never win."""
    X, y = load_iris(return_X_y=True)
    rng = np.random.default_rng(0)
    labelled = np.concatenate([rng.permutation(np.flatnonzero(y == c))[:5] for c in range(3)])
    learner = MetricLearnerCV(random_state=0).fit(X[labelled], y[labelled])
    assert learner.best_score_ >= 0.8


def test_a_fold_of_one_class_is_named():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=r"fold \d of \d leaves labelled rows of one class to learn from"):
        MetricLearnerCV(random_state=0).fit(X[:51], y[:51])
