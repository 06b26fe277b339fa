"""Degenerate constraints: pairs, triplets and quadruplets of identical points, which always or never hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .geometry import Geometry
from .groups import format_rows

if TYPE_CHECKING:
    from .collection import Constraints


@dataclass(frozen=True, eq=False)
class Degeneracy:
    """Result of `drop_degenerate`.

    Attributes
    ----------
    keep : ndarray of bool
        Mask of the constraints to learn from: all but pairs of identical points and impossible constraints.
    impossible : ndarray of int
        Positions of constraints that no metric satisfies, because they require a distance between identical points.
    message : str
        Number of impossible constraints of each kind and an example; empty if there are none.
    """

    keep: np.ndarray
    impossible: np.ndarray
    message: str


def drop_degenerate(constraints: Constraints, geometry: Geometry, numbers: np.ndarray | None = None) -> Degeneracy:
    """Find the constraints of identical points; `numbers[i]`, if passed, is the number of row i in the message."""
    pairs, triplets, linear = constraints.pairs, constraints.triplets, constraints.linear
    same = _identical(geometry, *pairs.index.T)
    never = {
        "dissimilar pair": same & (pairs.sign < 0),
        "triplet": impossible_triplets(triplets.index, geometry),
        "quadruplet": impossible_quadruplets(linear.quadruplet, geometry),
    }
    impossible = np.concatenate(list(never.values()))
    keep = ~impossible
    keep[: len(same)] &= ~same
    indices = (pairs.index, triplets.index, linear.quadruplet)
    examples = [index[mask] for index, mask in zip(indices, never.values(), strict=True)]
    if numbers is not None:
        examples = [numbers[index] for index in examples]
    message = _describe(dict(zip(never, examples, strict=True))) if impossible.any() else ""
    return Degeneracy(keep, np.flatnonzero(impossible), message)


def impossible_triplets(index: np.ndarray, geometry: Geometry) -> np.ndarray:
    """Return the mask of triplets with c the same point as a or b: d²(a, b) + margin ≤ d²(a, c) cannot hold."""
    if not len(index):
        return np.zeros(0, dtype=bool)
    a, b, c = index.T
    return _identical(geometry, a, c) | _identical(geometry, b, c)


def impossible_quadruplets(index: np.ndarray, geometry: Geometry) -> np.ndarray:
    """Return the mask of quadruplets with c = d or {a, b} = {c, d} as points: d²(a, b) + margin ≤ d²(c, d) cannot hold.

    Linear forms that are not quadruplets have −1 for rows.
    """
    is_quadruplet = np.all(index >= 0, axis=1)
    if not is_quadruplet.any():
        return is_quadruplet
    a, b, c, d = index[is_quadruplet].T
    swapped = _identical(geometry, a, d) & _identical(geometry, b, c)
    never = np.zeros(len(index), dtype=bool)
    never[is_quadruplet] = (
        _identical(geometry, c, d) | _identical(geometry, a, c) & _identical(geometry, b, d) | swapped
    )
    return never


def _identical(geometry: Geometry, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    """Return the mask of pairs (i, j) that are identical points."""
    return (i == j) | (geometry.sq_distances(np.column_stack([i, j])) == 0)


def _describe(examples: dict[str, np.ndarray]) -> str:
    counts = [f"{len(rows)} {kind}{'s' * (len(rows) > 1)}" for kind, rows in examples.items() if len(rows)]
    example = next(rows[0] for rows in examples.values() if len(rows))
    return f"{' and '.join(counts)} of identical points, such as rows {format_rows(example)}, can never be satisfied"
