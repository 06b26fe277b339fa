"""Indexes for nearest neighbours under a learned metric: exact, or approximate through faiss or usearch."""

from .files import load_index
from .index import Index, Neighbors, build_index

__all__ = ["Index", "Neighbors", "build_index", "load_index"]
