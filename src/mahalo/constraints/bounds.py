"""Bounds that the caller left open, from percentiles of squared distances under the prior."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from .collection import Constraints
from .geometry import Geometry

__all__ = ["resolve_bounds"]


def resolve_bounds(
    constraints: Constraints,
    geometry: Geometry,
    bounds: tuple[float, float] | None,
    percentiles: tuple[float, float] | None,
    rng: np.random.Generator,
) -> Constraints:
    """The same constraints with every bound and margin a number.

    `bounds` (upper, lower), squared, wins over percentiles. `percentiles` None: 5 and 95 of all distances; for local
    pairs, 10 of the distances of similar and 90 of those of dissimilar pairs.
    """
    pairs, triplets = constraints.pairs, constraints.triplets
    open_pairs, open_margins = np.isnan(pairs.bound), np.isnan(triplets.margin)
    if not open_pairs.any() and not open_margins.any():
        return constraints
    bound, margin = pairs.bound.copy(), triplets.margin.copy()
    similar = pairs.sign > 0
    if bounds is not None:
        upper, lower = bounds
        bound = np.where(open_pairs, np.where(similar, upper, lower), bound)
        margin = np.where(open_margins, upper, margin)
        open_pairs = open_margins = np.zeros(0, dtype=bool)
    local = open_pairs & pairs.local[: len(open_pairs)] if len(open_pairs) else open_pairs
    if local.any():
        q = (10, 90) if percentiles is None else percentiles
        for side, which in ((similar, 0), (~similar, 1)):
            group = local & side
            if group.any():
                distances = geometry.sq_distances(pairs.index[group])
                bound[group] = _percentiles(distances[distances > 0], [q[which]])[0]
        open_pairs = open_pairs & ~local
    if open_pairs.any() or open_margins.any():
        q = (5, 95) if percentiles is None else percentiles
        distances = geometry.sample_sq_distances(rng)
        upper, lower = _percentiles(distances, q)
        if open_pairs.any():
            bound = np.where(open_pairs, np.where(similar, upper, lower), bound)
        margin = np.where(np.isnan(margin), upper, margin)
    return Constraints(
        dataclasses.replace(pairs, bound=bound),
        dataclasses.replace(triplets, margin=margin),
        constraints.linear,
        constraints.n_rows,
        constraints.objective,
    )


def _percentiles(distances: np.ndarray, q: Sequence[float]) -> np.ndarray:
    if len(distances) == 0:
        raise ValueError(
            "all rows are identical, so percentiles of their distances say nothing; check the data, or pass bounds=."
        )
    return np.percentile(distances, q)
