"""An index on disk."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..metric import Metric
from ..metric.files import pack
from ..search import Index, load_index

__all__ = ["is_index", "load_for"]


def is_index(data: str) -> bool:
    return Path(data).suffix.lower() == ".safetensors"


def load_for(metric: Metric, path: str, model: Path) -> Index:
    """The index, which must have been made with this model."""
    index = load_index(path)
    ours, theirs = pack(metric).arrays, pack(index.metric).arrays
    if ours.keys() != theirs.keys() or not all(np.array_equal(ours[name], theirs[name]) for name in ours):
        raise ValueError(f"{path} was made with another model than {model}; make it again with mahalo index.")
    return index
