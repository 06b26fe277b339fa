"""Before and after: judged by folds that had no say, each row once, with intervals that mean something."""

from __future__ import annotations

import numpy as np
from builders import labelled_data
from sklearn.metrics import roc_auc_score

from mahalo import Constraints, MetricLearnerCV
from mahalo.scoring import ranked_auc
from mahalo.selection.before_after import before_after, choosing_of, measures


def test_auc_of_a_ranking_is_that_of_scikit_learn(rng):
    found = rng.random((6, 20)) < 0.3
    expected = [roc_auc_score(row, -np.arange(20)) for row in found]
    np.testing.assert_allclose(ranked_auc(found), expected)


def test_repeated_folds_count_each_row_once(rng):
    X, y = labelled_data(rng, n=60, d=3)
    choosing = choosing_of(MetricLearnerCV(gammas=[0.1, 1.0]), X, y)
    assert len(choosing.folds) > 3
    told = before_after(choosing, measures(None))
    assert told.n_questions == 60 and set(told.before) == {"10-NN", "MAP", "AUC"}
    assert "before" in str(told) and "60 held-out rows" in str(told)


def test_noise_is_not_sold_as_gain(rng):
    X, y = rng.standard_normal((150, 8)), np.arange(150) % 3
    told = before_after(choosing_of(MetricLearnerCV(), X, y), measures(None))
    for name in told.before:
        assert told.after[name] - told.before[name] < 0.03 + told.interval[name]


def test_gain_is_seen(rng):
    y = np.arange(150) % 3
    X = np.column_stack([y + 0.3 * rng.standard_normal(150), 5 * rng.standard_normal((150, 6))])
    choosing = choosing_of(MetricLearnerCV(gammas=[10.0], prior="within"), X, y)
    for told in (before_after(choosing, measures(None)), before_after(choosing, measures(None), settled=-1)):
        assert told.after["MAP"] - told.before["MAP"] > told.interval["MAP"] + 0.1


def test_pairs_alone_are_judged_by_their_splits(rng):
    X, y = labelled_data(rng, n=80, d=4)
    pairs = Constraints.from_labels(y, pairs_per_class=80)
    told = before_after(choosing_of(MetricLearnerCV(gammas=[1.0]), X, constraints=pairs), measures(pairs))
    assert set(told.before) == {"pair AUC"} and told.n_questions == 5
    assert 0 < told.interval["pair AUC"] < 1 and "splits" in str(told)
