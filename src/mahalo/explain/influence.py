"""Constraints that shaped a metric, by their multipliers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..constraints import Constraints
from ..validation import check_count
from .frames import Column, check_row_names, data_frame, tuple_column

if TYPE_CHECKING:
    from pandas import DataFrame

_ACTIVE = 1e-9  # share of the largest multiplier above which a constraint is active


@dataclass(frozen=True, eq=False)
class InfluentialConstraints:
    """Constraints with the largest multipliers, largest first.

    Attributes
    ----------
    kinds : list of str
    rows : list of list of int
        Rows of each constraint.
    bound, value : ndarray
        Bound of each constraint, and its value under the learned metric.
    share : ndarray
        Multiplier as a share of the sum of all.
    n_active, n_constraints : int
        Numbers of constraints with a multiplier above zero, and of all.
    """

    kinds: list[str]
    rows: list[list[int]]
    bound: np.ndarray
    value: np.ndarray
    share: np.ndarray
    n_active: int
    n_constraints: int


def most_influential(constraints: Constraints, duals: np.ndarray, values: np.ndarray, n: int) -> InfluentialConstraints:
    """Return the n constraints with the largest multipliers."""
    order = _largest(duals, n)
    return InfluentialConstraints(
        kinds=constraint_kinds(constraints)[order].tolist(),
        rows=constraint_rows(constraints, order),
        bound=constraints.bound[order],
        value=values[order],
        share=duals[order] / (float(duals.sum()) or 1.0),
        n_active=int((duals > _ACTIVE * duals.max(initial=0.0)).sum()),
        n_constraints=len(duals),
    )


def influential(
    constraints: Constraints, duals: np.ndarray, values: np.ndarray, n: int, index: Sequence[object] | None
) -> DataFrame:
    """Return a table of the n constraints with the largest multipliers, largest first."""
    check_count(n, "n")
    names = check_row_names(index, constraints.n_rows)
    order = _largest(duals, n)
    rows = constraint_rows(constraints, order)
    violation = constraints.sign * (values - constraints.bound) / constraints.scale
    columns: dict[str, Column] = {"kind": constraint_kinds(constraints)[order], "rows": tuple_column(rows)}
    if names is not None:
        columns["names"] = tuple_column([[names[i] for i in ends] for ends in rows])
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
    """Return the kind of every constraint in one word."""
    pairs = np.where(constraints.pairs.sign > 0, "similar", "dissimilar")
    forms = np.where(constraints.linear.is_quadruplet, "quadruplet", "linear")
    return np.concatenate([pairs, np.full(len(constraints.triplets), "triplet"), forms]).astype(object)


def constraint_rows(constraints: Constraints, which: np.ndarray) -> list[list[int]]:
    """Return the rows of some constraints, by their numbers."""
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
