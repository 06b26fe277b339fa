"""Checks that enough is known to hold some of it out."""

from __future__ import annotations

from ..evaluation import known_pairs
from ..selection.folds import Fold
from ..selection.search import CandidateSearch

__all__ = ["judgeable", "too_few"]


def judgeable(search: CandidateSearch) -> list[Fold]:
    """Return the folds with constraints to learn from and, without labels, held-out pairs of both kinds."""
    known = search.data.constraints
    if known is None:
        return list(search.folds)

    def can_be(fold: Fold) -> bool:
        learned_from, _ = known.on_rows(fold.rows[fold.train])
        _, similar = known_pairs(known.on_rows(fold.rows[fold.test])[0])
        return learned_from.n_constraints > 0 and (fold.y is not None or 0 < similar.sum() < len(similar))

    return [fold for fold in search.folds if can_be(fold)]


def too_few(search: CandidateSearch) -> str:
    """Return how many pairs of which kind there are, and how many are needed."""
    constraints = search.data.constraints
    assert constraints is not None
    pairs, n_triplets = constraints.pairs, len(constraints.triplets)
    n_similar = int((pairs.sign > 0).sum())
    found = (
        [f"{n_similar:,} similar and {len(pairs) - n_similar:,} dissimilar pairs"]
        if len(pairs) or not n_triplets
        else []
    )
    found += [f"{n_triplets:,} triplets"] if n_triplets else []
    return (
        f"there are {' and '.join(found)}, too few to hold rows out, which takes some to learn from and pairs of both "
        "kinds, or triplets, among the rows held out"
    )
