"""Distances between all rows of two sets, from their coordinates or their similarities."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import DTypeLike

from .._core.distances import finish_distances
from ..linalg import in_threads, nearest_of, row_slices, sq_norms
from ..types import Matrix
from ..validation import len_of

BLOCK_NUMBERS = 1 << 24  # of similarities held beside the result


def unit_length(T: np.ndarray) -> np.ndarray:
    """Return rows of length 1; zero rows stay zero."""
    size = np.abs(T).max(axis=1, keepdims=True, initial=0.0)
    T = np.divide(T, size, out=np.zeros_like(T), where=size > 0)  # so that squares neither overflow nor vanish
    length = np.sqrt(sq_norms(T))[:, None]
    return np.divide(T, length, out=T, where=length > 0)


def is_positive(own: np.ndarray) -> np.ndarray:
    """Return κ(x, x) of rows brought to length 1: 1, or 0 for a row of no length."""
    return (own > 0).astype(np.float64)


def cosines(K: np.ndarray, own_x: np.ndarray, own_y: np.ndarray) -> np.ndarray:
    """Return κ(x, y) / √(κ(x, x) κ(y, y)) of all rows with all, 0 where a row has no length; K is overwritten."""
    K *= inverse_length(own_x)[:, None]
    K *= inverse_length(own_y)
    return K


def paired_cosines(K: np.ndarray, own_x: np.ndarray, own_y: np.ndarray) -> np.ndarray:
    """Return κ(x_k, y_k) / √(κ(x_k, x_k) κ(y_k, y_k)) for every k."""
    return K * inverse_length(own_x) * inverse_length(own_y)


def inverse_length(own: np.ndarray) -> np.ndarray:
    """Return 1 / √κ(x, x) from κ(x, x), 0 where a row has no length."""
    length = np.sqrt(np.maximum(own, 0.0))
    return np.divide(1.0, length, out=np.zeros_like(length), where=length > 0)


def all_distances(TX: np.ndarray, TY: np.ndarray, squared: bool, dtype: DTypeLike) -> np.ndarray:
    """Return √(‖x‖² + ‖y‖² − 2 xᵀy) for all rows of both."""
    # A common shift changes no distance and spares digits where points are far from the origin.
    centre = TY.mean(axis=0)
    TX, TY = TX - centre, TY - centre
    # In units near their own size, so that squares neither overflow nor vanish.
    size = max(float(np.abs(TX).max(initial=0.0)), float(np.abs(TY).max(initial=0.0)))
    if size > 0 and not 1e-10 < size < 1e10:
        unit = 2.0 ** np.frexp(size)[1]
        D = all_distances(TX / unit, TY / unit, squared, np.float64)
        return (D * unit * unit if squared else D * unit).astype(dtype, copy=False)
    own_x, own_y = sq_norms(TX), sq_norms(TY)
    if dtype == np.float64:
        return to_distances(TX @ TY.T, own_x, own_y, squared)
    D = np.empty((len(TX), len(TY)), dtype=dtype)
    for part in row_slices(len(TX), len(TY), BLOCK_NUMBERS):
        D[part] = to_distances(TX[part] @ TY.T, own_x[part], own_y, squared)
    return D


def to_distances(D: np.ndarray, own_x: np.ndarray, own_y: np.ndarray, squared: bool) -> np.ndarray:
    """Return distances from similarities D, which are overwritten, and the similarity of each row with itself."""
    # One product for all rows: in smaller blocks, what BLAS copies of TY outweighs what staying in cache would save.
    D = np.ascontiguousarray(D)
    own_x, own_y = own_x.astype(D.dtype, copy=False), own_y.astype(D.dtype, copy=False)
    in_threads(len(D), D.size, lambda a, b: finish_distances(D[a:b], own_x[a:b], own_y, squared))
    return D


def nearest_among(
    distances: Callable[[Matrix, Matrix], np.ndarray], X: Matrix, Y: Matrix, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the distances of each row of X to its k nearest rows of Y, and their numbers, nearest first."""
    found = []
    for part in row_slices(len_of(X), len_of(Y), BLOCK_NUMBERS):
        D = distances(X[part], Y)
        nearest = nearest_of(D, k)
        found.append((np.take_along_axis(D, nearest, axis=1), nearest))
    near, rows = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return near, rows
