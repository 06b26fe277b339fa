"""Groups of duplicates: connected pairs above a threshold that is set by the precision asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

__all__ = ["Duplicates", "find_groups"]

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
        Mean probability of `pairs`: the share expected to be right; 1.0 if there are none.
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

    def __str__(self) -> str:
        n_rows = int((self.groups >= 0).sum())
        n_rows += 0 if self.other_groups is None else int((self.other_groups >= 0).sum())
        return (
            f"{self.n_groups:,} groups of {n_rows:,} rows; {len(self.pairs):,} pairs, {self.expected_precision:.1%} of "
            f"them expected to be the same, from {self.n_candidates:,} candidates with a probability of at least "
            f"{self.threshold:.2f}."
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
    best: Duplicates | None = None
    least, most = 0, int(np.flatnonzero(means >= precision).max(initial=-1)) + 1
    length = most
    while length > least:  # bisection: groups of fewer pairs are more precise
        accepted = order[:length]
        found = _group(candidates[accepted], probability, float(p[accepted[-1]]), n_rows, n_other, len(candidates))
        if found is not None and found.expected_precision >= precision:
            best, least = found, length
        else:
            most = length - 1
        length = (least + most + 1) // 2
    if best is not None:
        return best
    none = np.full(n_rows, -1, dtype=np.intp)
    others = None if n_other is None else np.full(n_other, -1, dtype=np.intp)
    return Duplicates(np.empty((0, 2), dtype=np.intp), np.empty(0), none, others, 1.0, 1.0, len(candidates))


def _group(
    accepted: np.ndarray,
    probability: Probability,
    threshold: float,
    n_rows: int,
    n_other: int | None,
    n_candidates: int,
) -> Duplicates | None:
    """Return the groups of accepted pairs; None if they imply too many others."""
    numbers = _components(accepted, n_rows, n_other)
    implied = _implied_pairs(numbers, n_rows, n_other, _MOST_IMPLIED * len(accepted))
    if implied is None:
        return None
    chances = probability(implied)
    order = np.argsort(-chances, kind="stable")
    others = None if n_other is None else numbers[n_rows:]
    mean = float(chances.mean())
    return Duplicates(implied[order], chances[order], numbers[:n_rows], others, threshold, mean, n_candidates)


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
    rows = np.flatnonzero(groups >= 0)
    rows = rows[np.argsort(groups[rows], kind="stable")]
    parts = np.split(rows, np.flatnonzero(np.diff(groups[rows])) + 1)
    n_members = np.array([len(members) for members in parts])
    n_own = np.array([(members < n_rows).sum() for members in parts])
    n_pairs = n_members * (n_members - 1) // 2 if n_other is None else n_own * (n_members - n_own)
    if n_pairs.sum() > most:  # before the pairs of a long chain fill the memory
        return None
    found = []
    for members in parts:
        if n_other is None:
            first, second = np.triu_indices(len(members), 1)
            pairs = np.column_stack([members[first], members[second]])
        else:
            own, others = members[members < n_rows], members[members >= n_rows] - n_rows
            pairs = np.column_stack([np.repeat(own, len(others)), np.tile(others, len(own))])
        found.append(pairs)
    return np.concatenate(found)
