"""Data sets read piece by piece: as a Dask array, or as one merged result."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Sized
from typing import TypeVar

import dask.array as da
import numpy as np
from dask.delayed import delayed

from .passes import merge_tree
from .scheduler import Show, run

Piece = TypeVar("Piece", bound=Sized)
Result = TypeVar("Result")


def read_in_pieces(read: Callable[[Piece], np.ndarray], pieces: Sequence[Piece], empty: np.ndarray) -> da.Array:
    """Return read(piece), an array of len(piece) rows, of all pieces below one another.

    `empty` is an array of no rows with the columns and dtype of the result.
    """
    reading = delayed(read, pure=False)
    blocks = [da.from_delayed(reading(piece), (len(piece), *empty.shape[1:]), meta=empty) for piece in pieces]
    return da.concatenate(blocks)


def merge_pieces(
    summarize: Callable[[Piece], Result],
    pieces: Sequence[Piece],
    merge: Callable[[list[Result]], Result],
    what: str,
    show: Show | None = None,
) -> Result:
    """Return summarize(piece) of all pieces, merged in order by merge(list)."""
    summarizing = delayed(summarize, pure=False)
    return run([merge_tree([summarizing(piece) for piece in pieces], merge)], what, show)[0]
