"""Default bounds and margins: percentiles of squared distances under the prior."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from .collection import Constraints
from .geometry import Geometry


def resolve_bounds(
    constraints: Constraints,
    geometry: Geometry,
    bounds: tuple[float, float] | None,
    percentiles: tuple[float, float] | None,
    rng: np.random.Generator,
) -> Constraints:
    """Return the constraints with a number for every bound and margin that is NaN.

    `bounds` (upper, lower), squared, takes precedence over percentiles. `percentiles` None: 5 and 95 of all distances;
    for local pairs, 10 of the distances of similar and 90 of those of dissimilar pairs.
    """
    pairs, triplets = constraints.pairs, constraints.triplets
    bound, margin, similar = pairs.bound.copy(), triplets.margin, pairs.sign > 0
    if not np.isnan(bound).any() and not np.isnan(margin).any():
        return constraints
    if bounds is None:
        q = (10, 90) if percentiles is None else percentiles
        for side, which in ((similar, 0), (~similar, 1)):
            group = np.isnan(bound) & pairs.local & side
            if group.any():
                distances = geometry.sq_distances(pairs.index[group])
                bound[group] = _percentiles(distances[distances > 0], [q[which]])[0]
        if np.isnan(bound).any() or np.isnan(margin).any():
            q = (5, 95) if percentiles is None else percentiles
            upper, lower = _percentiles(geometry.sample_sq_distances(rng), q)
            bounds = upper, lower
    if bounds is not None:
        upper, lower = bounds
        bound = np.where(np.isnan(bound), np.where(similar, upper, lower), bound)
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
            "all rows are identical, so percentiles of their distances are zero; check the data, or pass bounds=."
        )
    return np.percentile(distances, q)
