"""Pairs to label: near ones, spread over their distances."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..validation import Seed, as_generator, check_count
from .candidates import Neighborhood, sq_pair_distances
from .columns import Columns, check_columns, scaled_rows

__all__ = ["propose_pairs"]

_RANKS = (1, 2, 4, 8)  # of each row's nearest ones, among which pairs are drawn: copies, and what lies beyond
_BINS = 30  # of equal width in the distance
_SHARE = 0.9  # of the pairs, the nearest ones, that the bins cover


def propose_pairs(
    columns: Columns | ArrayLike,
    n_pairs: int = 300,
    *,
    against: Columns | ArrayLike | None = None,
    random_state: Seed = 0,
) -> np.ndarray:
    """Return pairs of rows that are worth labelling, to learn from as `Deduplicator.fit` does.

    They are drawn from near rows of every row (first, second, fourth and eighth), all columns counting the same. The
    rarer a distance is, the likelier its pairs, so that doubtful pairs do not drown in clear ones. They are drawn
    without knowledge of the answers, which a calibrated probability needs.

    Parameters
    ----------
    columns, against : as in `Deduplicator`
    n_pairs : int, default=300
    random_state : int, RandomState, Generator or None, default=0

    Returns
    -------
    ndarray of int, shape (at most n_pairs, 2)
        Rows of `columns`, and of `columns` or `against`, nearest pairs first.
    """
    check_count(n_pairs, "n_pairs")
    rng = as_generator(random_state)
    blocks = check_columns(columns)
    equal = dict.fromkeys(blocks, 1.0)
    rows = scaled_rows(blocks, equal)
    other = None if against is None else scaled_rows(check_columns(against), equal)
    found = Neighborhood.search(rows, other, _RANKS, "exact")
    distances = np.sqrt(sq_pair_distances(found.rows, found.other, found.pairs))
    edges = np.linspace(
        distances.min(initial=0.0), np.quantile(distances, _SHARE) if len(distances) else 1.0, _BINS + 1
    )
    place = np.clip(np.digitize(distances, edges) - 1, 0, _BINS - 1)
    inside = np.flatnonzero(distances <= edges[-1])
    frequency = np.bincount(place[inside], minlength=_BINS)
    # Sampling without replacement with weights 1/√frequency: half way from all pairs alike to all distances alike.
    key = rng.exponential(size=len(inside)) * np.sqrt(frequency[place[inside]])
    chosen = inside[np.argsort(key, kind="stable")[:n_pairs]]
    return found.pairs[chosen[np.argsort(distances[chosen], kind="stable")]]
