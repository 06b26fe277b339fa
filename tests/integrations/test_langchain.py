"""LangChain: adapted embeddings, and what its own vector store finds with them."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
from integrations.questions import ask, embed, fitted_adapter, fitted_query_adapter

from mahalo import MetricLearner
from mahalo.features import Local

pytest.importorskip("langchain_core")

from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore

from mahalo.integrations.langchain import AdaptedEmbeddings

TEXTS, TOPICS = ask(60, seed=0)
QUESTIONS, ASKED = ask(30, seed=1)
E, Q = (np.array([embed(text) for text in texts]) for texts in (TEXTS, QUESTIONS))


class Words(Embeddings):
    def embed_documents(self, texts):
        return [embed(text) for text in texts]

    def embed_query(self, text):
        return embed(text)


class AsyncWords(Words):
    """An embedding service that can only be awaited."""

    def embed_documents(self, texts):
        raise AssertionError("not awaited")

    embed_query = embed_documents

    async def aembed_documents(self, texts):
        return [embed(text) for text in texts]

    async def aembed_query(self, text):
        return embed(text)


def assert_close(found, wanted):
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5 * np.abs(wanted).max())


KINDS = {
    "linear": {},
    "normalised": {"normalize": True},
    "low rank": {"n_components": 3},
    "local": {"features": Local(n_regions=2)},
    "rbf": {"kernel": "rbf"},
}


@pytest.mark.parametrize("options", KINDS.values(), ids=KINDS)
def test_documents_and_queries_are_transformed(options):
    learner = MetricLearner(random_state=0, **options).fit(E, TOPICS)
    for adapter in (learner, learner.metric_):
        adapted = AdaptedEmbeddings(Words(), adapter)
        assert_close(adapted.embed_documents(TEXTS), learner.transform(E))
        assert_close([adapted.embed_query(text) for text in QUESTIONS], learner.transform(Q))
    assert adapted.embed_documents([]) == []


def test_the_store_finds_the_nearest_under_the_learned_distance():
    adapter = fitted_adapter()
    assert adapter.normalize_
    store = InMemoryVectorStore.from_texts(TEXTS, AdaptedEmbeddings(Words(), adapter))
    _, nearest = adapter.metric_.kneighbors(Q, E, 5)
    for text, rows in zip(QUESTIONS, nearest, strict=True):
        assert [found.page_content for found in store.similarity_search(text, k=5)] == [TEXTS[row] for row in rows]


def test_a_filled_store_stays_and_queries_are_mapped():
    """Vectors are of unit length, so that the store's cosine orders by inner product."""
    for adapter, mapped in (
        (learner := fitted_adapter(), learner.metric_.query_side().queries(Q)),
        (queries := fitted_query_adapter(), queries.transform(Q)),
    ):
        store = InMemoryVectorStore.from_texts(TEXTS, Words())
        before = {key: list(entry["vector"]) for key, entry in store.store.items()}
        store.embedding = AdaptedEmbeddings(Words(), adapter, side="query")
        for text, u in zip(QUESTIONS, mapped, strict=True):
            found = [hit.page_content for hit in store.similarity_search(text, k=5)]
            assert found == [TEXTS[row] for row in np.argsort(-(E @ u), kind="stable")[:5]]
        store.add_texts(["pin card"])
        assert {key: list(entry["vector"]) for key, entry in list(store.store.items())[:60]} == before
        assert list(store.store.values())[-1]["vector"] == embed("pin card")


def test_a_query_adapter_maps_queries_by_default():
    adapter = fitted_query_adapter()
    adapted = AdaptedEmbeddings(Words(), adapter)
    assert adapted.embed_documents(TEXTS) == [embed(text) for text in TEXTS]
    assert_close(adapted.embed_query(QUESTIONS[0]), adapter.transform(Q[:1])[0])


def test_asynchronous_embeddings_are_awaited():
    adapter = fitted_adapter()
    adapted = AdaptedEmbeddings(AsyncWords(), adapter)
    assert_close(asyncio.run(adapted.aembed_documents(TEXTS)), adapter.transform(E))
    assert_close(asyncio.run(adapted.aembed_query(QUESTIONS[0])), adapter.transform(Q[:1])[0])


def test_what_does_not_fit_says_so():
    with pytest.raises(ValueError, match="side must be 'both' or 'query'; got 'document'"):
        AdaptedEmbeddings(Words(), fitted_adapter(), side="document")
    with pytest.raises(ValueError, match="maps queries only"):
        AdaptedEmbeddings(Words(), fitted_query_adapter(), side="both")
    with pytest.raises(ValueError, match=r"adapter must be a Metric, .* got dict"):
        AdaptedEmbeddings(Words(), {})
    curved = MetricLearner(kernel="rbf").fit(E, TOPICS)
    with pytest.raises(ValueError, match="queries cannot carry"):
        AdaptedEmbeddings(Words(), curved, side="query")
