"""Pairs to label: near ones, spread over their distances."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from ..validation import Seed, as_generator, check_count
from .candidates import Neighborhood
from .columns import Columns, check_tables, scaled_rows

_NEAREST, _FURTHER = (1, 2), (1, 2, 4, 8)  # ranks of each row's nearest ones, among which pairs are drawn
_NEAREST_SHARE = 0.8  # of the pairs that are of the two nearest; the others reach beyond groups of copies
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

    Four fifths are drawn from the two nearest rows of every row, all columns counting the same, the others from the
    fourth and the eighth too. The rarer a distance is, the likelier its pairs, so that doubtful pairs do not drown
    in clear ones. They are drawn without knowledge of the answers, which a calibrated probability needs.

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
    blocks, others = check_tables(columns, against)
    equal = dict.fromkeys(blocks, 1.0)
    other = None if others is None else scaled_rows(others, equal)
    near = Neighborhood.search(scaled_rows(blocks, equal), other, max(_FURTHER))
    first = _draw(near, _NEAREST, round(_NEAREST_SHARE * n_pairs), rng)
    pairs = np.unique(np.concatenate([first, _draw(near, _FURTHER, n_pairs - len(first), rng)]), axis=0)
    return pairs[np.argsort(near.sq_distances(pairs), kind="stable")]


def _draw(near: Neighborhood, ranks: Sequence[int], n_pairs: int, rng: np.random.Generator) -> np.ndarray:
    """Draw pairs of neighbours of some ranks without replacement, with weights 1/√f.

    f is the number of pairs of about the same distance: that is half way from all pairs alike to all distances alike.
    """
    pairs = near.pairs(ranks)
    if not len(pairs):
        return pairs
    distances = np.sqrt(near.sq_distances(pairs))
    edges = np.linspace(distances.min(), np.quantile(distances, _SHARE), _BINS + 1)
    place = np.clip(np.digitize(distances, edges) - 1, 0, _BINS - 1)
    inside = np.flatnonzero(distances <= edges[-1])
    frequency = np.bincount(place[inside], minlength=_BINS)
    key = rng.exponential(size=len(inside)) * np.sqrt(frequency[place[inside]])
    return pairs[inside[np.argsort(key, kind="stable")[:n_pairs]]]
