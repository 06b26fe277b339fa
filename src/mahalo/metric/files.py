"""Metrics in safetensors files: numbers and a header, no code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, TypeGuard

import numpy as np

from ..coordinates import BaseKernel, KernelCoordinates, LinearCoordinates
from ..features import FeatureMap, feature_arrays, read_features
from ..linalg import cholesky_or_none
from ..persistence import METRIC, Contents, as_plain, matrix_arrays
from ..priors import Prior
from ..validation import as_objects, len_of
from .leading import reduced
from .metric import Metric
from .scaling import Scaling

__all__ = ["load", "pack", "save", "unpack"]

_ROUNDING = 1e-8  # of symmetry and of the smallest eigenvalue, relative to the largest entry
_ORTHONORMAL = 1e-6


def save(metric: Metric, path: str | PathLike) -> None:
    pack(metric).write(path)


def pack(metric: Metric) -> Contents:
    """Return the fields and arrays of a metric, for a file of its own or as a part of another."""
    c = metric.coordinates
    fields: dict[str, Any] = {
        "eta": metric.eta,
        "n_features": c.n_features,
        "residual": float(c.residual),
        "normalize": bool(metric.normalize),
    }
    if metric.about:
        fields["about"] = _plain_about(metric.about)
    arrays: dict[str, Any] = {"core": metric.F, "rotation": metric.rotation}
    if metric.features is not None:
        feature_fields, found = feature_arrays(metric.features)
        fields |= feature_fields
        arrays |= found
    if metric.scaling is not None:
        arrays |= {"mean": metric.scaling.mean, "scale": metric.scaling.scale}
    if isinstance(c, LinearCoordinates):
        fields |= {"kernel": "linear", "shrinkage": float(c.prior.shrinkage)}
        arrays |= {"basis": c.basis, "prior_root": c.prior.root}
        arrays |= {"prior_directions": c.prior.directions, "prior_gain": c.prior.gain}
    else:
        assert isinstance(c, KernelCoordinates)
        fields |= {
            "kernel": c.kernel.kind if isinstance(c.kernel.kind, str) else None,
            "kernel_params": _plain_params(c.kernel.params),
            "shift": c.kernel.shift,
        }
        arrays |= {"map": c.T} | _support_arrays(c.support)
    wide = {name: a.astype(_wide_dtype(a), copy=False) for name, a in arrays.items() if a is not None}
    return METRIC.contents(fields, wide)


def _wide_dtype(array: np.ndarray) -> type[np.generic]:
    return np.int64 if array.dtype.kind in "iu" else np.float64


def _plain_about(about: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return as_plain(dict(about), arrays=True, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"`about` cannot be written to a file ({error}); use strings, finite numbers, small arrays, and lists and "
            "dicts of them."
        ) from None


def _plain_params(params: dict[str, Any]) -> dict[str, Any]:
    """Kernel parameters as a JSON header can hold them."""
    try:
        return as_plain(params, allow_nan=False)
    except (TypeError, ValueError):
        raise ValueError(
            f"kernel_params {params!r} cannot be written to a file; use numbers and strings, or put them into the "
            "kernel itself: kernel=functools.partial(...)."
        ) from None


def _support_arrays(support: Any) -> dict[str, np.ndarray]:
    """Return support points that are vectors, or numbers of training rows; others are not in the file."""
    is_numeric = getattr(support, "dtype", np.dtype(object)).kind in "fiu"
    return matrix_arrays("support", support) if is_numeric else {}


def load(path: str | PathLike, *, kernel: Callable | None = None, points: Sequence | None = None) -> Metric:
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


def unpack(contents: Contents, kernel: Callable | None = None, points: Sequence | None = None) -> Metric:
    """Return the metric that `pack` took apart, everything checked."""
    _check_header(contents)
    _check_arrays(contents)
    fields, arrays = contents.fields, contents.arrays
    if fields.get("kernel") == "linear":
        _refuse_unused(kernel, points, "'linear'")
        coordinates: LinearCoordinates | KernelCoordinates = _linear_coordinates(contents)
    else:
        coordinates = _kernel_coordinates(contents, kernel, points)
    metric = Metric(
        coordinates=coordinates,
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


def _linear_coordinates(contents: Contents) -> LinearCoordinates:
    header, arrays, wrong = contents.fields, contents.arrays, contents.damaged
    shrinkage = contents.number("shrinkage")
    root, directions, gain = (arrays.get(f"prior_{part}") for part in ("root", "directions", "gain"))
    low_rank = directions is not None
    if low_rank != (gain is not None) or (low_rank and (root is None or root.ndim != 1)):
        raise wrong("the low-rank part of its prior is not whole")
    prior = Prior(root, shrinkage, directions, gain)
    return LinearCoordinates(prior, header["n_features"], arrays.get("basis"), float(header["residual"]))


def _reduce_to_directions(metric: Metric, contents: Contents) -> Metric:
    """Return the metric of the directions that files of the first version list beside it."""
    directions = contents.arrays.get("directions")
    if directions is None:
        return metric
    if directions.shape[1] != metric.n_outputs:
        raise contents.damaged(
            f"'directions' of shape {directions.shape} does not belong in a metric of {metric.n_features} features"
        )
    return reduced(metric, directions)


def _scaling(contents: Contents) -> Scaling | None:
    mean, scale = contents.arrays.get("mean"), contents.arrays.get("scale")
    if mean is None and scale is None:
        return None
    if mean is None or scale is None or not (scale > 0).all():
        raise contents.damaged("mean and scale of its columns are not whole")
    return Scaling(mean, scale)


def _is_weight(residual: Any) -> TypeGuard[float]:
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


def _kernel_coordinates(contents: Contents, kernel: Callable | None, points: Sequence | None) -> KernelCoordinates:
    header, wrong = contents.fields, contents.damaged
    name, params, T = header.get("kernel"), header.get("kernel_params"), contents.arrays.get("map")
    d, residual = header["n_features"], float(header["residual"])
    outside = name is None and d is None and "support" not in contents.arrays
    if T is None or not isinstance(params, dict):
        raise wrong("the coordinate map is missing or does not fit the core matrix")
    kind = kernel if name is None else BaseKernel.of(name, params).kind
    if kind is None:
        raise ValueError(
            "this metric was learned with a callable kernel, which files do not hold; pass it again: "
            "mahalo.load(path, kernel=...)."
        )
    _refuse_unused(kernel if name is not None else None, None if outside else points, f"{name!r}")
    base, n = BaseKernel(kind, params, contents.number("shift")), T.shape[1]
    if outside:
        return KernelCoordinates(base, _given_support(points, n), T, d, residual)
    if base.precomputed:
        support: Any = contents.array("support", (None,), (np.int64,))
        fits = d is not None and len(support) == n and support.min(initial=0) >= 0 and support.max(initial=0) < d
    else:
        support = contents.matrix("support", d)
        if support is None:
            raise wrong("the support points are missing")
        fits = support.shape == (n, d)
    if not fits:
        raise wrong(f"support points of shape {support.shape} do not fit a map of {n} of them and {d} features")
    return KernelCoordinates(base, support, T, d, residual)


def _refuse_unused(kernel: Callable | None, points: Sequence | None, name: str) -> None:
    """Raise ValueError if a kernel or points are passed that the file itself holds."""
    if kernel is not None:
        raise ValueError(f"kernel= is for metrics learned with a callable; this one has the kernel {name} in the file.")
    if points is not None:
        raise ValueError("points= is for support points that are not vectors; those of this metric are in the file.")


def _given_support(points: Sequence | None, n: int) -> np.ndarray:
    if points is None:
        raise ValueError(
            f"the {n} support points of this metric are not vectors and not in the file; pass them again: "
            "mahalo.load(path, kernel=..., points=...), in the order of metric.coordinates.support."
        )
    if len_of(points) != n:
        raise ValueError(f"this metric has {n} support points; got {len_of(points)}.")
    return as_objects(points)
