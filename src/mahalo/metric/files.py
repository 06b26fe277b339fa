"""Metrics in safetensors files: numbers and a header, no code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TypeGuard

import numpy as np

from ..coordinates import read_coordinates
from ..features import FeatureMap, read_features
from ..linalg import cholesky_or_none
from ..persistence import METRIC, Contents, Json, as_plain
from ..types import Kernel
from .leading import metric_of_directions
from .metric import Metric
from .scaling import Scaling

_ROUNDING = 1e-8  # of symmetry and of the smallest eigenvalue, relative to the largest entry
_ORTHONORMAL = 1e-6


def save(metric: Metric, path: str | PathLike) -> None:
    pack(metric).write(path)


def pack(metric: Metric) -> Contents:
    """Return the fields and arrays of a metric, for a file of its own or as a part of another."""
    coordinate_fields, coordinates = metric.coordinates.file_parts()
    fields = {"eta": metric.eta, "normalize": bool(metric.normalize), **coordinate_fields}
    if metric.about:
        fields["about"] = _plain_about(metric.about)
    arrays = {"core": metric.F, "rotation": metric.rotation, **coordinates}
    if metric.features is not None:
        feature_fields, features = metric.features.file_parts()
        fields |= feature_fields
        arrays |= features
    if metric.scaling is not None:
        arrays |= {"mean": metric.scaling.mean, "scale": metric.scaling.scale}
    wide = {name: a.astype(_wide_dtype(a), copy=False) for name, a in arrays.items() if a is not None}
    return METRIC.contents(fields, wide)


def _wide_dtype(array: np.ndarray) -> type[np.generic]:
    return np.int64 if array.dtype.kind in "iu" else np.float64


def _plain_about(about: Mapping[str, object]) -> dict[str, Json]:
    try:
        return as_plain(about, arrays=True, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"`about` cannot be written to a file ({error}); use strings, finite numbers, small arrays, and lists and "
            "dicts of them."
        ) from None


def load(path: str | PathLike, *, kernel: Kernel | None = None, points: Sequence | None = None) -> Metric:
    """Read a metric that `Metric.save` wrote. Nothing in the file is executed; damage is an error, not a guess.

    Parameters
    ----------
    path : path
    kernel : callable, optional
        Needed if the metric was learned with a callable kernel: the same function again.
    points : sequence, optional
        Needed if the support points are not vectors: the objects, in the order of ``metric.coordinates.support``.
    """
    return unpack(METRIC.read(path), kernel, points)


def unpack(contents: Contents, kernel: Kernel | None = None, points: Sequence | None = None) -> Metric:
    """Return the metric that `pack` took apart, everything checked."""
    _check_header(contents)
    _check_arrays(contents)
    fields, arrays = contents.fields, contents.arrays
    metric = Metric(
        coordinates=read_coordinates(contents, kernel, points),
        F=arrays["core"],
        eta=fields["eta"],
        normalize=fields.get("normalize", False),
        rotation=arrays.get("rotation"),
        scaling=_scaling(contents),
        features=_features(contents),
        about=fields.get("about", {}),
    )
    return _reduce_to_directions(metric, contents)


def _features(contents: Contents) -> FeatureMap | None:
    with contents.checking():
        found = read_features(contents.fields, contents.arrays)
        if found is not None and found.n_columns != contents.fields["n_features"]:
            raise ValueError(f"its features have {found.n_columns} columns, its metric {contents.fields['n_features']}")
    return found


def _check_header(contents: Contents) -> None:
    header, wrong = contents.fields, contents.damaged
    d, eta, residual = header.get("n_features"), header.get("eta"), header.get("residual")
    if not (isinstance(d, int) and d > 0) and (header.get("kernel") == "linear" or d is not None):
        raise wrong(f"n_features is {d!r}")
    normalize = header.get("normalize", False)
    if (
        not isinstance(eta, float)
        or not 0.0 <= eta < np.inf
        or not _is_weight(residual)
        or not isinstance(normalize, bool)
    ):
        raise wrong(f"the header says eta={eta!r}, residual={residual!r}, normalize={normalize!r}")
    about = header.get("about", {})
    if not isinstance(about, dict):
        raise wrong(f"what it says about itself is no mapping, but {about!r}")


def _check_arrays(contents: Contents) -> None:
    """Raise ValueError unless all arrays are there, finite, of the right shapes, and those of a metric."""
    header, arrays, wrong = contents.fields, contents.arrays, contents.damaged
    if not all(array.ndim for array in arrays.values()):
        raise wrong("an array has no dimensions")
    if "core" not in arrays:
        raise wrong("the core matrix is missing")
    for name, array in arrays.items():
        counts = name.startswith("support") and array.dtype == np.int64
        if not counts and (array.dtype != np.float64 or not np.isfinite(array).all()):
            raise wrong(f"{name!r} has numbers that are not finite float64")
    d = header.get("n_features")
    width = d if isinstance(d, int) else 0
    shapes = _linear_shapes(arrays, width) if header.get("kernel") == "linear" else _kernel_shapes(arrays)
    n_inputs = len(arrays["features_mean"]) if "features_mean" in arrays else width
    shapes |= {"mean": [(n_inputs,)], "scale": [(n_inputs,)]}
    for name, array in arrays.items():
        if name.startswith("features_"):
            continue  # checked by `read_features`
        if array.shape not in shapes.get(name, []):
            raise wrong(f"{name!r} of shape {array.shape} does not belong in a metric of {d} features")
    F = arrays["core"]
    largest = float(np.abs(F).max(initial=0.0))
    if np.abs(F - F.T).max(initial=0.0) > _ROUNDING * largest:
        raise wrong("the core matrix is not symmetric")
    if largest and cholesky_or_none(F / largest + _ROUNDING * np.eye(len(F))) is None:
        raise wrong("the core matrix has negative eigenvalues, so that squared distances would be negative")
    for name in ("basis", "rotation"):
        if name in arrays and not _is_orthonormal(arrays[name]):
            raise wrong(f"the columns of {name!r} are not orthonormal")


def _is_orthonormal(Q: np.ndarray) -> bool:
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.abs(Q.T @ Q - np.eye(Q.shape[1])).max(initial=0.0) <= _ORTHONORMAL)


def _reduce_to_directions(metric: Metric, contents: Contents) -> Metric:
    """Return the metric of the directions that files of the first version list beside it."""
    directions = contents.arrays.get("directions")
    if directions is None:
        return metric
    if directions.shape[1] != metric.n_outputs:
        raise contents.damaged(
            f"'directions' of shape {directions.shape} does not belong in a metric of {metric.n_features} features"
        )
    return metric_of_directions(metric, directions)


def _scaling(contents: Contents) -> Scaling | None:
    mean, scale = contents.arrays.get("mean"), contents.arrays.get("scale")
    if mean is None and scale is None:
        return None
    if mean is None or scale is None or not (scale > 0).all():
        raise contents.damaged("mean and scale of its columns are not whole")
    return Scaling(mean, scale)


def _is_weight(residual: Json) -> TypeGuard[float]:
    return isinstance(residual, (bool, float)) and 0.0 <= float(residual) <= 1.0


def _linear_shapes(arrays: Mapping[str, np.ndarray], d: int) -> dict[str, list[tuple[int, ...]]]:
    rank = arrays["basis"].shape[-1] if "basis" in arrays else d
    m = len(arrays["prior_gain"]) if "prior_gain" in arrays else 0
    directions = arrays.get("directions")
    return {
        "core": [(rank, rank)],
        "basis": [(d, rank)],
        "rotation": [(rank, rank)],
        "prior_root": [(d,), (d, d)],
        "prior_directions": [(d, m)],
        "prior_gain": [(m,)],
        "directions": [] if directions is None else [(len(directions), d), (len(directions), rank)],
    }


def _kernel_shapes(arrays: Mapping[str, np.ndarray]) -> dict[str, list[tuple[int, ...]]]:
    rank, directions = len(arrays["core"]), arrays.get("directions")
    n_support = arrays["map"].shape[-1] if "map" in arrays else 0
    free = {name: [a.shape] for name, a in arrays.items() if name.startswith("support")}
    return free | {
        "core": [(rank, rank)],
        "rotation": [(rank, rank)],
        "map": [(rank, n_support)],
        "directions": [] if directions is None else [(len(directions), rank)],
    }
