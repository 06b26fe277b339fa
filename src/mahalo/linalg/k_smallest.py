"""The k smallest entries of each row of a matrix, and nearest rows by approximate and then by exact distances."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .._core.edges import edge_dots
from .blocks import row_slices, sq_norms

ExactDistances = Callable[[np.ndarray, np.ndarray], np.ndarray]  # (query numbers, row numbers), flat → distances

_EXTRA_CANDIDATES = 8  # beyond k, in case rounding has changed the order
_BLOCK = 1 << 22  # distances, or differences of entries, held at once
_GROUPS = 256  # of columns, whose minima bound the k-th smallest entry
_MOST = 8  # times k entries within that bound are sorted; rows with more are partitioned


def nearest_of(distances: np.ndarray, k: int, *, first_of_ties: bool = True) -> np.ndarray:
    """Return the columns of the k smallest entries of each row, smallest first.

    Ties go to the first column, or, without `first_of_ties`, those with the k-th entry to any, which is faster.
    """
    n, m = distances.shape
    k = min(k, m)
    if m < 4 * _GROUPS or 4 * k > _GROUPS:
        return _by_partition(distances, k, first_of_ties)
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
    found[~quick] = _by_partition(distances[~quick], k, first_of_ties)
    return found


def _by_partition(distances: np.ndarray, k: int, first_of_ties: bool) -> np.ndarray:
    found = np.argpartition(distances, k - 1, axis=1)[:, :k]
    if first_of_ties:
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

    Candidates are found by products in single precision and compared by differences of rows in double precision; where
    rounding leaves too many of them, they are found by products in double precision, too.
    """
    k = min(k, len(X))
    centre = X.mean(axis=0)
    size = max(np.abs(X - centre).max(initial=0.0), np.abs(Q - centre).max(initial=0.0))
    near_one = 2.0 ** min(-np.frexp(size)[1], 1000) if size > 0 else 1.0  # so that squares neither overflow nor vanish
    rows = np.asarray((X - centre) * near_one, dtype=np.float64)
    bounded, distinct = _BoundedProducts(rows.astype(np.float32)), None
    points = np.ascontiguousarray(np.concatenate([Q, X]) * near_one)
    found = np.empty((len(Q), k), dtype=np.intp)
    n_candidates = min(len(X), k + _EXTRA_CANDIDATES)
    for part in row_slices(len(Q), max(len(X), n_candidates * X.shape[1]), _BLOCK):
        queries = np.asarray((Q[part] - centre) * near_one, dtype=np.float64)
        below = bounded.lower_bounds(queries)
        candidates = nearest_of(below, n_candidates, first_of_ties=False)
        distances = np.empty(candidates.size)
        query = np.repeat(np.arange(part.start, part.start + len(queries)), n_candidates)
        edge_dots(points, points, query, len(Q) + candidates.ravel(), distances)
        distances, some = _first_k(distances.reshape(candidates.shape), candidates, k)
        found[part] = some
        if n_candidates < len(X):
            # No other row is nearer than the last candidate may be.
            last = np.take_along_axis(below, candidates[:, -1:], axis=1)[:, 0] + sq_norms(queries)
            unsure = np.flatnonzero(~(last > (1.0 + bounded.eps) * distances[:, -1]))
            if len(unsure):
                distinct = distinct or _DistinctRows(points[len(Q) :], rows, k)
                found[part.start + unsure] = distinct.nearest(points[part][unsure], queries[unsure])
    return found


class _BoundedProducts:
    """Lower bounds of ‖q − x‖² − ‖q‖² for rows x, by one product in single precision, less its rounding error."""

    def __init__(self, rows: np.ndarray) -> None:
        self.eps = float(np.finfo(np.float32).eps * (16.0 + 4.0 * np.sqrt(rows.shape[1])))
        own = sq_norms(rows)
        self._rows = np.column_stack([rows, np.sqrt(own), (1.0 - self.eps) * own, np.ones_like(own)])
        self._underflow = 8.0 * self._rows.shape[1] * float(np.finfo(np.float32).tiny)

    def lower_bounds(self, queries: np.ndarray) -> np.ndarray:
        #  −2 qᵀx − 2 ε ‖q‖ ‖x‖ + (1 − ε) ‖x‖² − ε ‖q‖²
        sq, one = sq_norms(queries), np.ones(len(queries))
        factors = (-2.0 * queries, -2.0 * self.eps * np.sqrt(sq), one, -self.eps * sq - self._underflow)
        return np.column_stack(factors).astype(np.float32) @ self._rows.T


class _DistinctRows:
    """Rows without repetitions, to search for the k nearest of all rows where many are equally near.

    Products are of centred rows, which are rounded; differences are of the rows themselves.
    """

    def __init__(self, rows: np.ndarray, centred: np.ndarray, k: int) -> None:
        _, first, number = np.unique(rows, axis=0, return_index=True, return_inverse=True)
        order = np.argsort(first)  # by first occurrence
        self._rows, self._centred, self._k = rows[first[order]], centred[first[order]], k
        self._own = sq_norms(self._centred)
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        by_place = np.argsort(place[number.ravel()], kind="stable")
        of = place[number.ravel()][by_place]
        rank = np.arange(len(rows)) - np.searchsorted(of, of)
        self._members = np.full((len(first), k), -1)  # positions of the first k of each
        self._members[of[rank < k], rank[rank < k]] = by_place[rank < k]

    def nearest(self, queries: np.ndarray, centred: np.ndarray) -> np.ndarray:
        """Return the positions of the k nearest rows of each query, nearest first, of equally near ones the first."""
        found = np.empty((len(queries), self._k), dtype=np.intp)
        for part in row_slices(len(queries), len(self._rows), _BLOCK):
            distances, distinct = self._nearest_distinct(queries[part], centred[part])
            members = self._members[distinct].reshape(len(distinct), -1)
            distances = np.where(members < 0, np.inf, np.repeat(distances, self._k, axis=1))
            found[part] = _first_k(distances, members, self._k)[1]
        return found

    def _nearest_distinct(self, queries: np.ndarray, centred: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return distances and positions of the k nearest distinct rows: candidates by products, then differences."""
        sq, k = sq_norms(centred)[:, None], min(self._k, len(self._rows))
        D = self._own - 2.0 * (centred @ self._centred.T) + sq
        error = np.finfo(np.float64).eps * (16.0 + 4.0 * np.sqrt(queries.shape[1])) * (self._own + sq)
        query, row = np.nonzero(D - error <= np.partition(D + error, k - 1, axis=1)[:, k - 1 : k])
        exact = np.empty(len(row))
        for part in row_slices(len(row), queries.shape[1], _BLOCK):
            differences = queries[query[part]] - self._rows[row[part]]
            exact[part] = np.einsum("ij,ij->i", differences, differences)
        order = np.lexsort((row, exact, query))
        first = order[np.searchsorted(query, np.arange(len(queries)))[:, None] + np.arange(k)]
        return exact[first], row[first]
