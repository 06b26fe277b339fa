from __future__ import annotations

import numpy as np
import pytest

from mahalo.evaluation.judgements import Judgements, read_judgements
from mahalo.feedback.folds import folds_with_feedback, folds_without_feedback
from mahalo.feedback.negatives import draw_negatives, rank_others


def judgements_of(pairs, n_queries, n_documents) -> Judgements:
    return read_judgements(pairs, n_queries, n_documents)


@pytest.fixture
def chained(rng):
    """40 queries with three documents of 30 each, almost all in one component."""
    return judgements_of([(q, d) for q in range(40) for d in rng.choice(30, 3, replace=False)], 40, 35)


@pytest.fixture
def separate():
    """20 pairs of queries, each pair with a document of its own."""
    return judgements_of([(q, q // 2) for q in range(40)], 40, 20)


def test_held_out_queries_are_not_learned_from(chained, separate, rng):
    for judgements in (chained, separate):
        for fold in (*folds_with_feedback(judgements, 5, rng), *folds_without_feedback(judgements, 5, rng)):
            assert not np.isin(fold.queries, fold.train.query).any()
            assert np.isin(fold.searched.query, fold.queries).all()


def test_searched_documents_had_feedback_or_had_none(chained, separate, rng):
    for judgements in (chained, separate):
        for fold in folds_with_feedback(judgements, 5, rng):
            assert np.isin(fold.searched.document, fold.train.document).all()
            assert not np.isin(fold.left_out.document, fold.train.document).any()
        for fold in folds_without_feedback(judgements, 5, rng):
            assert not np.isin(fold.searched.document, fold.train.document).any()


def test_every_query_is_held_out_once(chained, rng):
    for folds in (folds_with_feedback(chained, 5, rng), folds_without_feedback(chained, 5, rng)):
        assert sorted(np.concatenate([fold.queries for fold in folds])) == list(range(40))


def test_components_are_held_out_whole_and_lose_no_judgement(separate, rng):
    folds = folds_without_feedback(separate, 4, rng)
    assert [len(fold.queries) for fold in folds] == [10, 10, 10, 10]
    for fold in folds:
        assert len(np.unique(fold.queries // 2)) == 5
        assert len(fold.train.query) == 30


def test_documents_of_grade_zero_are_not_relevant(rng):
    judgements = judgements_of([(q, d, int(d == q)) for q in range(10) for d in range(10)], 10, 10)
    folds = folds_without_feedback(judgements, 5, rng)
    assert all((fold.searched.grade > 0).all() for fold in folds)
    assert len(judgements.relevant().query) == 10


def test_negatives_are_near_and_never_relevant(rng):
    queries, documents = rng.normal(size=(15, 4)), rng.normal(size=(60, 4))
    judgements = judgements_of([(q, d) for q in range(15) for d in rng.choice(60, 5, replace=False)], 15, 60)
    ranked = rank_others(queries, documents, judgements, np.arange(15), depth=20)
    relevant = judgements.matrix().toarray() > 0
    score = np.where(relevant, -np.inf, queries @ documents.T)
    np.testing.assert_array_equal(ranked, np.argsort(-score, axis=1)[:, :20])
    drawn = draw_negatives(ranked, 8, rng)
    assert drawn.shape == (15, 8)
    for q in range(15):
        assert len(set(drawn[q])) == 8 and set(drawn[q]) <= set(ranked[q])


def test_missing_negatives_are_filled_up(rng):
    queries, documents = rng.normal(size=(1, 3)), rng.normal(size=(5, 3))
    ranked = rank_others(queries, documents, judgements_of([(0, 0), (0, 1), (0, 2)], 1, 5), np.arange(1))
    drawn = draw_negatives(ranked, 4, rng)
    assert sorted(drawn[0, :2]) == [3, 4] and list(drawn[0, 2:]) == [-1, -1]
