"""Arrays of constraints, from which a problem is made: forms over edges, sign, bound, scale and weight."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from .forms import EdgeForms
from .labels import unique_inverse
from .matrices import split_into_edges

if TYPE_CHECKING:
    from .collection import Constraints


@dataclass(frozen=True, eq=False)
class ConstraintArrays:
    """Arrays of constraints, with one entry per constraint in sign, bound, scale and weight.

    `forms` are over `rows` (−1: the origin), with a linear objective as one more, the last. The first `n_pairs` are
    pairs.
    """

    forms: EdgeForms
    rows: np.ndarray
    sign: np.ndarray
    bound: np.ndarray
    scale: np.ndarray
    weight: np.ndarray
    n_pairs: int


def as_arrays(constraints: Constraints) -> ConstraintArrays:
    """Return the forms and arrays of constraints."""
    c = constraints
    return ConstraintArrays(*edge_forms(c), c.sign, c.bound, c.scale, c.weight, n_pairs=len(c.pairs))


def edge_forms(constraints: Constraints) -> tuple[EdgeForms, np.ndarray]:
    """Return forms over the rows of constraints, and those rows (−1: the origin); an objective is the last form."""
    p, t = constraints.pairs.index, constraints.triplets.index
    matrices = [*constraints.linear.matrix, *([] if constraints.objective is None else [constraints.objective])]
    parts = [split_into_edges(C) for C in matrices]
    tail = np.concatenate([p[:, 0], np.repeat(t[:, 0], 2), *(part[0] for part in parts)])
    head = np.concatenate([p[:, 1], t[:, 1:].ravel(), *(part[1] for part in parts)])
    rows, compact = unique_inverse(np.concatenate([tail, head]))
    tail, head = np.ascontiguousarray(compact.reshape(2, -1), dtype=np.intp)
    if not len(t) and not matrices:
        return EdgeForms(tail, head, len(rows)), rows
    coefficient = np.concatenate([np.ones(len(p)), np.tile([1.0, -1.0], len(t)), *(part[2] for part in parts)])
    n_edges = np.repeat([0, 1, 2, *(len(part[2]) for part in parts)], [1, len(p), len(t), *[1] * len(parts)])
    integer = np.int32 if len(tail) < 2**31 else np.int64
    index, first = np.arange(len(tail), dtype=integer), np.cumsum(n_edges, dtype=integer)
    combine = sp.csr_array((coefficient, index, first), shape=(len(n_edges) - 1, len(tail)))
    return EdgeForms(tail, head, len(rows), combine), rows
