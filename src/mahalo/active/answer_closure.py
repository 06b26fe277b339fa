"""Transitive closure of answers: similar rows form groups; "dissimilar" between two groups holds for all their rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from ..constraints import Constraints
from ..validation import Seed, as_generator, check_count


@dataclass(frozen=True, eq=False)
class AnswerClosure:
    """The transitive closure of similar pairs, and the dissimilar pairs that it entails.

    Attributes
    ----------
    group : ndarray of shape (n_rows,)
        Number of each row's group; the rows of a group are similar.
    dissimilar : ndarray of int
        Pairs of dissimilar groups, sorted, as `low * n_groups + high`.
    """

    group: np.ndarray
    dissimilar: np.ndarray

    @classmethod
    def of(cls, answers: Constraints | None, n_rows: int) -> AnswerClosure:
        """Return the closure of the pairs of `answers` over n_rows rows."""
        if answers is None:
            return cls(np.arange(n_rows), np.empty(0, dtype=np.int64))
        answers.check_rows(n_rows)
        index, is_similar = answers.pairs.index, answers.pairs.sign > 0
        i, j = index[is_similar].T
        graph = sp.coo_array((np.ones(len(i)), (i, j)), shape=(n_rows, n_rows))
        group = sp.csgraph.connected_components(graph, directed=False)[1]
        groups_only = cls(group, np.empty(0, dtype=np.int64))
        return cls(group, np.unique(groups_only.group_pairs(index[~is_similar])))

    def group_pairs(self, index: np.ndarray) -> np.ndarray:
        """Return one number for the unordered pair of groups of each pair of rows."""
        ends = self.group[index].astype(np.int64)
        n = int(self.group.max(initial=-1)) + 1
        return ends.min(axis=1) * n + ends.max(axis=1)

    def implies(self, index: np.ndarray) -> np.ndarray:
        """Return True for each pair of rows whose answer is implied, as similar or as dissimilar."""
        i, j = self.group[index].T
        return (i == j) | np.isin(self.group_pairs(index), self.dissimilar)

    def constraints(self, max_pairs: int = 100_000, *, random_state: Seed = None) -> Constraints:
        """Return all implied pairs as constraints: similar within a group, dissimilar between dissimilar groups.

        One wrong "similar" joins two groups and makes all their pairs similar. If people err, learn from their answers
        alone. A "dissimilar" answer within one group contradicts other answers and implies nothing here.

        Parameters
        ----------
        max_pairs : int, default=100_000
            Maximum number of similar, and of dissimilar, pairs; a random sample if there are more.
        random_state : int, RandomState, Generator or None, default=None
            Seed of the sample.
        """
        check_count(max_pairs, "max_pairs")
        rng = as_generator(random_state)
        size = np.bincount(self.group)
        rows, start = np.argsort(self.group, kind="stable"), np.cumsum(size) - size
        #  Pair k of s rows: row k mod s, and the row 1 + k div s further on, modulo s.
        group, k = _sample_items(size * (size - 1) // 2, max_pairs, rng)
        near = k % size[group]
        far = (near + 1 + k // size[group]) % size[group]
        similar = rows[start[group, None] + np.column_stack([near, far])]
        a, b = np.divmod(self.dissimilar, len(size))
        a, b = a[a != b], b[a != b]
        which, k = _sample_items(size[a] * size[b], max_pairs, rng)
        a, b = a[which], b[which]
        dissimilar = rows[np.column_stack([start[a] + k // size[b], start[b] + k % size[b]])]
        return Constraints.from_pairs(similar, dissimilar, n_rows=len(self.group))


def _sample_items(counts: np.ndarray, max_items: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return at most `max_items` items, each as (bin, number in the bin), where bin b has counts[b] items."""
    end = np.cumsum(counts)
    total = int(end[-1]) if len(end) else 0
    k = np.arange(total) if total <= max_items else np.sort(rng.choice(total, max_items, replace=False))
    bins = np.searchsorted(end, k, side="right")
    return bins, k - (end - counts)[bins]
