"""Searches of three collections of abstracts, judged by people."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.feedback import encode, split_by_document, split_by_query
from experiments.data import load_classic3_searches
from mahalo.feedback import QueryAdapter


@pytest.fixture(scope="module")
def searches(data_dir):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MAHALO_DATA", str(data_dir))
        try:
            return load_classic3_searches()
        except FileNotFoundError as error:
            pytest.skip(str(error))


def test_splits_keep_queries_and_documents_apart(searches):
    relevant = searches.relevant
    by_query, by_document = (split(relevant, np.random.default_rng(0)) for split in (split_by_query, split_by_document))
    for split in (by_query, by_document):
        assert not np.isin(split.searched[:, 0], split.train[:, 0]).any()
        held_out = len(np.unique(np.concatenate([split.searched, split.left_out])[:, 0]))
        assert held_out == 110
    assert np.isin(by_query.searched[:, 1], by_query.train[:, 1]).all()
    assert not np.isin(by_query.left_out[:, 1], by_query.train[:, 1]).any()
    assert not np.isin(by_document.searched[:, 1], by_document.train[:, 1]).any()
    assert len(by_document.train) > 500


def test_feedback_helps_its_documents_and_does_not_harm_others(searches):
    queries, documents, _ = encode(searches)
    adapter = QueryAdapter(random_state=0).fit(queries, documents, searches.relevant)
    assert adapter.certificate_.converged
    assert adapter.before_after_.with_feedback.verdict() == "better"
    assert adapter.before_after_.without_feedback.verdict() != "worse"
