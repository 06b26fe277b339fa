"""What a metric says about rows on Dask, made when it is asked for, a block at a time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import dask.array as da
import numpy as np
import scipy.sparse as sp
from dask.delayed import delayed

from ...linalg import nearest_of
from ..lazy import is_lazy
from .passes import tree
from .source import checked, lengths_of

__all__ = ["map_pairs", "map_rows", "nearest_rows", "table_of"]


def _as_array(X: Any) -> tuple[Any, np.dtype]:
    """As a Dask array whose blocks have all columns; rows in memory as one block."""
    if not is_lazy(X):
        X = np.asarray(X)
        return da.from_array(X, chunks=-1), X.dtype
    X, _, dtype = checked(X)
    if not isinstance(X, da.Array):
        X = X.map_partitions(partial(_numbers, dtype=dtype), meta=np.empty((0, len(X.columns)), dtype=dtype))
    return X, dtype


def _numbers(frame: Any, dtype: np.dtype) -> np.ndarray:
    return frame.to_numpy(dtype=dtype, na_value=np.nan)


def map_rows(function: Callable, X: Any, width: int) -> Any:
    """function(block) of every block of rows, `width` columns in the precision of X."""
    X, dtype = _as_array(X)

    def of_some(block: Any) -> np.ndarray:
        return function(block) if block.shape[0] else np.empty((0, width), dtype=dtype)

    meta = np.empty((0, width), dtype=dtype)
    return X.map_blocks(of_some, chunks=(X.chunks[0], (width,)), dtype=dtype, meta=meta)


def map_pairs(function: Callable, X: Any, Y: Any) -> Any:
    """function(block of X, block of Y), one number a row."""
    (X, _), (Y, _) = _as_array(X), _as_array(Y)
    if not np.isnan(X.shape[0]) and not np.isnan(Y.shape[0]):
        if X.shape[0] != Y.shape[0]:
            raise ValueError(
                f"rows are compared one by one, so there must be as many of each; got {X.shape[0]} and {Y.shape[0]}."
            )
        Y = Y.rechunk({0: X.chunks[0]})

    def of_some(x: Any, y: Any) -> np.ndarray:
        return function(x, y) if x.shape[0] or y.shape[0] else np.empty(0)

    return da.map_blocks(of_some, X, Y, drop_axis=1, dtype=np.float64, meta=np.empty(0))


def table_of(function: Callable, X: Any, Y: Any | None) -> Any:
    """function(block of X, block of Y) for all blocks of both, a table of rows of X by rows of Y (of X itself).

    A block beside itself is function(block, None), so that rows have no distance from themselves.
    """
    X, kind = _as_array(X)
    Y, other = (X, kind) if Y is None else _as_array(Y)
    dtype = np.result_type(kind, other)

    def of_some(x: Any, y: Any) -> np.ndarray:
        if not (x.shape[0] and y.shape[0]):
            return np.empty((x.shape[0], y.shape[0]), dtype=dtype)
        return np.asarray(function(x, None if _equal(x, y) else y), dtype=dtype)

    meta = np.empty((0, 0), dtype=dtype)
    return da.blockwise(of_some, "ij", X, "ik", Y, "jk", concatenate=True, dtype=dtype, meta=meta)


def _equal(x: Any, y: Any) -> bool:
    if x.shape != y.shape or sp.issparse(x) != sp.issparse(y):
        return False
    return (x != y).nnz == 0 if sp.issparse(x) else bool(np.array_equal(x, y))


def nearest_rows(function: Callable, X: Any, Y: Any, k: int) -> tuple[Any, Any]:
    """Of each row of X the k nearest rows of Y: distances, and numbers of rows of Y, nearest first.

    function(rows, rows, k) finds them where both are at hand. Every block of Y offers its nearest; of these the nearest
    are kept, and of equal ones those that come first.
    """
    (X, _), (Y, _) = _as_array(X), _as_array(Y)
    first = np.concatenate([[0], np.cumsum(lengths_of(Y))]).astype(np.int64)
    if not first[-1]:
        raise ValueError("Y has no rows, and so no neighbours; look at what it was selected by, or pass other rows.")
    k = min(k, int(first[-1]))
    search = delayed(partial(_nearest_in, function, k), pure=False)
    others = Y.to_delayed().ravel()
    found = []
    for block, n in zip(X.to_delayed().ravel(), X.chunks[0], strict=True):
        offers = [search(block, other, int(a)) for other, a, b in zip(others, first, first[1:], strict=False) if b > a]
        found.append((tree(offers, partial(_nearest, k=k)), n))
    return _stacked(found, 0, k, np.float64), _stacked(found, 1, k, np.int64)


def _nearest_in(function: Callable, k: int, x: Any, y: Any, first: int) -> tuple[np.ndarray, np.ndarray]:
    if not x.shape[0]:
        return np.empty((0, k)), np.empty((0, k), dtype=np.int64)
    distances, rows = function(x, y, min(k, y.shape[0]))
    return distances, rows + first


def _nearest(offers: list[tuple[np.ndarray, np.ndarray]], k: int) -> tuple[np.ndarray, np.ndarray]:
    distances, rows = (np.hstack(parts) for parts in zip(*offers, strict=True))
    best = nearest_of(distances, k)
    return np.take_along_axis(distances, best, axis=1), np.take_along_axis(rows, best, axis=1)


def _stacked(found: list[tuple[Any, Any]], part: int, k: int, dtype: type) -> da.Array:
    arrays = [da.from_delayed(pair[part], (n, k), dtype=dtype) for pair, n in found]
    return da.concatenate(arrays, allow_unknown_chunksizes=True)
