"""Constraints as a problem is made of them: forms over edges, and a number of each kind for every constraint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from .forms import EdgeForms
from .matrices import edges_of

if TYPE_CHECKING:
    from .collection import Constraints

__all__ = ["Posed", "edge_forms", "posed"]


@dataclass(frozen=True, eq=False)
class Posed:
    """Constraints as a problem is made of them, one entry a constraint in sign, bound, scale and weight.

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


def posed(constraints: Constraints) -> Posed:
    """All that a problem is made of, at once."""
    pairs, triplets, linear = constraints.pairs, constraints.triplets, constraints.linear
    size = np.abs(linear.bound)
    return Posed(
        *edge_forms(constraints),
        sign=np.concatenate([pairs.sign, np.ones_like(triplets.margin), linear.sign]),
        bound=np.concatenate([pairs.bound, -triplets.margin, linear.bound]),
        scale=np.concatenate([pairs.bound, triplets.margin, np.where(size > 0, size, 1.0)]),
        weight=np.concatenate([pairs.weight, triplets.weight, linear.weight]),
        n_pairs=len(pairs.sign),
    )


def edge_forms(constraints: Constraints) -> tuple[EdgeForms, np.ndarray]:
    """Forms over the rows that constraints touch, and those rows (−1: the origin); an objective is the last form."""
    p, t = constraints.pairs.index, constraints.triplets.index
    matrices = [*constraints.linear.matrix, *([] if constraints.objective is None else [constraints.objective])]
    parts = [edges_of(C) for C in matrices]
    tail = np.concatenate([p[:, 0], np.repeat(t[:, 0], 2), *(part[0] for part in parts)])
    head = np.concatenate([p[:, 1], t[:, 1:].ravel(), *(part[1] for part in parts)])
    rows, compact = np.unique(np.concatenate([tail, head]), return_inverse=True)
    tail, head = np.ascontiguousarray(compact.reshape(2, -1), dtype=np.intp)
    if not len(t) and not matrices:
        return EdgeForms(tail, head, len(rows)), rows
    coefficient = np.concatenate([np.ones(len(p)), np.tile([1.0, -1.0], len(t)), *(part[2] for part in parts)])
    n_edges = np.repeat([0, 1, 2, *(len(part[2]) for part in parts)], [1, len(p), len(t), *[1] * len(parts)])
    integer = np.int32 if len(tail) < 2**31 else np.int64
    index, first = np.arange(len(tail), dtype=integer), np.cumsum(n_edges, dtype=integer)
    combine = sp.csr_array((coefficient, index, first), shape=(len(n_edges) - 1, len(tail)))
    return EdgeForms(tail, head, len(rows), combine), rows
