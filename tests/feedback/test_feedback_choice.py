"""The choice among candidates, from scores that are made up."""

from __future__ import annotations

import numpy as np
import pytest

from mahalo.evaluation import SEARCH_MEASURES
from mahalo.feedback.choice import FROZEN, Candidate, SearchScores
from mahalo.feedback.folds import WITH, WITHOUT

N = 100


def scores_of(seen: list[float], unseen: list[float], spread: float = 0.02) -> SearchScores:
    """Candidates λ = 1, 2, … with these mean gains for both kinds of documents, ± about 2 spread / √100."""
    noise = spread * np.where(np.arange(N) % 2, 1.0, -1.0)
    values = {}
    for kind, gains in ((WITH, seen), (WITHOUT, unseen)):
        table = np.array([np.full(N, 0.5), *(0.5 + gain + noise for gain in gains)])
        values[kind] = dict.fromkeys(SEARCH_MEASURES, table)
    rows = {kind: np.arange(N) for kind in values}
    folds = {kind: np.arange(N) // 25 for kind in values}
    return SearchScores(tuple(Candidate(k + 1.0, 0.05) for k in range(len(seen))), rows, values, folds, 1000)


@pytest.mark.parametrize(
    ("seen", "unseen", "lam"),
    [
        ([0.02, 0.05, 0.03], [0.0, 0.0, 0.0], 2.0),  # the largest gain
        ([0.02, 0.05, 0.03], [0.0, -0.02, 0.0], 3.0),  # that does not harm the others
        ([0.02, 0.05, 0.03], [-0.02, -0.02, -0.02], np.inf),  # all harm
        ([-0.002, -0.001, -0.1], [0.0, 0.0, 0.0], np.inf),  # no gain
        ([0.02, 0.05, 0.03], [0.0, -0.005, 0.0], 3.0),  # clearly worse, if only by little
        ([0.02, 0.05, 0.03], [0.0, -0.003, 0.0], 2.0),  # not clearly worse, and by less than max_loss
    ],
)
def test_largest_gain_without_harm_is_chosen(seen, unseen, lam):
    scores = scores_of(seen, unseen)
    chosen = scores.choose(0.01)
    assert chosen.lam == lam
    assert scores.explain(chosen, 0.01).startswith(
        "Frozen vectors stay" if lam == np.inf else "Queries are adapted (λ = "
    )


def test_wide_intervals_leave_frozen_vectors():
    assert scores_of([0.5], [0.01], spread=0.2).choose(0.01) is FROZEN
    assert scores_of([0.5], [0.01], spread=0.2).choose(0.05).lam == 1.0
    assert scores_of([0.002], [0.01]).choose(0.0) is FROZEN
    assert scores_of([0.002], [0.01]).choose(0.01).lam == 1.0


def test_a_gain_with_a_narrow_interval_is_preferred():
    scores = scores_of([0.03, 0.035], [0.01, 0.01])
    for kind in (WITH, WITHOUT):
        table = scores.values[kind]["nDCG@10"]
        table[2] += np.where(np.arange(N) % 2, 0.1, -0.1)
    assert scores.choose(0.1).lam == 1.0


def test_without_a_largest_loss_frozen_vectors_are_no_candidate():
    assert scores_of([-0.1, -0.05], [-0.1, -0.1]).choose(None).lam == 2.0


def test_comparison_judges_each_fold_by_the_choice_of_the_others():
    scores = scores_of([0.05, 0.04], [0.0, 0.0], spread=0.0)
    first = scores.folds[WITH] == 0
    scores.values[WITH]["nDCG@10"][1, first] += 5.0  # that alone makes λ = 1 the better one
    scores.values[WITH]["nDCG@10"][1, ~first] -= 0.02
    assert scores.choose(0.01).lam == 1.0
    found = scores.compare(WITH, 0.01)
    assert found.after["nDCG@10"] - found.before["nDCG@10"] == pytest.approx(0.25 * 0.04 + 0.75 * 0.03)


def test_table_has_both_kinds_by_candidate():
    table = scores_of([0.05, 0.04], [0.01, -0.01]).table()
    np.testing.assert_allclose(table["gain_with_feedback"], [0.05, 0.04])
    np.testing.assert_allclose(table["gain_without_feedback"], [0.01, -0.01])
    assert (table["interval_with_feedback"] > 0).all()
