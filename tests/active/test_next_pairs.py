"""Selected pairs: never answered or implied, never repeated, and better to learn from than random pairs."""

from __future__ import annotations

import numpy as np
import pytest
from builders import labelled_data
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError

from mahalo import Constraints, MetricLearner, OnlineMetricLearner
from mahalo.active import AnswerClosure, SimilarityModel, next_pairs, query_strategies

STRATEGIES = ["uncertain", "diverse", "change", "groups"]


def answers(y, pairs):
    pairs = np.asarray(pairs)
    return Constraints.from_pairs(pairs, same=y[pairs[:, 0]] == y[pairs[:, 1]], n_rows=len(y))


def closure(y, pairs):
    """(similar, dissimilar): all pairs that answers imply, by repeated multiplication."""
    n = len(y)
    similar, dissimilar = np.eye(n, dtype=bool), np.zeros((n, n), dtype=bool)
    for i, j in pairs:
        which = similar if y[i] == y[j] else dissimilar
        which[i, j] = which[j, i] = True
    for _ in range(n):
        similar = (similar.astype(int) @ similar) > 0
    return similar, (similar.astype(int) @ dissimilar @ similar) > 0


@given(st.integers(0, 10_000))
def test_implied_pairs_are_the_closure(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 9))
    y = rng.integers(0, 3, n)
    pairs = np.array([p for p in rng.integers(0, n, (8, 2)) if p[0] != p[1]]).reshape(-1, 2)
    implied = AnswerClosure.of(answers(y, pairs), n)
    every = np.column_stack(np.triu_indices(n, 1))
    similar, dissimilar = closure(y, pairs)
    np.testing.assert_array_equal(implied.implies(every), (similar | dissimilar)[tuple(every.T)])


@given(st.integers(0, 10_000))
def test_constraints_are_all_implied_pairs(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 12))
    y = rng.integers(0, 3, n)
    pairs = np.array([p for p in rng.integers(0, n, (10, 2)) if p[0] != p[1]]).reshape(-1, 2)
    found = AnswerClosure.of(answers(y, pairs), n).constraints()
    similar, dissimilar = closure(y, pairs)
    for truth, sign in ((similar, 1), (dissimilar, -1)):
        index = np.sort(found.pairs.index[found.pairs.sign == sign], axis=1)
        np.testing.assert_array_equal(np.unique(index, axis=0), np.argwhere(np.triu(truth, 1)))
        assert len(np.unique(index, axis=0)) == len(index)
    assert found.n_rows == n


def test_too_many_implied_pairs_are_sampled():
    y = np.repeat([0, 1, 2], [40, 30, 8])
    chain = np.column_stack([np.arange(77), np.arange(1, 78)])  # the whole truth, from 77 answers
    implied = AnswerClosure.of(answers(y, np.vstack([chain, [[0, 77]]])), 78)
    every, some, again = (implied.constraints(most, random_state=3).pairs for most in (10_000, 200, 200))
    assert len(every) == 78 * 77 // 2
    whole = {(*sorted(pair), sign) for pair, sign in zip(every.index.tolist(), every.sign, strict=True)}
    drawn = [(*sorted(pair), sign) for pair, sign in zip(some.index.tolist(), some.sign, strict=True)]
    assert len(drawn) == len(set(drawn)) == 400 and set(drawn) <= whole
    np.testing.assert_array_equal(some.index, again.index)
    with pytest.raises(ValueError, match="max_pairs must be a positive integer"):
        implied.constraints(0)


def test_dissimilar_within_a_group_implies_nothing():
    known = Constraints.from_pairs([[0, 1], [1, 2]], [[0, 2], [2, 3]], n_rows=4)
    found = AnswerClosure.of(known, 4).constraints().pairs
    assert sorted(map(sorted, found.index[found.sign > 0].tolist())) == [[0, 1], [0, 2], [1, 2]]
    assert sorted(map(sorted, found.index[found.sign < 0].tolist())) == [[0, 3], [1, 3], [2, 3]]


@pytest.mark.parametrize("start", [0, 20])
def test_groups_keeps_to_few_rows_until_all_is_known_of_them(rng, start):
    X, y = labelled_data(rng, n=400)
    queried = rng.permutation(400).reshape(-1, 2)[:start]
    learner = MetricLearner().fit(X, y)
    for _ in range(10):
        new = next_pairs(learner, X, 20, strategy="groups", known=answers(y, queried))
        queried = np.concatenate([queried, new])
    implied, rows = AnswerClosure.of(answers(y, queried), 400), np.unique(queried)
    assert len(rows) < len(queried)
    assert np.bincount(implied.group).max() > len(rows) / 4  # three classes
    assert len(implied.constraints().pairs) > 10 * len(queried)


def test_groups_goes_on_with_the_same_rows_while_they_are_in_doubt(rng):
    X, y = rng.standard_normal((400, 3)), np.arange(400)  # all different
    learner, queried = MetricLearner().fit(X, rng.integers(0, 2, 400)), np.empty((0, 2), dtype=int)
    for _ in range(10):
        queried = np.concatenate([queried, next_pairs(learner, X, 20, strategy="groups", known=answers(y, queried))])
    assert len(np.unique(queried)) <= 0.4 * len(queried)


