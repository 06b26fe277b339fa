"""Neighbours from an index on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..metric import Metric
from ..metric.files import pack
from ..search import Index, load_index
from .search import Found

__all__ = ["asked_of", "is_index", "load_for"]


def is_index(data: str) -> bool:
    return Path(data).suffix.lower() == ".safetensors"


def load_for(metric: Metric, path: str, model: Path) -> Index:
    """The index, which must have been made with this model."""
    index = load_index(path)
    (_, ours), (_, theirs) = pack(metric), pack(index.metric)
    if ours.keys() != theirs.keys() or not all(np.array_equal(ours[name], theirs[name]) for name in ours):
        raise ValueError(f"{path} was made with another model than {model}; make it again with mahalo index.")
    return index


def asked_of(index: Index, Q: Any, k: int, asking: list[str] | None) -> Found:
    found = index.kneighbors(Q, k)
    place = {name: position for position, name in enumerate(index.ids.tolist())}
    positions = np.array([[place[name] for name in row] for row in found.ids.tolist()], dtype=np.intp)
    names = index.ids.tolist() if index.ids.dtype == object else None
    return Found(positions.reshape(found.ids.shape), found.distances, asking, names)
