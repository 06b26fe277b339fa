"""Starts: the fourth root of the covariance, the choice by answers, and the streaming metric between consolidations."""

from __future__ import annotations

import numpy as np
import pytest
from people import answered, planted, reply
from scipy.linalg import fractional_matrix_power

from mahalo import MetricLearner
from mahalo.studio import Session
from mahalo.studio.starts import Starts


def stretched(signal, n=200, seed=0):
    """Rows of two classes that differ in one column of deviation about `signal`, beside five columns of noise."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    X = rng.standard_normal((n, 6))
    X[:, 0] = signal * (2 * y - 1) + 0.2 * signal * rng.standard_normal(n)
    return X, y


def some_answers(y, n=80, seed=0):
    pairs = np.random.default_rng(seed).integers(0, len(y), (n, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    return pairs, y[pairs[:, 0]] == y[pairs[:, 1]]


def test_the_stressed_start_is_the_fourth_root_of_the_covariance():
    X, _ = planted(n=90)
    start = Starts(X, 0, MetricLearner()).stressed
    S = np.cov(X, rowvar=False)
    W = fractional_matrix_power(S / np.trace(S) * len(S) + 0.05 * np.eye(len(S)), 0.25)
    np.testing.assert_allclose(start.metric.matrix, W * len(W) / np.trace(W), rtol=1e-9, atol=1e-12)
    i, j = np.triu_indices(len(X), 1)
    sq = np.einsum("ij,jk,ik->i", X[i] - X[j], start.metric.matrix, X[i] - X[j])
    assert np.mean(sq < start.bounds[0]) == pytest.approx(0.05, abs=0.01)
    assert np.mean(sq < start.bounds[1]) == pytest.approx(0.95, abs=0.01)


def test_answers_that_the_stressed_start_ranks_worse_choose_the_ordinary_one():
    for signal, other, is_stressed in ((3.0, 1.0, True), (1.0, 4.0, False)):
        X, y = stretched(signal)
        X[:, 1] *= other
        starts = Starts(X, 0, MetricLearner())
        pairs, same = some_answers(y)
        assert (starts.choose(pairs, same) is starts.stressed) == is_stressed
        assert starts.choose(pairs[:3], same[:3]) is starts.stressed  # too few to tell


def test_a_prior_of_ones_own_is_the_only_start():
    X, y = planted(n=60)
    starts = Starts(X, 0, MetricLearner(prior=np.diag(np.arange(1.0, 13.0))))
    assert starts.stressed is None and starts.choose(*some_answers(y % 2)) is starts.ordinary
    assert Starts(np.ones((9, 3)), 0, MetricLearner()).stressed is None
    one = Starts(np.arange(5.0)[:, None], 0, MetricLearner())
    np.testing.assert_allclose(one.stressed.metric.matrix, [[1.0]])


def test_between_consolidations_every_answer_moves_the_metric_at_once():
    X, y = planted()
    session = answered(Session(X), y, 20)
    consolidated = session.metric_
    assert session.latest_metric_ is consolidated
    question = session.question()
    session.answer(question, "different")
    assert session.learn() and session.metric_ is consolidated
    i, j = question.rows
    before, after = (m.distances(X[[i]], X[[j]]).item() for m in (consolidated, session.latest_metric_))
    assert after > before
    assert not session.learn()  # nothing is new
    while session.answers().n_entries % 5:
        question = session.question()
        session.answer(question, reply(question, y))
    assert session.learn() and session.latest_metric_ is session.metric_ is not consolidated


def test_a_reopened_session_asks_the_same_between_consolidations(tmp_path):
    X, y = planted()
    session = answered(Session(X, log=tmp_path / "log.jsonl"), y, 23)
    session.learn()
    reopened = Session(X, log=tmp_path / "log.jsonl")
    reopened.learn()
    assert np.array_equal(reopened.latest_metric_.matrix, session.latest_metric_.matrix)
    assert not np.array_equal(session.latest_metric_.matrix, session.metric_.matrix)
    assert reopened.question().rows == session.question().rows
