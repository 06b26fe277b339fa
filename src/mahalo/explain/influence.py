"""Which constraints shaped a metric."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..constraints import Constraints
from ..validation import check_count
from .frames import data_frame, names_of_rows, tuples

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["Pulls", "constraint_kinds", "constraint_rows", "influential", "pulls"]

_PULLS = 1e-9  # times the largest multiplier: below it a constraint would hold anyway


@dataclass(frozen=True, eq=False)
class Pulls:
    """The constraints that pull hardest at a metric, hardest first.

    Attributes
    ----------
    kinds : list of str
    rows : list of list of int
        Those that each is about.
    bound, value : ndarray
        What each is held against, and what it has under the learned metric.
    share : ndarray
        Of the sum of all multipliers.
    n_active, n_constraints : int
        How many pull at all, and of how many.
    """

    kinds: list[str]
    rows: list[list[int]]
    bound: np.ndarray
    value: np.ndarray
    share: np.ndarray
    n_active: int
    n_constraints: int


def pulls(constraints: Constraints, duals: np.ndarray, values: np.ndarray, n: int) -> Pulls:
    """The n constraints with the largest multipliers."""
    order = _largest(duals, n)
    return Pulls(
        kinds=constraint_kinds(constraints)[order].tolist(),
        rows=constraint_rows(constraints, order),
        bound=constraints.bound[order],
        value=values[order],
        share=duals[order] / (float(duals.sum()) or 1.0),
        n_active=int((duals > _PULLS * duals.max(initial=0.0)).sum()),
        n_constraints=len(duals),
    )


def influential(
    constraints: Constraints, duals: np.ndarray, values: np.ndarray, n: int, index: Sequence[Any] | None
) -> DataFrame:
    """The n constraints with the largest multipliers, largest first."""
    check_count(n, "n")
    names = names_of_rows(index, constraints.n_rows)
    order = _largest(duals, n)
    rows = constraint_rows(constraints, order)
    violation = constraints.sign * (values - constraints.bound) / constraints.scale
    columns: dict[str, Any] = {"kind": constraint_kinds(constraints)[order], "rows": tuples(rows)}
    if names is not None:
        columns["names"] = tuples([[names[i] for i in ends] for ends in rows])
    columns |= {
        "bound": constraints.bound[order],
        "value": values[order],
        "violation": violation[order],
        "dual": duals[order],
    }
    return data_frame(columns, order, "constraint")


def _largest(duals: np.ndarray, n: int) -> np.ndarray:
    return np.argsort(-duals, kind="stable")[:n]


def constraint_kinds(constraints: Constraints) -> np.ndarray:
    """One word for each constraint."""
    pairs = np.where(constraints.pairs.sign > 0, "similar", "dissimilar")
    forms = np.where(constraints.linear.is_quadruplet, "quadruplet", "linear")
    return np.concatenate([pairs, np.full(len(constraints.triplets), "triplet"), forms]).astype(object)


def constraint_rows(constraints: Constraints, which: np.ndarray) -> list[list[int]]:
    """The rows that these constraints are about."""
    n_pairs, n_indexed = len(constraints.pairs), len(constraints.pairs) + len(constraints.triplets)
    found = []
    for k in which:
        if k < n_pairs:
            ends = constraints.pairs.index[k]
        elif k < n_indexed:
            ends = constraints.triplets.index[k - n_pairs]
        else:
            linear, k = constraints.linear, k - n_indexed
            ends = linear.quadruplet[k] if linear.is_quadruplet[k] else np.unique(linear.matrix[k].nonzero()[0])
        found.append(ends.tolist())
    return found
