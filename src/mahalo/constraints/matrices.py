"""Sparse symmetric matrices over rows: checks, graph Laplacians, edges, renumbering."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from ..types import MatrixLike


class Position(Protocol):
    """Map from old to new row numbers, −1 for rows left out: an array, or `RowPositions`."""

    def __getitem__(self, index: np.ndarray, /) -> np.ndarray: ...


class RowPositions:
    """Map from a row number to its first position in a list of rows, −1 if absent; memory is that of the list."""

    def __init__(self, rows: np.ndarray) -> None:
        self._rows, self._first = np.unique(rows, return_index=True)

    def __getitem__(self, index: np.ndarray) -> np.ndarray:
        if not len(self._rows):
            return np.full(np.shape(index), -1, dtype=np.intp)
        at = np.minimum(np.searchsorted(self._rows, index), len(self._rows) - 1)
        return np.where(self._rows[at] == index, self._first[at], -1)


def as_symmetric_all(matrices: MatrixLike | Sequence[MatrixLike]) -> tuple[sp.csr_array, ...]:
    """Return one matrix or several of one size as CSR, exactly symmetric; raise ValueError if one is not."""
    if sp.issparse(matrices) or (isinstance(matrices, np.ndarray) and matrices.ndim == 2):
        matrices = [matrices]
    forms = tuple(as_symmetric(C, k) for k, C in enumerate(cast(Sequence[MatrixLike], matrices)))
    sizes = {C.shape[0] for C in forms}
    if len(sizes) > 1:
        raise ValueError(
            f"all matrices must be over the same rows; got sizes {sorted(sizes)}. "
            "Pad the smaller ones with zero rows and columns."
        )
    return forms


def as_symmetric(matrix: MatrixLike, k: int) -> sp.csr_array:
    """Return matrix k of the caller as CSR, exactly symmetric; raise ValueError if it is not."""
    C = sp.csr_array(matrix).astype(np.float64)
    if C.shape[0] != C.shape[1]:
        raise ValueError(f"matrix {k} must be square, over the rows of X; got shape {C.shape}.")
    C.sum_duplicates()
    C.eliminate_zeros()
    if not np.isfinite(C.data).all():
        raise ValueError(f"matrix {k} contains NaN or infinity.")
    if C.nnz == 0:
        raise ValueError(f"matrix {k} is zero: it does not constrain the metric; drop it.")
    asymmetry = float(abs(C - C.T).max())
    if asymmetry > 1e-10 * np.abs(C.data).max():
        raise ValueError(
            f"matrix {k} must be symmetric; it differs from its transpose by {asymmetry:.3g}. "
            "Pass 0.5 * (C + C.T): the constraint is the same."
        )
    return sp.csr_array(0.5 * (C + C.T))


def laplacian(pairs: np.ndarray, coefficient: ArrayLike, size: int) -> sp.csr_array:
    """Return Σ_k coefficient_k (e_i − e_j)(e_i − e_j)ᵀ over the pairs (i, j)."""
    i, j = np.reshape(pairs, (-1, 2)).T
    c = np.broadcast_to(coefficient, len(i))
    return sp.csr_array((np.r_[c, c, -c, -c], (np.r_[i, j, i, j], np.r_[i, j, j, i])), shape=(size, size))


def split_into_edges(C: sp.csr_array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return C as edges (tail, head, coefficient).

    Off-diagonal entries join two rows; row sums join a row and the origin (−1).
    """
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


def renumber(C: sp.csr_array, position: Position, size: int) -> sp.csr_array:
    """Return C with row i called row position[i] of `size`."""
    entries = sp.coo_array(C)
    row, col = entries.coords
    return sp.csr_array((entries.data, (position[row], position[col])), shape=(size, size))


def restrict(C: sp.csr_array, position: Position, size: int) -> sp.csr_array:
    """Return C, read as a sum over pairs of rows (or a row and the origin), without terms on rows left out."""
    tail, head, coefficient = split_into_edges(C)
    to_origin = head < 0
    tail, head = position[tail], position[head]
    single = to_origin & (tail >= 0)
    between = ~to_origin & (tail >= 0) & (head >= 0)
    at_origin = sp.csr_array((coefficient[single], (tail[single], tail[single])), shape=(size, size))
    pairs = np.column_stack([tail[between], head[between]])
    return sp.csr_array(laplacian(pairs, coefficient[between], size) + at_origin)


def add_matrices(one: sp.csr_array | None, other: sp.csr_array | None) -> sp.csr_array | None:
    """Return the sum of two matrices, None counting as zero."""
    if one is None or other is None:
        return other if one is None else one
    return sp.csr_array(one + other)
