"""Weights of rows as weights of constraints."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..validation import as_weights
from .collection import Constraints


def weighted_by_rows(constraints: Constraints, weight: np.ndarray) -> Constraints:
    """Return the constraints, the weight of each multiplied by those of its rows.

    Raise ValueError for linear forms, which are of rows in no such way.
    """
    if len(constraints.linear):
        raise ValueError(
            "sample_weight multiplies the weights of pairs and triplets; linear forms and quadruplets have none for "
            "each row. Pass weight= to Constraints.from_linear or from_quadruplets instead."
        )
    pairs, triplets = constraints.pairs, constraints.triplets
    of_pairs, of_triplets = (group.weight * weight[group.index].prod(axis=1) for group in (pairs, triplets))
    return Constraints(
        replace(pairs, weight=as_weights(of_pairs, len(pairs))),
        replace(triplets, weight=as_weights(of_triplets, len(triplets))),
        n_rows=constraints.n_rows,
        objective=constraints.objective,
    )
