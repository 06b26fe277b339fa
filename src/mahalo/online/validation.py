"""Checks of a stream's parameters and pairs, and the conversion of pairs to coordinates."""

from __future__ import annotations

import dataclasses
from numbers import Real

import numpy as np

from ..constraints import Constraints, EdgeForms, sq_distances
from ..constraints.groups import Pairs
from ..coordinates import LinearCoordinates
from ..linalg import Matrix
from ..validation import check_count, in_double, warn
from .stream import PairBatch, pad_columns

_SCHEDULES = ("fixed", "decaying", "safe")


def check_stream_parameters(
    *, eta: object, schedule: object, targets: object, half_life: float | None, **counts: object
) -> None:
    """Raise ValueError if a parameter that only the online learner has is invalid; `counts` must be positive."""
    if not _is_positive(eta):
        raise ValueError(f"eta must be a positive number, such as 0.1; got {eta!r}.")
    if schedule not in _SCHEDULES:
        raise ValueError(f"schedule must be 'fixed', 'decaying' or 'safe'; got {schedule!r}.")
    if not isinstance(targets, (bool, np.bool_)):
        raise ValueError(f"targets must be True or False; got {targets!r}.")
    if half_life is not None and not (_is_positive(half_life) and half_life >= 1):
        raise ValueError(f"half_life must be a number of pairs ≥ 1, or None; got {half_life!r}.")
    for name, value in counts.items():
        check_count(value, name)


def _is_positive(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, (bool, np.bool_)) and 0 < float(value) < np.inf


def check_only_pairs(constraints: Constraints) -> None:
    """Raise ValueError if there is any constraint that is not a pair, or no pair."""
    n_quadruplets = int(constraints.linear.is_quadruplet.sum())
    n_linear = len(constraints.linear) - n_quadruplets
    others = {"triplets": len(constraints.triplets), "quadruplets": n_quadruplets, "linear forms": n_linear}
    found = [f"{n} {what}" for what, n in others.items() if n]
    found += ["a linear objective"] * (constraints.objective is not None)
    if found:
        raise ValueError(
            f"a stream takes pairs; got {' and '.join(found)}. Use MetricLearner for those, or express them as pairs."
        )
    if not len(constraints.pairs):
        raise ValueError("the constraints are empty: there is nothing to learn from.")


def fill_bounds(pairs: Pairs, bounds: tuple[float, float] | None) -> Pairs:
    """Return the pairs with (upper, lower) as the bound of those that have none."""
    missing = np.isnan(pairs.bound)
    if not missing.any():
        return pairs
    if bounds is None:
        raise ValueError(
            "bounds come from percentiles of distances, and all rows so far are identical; begin with more rows, or "
            "pass bounds=(upper, lower), squared."
        )
    upper, lower = bounds
    return dataclasses.replace(pairs, bound=np.where(missing, np.where(pairs.sign > 0, upper, lower), pairs.bound))


def embed_pairs(coordinates: LinearCoordinates, X: Matrix, pairs: Pairs, targets: bool) -> PairBatch:
    """Return the pairs in coordinates; drop pairs of identical points, raise ValueError if float64 cannot hold one."""
    X = in_double(X)
    points = np.ascontiguousarray(coordinates.map(X), dtype=np.float64)
    inside, offset = _sq_lengths(points, pairs.index), np.zeros(len(pairs))
    if coordinates.basis is not None and coordinates.residual:
        #  c = ρ (‖W0^½ (x_i − x_j)‖² − ‖x̂_i − x̂_j‖²)
        whole = _sq_lengths(coordinates.prior.whiten(X), pairs.index)
        offset = coordinates.residual * np.where(whole - inside > 1e-12 * whole, whole - inside, 0.0)
    differ = inside + offset > 0
    if not differ.all():
        _warn_if_impossible(pairs.index[~differ & (pairs.sign < 0)])
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
    return PairBatch(pad_columns(points), tail, head, offset, pairs.bound, sign, pairs.weight)


def _sq_lengths(points: Matrix, index: np.ndarray) -> np.ndarray:
    """Return squared Euclidean distances of the pairs of rows in `index`."""
    if not isinstance(points, np.ndarray):
        return sq_distances(points, index)
    points = np.ascontiguousarray(points, dtype=np.float64)
    tail, head = (np.ascontiguousarray(end, dtype=np.intp) for end in index.T)
    return EdgeForms(tail, head, len(points)).apply(points, points)


def _warn_if_impossible(index: np.ndarray) -> None:
    if len(index):
        warn(
            f"{len(index)} dissimilar pair{'s' * (len(index) > 1)} of identical points, such as rows "
            f"({index[0, 0]}, {index[0, 1]}), can never be satisfied; dropped.",
            UserWarning,
        )
