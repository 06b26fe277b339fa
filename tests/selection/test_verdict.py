"""Verdicts: noise is called no clear difference, a clear gain is seen, and figures are those of all training rows."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold

from mahalo import Constraints, MetricLearner, MetricLearnerCV
from mahalo.evaluation import knn_predict
from mahalo.selection.held_out import evaluate_held_out, search_again


def simplex(seed, n=300):
    """Five round classes of one size, equally far apart in four columns: the Euclidean distance is the best one."""
    rng = np.random.default_rng(seed)
    y = rng.integers(5, size=n)
    directions = np.linalg.svd(np.eye(5) - 0.2)[2][:4].T
    return rng.standard_normal((n, 4)) + 2.1 * directions[y], y


def noise(seed, n=300):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, 6)), rng.integers(3, size=n)


def clear_gain(seed, n=300):
    """Two columns that tell three classes apart, beside six of three times their spread that do not."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    X = np.column_stack([rng.standard_normal((n, 2)), 3 * rng.standard_normal((n, 6))])
    X[:, :2] += 2.5 * np.array([[0, 0], [1, 0], [0, 1]])[y]
    return X, y


def verdict(X, y=None, constraints=None, **settings) -> str:
    """Return the verdict of the function that commands and pages call."""
    cv = MetricLearnerCV(random_state=0, **settings)
    search = cv.make_search(X, y, constraints=constraints)
    return evaluate_held_out(search, lda=False).verdict()


FAST = {"gammas": [0.1, 10.0], "prior": ["identity", "within"], "strategy": "random", "cv": 3}


@pytest.mark.parametrize("table", [simplex, noise])
def test_noise_is_rarely_called_a_gain(table):
    assert sum(verdict(*table(seed, 150), **FAST) == "better" for seed in range(40)) <= 2


def test_a_clear_gain_is_always_seen():
    assert {verdict(*clear_gain(seed, 150), **FAST) for seed in range(20)} == {"better"}


@pytest.mark.slow
@pytest.mark.parametrize("table", [simplex, noise])
def test_noise_is_rarely_called_a_gain_with_all_candidates(table):
    assert sum(verdict(*table(seed)) == "better" for seed in range(40)) <= 2


@pytest.mark.slow
def test_a_clear_gain_is_always_seen_with_all_candidates():
    assert {verdict(*clear_gain(seed)) for seed in range(20)} == {"better"}


@pytest.mark.slow
def test_pairs_of_noise_are_rarely_called_a_gain():
    def of(seed):
        X, y = noise(seed)
        pairs = np.random.default_rng(seed).permuted(np.tile(np.arange(300), (600, 1)), axis=1)[:, :2]
        return verdict(
            X, constraints=Constraints.from_pairs(pairs, same=(y[pairs[:, 0]] == y[pairs[:, 1]]).astype(int))
        )

    assert sum(of(seed) == "better" for seed in range(40)) <= 2


def test_a_page_of_the_learner_and_a_command_say_the_same():
    for seed in range(3):
        X, y = simplex(seed, 150)
        learner = MetricLearnerCV(random_state=0, **FAST).fit(X, y)
        search, settings = search_again(learner, X, y, y, None)
        commanded = evaluate_held_out(MetricLearnerCV(random_state=0, **FAST).make_search(X, y))
        assert evaluate_held_out(search, settings=settings).sentence == commanded.sentence


def test_figures_of_20_000_rows_are_those_of_an_index_of_all_training_rows():
    rng = np.random.default_rng(0)
    y = rng.integers(20, size=20_000)
    X = 1.5 * rng.standard_normal((20, 3, 6))[y, rng.integers(3, size=len(y))] + rng.standard_normal((len(y), 6))
    X = np.column_stack([X, 3 * rng.standard_normal((len(y), 2))])
    cv = MetricLearnerCV(gammas=[1.0], prior="identity", strategy="random", random_state=0)
    search = cv.make_search(X, y)
    found = evaluate_held_out(search, settings=search.candidates[-1].settings, lda=False)
    assert len(search.folds[0].X) < 4_000 and found.n_queries == 20_000 and abs(found.n_index - 13_333) <= 1
    learner = MetricLearner(pairs_per_class=500, percentiles=(5, 95), random_state=0)
    before, after = np.zeros(len(y), dtype=bool), np.zeros(len(y), dtype=bool)
    for train, test in StratifiedKFold(3, shuffle=True, random_state=1).split(X, y):
        transform = learner.fit(X[train], y[train]).transform
        before[test] = knn_predict(X[train], y[train], X[test]) == y[test]
        after[test] = knn_predict(transform(X[train]), y[train], transform(X[test])) == y[test]
    assert found.before["10-NN"] == pytest.approx(before.mean(), abs=0.01)
    assert found.after["10-NN"] == pytest.approx(after.mean(), abs=0.01)
    assert found.after["10-NN"] > found.before["10-NN"] + 0.02
    assert found.n_ranked < 3_000 and f"of {found.n_ranked:,} of the queries" in str(found)
