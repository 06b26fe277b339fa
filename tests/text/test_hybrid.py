"""Hybrid search: scores by words and by vectors, the weight between them, and what it brings on abstracts."""

from __future__ import annotations

import csv
import json
import lzma
import sys

import numpy as np
import pytest

from mahalo import MetricLearner
from mahalo.evaluation import ndcg_at
from mahalo.text import HybridIndex, fit_weight, load_encoder

pytest.importorskip("bm25s")

DOCUMENTS = ["error code alpha seven", "the card was lost", "exchange of euros", "opening hours of the bank", ""]


def embed(texts):
    """Vectors by the first words of DOCUMENTS that a text shares, in pairs that vectors cannot tell apart."""
    return np.array([[("error" in t) + ("card" in t), ("euro" in t) + ("bank" in t), 0.1] for t in texts])


@pytest.fixture
def encoder():
    return load_encoder(embed)


@pytest.fixture
def index(encoder):
    with pytest.warns(UserWarning, match="1 of 5 texts are empty"):
        return HybridIndex(DOCUMENTS, encoder)


def test_the_ends_of_the_weight_are_vectors_and_bm25(index):
    query = ["card error alpha"]
    by_vectors, by_bm25 = index.scores(query)
    for weight, scores in ((0.0, by_vectors), (1.0, by_bm25)):
        found = index.with_weight(weight).search(query, k=5)
        np.testing.assert_array_equal(found.rows, np.argsort(-scores, axis=1, kind="stable"))
        np.testing.assert_allclose(found.vector_scores, np.take_along_axis(by_vectors, found.rows, axis=1))
        np.testing.assert_allclose(found.bm25_scores, np.take_along_axis(by_bm25, found.rows, axis=1))
    assert index.weight == 0.3


def test_words_decide_where_vectors_are_equal(index):
    assert index.search(["alpha error"], k=2).rows.tolist() == [[0, 1]]
    assert index.search(["card"], k=1).rows.tolist() == [[1]]


@pytest.mark.parametrize("query", ["zebra", "😀", "the of", "1"])
def test_a_query_without_words_of_the_documents_is_answered_by_vectors(index, query):
    found = index.search([query], k=3)
    assert not found.bm25_scores.any() and np.isfinite(found.scores).all()
    np.testing.assert_array_equal(found.rows, index.with_weight(0.0).search([query], k=3).rows)


def test_documents_without_words_are_searched_by_vectors():
    index = HybridIndex(["😀", "👍", "?"], load_encoder(lambda texts: [[len(t), 1.0] for t in texts]))
    assert index.search(["!"], k=1).scores.shape == (1, 1)


def test_digits_are_warned_of_once(wordllama):
    with pytest.warns(UserWarning, match="only digits") as caught:
        HybridIndex(["12", "13"], wordllama)
    assert len(caught) == 1


def test_more_than_there_are_is_all(index):
    assert index.search(["card", "bank"], k=99).rows.shape == (2, 5)


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        ([], "no query text"),
        (["card", " "], "query 1 is empty"),
        ([None], "text 0 is missing"),
        ("card", "list of texts"),
    ],
)
def test_bad_queries_are_named(index, texts, words):
    with pytest.raises(ValueError, match=words):
        index.search(texts)


def test_bad_settings_are_named(index, encoder):
    with pytest.raises(ValueError, match=r"from 0 to 1; got 1\.5"):
        index.with_weight(1.5)
    with pytest.raises(ValueError, match="at least one text"):
        HybridIndex([], encoder)
    with pytest.raises(ValueError, match="k must be a positive integer"):
        index.search(["card"], k=0)


def test_without_bm25s_the_message_says_what_to_install(encoder, monkeypatch):
    monkeypatch.setitem(sys.modules, "bm25s", None)
    with pytest.raises(ImportError, match=r'hybrid search needs bm25s: pip install "mahalo\[text\]"'):
        HybridIndex(["card"], encoder)


@pytest.mark.parametrize("normalize", [False, True])
def test_vectors_are_compared_by_the_metric(encoder, normalize):
    E = embed(DOCUMENTS[:4])
    y = [0, 0, 1, 1]
    metric = MetricLearner(normalize=normalize, random_state=0).fit(np.vstack([E, E + 0.01]), y + y).metric_
    index = HybridIndex(DOCUMENTS[:4], encoder, metric, weight=0.0)
    query = ["euro"]
    D = metric.distances(encoder.encode(query), encoder.encode(DOCUMENTS[:4]))
    found = index.search(query, k=4)
    np.testing.assert_allclose(np.take_along_axis(D, found.rows, axis=1), np.sort(D), rtol=1e-4, atol=1e-4)


def test_a_stemmer_joins_forms_of_a_word(encoder):
    documents = ["cards are lost", "exchange of euros"]
    stem = HybridIndex(documents, encoder, weight=1.0, stemmer=lambda words: [word.rstrip("s") for word in words])
    assert stem.search(["card"], k=1).bm25_scores[0, 0] > 0
    plain = HybridIndex(documents, encoder, weight=1.0, stemmer=None)
    assert plain.search(["card"], k=1).bm25_scores[0, 0] == 0
    english = HybridIndex(documents, encoder, weight=1.0)
    assert english.search(["exchanging"], k=1).rows[0, 0] == 1


