"""LlamaIndex: adapted embeddings, and what an index over its own vector store finds with them."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
from integrations.questions import ask, embed, fitted_adapter, fitted_query_adapter

from mahalo import MetricLearner
from mahalo.features import Local

pytest.importorskip("llama_index.core")

from llama_index.core import VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.schema import TextNode

from mahalo.integrations.llama_index import AdaptedEmbeddings

TEXTS, TOPICS = ask(60, seed=0)
QUESTIONS, ASKED = ask(30, seed=1)
E, Q = (np.array([embed(text) for text in texts]) for texts in (TEXTS, QUESTIONS))


class Words(BaseEmbedding):
    def _get_text_embedding(self, text):
        return embed(text)

    def _get_query_embedding(self, query):
        return embed(query)

    async def _aget_query_embedding(self, query):
        return embed(query)


def assert_close(found, wanted):
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5 * np.abs(wanted).max())


def index_of(embedding) -> VectorStoreIndex:
    return VectorStoreIndex([TextNode(text=text, id_=str(k)) for k, text in enumerate(TEXTS)], embed_model=embedding)


def search(index, embedding, text, k=5) -> list[int]:
    retriever = index.as_retriever(similarity_top_k=k, embed_model=embedding)
    return [int(found.node.node_id) for found in retriever.retrieve(text)]


KINDS = {
    "linear": {},
    "normalised": {"normalize": True},
    "low rank": {"n_components": 3},
    "local": {"features": Local(n_regions=2)},
    "rbf": {"kernel": "rbf"},
}


@pytest.mark.parametrize("options", KINDS.values(), ids=KINDS)
def test_nodes_and_queries_are_transformed(options):
    learner = MetricLearner(random_state=0, **options).fit(E, TOPICS)
    adapted = AdaptedEmbeddings(Words(), learner)
    assert_close(adapted.get_text_embedding_batch(TEXTS), learner.transform(E))
    assert_close(adapted.get_text_embedding(TEXTS[0]), learner.transform(E[:1])[0])
    assert_close([adapted.get_query_embedding(text) for text in QUESTIONS], learner.transform(Q))
    assert_close(asyncio.run(adapted.aget_query_embedding(QUESTIONS[0])), learner.transform(Q[:1])[0])
    assert_close(asyncio.run(adapted.aget_text_embedding_batch(TEXTS)), learner.transform(E))
    assert_close(asyncio.run(adapted.aget_text_embedding(TEXTS[0])), learner.transform(E[:1])[0])


def test_the_index_finds_the_nearest_under_the_learned_distance():
    adapter = fitted_adapter()
    assert adapter.normalize_
    adapted = AdaptedEmbeddings(Words(), adapter)
    index = index_of(adapted)
    _, nearest = adapter.metric_.kneighbors(Q, E, 5)
    assert [search(index, adapted, text) for text in QUESTIONS] == nearest.tolist()


def test_a_filled_index_stays_and_queries_are_mapped():
    """Vectors are of unit length, so that the store's cosine orders by inner product."""
    index = index_of(Words())
    for adapter, mapped in (
        (learner := fitted_adapter(), learner.metric_.query_side().queries(Q)),
        (queries := fitted_query_adapter(), queries.transform(Q)),
    ):
        adapted = AdaptedEmbeddings(Words(), adapter, side="query")
        wanted = np.argsort(-(E @ mapped.T), axis=0, kind="stable")[:5].T
        assert [search(index, adapted, text) for text in QUESTIONS] == wanted.tolist()
        assert adapted.get_text_embedding(TEXTS[0]) == embed(TEXTS[0])


def test_the_model_is_named_and_written_without_the_adapter():
    adapted = AdaptedEmbeddings(Words(model_name="words", embed_batch_size=7), fitted_adapter())
    assert (adapted.model_name, adapted.embed_batch_size) == ("words adapted", 7)
    assert "adapter" not in adapted.to_dict()


def test_what_does_not_fit_says_so():
    with pytest.raises(ValueError, match="maps queries only"):
        AdaptedEmbeddings(Words(), fitted_query_adapter(), side="both")
    with pytest.raises(ValueError, match=r"adapter must be a Metric, .* got dict"):
        AdaptedEmbeddings(Words(), {})
