"""Sparse symmetric matrices over rows: checked, made of pairs, split into edges, renumbered."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

__all__ = ["Places", "Position", "edges_of", "laplacian", "renumbered", "restricted", "sum_of", "symmetric"]


class Position(Protocol):
    """New numbers of rows by their old ones, −1 where there is none: an array, or `Places`."""

    def __getitem__(self, index: Any) -> np.ndarray: ...


class Places:
    """Where rows are among those listed, the first time; −1 where they are not. No larger than the list is."""

    def __init__(self, rows: np.ndarray) -> None:
        self._rows, self._first = np.unique(rows, return_index=True)

    def __getitem__(self, index: np.ndarray) -> np.ndarray:
        if not len(self._rows):
            return np.full(np.shape(index), -1, dtype=np.intp)
        at = np.minimum(np.searchsorted(self._rows, index), len(self._rows) - 1)
        return np.where(self._rows[at] == index, self._first[at], -1)


def symmetric(C: Any, k: int) -> sp.csr_array:
    """Matrix k of the caller's as a sparse one, exactly symmetric, or an error that says what is wrong with it."""
    C = sp.csr_array(C).astype(np.float64)
    if C.shape[0] != C.shape[1]:
        raise ValueError(f"matrix {k} must be square, over the rows of X; got shape {C.shape}.")
    C.sum_duplicates()
    C.eliminate_zeros()
    if not np.isfinite(C.data).all():
        raise ValueError(f"matrix {k} contains NaN or infinity.")
    if C.nnz == 0:
        raise ValueError(f"matrix {k} is zero: it says nothing about the metric; drop it.")
    asymmetry = float(abs(C - C.T).max())
    if asymmetry > 1e-10 * np.abs(C.data).max():
        raise ValueError(
            f"matrix {k} must be symmetric; it differs from its transpose by {asymmetry:.3g}. "
            "Pass 0.5 * (C + C.T): the constraint is the same."
        )
    return sp.csr_array(0.5 * (C + C.T))


def laplacian(pairs: np.ndarray, coefficient: ArrayLike, size: int) -> sp.csr_array:
    """Σ_k coefficient_k (e_i − e_j)(e_i − e_j)ᵀ over the pairs (i, j)."""
    i, j = np.reshape(pairs, (-1, 2)).T
    c = np.broadcast_to(coefficient, len(i))
    return sp.csr_array((np.r_[c, c, -c, -c], (np.r_[i, j, i, j], np.r_[i, j, j, i])), shape=(size, size))


def edges_of(C: sp.csr_array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """C as edges: off-diagonal entries join two rows, row sums join a row and the origin (−1)."""
    row, col = np.repeat(np.arange(C.shape[0]), np.diff(C.indptr)), C.indices
    upper = row < col
    total = np.bincount(row, weights=C.data, minlength=C.shape[0])
    scale = np.abs(C.data).max(initial=0.0)
    to_origin = np.flatnonzero(np.abs(total) > 1e-15 * scale * C.shape[0])
    return (
        np.concatenate([row[upper], to_origin]).astype(np.intp),
        np.concatenate([col[upper], np.full(len(to_origin), -1)]).astype(np.intp),
        np.concatenate([-C.data[upper], total[to_origin]]),
    )


def renumbered(C: sp.csr_array, position: Position, size: int) -> sp.csr_array:
    """C where row i is row position[i] of `size`."""
    entries = sp.coo_array(C)
    row, col = entries.coords
    return sp.csr_array((entries.data, (position[row], position[col])), shape=(size, size))


def restricted(C: sp.csr_array, position: Position, size: int) -> sp.csr_array:
    """C as a sum over pairs of rows (and rows with the origin), without the terms that leave the rows kept."""
    tail, head, coefficient = edges_of(C)
    to_origin = head < 0
    tail, head = position[tail], position[head]
    alone = to_origin & (tail >= 0)
    between = ~to_origin & (tail >= 0) & (head >= 0)
    at_origin = sp.csr_array((coefficient[alone], (tail[alone], tail[alone])), shape=(size, size))
    pairs = np.column_stack([tail[between], head[between]])
    return sp.csr_array(laplacian(pairs, coefficient[between], size) + at_origin)


def sum_of(one: sp.csr_array | None, other: sp.csr_array | None) -> sp.csr_array | None:
    if one is None or other is None:
        return other if one is None else one
    return sp.csr_array(one + other)
