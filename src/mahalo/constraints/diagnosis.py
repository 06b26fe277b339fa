"""Report on a set of constraints before a fit: counts, duplicates, contradictions, identical points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils import check_array

from ..rows import InMemoryRows
from ..types import MatrixLike
from .degenerate import impossible_quadruplets, impossible_triplets
from .geometry import VectorGeometry
from .groups import Pairs, format_rows

if TYPE_CHECKING:
    from .collection import Constraints


@dataclass(frozen=True)
class ConstraintReport:
    """Counts of constraints, and the rows of those that are redundant, contradictory or impossible. Print it.

    Attributes
    ----------
    n_similar, n_dissimilar, n_triplets, n_quadruplets, n_linear : int
        Quadruplets are not among the linear forms.
    n_rows_used : int
        Rows that appear in at least one constraint.
    n_duplicates : int
        Repetitions of a pair with the same sign (in either order), of a triplet or of a quadruplet.
    self_pairs : ndarray of shape (n, 2)
        Pairs of a row with itself.
    zero_similar, zero_dissimilar : ndarray of shape (n, 2)
        Pairs of different rows that are identical points. Every metric satisfies the similar ones, none the dissimilar
        ones.
    zero_triplets : ndarray of shape (n, 3)
        Triplets (a, b, c) in which c is the same point as a or b. No metric satisfies them.
    zero_quadruplets : ndarray of shape (n, 4)
        Quadruplets (a, b, c, d) in which c is the same point as d, or a and b the same points as
        c and d. No metric satisfies them.
    contradictions : ndarray of shape (n, 2)
        Pairs that are both similar and dissimilar, with bounds (if set) that exclude each other.
    opposed_triplets : ndarray of shape (n, 3)
        Triplets (a, b, c) beside (a, c, b), listed once, with b < c.
    opposed_quadruplets : ndarray of shape (n, 4)
        Quadruplets (a, b, c, d) beside (c, d, a, b), listed once, with a ≤ b, c ≤ d and (a, b) before (c, d).
    """

    n_similar: int
    n_dissimilar: int
    n_triplets: int
    n_quadruplets: int
    n_linear: int
    n_rows_used: int
    n_duplicates: int
    self_pairs: np.ndarray
    zero_similar: np.ndarray
    zero_dissimilar: np.ndarray
    zero_triplets: np.ndarray
    zero_quadruplets: np.ndarray
    contradictions: np.ndarray
    opposed_triplets: np.ndarray
    opposed_quadruplets: np.ndarray

    def __str__(self) -> str:
        lines = [
            f"similar pairs        {self.n_similar}",
            f"dissimilar pairs     {self.n_dissimilar}",
            f"triplets             {self.n_triplets}",
            f"quadruplets          {self.n_quadruplets}",
            f"linear forms         {self.n_linear}",
            f"rows used            {self.n_rows_used}",
            f"duplicates           {self.n_duplicates}",
            f"self-pairs           {_listed(self.self_pairs)}",
            f"identical, similar   {_listed(self.zero_similar)}",
            f"identical, dissim.   {_listed(self.zero_dissimilar)}",
            f"identical, triplets  {_listed(self.zero_triplets)}",
            f"identical, quadrup.  {_listed(self.zero_quadruplets)}",
            f"contradictions       {_listed(self.contradictions)}",
            f"opposed triplets     {_listed(self.opposed_triplets)}",
            f"opposed quadruplets  {_listed(self.opposed_quadruplets)}",
        ]
        return "\n".join(lines)


def _listed(found: np.ndarray) -> str:
    if not len(found):
        return "0"
    return f"{len(found)}: {', '.join(map(format_rows, found[:5]))}{', …' if len(found) > 5 else ''}"


def diagnose(constraints: Constraints, X: MatrixLike) -> ConstraintReport:
    """Return the report on constraints over the rows of X."""
    X = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_all_finite=True)
    constraints.check_rows(X.shape[0])
    geometry = VectorGeometry(InMemoryRows(X))
    pairs, triplets, linear = constraints.pairs, constraints.triplets, constraints.linear
    quadruplets = linear.quadruplet[linear.is_quadruplet]
    ordered = np.sort(pairs.index, axis=1)
    same_row = ordered[:, 0] == ordered[:, 1]
    zero = (geometry.sq_distances(pairs.index) == 0) & ~same_row
    similar = pairs.sign > 0
    signed = np.column_stack([ordered, pairs.sign]).astype(np.intp)
    compared = np.hstack([np.sort(quadruplets[:, :2], axis=1), np.sort(quadruplets[:, 2:], axis=1)])
    used = [pairs.index, triplets.index, quadruplets, *(C.nonzero()[0] for C in linear.matrix)]
    return ConstraintReport(
        n_similar=int(similar.sum()),
        n_dissimilar=int((~similar).sum()),
        n_triplets=len(triplets),
        n_quadruplets=len(quadruplets),
        n_linear=len(linear) - len(quadruplets),
        n_rows_used=len(np.unique(np.concatenate([rows.ravel() for rows in used]))),
        n_duplicates=sum(len(group) - len(np.unique(group, axis=0)) for group in (signed, triplets.index, compared)),
        self_pairs=pairs.index[same_row],
        zero_similar=pairs.index[zero & similar],
        zero_dissimilar=pairs.index[zero & ~similar],
        zero_triplets=triplets.index[impossible_triplets(triplets.index, geometry)],
        zero_quadruplets=quadruplets[impossible_quadruplets(quadruplets, geometry)],
        contradictions=_contradictions(pairs, ordered),
        opposed_triplets=_opposed(triplets.index[:, [0, 1, 0, 2]])[:, [0, 1, 3]],
        opposed_quadruplets=_opposed(compared),
    )


def _contradictions(pairs: Pairs, ordered: np.ndarray) -> np.ndarray:
    found = set()
    upper: dict[tuple[int, int], float] = {}
    for (i, j), sign, bound in zip(ordered.tolist(), pairs.sign, pairs.bound, strict=True):
        if sign > 0:
            upper[i, j] = min(upper.get((i, j), np.inf), np.inf if np.isnan(bound) else bound)
    for (i, j), sign, bound in zip(ordered.tolist(), pairs.sign, pairs.bound, strict=True):
        # An unset bound counts as a conflict: percentiles put upper bounds below lower ones.
        if sign < 0 and (i, j) in upper and not np.inf > upper[i, j] >= bound:
            found.add((i, j))
    return np.array(sorted(found), dtype=np.intp).reshape(-1, 2)


def _opposed(compared: np.ndarray) -> np.ndarray:
    """Return the quadruplets (a, b, c, d) beside (c, d, a, b), each once, with (a, b) before (c, d)."""
    wanted = set(map(tuple, compared.tolist()))
    found = [(a, b, c, d) for a, b, c, d in sorted(wanted) if (a, b) < (c, d) and (c, d, a, b) in wanted]
    return np.array(found, dtype=np.intp).reshape(-1, 4)
