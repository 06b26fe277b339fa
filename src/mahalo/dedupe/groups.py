"""Groups of duplicates: connected pairs above a threshold that is set by the precision asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

_MOST_IMPLIED = 10  # times the pairs accepted; groups that imply more are chains, not duplicates

Probability = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True, eq=False)
class Duplicates:
    """Pairs that are the same, and the groups they form.

    Attributes
    ----------
    pairs : ndarray of int, shape (n_pairs, 2)
        Rows of the table, and of the same or the other one: all pairs of rows in one group, the most probable first.
    probability : ndarray of shape (n_pairs,)
        Calibrated probability that a pair is the same.
    groups : ndarray of int, shape (n_rows,)
        Group of every row, numbered from 0 with the largest first; −1 for rows without a duplicate.
    other_groups : ndarray of int or None
        Groups of the rows of the other table; None for one table.
    threshold : float
        Least probability of the candidate pairs that were accepted.
    expected_precision : float
        Mean probability of `pairs`: the share expected to be right; NaN if there are none.
    n_candidates : int
        Candidate pairs that were compared.
    """

    pairs: np.ndarray
    probability: np.ndarray
    groups: np.ndarray
    other_groups: np.ndarray | None
    threshold: float
    expected_precision: float
    n_candidates: int

    @property
    def n_groups(self) -> int:
        """Number of groups of two rows or more."""
        return int(self.groups.max(initial=-1)) + 1

    @property
    def n_doubtful(self) -> int:
        """Number of `pairs` that are more likely different than the same: sure pairs make up for them in the mean."""
        return int((self.probability < 0.5).sum())

    def __str__(self) -> str:
        if not len(self.pairs):
            return f"No duplicates found: none of {self.n_candidates:,} candidates is certain enough."
        n_rows = int((self.groups >= 0).sum())
        n_rows += 0 if self.other_groups is None else int((self.other_groups >= 0).sum())
        return (
            f"{self.n_groups:,} groups of {n_rows:,} rows; {len(self.pairs):,} pairs, {self.expected_precision:.1%} of "
            f"them expected to be the same, {self.n_doubtful:,} with a probability below 0.5, from "
            f"{self.n_candidates:,} candidates."
        )


def find_groups(
    candidates: np.ndarray, probability: Probability, precision: float, n_rows: int, n_other: int | None
) -> Duplicates:
    """Return the groups of the most candidate pairs whose implied pairs have a mean probability of `precision`.

    A group implies all pairs of its rows, not the accepted ones alone: they count as well.
    """
    p = probability(candidates)
    order = np.argsort(-p, kind="stable")
    means = np.cumsum(p[order]) / np.arange(1, len(p) + 1)

    def group(length: int) -> Duplicates | None:
        """Return the groups of the most probable candidates; None if they imply too many other pairs."""
        accepted = order[:length]
        numbers = _components(candidates[accepted], n_rows, n_other)
        implied = _implied_pairs(numbers, n_rows, n_other, _MOST_IMPLIED * length)
        if implied is None:
            return None
        chances = probability(implied) if length else np.empty(0)
        listed = np.argsort(-chances, kind="stable")
        return Duplicates(
            pairs=implied[listed],
            probability=chances[listed],
            groups=numbers[:n_rows],
            other_groups=None if n_other is None else numbers[n_rows:],
            threshold=float(p[accepted].min(initial=1.0)),
            expected_precision=float(chances.mean()) if length else np.nan,
            n_candidates=len(candidates),
        )

    best, least = group(0), 0
    most = int(np.flatnonzero(means >= precision).max(initial=-1)) + 1
    while least < most:  # bisection: groups of fewer pairs are more precise
        length = (least + most + 1) // 2
        found = group(length)
        if found is not None and found.expected_precision >= precision:
            best, least = found, length
        else:
            most = length - 1
    assert best is not None  # nothing implies nothing
    return best


def _components(pairs: np.ndarray, n_rows: int, n_other: int | None) -> np.ndarray:
    """Return the group of every row of both tables, the largest first, and −1 for rows without a pair."""
    n = n_rows + (n_other or 0)
    second = pairs[:, 1] + (0 if n_other is None else n_rows)
    edges = sp.coo_array((np.ones(len(pairs)), (pairs[:, 0], second)), shape=(n, n))
    component = connected_components(edges, directed=False)[1]
    sizes = np.bincount(component)
    order = np.argsort(-sizes, kind="stable")
    number = np.empty(len(sizes), dtype=np.intp)
    number[order] = np.arange(len(sizes))
    return np.where(sizes[component] > 1, number[component], -1)


def _implied_pairs(groups: np.ndarray, n_rows: int, n_other: int | None, most: int) -> np.ndarray | None:
    """Return all pairs of rows of one group, between the tables if there are two; None if they are too many."""
    first = _members(groups[:n_rows], groups.max() + 1)
    second = first if n_other is None else _members(groups[n_rows:], groups.max() + 1)
    n_first, n_second = first.sum(axis=0), second.sum(axis=0)
    n_pairs = n_first * (n_first - 1) / 2 if n_other is None else n_first * n_second
    if n_pairs.sum() > most:  # before the pairs of a long chain fill the memory
        return None
    pairs = first @ second.T
    return np.column_stack((sp.triu(pairs, 1) if n_other is None else pairs).nonzero())


def _members(groups: np.ndarray, n_groups: int) -> sp.csr_array:
    """Return 1 where a row is in a group, rows × groups."""
    rows = np.flatnonzero(groups >= 0)
    return sp.csr_array((np.ones(len(rows)), (rows, groups[rows])), shape=(len(groups), n_groups))
