"""Whether what is known is enough to hold some of it out."""

from __future__ import annotations

from ..evaluation import known_pairs
from ..selection.choosing import Choosing
from ..selection.folds import Fold

__all__ = ["judgeable", "too_few"]


def judgeable(choosing: Choosing) -> list[Fold]:
    """Folds with pairs or triplets to learn from and, where no labels are known, pairs of both kinds held out."""
    known = choosing.constraints
    if known is None:
        return choosing.folds

    def can_be(fold: Fold) -> bool:
        learned_from, _ = known.on_rows(fold.rows[fold.train])
        _, alike = known_pairs(known.on_rows(fold.rows[fold.test])[0])
        return learned_from.n_constraints > 0 and (fold.y is not None or 0 < alike.sum() < len(alike))

    return [fold for fold in choosing.folds if can_be(fold)]


def too_few(choosing: Choosing) -> str:
    """How many pairs of which kind there are, and what is needed."""
    assert choosing.constraints is not None
    pairs, n_triplets = choosing.constraints.pairs, len(choosing.constraints.triplets)
    n_alike = int((pairs.sign > 0).sum())
    found = [f"{n_alike:,} alike and {len(pairs) - n_alike:,} unalike pairs"] if len(pairs) or not n_triplets else []
    found += [f"{n_triplets:,} triplets"] if n_triplets else []
    return (
        f"there are {' and '.join(found)}, too few to hold rows out, which takes some to learn from and pairs of both "
        "kinds, or triplets, among the rows held out"
    )
