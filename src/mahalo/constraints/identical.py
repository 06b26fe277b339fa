"""Constraints about identical points: those that hold whatever is learned, and those that never can."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .geometry import Geometry
from .groups import named

if TYPE_CHECKING:
    from .collection import Constraints

__all__ = ["Meaningful", "meaningful", "quadruplets_never", "triplets_never"]


@dataclass(frozen=True, eq=False)
class Meaningful:
    """What is left of constraints where identical points are one point.

    Attributes
    ----------
    keep : ndarray of bool
        The constraints to learn from: all but pairs of identical points and what is impossible.
    impossible : ndarray of int
        Positions of those that no metric satisfies, because they hold identical points apart.
    words : str
        How many of each kind are impossible, and an example; empty where none are.
    """

    keep: np.ndarray
    impossible: np.ndarray
    words: str


def meaningful(constraints: Constraints, geometry: Geometry, numbers: np.ndarray | None = None) -> Meaningful:
    """`numbers` are what rows are called in words, where that is not their position."""
    pairs, triplets, linear = constraints.pairs, constraints.triplets, constraints.linear
    same = _same(geometry, *pairs.index.T)
    never = {
        "dissimilar pair": same & (pairs.sign < 0),
        "triplet": triplets_never(triplets.index, geometry),
        "quadruplet": quadruplets_never(linear.quadruplet, geometry),
    }
    impossible = np.concatenate(list(never.values()))
    keep = ~impossible
    keep[: len(same)] &= ~same
    indices = (pairs.index, triplets.index, linear.quadruplet)
    examples = [index[mask] for index, mask in zip(indices, never.values(), strict=True)]
    if numbers is not None:
        examples = [numbers[index] for index in examples]
    words = _in_words(dict(zip(never, examples, strict=True))) if impossible.any() else ""
    return Meaningful(keep, np.flatnonzero(impossible), words)


def triplets_never(index: np.ndarray, geometry: Geometry) -> np.ndarray:
    """d²(a, b) + margin ≤ d²(a, c) fails for every metric where c is the point a, or the point b."""
    a, b, c = index.T
    return _same(geometry, a, c) | _same(geometry, b, c)


def quadruplets_never(index: np.ndarray, geometry: Geometry) -> np.ndarray:
    """d²(a, b) + margin ≤ d²(c, d) fails for every metric where c is the point d, or {c, d} the points {a, b}.

    Linear forms that are no quadruplets have −1 for rows.
    """
    known = np.all(index >= 0, axis=1)
    a, b, c, d = index[known].T
    swapped = _same(geometry, a, d) & _same(geometry, b, c)
    never = np.zeros(len(index), dtype=bool)
    never[known] = _same(geometry, c, d) | _same(geometry, a, c) & _same(geometry, b, d) | swapped
    return never


def _same(geometry: Geometry, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    """Whether rows i and j are identical points, pair by pair."""
    same = i == j
    if same.all():  # or there are none
        return same
    same[~same] = geometry.sq_distances(np.column_stack([i, j])[~same]) == 0
    return same


def _in_words(examples: dict[str, np.ndarray]) -> str:
    counts = [f"{len(rows)} {kind}{'s' * (len(rows) > 1)}" for kind, rows in examples.items() if len(rows)]
    example = next(rows[0] for rows in examples.values() if len(rows))
    return f"{' and '.join(counts)} of identical points, such as rows {named(example)}, can never be satisfied"
