"""Coordinates read from the fields and arrays of a model file, everything checked."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..persistence import Contents
from ..priors import Prior
from ..types import Kernel, Matrix
from ..validation import as_objects, len_of
from .base_kernel import BaseKernel
from .kernel import KernelCoordinates
from .linear import LinearCoordinates
from .protocol import Coordinates


def read_coordinates(contents: Contents, kernel: Kernel | None, points: Sequence | None) -> Coordinates:
    """Return the coordinates whose `file_parts` a file holds.

    `kernel` and `points` are a callable kernel and support points that are not vectors, which no file holds.
    """
    if contents.fields.get("kernel") != "linear":
        return _read_kernel(contents, kernel, points)
    _refuse_unused(kernel, points, "'linear'")
    return _read_linear(contents)


def _read_linear(contents: Contents) -> LinearCoordinates:
    header, arrays, wrong = contents.fields, contents.arrays, contents.damaged
    shrinkage = contents.number("shrinkage")
    root, directions, gain = (arrays.get(f"prior_{part}") for part in ("root", "directions", "gain"))
    low_rank = directions is not None
    if low_rank != (gain is not None) or (low_rank and (root is None or root.ndim != 1)):
        raise wrong("the low-rank part of its prior is not whole")
    prior = Prior(root, shrinkage, directions, gain)
    return LinearCoordinates(prior, header["n_features"], arrays.get("basis"), float(header["residual"]))


def _read_kernel(contents: Contents, kernel: Kernel | None, points: Sequence | None) -> KernelCoordinates:
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
        support: Matrix = contents.array("support", (None,), (np.int64,))
        fits = d is not None and len(support) == n and support.min(initial=0) >= 0 and support.max(initial=0) < d
    else:
        stored = contents.matrix("support", d)
        if stored is None:
            raise wrong("the support points are missing")
        support, fits = stored, stored.shape == (n, d)
    if not fits:
        raise wrong(f"support points of shape {support.shape} do not fit a map of {n} of them and {d} features")
    return KernelCoordinates(base, support, T, d, residual)


def _refuse_unused(kernel: Kernel | None, points: Sequence | None, name: str) -> None:
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
