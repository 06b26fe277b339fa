"""What arrives at a stream: parameters and pairs checked, bounds for all, pairs in coordinates."""

from __future__ import annotations

import dataclasses
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..constraints import Constraints, EdgeForms, sq_distances
from ..constraints.groups import Pairs
from ..coordinates import LinearCoordinates
from ..validation import check_count, in_double, warn
from .stream import Arrivals, padded

__all__ = ["arrivals", "bounded", "check_own", "check_pairs_alone"]

_SCHEDULES = ("fixed", "decaying", "safe")


def check_own(settings: Any) -> None:
    """Raise where a parameter that batch learners do not have is not what it should be."""
    s = settings
    if not _positive(s.eta):
        raise ValueError(f"eta must be a positive number, such as 0.1; got {s.eta!r}.")
    if s.schedule not in _SCHEDULES:
        raise ValueError(f"schedule must be 'fixed', 'decaying' or 'safe'; got {s.schedule!r}.")
    if not isinstance(s.targets, (bool, np.bool_)):
        raise ValueError(f"targets must be True or False; got {s.targets!r}.")
    if s.half_life is not None and not (_positive(s.half_life) and s.half_life >= 1):
        raise ValueError(f"half_life must be a number of pairs ≥ 1, or None; got {s.half_life!r}.")
    for name in ("pairs_per_row", "n_pairs_kept", "n_rows_kept"):
        check_count(getattr(s, name), name)


def _positive(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, (bool, np.bool_)) and 0 < float(value) < np.inf


def check_pairs_alone(constraints: Constraints) -> None:
    n_quadruplets = int(constraints.linear.is_quadruplet.sum())
    n_linear = len(constraints.linear) - n_quadruplets
    others = {"triplets": len(constraints.triplets), "quadruplets": n_quadruplets, "linear forms": n_linear}
    found = [f"{n} {what}" for what, n in others.items() if n]
    found += ["a linear objective"] * (constraints.objective is not None)
    if found:
        raise ValueError(
            f"a stream takes pairs; got {' and '.join(found)}. Use MetricLearner for those, or say them as pairs."
        )
    if not len(constraints.pairs):
        raise ValueError("the constraints are empty: there is nothing to learn from.")


def bounded(constraints: Constraints, bounds: tuple[float, float] | None) -> Pairs:
    """The pairs, each with a bound."""
    pairs = constraints.pairs
    still_open = np.isnan(pairs.bound)
    if not still_open.any():
        return pairs
    if bounds is None:
        raise ValueError(
            "bounds come from percentiles of distances, and the rows so far are one point; give more rows to begin "
            "with, or pass bounds=(upper, lower), squared."
        )
    upper, lower = bounds
    return dataclasses.replace(pairs, bound=np.where(still_open, np.where(pairs.sign > 0, upper, lower), pairs.bound))


def arrivals(coordinates: LinearCoordinates, X: Any, pairs: Pairs, targets: bool) -> Arrivals:
    """Pairs in coordinates, without those of identical points; an error where one is out of reach of float64."""
    X = in_double(X)
    points = np.ascontiguousarray(coordinates.map(X), dtype=np.float64)
    inside, offset = _sq_lengths(points, pairs.index), np.zeros(len(pairs))
    if coordinates.basis is not None and coordinates.residual:
        #  c = ρ (‖W0^½ (x_i − x_j)‖² − ‖x̂_i − x̂_j‖²)
        whole = _sq_lengths(coordinates.prior.whiten(X), pairs.index)
        offset = coordinates.residual * np.where(whole - inside > 1e-12 * whole, whole - inside, 0.0)
    differ = inside + offset > 0
    if not differ.all():
        _say_if_impossible(pairs.index[~differ & (pairs.sign < 0)])
        pairs, inside, offset = pairs.take(differ), inside[differ], offset[differ]
    ratio = (inside + offset) / pairs.bound
    wrong = np.flatnonzero(~((ratio < 1e120) & (ratio > 1e-120)))
    if len(wrong):
        k = wrong[0]
        raise ValueError(
            f"{pairs.describe(k)} is out of reach: under the prior it is {inside[k] + offset[k]:.3g}. Bounds are "
            "squared distances in the units of X; check them, or drop the pair."
        )
    tail, head = (np.ascontiguousarray(end) for end in pairs.index.T)
    sign = np.zeros(len(pairs)) if targets else pairs.sign
    return Arrivals(padded(points), tail, head, offset, pairs.bound, sign, pairs.weight)


def _sq_lengths(points: Any, index: np.ndarray) -> np.ndarray:
    if sp.issparse(points):
        return sq_distances(points, index)
    points = np.ascontiguousarray(points, dtype=np.float64)
    tail, head = (np.ascontiguousarray(end, dtype=np.intp) for end in index.T)
    return EdgeForms(tail, head, len(points)).apply(points, points)


def _say_if_impossible(index: np.ndarray) -> None:
    if len(index):
        warn(
            f"{len(index)} dissimilar pair{'s' * (len(index) > 1)} of identical points, such as rows "
            f"({index[0, 0]}, {index[0, 1]}), can never be satisfied; dropped.",
            UserWarning,
        )
