"""LlamaIndex: an embedding model that returns adapted vectors."""

from __future__ import annotations

from .vector_map import Adapter, VectorMap

try:
    from llama_index.core.base.embeddings.base import BaseEmbedding
    from llama_index.core.bridge.pydantic import Field, PrivateAttr
except ImportError:
    raise ImportError('embeddings for LlamaIndex need llama-index-core: pip install "mahalo[llama-index]"') from None

__all__ = ["AdaptedEmbeddings"]


class AdaptedEmbeddings(BaseEmbedding):
    """An embedding model of LlamaIndex, with vectors adapted by a learned distance.

    Parameters
    ----------
    embedding : BaseEmbedding
        The model whose vectors the adapter was fitted to.
    adapter : EmbeddingAdapter, MetricLearner, Metric or QueryAdapter
        A fitted one.
    side : {"both", "query"}, optional
        "both" (default): nodes and queries are transformed; search by cosine if the adapter normalises, by Euclidean
        distance otherwise. "query" (default for a QueryAdapter): nodes keep their vectors, so that an index that is
        filled already can stay, and queries are mapped; search by inner product.
    """

    embedding: BaseEmbedding = Field(description="Model whose vectors are adapted.")
    _vector_map: VectorMap = PrivateAttr()

    def __init__(self, embedding: BaseEmbedding, adapter: Adapter, side: str | None = None) -> None:
        super().__init__(
            embedding=embedding,
            model_name=f"{embedding.model_name} adapted",
            embed_batch_size=embedding.embed_batch_size,
        )
        self._vector_map = VectorMap(adapter, side)

    def _get_query_embedding(self, query: str) -> list[float]:
        (vector,) = self._vector_map.queries([self.embedding.get_query_embedding(query)])
        return vector

    async def _aget_query_embedding(self, query: str) -> list[float]:
        (vector,) = self._vector_map.queries([await self.embedding.aget_query_embedding(query)])
        return vector

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return self._vector_map.documents(self.embedding.get_text_embedding_batch(texts))

    async def _aget_text_embedding(self, text: str) -> list[float]:
        return (await self._aget_text_embeddings([text]))[0]

    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return self._vector_map.documents(await self.embedding.aget_text_embedding_batch(texts))
