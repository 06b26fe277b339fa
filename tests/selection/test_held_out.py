"""Before and after: judged by folds that had no say, each row once, with intervals that mean something."""

from __future__ import annotations

import numpy as np
import pytest
from builders import labelled_data
from scipy.stats import sem
from scipy.stats import t as student
from sklearn.metrics import euclidean_distances, roc_auc_score
from sklearn.metrics.pairwise import rbf_kernel

from mahalo import Constraints, MetricLearner, MetricLearnerCV
from mahalo.evaluation import BeforeAfter, Estimate, FoldScores, compare_folds, intervals, ranked_auc
from mahalo.pairs import PairSplit
from mahalo.selection.held_out import evaluate_held_out


def test_auc_of_a_ranking_is_that_of_scikit_learn(rng):
    found = rng.random((6, 20)) < 0.3
    expected = [roc_auc_score(row, -np.arange(20)) for row in found]
    np.testing.assert_allclose(ranked_auc(found), expected)


def test_repeated_folds_count_each_row_once(rng):
    X, y = labelled_data(rng, n=60, d=3)
    search = MetricLearnerCV(gammas=[0.1, 1.0]).make_search(X, y)
    assert len(search.folds) > 3
    found = evaluate_held_out(search)
    assert found.n_queries == 60 and set(found.before) == {"10-NN", "P@1", "P@10", "MAP", "AUC"}
    assert "before" in str(found) and "60 held-out queries" in str(found)


def test_noise_is_not_sold_as_gain(rng):
    X, y = rng.standard_normal((150, 8)), np.arange(150) % 3
    found = evaluate_held_out(MetricLearnerCV().make_search(X, y))
    for name in found.before:
        assert found.after[name] - found.before[name] < 0.03 + found.interval[name]


def test_gain_is_seen(rng):
    y = np.arange(150) % 3
    X = np.column_stack([y + 0.3 * rng.standard_normal(150), 5 * rng.standard_normal((150, 6))])
    search = MetricLearnerCV(gammas=[10.0], prior="within").make_search(X, y)
    for found in (
        evaluate_held_out(search),
        evaluate_held_out(search, settings=search.candidates[-1].settings),
    ):
        assert found.after["MAP"] - found.before["MAP"] > found.interval["MAP"] + 0.1


def test_pairs_alone_are_judged_by_the_rows_they_are_about(rng):
    X, y = labelled_data(rng, n=80, d=4)
    pairs = Constraints.from_labels(y, pairs_per_class=80)
    found = evaluate_held_out(MetricLearnerCV(gammas=[1.0]).make_search(X, constraints=pairs))
    assert set(found.before) == {"pair AUC"} and 40 < found.n_queries <= 80
    assert 100 < found.n_pairs <= len(pairs.pairs)
    assert 0 < found.interval["pair AUC"] < 0.2 and f"{found.n_pairs} held-out pairs of" in str(found)


def test_one_split_has_an_interval_over_its_rows(rng):
    X, y = labelled_data(rng, n=80, d=4)
    pairs = Constraints.from_labels(y, pairs_per_class=80)
    cv = MetricLearnerCV(gammas=[1.0], cv=PairSplit(pairs, n_splits=1, random_state=0))
    found = evaluate_held_out(cv.make_search(X, constraints=pairs), settings=MetricLearner().fit_settings())
    assert 0 < found.interval["pair AUC"] < 0.5 and "inf" not in str(found)


def test_folds_that_differ_widen_the_interval():
    """Four folds of two rows each: before 0 for all, after the same for both rows of a fold."""
    change = np.repeat([0.0, 1.0, 0.0, 1.0], 2)
    folds = [
        FoldScores(
            0, side_estimates=({"m": Estimate.mean(fold, np.zeros(2))}, {"m": Estimate.mean(fold, change[fold])})
        )
        for fold in np.arange(8).reshape(4, 2)
    ]
    found = compare_folds(folds, primary="m")
    assert found.after["m"] == 0.5
    assert (
        found.interval["m"]
        == pytest.approx(intervals.of_mean(change))
        == pytest.approx(sem(change) * student.ppf(0.975, 7))
    )


def test_one_query_has_no_interval():
    before, after = ({"MAP": Estimate.mean(np.array([7]), np.array([value]))} for value in (0.5, 0.75))
    found = compare_folds([FoldScores(0, side_estimates=(before, after))], primary="MAP")
    assert found.interval["MAP"] is None
    assert str(found).splitlines()[1].split() == ["MAP", "0.500", "0.750", "+0.250"]


def test_nothing_learned_is_the_plain_distance(rng):
    X = rng.normal(size=(12, 5))
    y = np.arange(12) % 2
    linear = MetricLearner(basis=2).fit(X, y).metric_.without_learning()
    np.testing.assert_allclose(linear.distances(X), euclidean_distances(X), atol=1e-7)
    K = rbf_kernel(X, gamma=0.2)
    kernel = MetricLearner(kernel="rbf", kernel_params={"gamma": 0.2}, basis=3).fit(X, y).metric_.without_learning()
    np.testing.assert_allclose(kernel.distances(X), np.sqrt(np.maximum(2 - 2 * K, 0)), atol=1e-7)


def test_intervals_are_students(rng):
    values = rng.normal(size=9)
    expected = student.ppf(0.975, 8) * sem(values)
    assert intervals.of_mean(values) == pytest.approx(expected)
    assert intervals.of_mean(values[:1]) is None


def test_copies_of_training_rows_are_named(rng):
    """Noise that is written three times is recognised in votes, whatever is learned."""
    X, y = rng.standard_normal((60, 4)), rng.integers(0, 3, 60)
    search = MetricLearnerCV(random_state=0).make_search(np.tile(X, (3, 1)), np.tile(y, 3))
    found = evaluate_held_out(search)
    assert found.n_copies > 150
    assert any(f"{found.n_copies} of the queries are copies of training rows" in note for note in found.notes)
    assert BeforeAfter.from_dict(found.to_dict()).n_copies == found.n_copies
    whole_numbers = np.unique(rng.integers(0, 9, (180, 5)), axis=0).astype(float)
    for distinct in (X, whole_numbers):
        labels = np.arange(len(distinct)) % 3
        assert evaluate_held_out(MetricLearnerCV(random_state=0).make_search(distinct, labels)).n_copies == 0
