"""The vote of nearest neighbours."""

import numpy as np
import pytest
from builders import labelled_data
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from mahalo import Constraints, MetricLearner
from mahalo.evaluation import knn_predict, n_voters, nearest_of, pair_auc, vote, vote_confidence


def plain_vote(codes):
    """Neighbours counted from the nearest on; the first class to reach the highest count wins."""
    counts = {}
    for code in codes:
        counts[code] = counts.get(code, 0) + 1
    most, reached = max(counts.values()), {}
    for code in codes:
        reached[code] = reached.get(code, 0) + 1
        if reached[code] == most:
            return code
    raise AssertionError


def test_vote_confidence_is_the_chance_of_the_own_class_among_other_neighbours(rng):
    codes = np.array([[0] * 10, [0] * 6 + [1] * 4, [0] * 5 + [1] * 5, [0] * 3 + [1] * 7])
    found = vote_confidence(codes, np.zeros(4, dtype=int))
    assert found[0] > 0.999 and found[2] == 0.5 and (np.diff(found) < 0).all()
    drawn = rng.binomial(10, 0.6, 100_000)
    assert found[1] == pytest.approx((drawn > 5).mean() + (drawn == 5).mean() / 2, abs=0.01)
    assert vote_confidence(np.array([[0, 0, 1]]), np.array([2]))[0] < 0.1  # a class without a neighbour


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 12), st.integers(1, 5))
def test_the_vote_is_that_of_plain_counting_and_blind_to_names(seed, k, n_classes):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, n_classes, (20, k))
    won = vote(codes)
    assert_array_equal(won, [plain_vote(row) for row in codes.tolist()])
    renamed = rng.permutation(n_classes)
    assert_array_equal(vote(renamed[codes]), renamed[won])


def test_a_tie_goes_to_the_nearer_neighbours():
    assert_array_equal(vote(np.array([[1, 0, 0, 1], [0, 1, 1, 0], [1, 1, 0, 0]])), [0, 1, 1])


@pytest.mark.parametrize("k", [2, 10])
def test_renaming_the_classes_renames_the_predictions(k):
    rng = np.random.default_rng(0)
    train, test = rng.standard_normal((60, 2)), rng.standard_normal((100, 2))
    y = np.array(["a", "b", "c"])[rng.integers(0, 3, 60)]
    other = {"a": "z", "b": "b", "c": "a"}
    renamed = knn_predict(train, [other[label] for label in y], test, k)
    assert_array_equal(renamed, [other[label] for label in knn_predict(train, y, test, k)])


def test_renaming_the_classes_changes_no_score():
    """Pairs to judge by are drawn: more of them than a score looks at."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 400)
    X = rng.standard_normal((400, 2)) + y[:, None]

    def score(names):
        return pair_auc(lambda index: ((X[index[:, 0]] - X[index[:, 1]]) ** 2).sum(axis=1), 400, names[y], None, None)

    assert score(np.array([0, 1, 2])) == score(np.array([5, 9, 3])) == score(np.array(["c", "a", "b"])) > 0.6


@pytest.mark.parametrize("n", [5, 9])
def test_labels_to_judge_by_are_one_for_each_row(n):
    message = f"y must have one label for each of the 6 rows of X; got {n}"
    with pytest.raises(ValueError, match=message):
        pair_auc(lambda index: np.zeros(len(index)), 6, np.arange(n) % 2, None, None)


def test_nearest_come_in_order_and_equal_ones_by_position():
    D = np.array([[3.0, 1.0, 2.0, 1.0], [0.0, 0.0, 0.0, 0.0]])
    assert_array_equal(nearest_of(D, 3), [[1, 3, 2], [0, 1, 2]])
    assert nearest_of(D, 9).shape == (2, 4)


@pytest.mark.parametrize("k", [1, 3, 7, 12])
def test_of_equal_distances_the_first_columns_are_nearest(rng, k):
    distances = rng.integers(0, 3, (200, 12)).astype(float)
    distances[:5] = np.inf
    np.testing.assert_array_equal(nearest_of(distances, k), np.argsort(distances, axis=1, kind="stable")[:, :k])


@pytest.mark.parametrize("n_values", [3, 300, 10**6])
@pytest.mark.parametrize("k", [1, 5, 40, 500])
def test_nearest_of_wide_rows_are_the_first_of_a_stable_sort(rng, k, n_values):
    distances = rng.integers(0, n_values, (30, 1500)).astype(float)
    distances[3:6, 7:] = np.inf  # fewer than k entries that are finite
    distances[9] = np.sort(distances[9])
    np.testing.assert_array_equal(nearest_of(distances, k), np.argsort(distances, axis=1, kind="stable")[:, :k])
    assert nearest_of(distances[:0], k).shape == (0, k)


def test_rows_of_a_score_must_be_as_many_as_there_are(rng):
    X, y = labelled_data(rng)
    learner = MetricLearner(pairs_per_class=10).fit(X, y)
    with pytest.raises(ValueError, match=r"rows must have one index for each row of X, 60; got shape \(90,\)"):
        learner.score(X, constraints=Constraints.from_labels(y), rows=np.arange(90))


@pytest.mark.parametrize(("n_rows", "expected"), [(300, 10), (15, 10), (10, 6), (1, 1)])
def test_few_rows_have_fewer_voters(n_rows, expected):
    assert n_voters(n_rows) == expected
