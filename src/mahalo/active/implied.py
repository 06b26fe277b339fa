"""What answers imply: rows that are alike form groups, and a "no" between two groups holds for all their rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from ..constraints import Constraints
from ..validation import Seed, as_generator, check_count

__all__ = ["Implied"]


@dataclass(frozen=True, eq=False)
class Implied:
    """The transitive closure of similar pairs, and the dissimilar pairs that it entails.

    Attributes
    ----------
    group : ndarray of shape (n_rows,)
        Rows that are known to be alike have the same number.
    apart : ndarray of int
        Pairs of groups known to differ, sorted, as `low * n_groups + high`.
    """

    group: np.ndarray
    apart: np.ndarray

    @classmethod
    def of(cls, known: Constraints | None, n_rows: int) -> Implied:
        if known is None:
            return cls(np.arange(n_rows), np.empty(0, dtype=np.int64))
        known.check_rows(n_rows)
        index, alike = known.pairs.index, known.pairs.sign > 0
        i, j = index[alike].T
        graph = sp.coo_array((np.ones(len(i)), (i, j)), shape=(n_rows, n_rows))
        group = sp.csgraph.connected_components(graph, directed=False)[1]
        without = cls(group, np.empty(0, dtype=np.int64))
        return cls(group, np.unique(without.between(index[~alike])))

    def between(self, index: np.ndarray) -> np.ndarray:
        """One number for the two groups of each pair of rows, whichever comes first."""
        ends = self.group[index].astype(np.int64)
        n = int(self.group.max(initial=-1)) + 1
        return ends.min(axis=1) * n + ends.max(axis=1)

    def tells(self, index: np.ndarray) -> np.ndarray:
        """Which pairs have an answer already."""
        i, j = self.group[index].T
        return (i == j) | np.isin(self.between(index), self.apart)

    def constraints(self, most: int = 100_000, *, random_state: Seed = None) -> Constraints:
        """All pairs that have an answer, to learn from: rows of one group alike, those of groups known to differ not.

        One wrong "alike" joins two groups, and all their pairs with it. Where people err, learn from their answers
        alone. A "no" between rows of one group is such an error or shows one: it stands for nothing here.

        Parameters
        ----------
        most : int, default=100_000
            Where there are more pairs of either kind, so many are drawn.
        random_state : int, RandomState, Generator or None, default=None
            Draws them.
        """
        check_count(most, "most")
        rng = as_generator(random_state)
        size = np.bincount(self.group)
        rows, start = np.argsort(self.group, kind="stable"), np.cumsum(size) - size
        #  Pair k of s rows: those k mod s and 1 + k div s further on, round and round.
        group, k = _some(size * (size - 1) // 2, most, rng)
        near = k % size[group]
        far = (near + 1 + k // size[group]) % size[group]
        similar = rows[start[group, None] + np.column_stack([near, far])]
        a, b = np.divmod(self.apart, len(size))
        a, b = a[a != b], b[a != b]
        which, k = _some(size[a] * size[b], most, rng)
        a, b = a[which], b[which]
        dissimilar = rows[np.column_stack([start[a] + k // size[b], start[b] + k % size[b]])]
        return Constraints.from_pairs(similar, dissimilar, n_rows=len(self.group))


def _some(counts: np.ndarray, most: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Of so many things in each place all, or `most` drawn from them: the place and the number there of each."""
    end = np.cumsum(counts)
    total = int(end[-1]) if len(end) else 0
    k = np.arange(total) if total <= most else np.sort(rng.choice(total, most, replace=False))
    place = np.searchsorted(end, k, side="right")
    return place, k - (end - counts)[place]
