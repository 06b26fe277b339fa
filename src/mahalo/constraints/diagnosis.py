"""What is odd about a set of constraints, before anything is learned from it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .collection import Constraints
from .geometry import sq_distances

__all__ = ["ConstraintReport", "diagnose"]


@dataclass(frozen=True)
class ConstraintReport:
    """Counts, and the odd ones by name. Print it.

    Attributes
    ----------
    n_similar, n_dissimilar, n_triplets, n_linear : int
    n_rows_used : int
        Rows that appear in at least one pair or triplet.
    n_duplicates : int
        Repetitions of a pair with the same sign (in either order), or of a triplet.
    self_pairs : ndarray of shape (n, 2)
        Pairs of a row with itself.
    zero_similar, zero_dissimilar : ndarray of shape (n, 2)
        Pairs of different rows that are identical points. Similar ones are satisfied whatever is learned;
        dissimilar ones can never be.
    contradictions : ndarray of shape (n, 2)
        Pairs called both similar and dissimilar with bounds (where given) that exclude each other, and triplets
        (a, b, c) that come with (a, c, b), listed by (b, c).
    """

    n_similar: int
    n_dissimilar: int
    n_triplets: int
    n_linear: int
    n_rows_used: int
    n_duplicates: int
    self_pairs: np.ndarray
    zero_similar: np.ndarray
    zero_dissimilar: np.ndarray
    contradictions: np.ndarray

    def __str__(self) -> str:
        lines = [
            f"similar pairs        {self.n_similar}",
            f"dissimilar pairs     {self.n_dissimilar}",
            f"triplets             {self.n_triplets}",
            f"linear forms         {self.n_linear}",
            f"rows used            {self.n_rows_used}",
            f"duplicates           {self.n_duplicates}",
            f"self-pairs           {_named(self.self_pairs)}",
            f"identical, similar   {_named(self.zero_similar)}",
            f"identical, dissim.   {_named(self.zero_dissimilar)}",
            f"contradictions       {_named(self.contradictions)}",
        ]
        return "\n".join(lines)


def _named(pairs: np.ndarray) -> str:
    if not len(pairs):
        return "0"
    shown = ", ".join(f"({i}, {j})" for i, j in pairs[:5])
    return f"{len(pairs)}: {shown}{', …' if len(pairs) > 5 else ''}"


def diagnose(constraints: Constraints, X) -> ConstraintReport:
    from sklearn.utils import check_array

    X = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_all_finite=True)
    constraints.check_rows(X.shape[0])
    pairs, triplets = constraints.pairs, constraints.triplets
    ordered = np.sort(pairs.index, axis=1)
    same_row = ordered[:, 0] == ordered[:, 1]
    zero = (sq_distances(X, pairs.index) == 0) & ~same_row
    similar = pairs.sign > 0
    signed = np.column_stack([ordered, pairs.sign]).astype(np.intp)
    n_duplicates = len(signed) - len(np.unique(signed, axis=0))
    n_duplicates += len(triplets) - len(np.unique(triplets.index, axis=0))
    return ConstraintReport(
        n_similar=int(similar.sum()),
        n_dissimilar=int((~similar).sum()),
        n_triplets=len(triplets),
        n_linear=len(constraints.linear),
        n_rows_used=len(np.unique(np.concatenate([pairs.index.ravel(), triplets.index.ravel()]))),
        n_duplicates=n_duplicates,
        self_pairs=pairs.index[same_row],
        zero_similar=pairs.index[zero & similar],
        zero_dissimilar=pairs.index[zero & ~similar],
        contradictions=_contradictions(constraints, ordered),
    )


def _contradictions(constraints: Constraints, ordered: np.ndarray) -> np.ndarray:
    pairs, found = constraints.pairs, []
    upper: dict[tuple[int, int], float] = {}
    for (i, j), sign, bound in zip(ordered.tolist(), pairs.sign, pairs.bound, strict=True):
        if sign > 0:
            upper[i, j] = min(upper.get((i, j), np.inf), np.inf if np.isnan(bound) else bound)
    for (i, j), sign, bound in zip(ordered.tolist(), pairs.sign, pairs.bound, strict=True):
        # A bound still open counts as in conflict: percentiles put upper bounds below lower ones.
        if sign < 0 and (i, j) in upper and not np.inf > upper[i, j] >= bound:
            found.append((i, j))
    wanted = set(map(tuple, constraints.triplets.index.tolist()))
    found += [(b, c) for a, b, c in sorted(wanted) if b < c and (a, c, b) in wanted]
    unique = sorted(set(found))
    return np.array(unique, dtype=np.intp).reshape(-1, 2)
