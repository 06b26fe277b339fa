"""The k smallest entries of each row of a matrix, and nearest rows by approximate and then by exact distances."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .blocks import row_slices, sq_norms

ExactDistances = Callable[[np.ndarray, np.ndarray], np.ndarray]  # (query numbers, row numbers), flat → distances

_EXTRA_CANDIDATES = 8  # beyond k, in case rounding has changed the order
_BLOCK = 1 << 22  # distances, or differences of entries, held at once
_GROUPS = 256  # of columns, whose minima bound the k-th smallest entry
_MOST = 8  # times k entries within that bound are sorted; rows with more are partitioned


def nearest_of(distances: np.ndarray, k: int) -> np.ndarray:
    """Return the columns of the k smallest entries of each row, smallest first; ties go to the first column."""
    n, m = distances.shape
    k = min(k, m)
    if m < 4 * _GROUPS or 4 * k > _GROUPS:
        return _by_partition(distances, k)
    # k groups have an entry up to the k-th smallest of their minima, so the k smallest entries are not above it
    minima = distances[:, : m - m % _GROUPS].reshape(n, m // _GROUPS, _GROUPS).min(axis=1)
    near = distances <= np.partition(minima, k - 1, axis=1)[:, k - 1 : k]
    counts = np.count_nonzero(near, axis=1)
    quick = (counts >= k) & (counts <= _MOST * k)  # rows with many ties are partitioned
    near[~quick] = False
    found = np.empty((n, k), dtype=np.intp)
    row, column = np.divmod(np.flatnonzero(near), m)
    order = np.lexsort((column, distances[row, column], row))
    starts = np.cumsum(counts[quick]) - counts[quick]
    found[quick] = column[order[starts[:, None] + np.arange(k)]]
    found[~quick] = _by_partition(distances[~quick], k)
    return found


def _by_partition(distances: np.ndarray, k: int) -> np.ndarray:
    found = np.argpartition(distances, k - 1, axis=1)[:, :k]
    last = np.take_along_axis(distances, found, axis=1).max(axis=1, initial=-np.inf)
    ties = np.flatnonzero((distances <= last[:, None]).sum(axis=1) > k)  # more than k entries qualify
    found[ties] = np.argsort(distances[ties], axis=1, kind="stable")[:, :k]
    found.sort(axis=1)
    order = np.argsort(np.take_along_axis(distances, found, axis=1), axis=1, kind="stable")
    return np.take_along_axis(found, order, axis=1)


def refined_nearest(
    approximate: np.ndarray, slack: np.ndarray, exact: ExactDistances, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return distances and positions of the k nearest rows of each query, of equally near ones the first.

    `approximate` holds squared distances up to a constant for each query, correct to ± half of the query's `slack`.
    """
    n_queries, n = approximate.shape
    width = min(n, k + _EXTRA_CANDIDATES)
    found = nearest_of(approximate, width)
    values = np.take_along_axis(approximate, found, axis=1)
    queries = np.repeat(np.arange(n_queries), width)
    distances = exact(queries, found.ravel()).reshape(found.shape)
    distances, found = _first_k(distances, found, k)
    if width < n:
        # Queries that may have more candidates than `width`.
        for q in np.flatnonzero(values[:, -1] <= values[:, k - 1] + slack):
            candidates = np.flatnonzero(approximate[q] <= values[q, k - 1] + slack[q])[None]
            refined = exact(np.full(candidates.size, q), candidates.ravel())[None]
            (distances[q],), (found[q],) = _first_k(refined, candidates, k)
    return distances, found


def _first_k(distances: np.ndarray, positions: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Sort each row by distance, then position, and return its first k."""
    order = np.lexsort((positions, distances), axis=1)[:, :k]
    return np.take_along_axis(distances, order, axis=1), np.take_along_axis(positions, order, axis=1)


def nearest_rows(Q: np.ndarray, X: np.ndarray, k: int) -> np.ndarray:
    """Return the positions of the k rows of X nearest to each row of Q, nearest first, of equally near ones the first.

    Candidates are found by products in single precision, and compared by their differences in the precision of X.
    """
    centre = X.mean(axis=0)
    size = max(np.abs(X - centre).max(initial=0.0), np.abs(Q - centre).max(initial=0.0), np.finfo(np.float64).tiny)
    near_one = 2.0 ** -np.frexp(size)[1]  # so that squares neither overflow nor vanish
    rows = ((X - centre) * near_one).astype(np.float32)
    own = sq_norms(rows)
    eps = np.finfo(np.float32).eps * (16.0 + 4.0 * np.sqrt(X.shape[1]))
    found = np.empty((len(Q), min(k, len(X))), dtype=np.intp)
    width = max(len(X), (k + _EXTRA_CANDIDATES) * X.shape[1])
    for part in row_slices(len(Q), width, _BLOCK):
        queries = Q[part]
        short = ((queries - centre) * near_one).astype(np.float32)

        def sq_distances(query: np.ndarray, row: np.ndarray, queries: np.ndarray = queries) -> np.ndarray:
            difference = (queries[query] - X[row]) * near_one
            return np.einsum("ij,ij->i", difference, difference, dtype=np.float64)

        slack = eps * (own.max(initial=0.0) + 2.0 * np.sqrt(sq_norms(short) * own.max(initial=0.0)))
        found[part] = refined_nearest(own - 2.0 * (short @ rows.T), slack, sq_distances, min(k, len(X)))[1]
    return found
