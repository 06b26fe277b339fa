"""Sparse histograms, and the matrix of their intersections."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from .._core.intersections import LANES, intersect_rows
from ..linalg import in_threads


def histograms(bins: np.ndarray, values: np.ndarray, sizes: list[int], n_bins: int) -> sp.csr_array:
    """Return `values` summed by bin, one row for each set; the first `sizes[0]` rows of `bins` are the first set."""
    row = np.repeat(np.arange(len(sizes)), np.asarray(sizes, dtype=np.intp) * bins.shape[1])
    return _as_int32(sp.coo_array((values.ravel(), (row, bins.ravel())), shape=(len(sizes), n_bins)).tocsr())


def intersections(A: sp.csr_array, B: sp.csr_array | None = None) -> np.ndarray:
    """Return Σ_b min(A[i, b], B[j, b]) for all rows of A and B (by default A), whose entries must be ≥ 0."""
    symmetric = B is None
    A = _as_int32(A)
    B = A if B is None else _as_int32(B)
    if A.shape[1] != B.shape[1]:
        raise ValueError(f"histograms must be over the same bins; got {A.shape[1]} and {B.shape[1]} of them.")
    n, m = A.shape[0], B.shape[0]
    K = np.zeros((n, m))
    starts = range(0, n, LANES)

    def intersect_part(first: int, last: int) -> None:
        table = np.zeros((A.shape[1], LANES), dtype=np.float32)
        for a in starts[first:last]:
            done = a if symmetric else 0  # compute the upper triangle only
            found = np.empty((m - done, LANES))
            intersect_rows(
                table, A.indptr[a : a + LANES + 1], A.indices, A.data, B.indptr[done:], B.indices, B.data, found
            )
            K[a : a + LANES, done:] = found[:, : n - a].T

    in_threads(len(starts), LANES * len(starts) * B.nnz, intersect_part)
    if symmetric:
        K = np.triu(K)
        K += np.triu(K, 1).T
    return K


def _as_int32(H: sp.csr_array) -> sp.csr_array:
    """Return H as float32 with int32 indices, checked, for the compiled loop, which does not check them."""
    for what, size in (("entries", H.nnz), ("bins", H.shape[1])):
        if size > np.iinfo(np.int32).max:
            raise ValueError(
                f"histograms are numbered in 32 bits, so there can be up to 2³¹ − 1 {what}; got {size}. Use fewer "
                "bins, or intersect some of the rows at a time."
            )
    H.check_format(full_check=True)
    return sp.csr_array(
        (
            H.data.astype(np.float32, copy=False),
            H.indices.astype(np.int32, copy=False),
            H.indptr.astype(np.int32, copy=False),
        ),
        shape=H.shape,
    )
