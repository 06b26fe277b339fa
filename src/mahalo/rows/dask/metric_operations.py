"""Transformed rows, distances and nearest rows of Dask collections, computed lazily and block by block."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import dask.array as da
import numpy as np
import scipy.sparse as sp
from dask.delayed import delayed

from ...linalg import nearest_of
from ...types import Matrix, RowsLike
from ..protocol import is_lazy
from .passes import merge_tree
from .source import Collection, check_columns, count_rows

if TYPE_CHECKING:
    import pandas as pd

Neighbours = tuple[np.ndarray, np.ndarray]  # distances, row numbers


def _as_array(X: RowsLike) -> tuple[da.Array, np.dtype]:
    """Return X as a Dask array whose blocks have all columns (rows in memory: one block), and its precision."""
    if not is_lazy(X):
        rows = np.asarray(X)
        return da.from_array(rows, chunks=-1), rows.dtype
    lazy, n_columns, dtype = check_columns(cast("Collection", X))
    if not isinstance(lazy, da.Array):
        lazy = lazy.map_partitions(partial(_to_numpy, dtype=dtype), meta=np.empty((0, n_columns), dtype=dtype))
    return lazy, dtype


def _to_numpy(frame: pd.DataFrame, dtype: np.dtype) -> np.ndarray:
    return frame.to_numpy(dtype=dtype, na_value=np.nan)


def map_rows(function: Callable[[Matrix], np.ndarray], X: RowsLike, width: int) -> Any:
    """Return function(block) of every block of rows: `width` columns in the precision of X."""
    rows, dtype = _as_array(X)

    def map_block(block: Matrix) -> np.ndarray:
        return function(block) if block.shape[0] else np.empty((0, width), dtype=dtype)

    meta = np.empty((0, width), dtype=dtype)
    return da.map_blocks(map_block, rows, chunks=(rows.chunks[0], (width,)), dtype=dtype, meta=meta)


def map_pairs(function: Callable[[Matrix, Matrix], np.ndarray], X: RowsLike, Y: RowsLike) -> Any:
    """Return function(block of X, block of Y), one number for each row of X and the same row of Y."""
    (X, _), (Y, _) = _as_array(X), _as_array(Y)
    if not np.isnan(X.shape[0]) and not np.isnan(Y.shape[0]):
        if X.shape[0] != Y.shape[0]:
            raise ValueError(
                f"rows are compared one by one, so there must be as many of each; got {X.shape[0]} and {Y.shape[0]}."
            )
        Y = Y.rechunk({0: X.chunks[0]})

    def map_block(x: Matrix, y: Matrix) -> np.ndarray:
        return function(x, y) if x.shape[0] or y.shape[0] else np.empty(0)

    return da.map_blocks(map_block, X, Y, drop_axis=1, dtype=np.float64, meta=np.empty(0))


def pairwise_table(function: Callable[[Matrix, Matrix | None], np.ndarray], X: RowsLike, Y: RowsLike | None) -> Any:
    """Return the table of function(block of X, block of Y) over all blocks, n_rows(X) × n_rows(Y); Y=None means X.

    Two equal blocks are passed as function(block, None), so that a row has distance 0 from itself.
    """
    X, kind = _as_array(X)
    Y, other = (X, kind) if Y is None else _as_array(Y)
    dtype = np.result_type(kind, other)

    def map_block(x: Matrix, y: Matrix) -> np.ndarray:
        if not (x.shape[0] and y.shape[0]):
            return np.empty((x.shape[0], y.shape[0]), dtype=dtype)
        return np.asarray(function(x, None if _equal(x, y) else y), dtype=dtype)

    meta = np.empty((0, 0), dtype=dtype)
    return da.blockwise(map_block, "ij", X, "ik", Y, "jk", concatenate=True, dtype=dtype, meta=meta)


def _equal(x: Matrix, y: Matrix) -> bool:
    if x.shape != y.shape or sp.issparse(x) != sp.issparse(y):
        return False
    return (x != y).nnz == 0 if sp.issparse(x) else bool(np.array_equal(x, y))


def nearest_rows(
    function: Callable[[Matrix, Matrix, int], Neighbours], X: RowsLike, Y: RowsLike, k: int
) -> tuple[Any, Any]:
    """Return distances and numbers of the k rows of Y nearest to each row of X, nearest first.

    function(block of X, block of Y, k) finds them in one block of Y. The results of all blocks of Y are merged; of
    equally near rows those with smaller numbers win.
    """
    (X, _), (Y, _) = _as_array(X), _as_array(Y)
    first = np.concatenate([[0], np.cumsum(count_rows(Y))]).astype(np.int64)
    if not first[-1]:
        raise ValueError("Y has no rows, and so no neighbours; check the selection it comes from, or pass other rows.")
    k = min(k, int(first[-1]))
    search = delayed(partial(_nearest_in_block, function, k), pure=False)
    others = Y.to_delayed().ravel()
    found = []
    for block, n in zip(X.to_delayed().ravel(), X.chunks[0], strict=True):
        parts = [search(block, other, int(a)) for other, a, b in zip(others, first, first[1:], strict=False) if b > a]
        found.append((merge_tree(parts, partial(_merge_nearest, k=k)), n))
    return _stack(found, 0, k, np.float64), _stack(found, 1, k, np.int64)


def _nearest_in_block(
    function: Callable[[Matrix, Matrix, int], Neighbours], k: int, x: Matrix, y: Matrix, first: int
) -> Neighbours:
    if not x.shape[0]:
        return np.empty((0, k)), np.empty((0, k), dtype=np.int64)
    distances, rows = function(x, y, min(k, y.shape[0]))
    return distances, rows + first


def _merge_nearest(parts: list[Neighbours], k: int) -> Neighbours:
    distances, rows = (np.hstack(arrays) for arrays in zip(*parts, strict=True))
    best = nearest_of(distances, k)
    return np.take_along_axis(distances, best, axis=1), np.take_along_axis(rows, best, axis=1)


def _stack(found: list[tuple[Any, int]], part: int, k: int, dtype: type) -> da.Array:
    arrays = [da.from_delayed(pair[part], (n, k), dtype=dtype) for pair, n in found]
    return da.concatenate(arrays, allow_unknown_chunksizes=True)
