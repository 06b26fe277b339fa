"""The same fit twice is the same bits: in one thread or many, with the seed given or left out."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp
from builders import labelled_data

from mahalo import MetricLearner, MetricLearnerCV, metric_path
from mahalo.linalg import threads


def bits(learner):
    return (
        learner.metric_.F.tobytes(),
        learner.duals_.tobytes(),
        learner.constraints_.pairs.index.tobytes(),
        learner.certificate_,
        learner.history_,
    )


def jobs():
    """Fits of every kind, none of them like another."""
    rng = np.random.default_rng(0)
    for k in range(2):
        X, y = labelled_data(rng, n=60 + k, d=4 + k)
        yield MetricLearner(gamma=30.0), X, y
        yield MetricLearner(solver="bregman", gamma=0.1), X, y
        yield MetricLearner(strategy="neighbors", prior="covariance"), X, y
        yield MetricLearner(n_components=2, prior="diagonal"), sp.csr_array(X), y
        yield MetricLearnerCV(gammas=[0.1, 1.0]), X, y
    X, y = labelled_data(rng, n=150, d=100)
    yield MetricLearner(solver="bregman", gamma=0.01, pairs_per_class=70), X, y  # blocked


def fit(job):
    learner, X, y = job
    return bits(type(learner)(**learner.get_params()).fit(X, y))


@pytest.mark.parametrize("inner_threads", [False, True])
def test_fits_in_parallel_threads_are_fits_in_a_row(monkeypatch, inner_threads):
    if inner_threads:
        monkeypatch.setattr(threads, "_WORTH_A_THREAD", 50)
    work = list(jobs())
    serial = [fit(job) for job in work]
    order = np.random.default_rng(1).permutation(np.repeat(np.arange(len(work)), 2))
    with ThreadPoolExecutor(8) as pool:
        parallel = list(pool.map(fit, [work[k] for k in order]))
    for k, result in zip(order, parallel, strict=True):
        assert result == serial[k], f"job {k}: {work[k][0]}"


def test_one_metric_asked_by_many_threads(rng):
    X, y = labelled_data(rng)
    expected = MetricLearner().fit(X, y).metric_.distances(X)
    metric = MetricLearner().fit(X, y).metric_  # nothing cached yet
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: metric.distances(X), range(32)))
    for D in found:
        np.testing.assert_array_equal(D, expected)


@pytest.mark.parametrize("strategy", ["random", "neighbors"])
@pytest.mark.parametrize("random_state", [None, 0, 7, np.int64(3)])
def test_same_seed_same_bits(rng, strategy, random_state):
    X, y = labelled_data(rng, n=300)  # enough rows for percentiles to be sampled
    learner = MetricLearner(strategy=strategy, pairs_per_class=30, random_state=random_state)
    assert bits(learner.fit(X, y)) == bits(learner.fit(X, y))


def test_other_seed_other_pairs(rng):
    X, y = labelled_data(rng)
    a, b = (MetricLearner(pairs_per_class=10, random_state=seed).fit(X, y) for seed in (0, 1))
    assert bits(a)[2] != bits(b)[2]
    assert bits(a)[0] != bits(b)[0]


def test_generators_are_drawn_from(rng):
    """As in scikit-learn: an object of the caller's moves on, a copy of it repeats."""
    X, y = labelled_data(rng)
    for make in (lambda: np.random.default_rng(5), lambda: np.random.RandomState(5)):
        shared = make()
        first, second = (MetricLearner(pairs_per_class=10, random_state=shared).fit(X, y) for _ in range(2))
        again = MetricLearner(pairs_per_class=10, random_state=make()).fit(X, y)
        assert bits(first) == bits(again)
        assert bits(first)[2] != bits(second)[2]


def test_global_generators_are_not_touched(rng):
    X, y = labelled_data(rng)
    np.random.seed(3)  # noqa: NPY002
    random.seed(3)
    expected = np.random.RandomState(3).random(), random.Random(3).random()
    MetricLearnerCV(gammas=[0.1, 1.0]).fit(X, y)
    metric_path(X, y, gammas=[1.0])
    assert (np.random.random(), random.random()) == expected  # noqa: NPY002


def test_cross_validated_choice_repeats(rng):
    X, y = labelled_data(rng, apart=0.5)
    a, b = (MetricLearnerCV(gammas=[0.01, 1.0], random_state=2).fit(X, y) for _ in range(2))
    assert bits(a) == bits(b)
    np.testing.assert_array_equal(a.cv_results_["scores"], b.cv_results_["scores"])
