"""LangChain: embeddings that return adapted vectors."""

from __future__ import annotations

from .vector_map import Adapter, VectorMap

try:
    from langchain_core.embeddings import Embeddings
except ImportError:
    raise ImportError('embeddings for LangChain need langchain-core: pip install "mahalo[langchain]"') from None

__all__ = ["AdaptedEmbeddings"]


class AdaptedEmbeddings(Embeddings):
    """Embeddings of LangChain, with vectors adapted by a learned distance.

    Parameters
    ----------
    embeddings : langchain_core.embeddings.Embeddings
        Those whose vectors the adapter was fitted to.
    adapter : EmbeddingAdapter, MetricLearner, Metric or QueryAdapter
        A fitted one.
    side : {"both", "query"}, optional
        "both" (default): documents and queries are transformed; search by cosine if the adapter normalises, by
        Euclidean distance otherwise. "query" (default for a QueryAdapter): documents keep their vectors, so that a
        store that is filled already can stay, and queries are mapped; search by inner product.
    """

    def __init__(self, embeddings: Embeddings, adapter: Adapter, side: str | None = None) -> None:
        self.embeddings = embeddings
        self.vector_map = VectorMap(adapter, side)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return the vectors of documents to store."""
        return self.vector_map.documents(self.embeddings.embed_documents(texts))

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a query to search with."""
        (vector,) = self.vector_map.queries([self.embeddings.embed_query(text)])
        return vector

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return the vectors of documents to store, awaiting those of the embeddings."""
        return self.vector_map.documents(await self.embeddings.aembed_documents(texts))

    async def aembed_query(self, text: str) -> list[float]:
        """Return the vector of a query to search with, awaiting that of the embeddings."""
        (vector,) = self.vector_map.queries([await self.embeddings.aembed_query(text)])
        return vector
