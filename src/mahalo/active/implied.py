"""What answers imply: rows that are alike form groups, and a "no" between two groups holds for all their rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from ..constraints import Constraints

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
