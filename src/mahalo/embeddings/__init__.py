"""Frozen embeddings, adapted by a linear map that is learned from a few labels or pairs."""

from .adapter import EmbeddingAdapter

__all__ = ["EmbeddingAdapter"]
