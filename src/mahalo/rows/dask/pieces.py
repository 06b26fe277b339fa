"""Rows that are read a piece at a time: as Dask arrays, and what is found in every piece, merged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import dask.array as da
import numpy as np
from dask.delayed import delayed

from .passes import tree
from .running import Show, run

__all__ = ["merged_over", "read_in_pieces"]


def read_in_pieces(read: Callable[[Any], np.ndarray], pieces: Sequence[Any], like: np.ndarray) -> da.Array:
    """read(piece) of every piece, of as many rows as it is long, below one another; no rows of them are `like` this."""
    reading = delayed(read, pure=False)
    blocks = [da.from_delayed(reading(piece), (len(piece), *like.shape[1:]), meta=like) for piece in pieces]
    return da.concatenate(blocks)


def merged_over(look: Callable, pieces: Sequence[Any], merge: Callable, what: str, show: Show | None = None) -> Any:
    """look(piece) of every piece, merged in order by merge(list)."""
    looking = delayed(look, pure=False)
    return run([tree([looking(piece) for piece in pieces], merge)], what, show)[0]
