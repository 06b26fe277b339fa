"""How doubtful a label is: nearness to rows of its own class against nearness to rows of others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..linalg import nearest_of

__all__ = ["Doubt", "doubt_of"]

_NEIGHBOURS = 5


@dataclass(frozen=True, eq=False)
class Doubt:
    """Of each row judged: a score, larger for more doubtful, and its nearest rows of other classes, nearest first."""

    score: np.ndarray
    others: np.ndarray


def doubt_of(distances: np.ndarray, own: np.ndarray, codes: np.ndarray) -> Doubt:
    """From distances (inf: has no say) of rows of classes `own` to rows of classes `codes`.

    The score is a / (a + b), a the mean distance to the five nearest of the row's own class, b to the five nearest of
    others: above ½ the row is closer to others. A row that is alone in its class has 1.
    """
    same = own[:, None] == codes
    a, _ = _nearest(distances, same)
    b, others = _nearest(distances, ~same)
    total = a + b
    score = np.divide(a, total, out=np.full(len(a), 0.5), where=(total > 0) & np.isfinite(total))
    score[np.isinf(a)] = 1.0
    return Doubt(score, others)


def _nearest(distances: np.ndarray, among: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean distance to the five nearest (as many as there are), and which they are."""
    D = np.where(among, distances, np.inf)
    found = nearest_of(D, _NEIGHBOURS)
    D = np.take_along_axis(D, found, axis=1)
    there = np.isfinite(D)
    n = there.sum(axis=1)
    total = np.where(there, D, 0.0).sum(axis=1)
    return np.divide(total, n, out=np.full(len(n), np.inf), where=n > 0), np.where(there, found, -1)


def blocks_of(rows: np.ndarray, n_columns: int, most: int = 20_000_000) -> Iterator[np.ndarray]:
    """The rows, so many at a time that their distances to all columns can be held."""
    step = max(1, most // max(1, n_columns))
    return (rows[a : a + step] for a in range(0, len(rows), step))
