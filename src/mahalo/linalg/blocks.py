"""Rows in blocks, dense or CSR, and their squared lengths."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import scipy.sparse as sp

from ..types import Matrix

Blocks = Callable[[], Iterable[Matrix]]

_NUMBERS = 1 << 21  # numbers in a block
_FEWEST_ROWS = 256


def row_slices(n: int, width: int, numbers: int = _NUMBERS) -> Iterator[slice]:
    """Return slices of n rows of `width` numbers each, about `numbers` and at least a row at a time."""
    step = max(1, numbers // max(1, width))
    return (slice(a, a + step) for a in range(0, n, step))


def row_blocks(X: Matrix, size: int | None = None) -> Blocks:
    """Return a callable that yields X in blocks of `size` rows, by default of about two million numbers."""
    n, d = X.shape
    n_entries = n * d
    if sp.issparse(X):
        X = sp.csr_array(X)
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        n_entries = X.nnz
    if size is None:
        # A sparse block costs d operations beside its entries, so it should have d entries at least.
        size = max(_FEWEST_ROWS, max(_NUMBERS, d) * n // max(n_entries, 1))
    return lambda: (X[a : a + size] for a in range(0, n, size))


def sq_norms(X: Matrix) -> np.ndarray:
    """Return ‖x‖² of every row."""
    return np.einsum("ij,ij->i", X, X) if isinstance(X, np.ndarray) else np.asarray(X.multiply(X).sum(axis=1)).ravel()


def to_dense(X: Matrix) -> np.ndarray:
    """Return X as a dense array; no copy if it is one."""
    return X if isinstance(X, np.ndarray) else X.toarray()