def test_stemmers_are_languages_that_are_known(encoder, monkeypatch):
    with pytest.raises(ValueError, match=r"stemmer must be one of .*english.*; got 'klingon'"):
        HybridIndex(["card"], encoder, stemmer="klingon")
    monkeypatch.setitem(sys.modules, "snowballstemmer", None)
    with pytest.raises(ImportError, match=r'needs snowballstemmer: pip install "mahalo\[text\]", or pass stemmer=None'):
        HybridIndex(["card"], encoder)


# -- weight --------------------------------------------------------------------------------------------------


def test_ndcg_by_hand():
    grades = np.array([[0, 2, 1, 0], [1, 0, 0, 0], [0, 0, 0, 0]])
    ideal = 2 + 1 / np.log2(3)
    expected = [(2 / np.log2(3) + 1 / 2) / ideal, 1.0, np.nan]
    np.testing.assert_allclose(ndcg_at(grades, 3), expected)
    np.testing.assert_allclose(ndcg_at(grades, 1)[:2], [0.0, 1.0])


def test_the_better_kind_of_score_is_chosen(encoder):
    documents = [f"card number {word}" for word in ("alpha", "beta", "gamma", "delta", "omega", "sigma")]
    index = HybridIndex(documents, encoder)
    choice = fit_weight(index, [d.split()[-1] for d in documents], [(k, k, 1) for k in range(6)], n_folds=3)
    assert choice.weight > 0 and choice.bm25 == choice.hybrid == 1.0 > choice.vectors
    assert choice.over_vectors == pytest.approx(1.0 - choice.vectors) and choice.over_bm25 == 0.0
    assert list(choice.scores) == [k / 10 for k in range(11)] and choice.n_queries == 6 and not choice.n_left_out
    assert "nDCG@10 of 6 held-out queries" in str(choice)


def test_queries_without_a_relevant_document_are_left_out(index):
    queries = ["card", "euros", "bank hours", "alpha"]
    with pytest.warns(UserWarning, match=r"1 query has no relevant document .* the first is 2\."):
        choice = fit_weight(index, queries, [(0, 1, 1), (1, 2, 2), (2, 3, 0), (3, 0, 1)], n_folds=2)
    assert (choice.n_queries, choice.n_left_out) == (3, 1)


@pytest.mark.parametrize(
    ("relevance", "words"),
    [
        ([(0, 9, 1)], "relevance names document 9, but documents has 5 rows"),
        ([(2, 0, 1)], "relevance names query 2, but queries has 2 rows"),
        ([(0, 0.5, 1)], r"relevance \(document\)"),
        ([(0, 1, float("nan"))], "grades must be finite"),
        ([(0,)], r"\(query, document\) or \(query, document, grade\) rows"),
        ([(0, 1, 1), (0, 1, 2)], "have another grade already"),
        ([(0, 1, 1)], "1 queries have a relevant document; 2 are needed"),
        ([(0, 1, 0)], "no query has a relevant document"),
    ],
)
def test_bad_judgements_are_named(index, relevance, words):
    with pytest.raises(ValueError, match=words):
        fit_weight(index, ["card", "bank"], relevance, n_folds=2)


def test_hybrid_is_above_vectors_and_bm25_on_abstracts(data_dir, wordllama):
    def read(name):
        with lzma.open(data_dir / "classic3" / name, "rt", encoding="utf8") as file:
            return [json.loads(line) for line in file]

    documents, queries = read("classic3.jsonl.xz"), read("queries.jsonl.xz")
    document_row = {document["id"]: row for row, document in enumerate(documents)}
    query_row = {(query["collection"], str(query["qid"])): row for row, query in enumerate(queries)}
    with open(data_dir / "classic3" / "qrels.tsv", encoding="utf8") as file:
        judgements = list(csv.DictReader(file, delimiter="\t"))
    relevance = [
        (query_row[one["collection"], one["qid"]], document_row[name], 1)
        for one in judgements
        if int(one["rel"]) > 0 and (name := f"{one['collection']}-{one['docid']}") in document_row
    ]
    index = HybridIndex([document["text"] for document in documents], wordllama)
    choice = fit_weight(index, [query["text"] for query in queries], relevance)
    assert choice.n_queries == 331
    assert choice.over_vectors - choice.over_vectors_interval > 0.02
    assert choice.over_bm25 - choice.over_bm25_interval > 0.0
    plain = HybridIndex([document["text"] for document in documents], wordllama, stemmer=None)
    unstemmed = fit_weight(plain, [query["text"] for query in queries], relevance)
    assert choice.hybrid > unstemmed.hybrid + 0.01 and choice.bm25 > unstemmed.bm25 + 0.01
