"""Selection of the k smallest entries of each row of a matrix."""

from __future__ import annotations

import numpy as np

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