def test_groups_teach_more_than_random_pairs(rng):
    X, y = load_digits(return_X_y=True)
    order = rng.permutation(len(y))
    X, y, X_test, y_test = X[order[:800]], y[order[:800]], X[order[800:]], y[order[800:]]
    drawn = np.column_stack([np.arange(300), rng.integers(300, 800, 300)])
    queried = drawn[:50]
    while len(queried) < 180:
        known = answers(y, queried)
        learner = MetricLearner().fit(X, constraints=AnswerClosure.of(known, len(y)).constraints())
        queried = np.concatenate([queried, next_pairs(learner, X, 26, strategy="groups", known=known)])
    by_choice = MetricLearner().fit(X, constraints=AnswerClosure.of(answers(y, queried), len(y)).constraints())
    at_random = MetricLearner().fit(X, constraints=answers(y, drawn))
    assert by_choice.score(X_test, y_test) > at_random.score(X_test, y_test)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("online", [False, True])
def test_implied_pairs_are_not_selected(rng, strategy, online):
    X, y = labelled_data(rng)
    queried = rng.permutation(len(y)).reshape(-1, 2)[:10]
    for _ in range(8):
        known = answers(y, queried)
        learner = OnlineMetricLearner() if online else MetricLearner()
        learner.fit(X, constraints=known)
        new = next_pairs(learner, X, 12, strategy=strategy, known=known)
        similar, dissimilar = closure(y, queried)
        assert not (similar | dissimilar)[tuple(new.T)].any()
        groups, every = AnswerClosure.of(known, len(y)), np.column_stack(np.triu_indices(len(y), 1))
        left = len(np.unique(groups.group_pairs(every[~groups.implies(every)])))
        assert len(np.unique(groups.group_pairs(new))) == len(new) == min(12, left)
        queried = np.concatenate([queried, new])


def test_no_pair_is_open_once_all_are_answered(rng):
    X, y = labelled_data(rng, n=12)
    every = np.column_stack(np.triu_indices(12, 1))
    learner = MetricLearner().fit(X, y)
    assert next_pairs(learner, X, 5, known=answers(y, every)).shape == (0, 2)
    assert len(next_pairs(learner, X, 1000)) == 66


def test_uncertain_pairs_are_neither_near_nor_far(rng):
    X, y = labelled_data(rng)
    learner, known = MetricLearner().fit(X, y), answers(y, rng.permutation(len(y)).reshape(-1, 2))
    D = learner.metric_.distances(X)
    i, j = next_pairs(learner, X, 20, known=known).T
    share = np.searchsorted(np.sort(D[np.triu_indices(len(y), 1)]), D[i, j]) / (len(y) * (len(y) - 1) / 2)
    assert share.min() > 0.05 and share.max() < 0.8
    same = y[i] == y[j]
    assert 0.05 < same.mean() < 0.95


@pytest.mark.parametrize("kind", [MetricLearner, OnlineMetricLearner])
def test_change_under_cosine_does_not_depend_on_the_unit_of_rows(rng, kind):
    """Bounds are about distances of rows as they are, not at unit length, where squares are 4 at most."""
    X, y = labelled_data(rng)
    selected = []
    for unit in (2.0**-10, 1.0, 2.0**10):
        learner = kind(normalize=True, random_state=0).fit(unit * X, y)
        selected.append(next_pairs(learner, unit * X, 12, strategy="change").tolist())
    assert selected[0] == selected[1] == selected[2]


def test_change_under_cosine_is_that_of_a_step_to_the_bound(rng):
    X, y = labelled_data(rng)
    learner = MetricLearner(normalize=True, bounds=(1.0, 30.0), random_state=0).fit(10.0 * X, y)
    W, index = learner.metric_.matrix, np.column_stack(np.triu_indices(len(y), 1))
    D = 10.0 * (X[index[:, 0]] - X[index[:, 1]])
    sq_learned, sq_cosine = np.einsum("ij,jk,ik->i", D, W, D), learner.metric_.distances(10.0 * X, squared=True)
    sq_cosine = sq_cosine[tuple(index.T)]
    p = SimilarityModel.fit(sq_cosine, np.empty(0), np.empty(0, dtype=bool)).probability(sq_cosine)
    near, far = np.maximum(sq_learned / 1.0, 1.0), np.minimum(sq_learned / 30.0, 1.0)
    worth = p * (1 / near + np.log(near) - 1) + (1 - p) * (1 / far + np.log(far) - 1)
    expected = index[np.argsort(-worth)[:10]]
    np.testing.assert_array_equal(next_pairs(learner, 10.0 * X, 10, strategy="change"), expected)


def test_diverse_pairs_share_fewer_rows(rng):
    X, y = labelled_data(rng, n=200)
    learner = MetricLearner().fit(X, y)
    rows = {s: len(np.unique(next_pairs(learner, X, 40, strategy=s))) for s in ("uncertain", "diverse")}
    assert rows["diverse"] >= rows["uncertain"]


def test_many_rows_are_sampled_repeatably(rng, monkeypatch):
    monkeypatch.setattr(query_strategies, "_MAX_ALL_PAIRS", 100)
    X, y = labelled_data(rng, n=300)
    learner = MetricLearner().fit(X, y)
    first, again = (next_pairs(learner, X, 30, random_state=1) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert (first[:, 0] != first[:, 1]).all() and len(first) == 30


def test_bad_input(rng):
    X, y = labelled_data(rng)
    learner = MetricLearner().fit(X, y)
    with pytest.raises(ValueError, match="strategy must be"):
        next_pairs(learner, X, strategy="best")
    with pytest.raises(ValueError, match="n must be a positive integer"):
        next_pairs(learner, X, 0)
    with pytest.raises(ValueError, match="takes two rows"):
        next_pairs(learner, X[:1])
    with pytest.raises(ValueError, match="about 70 rows"):
        next_pairs(learner, X, known=Constraints.from_pairs([[0, 1]], n_rows=70))
    with pytest.raises(NotFittedError):
        next_pairs(MetricLearner(), X)
