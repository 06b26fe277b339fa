from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import label_ranking_average_precision_score, ndcg_score

from mahalo.evaluation import score_searches


@pytest.fixture
def searches(rng):
    gains = sp.random_array((30, 40), density=0.1, rng=rng, data_sampler=lambda size: rng.integers(1, 4, size))
    return rng.normal(size=(30, 40)), sp.csr_array(gains.astype(float))


def test_ndcg_equals_that_of_scikit_learn(searches):
    S, gains = searches
    found = score_searches(lambda block: S[block], gains)["nDCG@10"]
    some = gains.toarray().any(axis=1)
    assert not some.all() and np.isnan(found[~some]).all()
    each = [ndcg_score(gains[[i]].toarray(), S[[i]], k=10) for i in np.flatnonzero(some)]
    np.testing.assert_allclose(found[some], each, rtol=1e-12)


def test_reciprocal_rank_of_one_relevant_document_is_its_average_precision(rng):
    S = rng.normal(size=(20, 15))
    gains = sp.csr_array(np.eye(20, 15)[rng.permutation(20)])
    some = gains.toarray().any(axis=1)
    found = score_searches(lambda block: S[block], gains)["MRR"]
    expected = label_ranking_average_precision_score(gains.toarray()[some] > 0, S[some])
    assert np.nanmean(found) == pytest.approx(expected)


def test_recall_counts_the_first_ten(searches):
    S, gains = searches
    found = score_searches(lambda block: S[block], gains)["recall@10"]
    top = np.argsort(-S, axis=1)[:, :10]
    dense = gains.toarray() > 0
    expected = [dense[i, top[i]].sum() / dense[i].sum() for i in range(30) if dense[i].any()]
    np.testing.assert_allclose(found[np.isfinite(found)], expected)


def test_documents_left_out_are_not_ranked(searches):
    S, gains = searches
    gains = gains[:, :20]
    left_out = sp.csr_array(np.tile(np.arange(40) >= 20, (30, 1)))
    wide = sp.csr_array(sp.hstack([gains, sp.csr_array((30, 20))]))
    expected = score_searches(lambda block: S[block][:, :20], gains)
    found = score_searches(lambda block: S[block], wide, left_out)
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values)
