"""Metrics as files: numbers in safetensors, a short JSON header, no code."""

from __future__ import annotations

import json
import os
import secrets
from os import PathLike
from pathlib import Path

import numpy as np

from .coordinates import LinearCoordinates, Prior
from .metric import Metric

__all__ = ["load", "save"]

_FORMAT, _VERSION = "mahalo-metric", 1


def save(metric: Metric, path: str | PathLike) -> None:
    """Write `metric` to `path`: first beside it, then moved in place, so that a reader never sees half a file."""
    from safetensors.numpy import save as to_bytes

    coordinates = metric.coordinates
    arrays = {
        "core": metric.F,
        "basis": coordinates.basis,
        "prior_root": coordinates.prior.root,
        "directions": metric.directions,
    }
    tensors = {name: np.ascontiguousarray(a, dtype=np.float64) for name, a in arrays.items() if a is not None}
    header = {
        "format": _FORMAT,
        "version": _VERSION,
        "kernel": "linear",
        "eta": 1.0,
        "n_features": coordinates.n_features,
        "shrinkage": coordinates.prior.shrinkage,
    }
    data = to_bytes(tensors, metadata={"mahalo": json.dumps(header)})
    _write_atomically(Path(path), data)


def _write_atomically(path: Path, data: bytes) -> None:
    beside = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        with open(beside, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def load(path: str | PathLike) -> Metric:
    """Read a metric that `Metric.save` wrote. Nothing in the file is executed; damage is an error, not a guess."""
    from safetensors import SafetensorError, safe_open

    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"no metric file at {str(path)!r}.")
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, ValueError, OSError) as error:
        raise ValueError(
            f"{str(path)!r} is not a whole safetensors file ({error}). It may be damaged, truncated or of another "
            "kind; save the metric again with metric.save(path)."
        ) from None
    return _assemble(_header(metadata, path), tensors, path)


def _header(metadata: dict[str, str], path: Path) -> dict:
    try:
        header = json.loads(metadata["mahalo"])
        known = header["format"] == _FORMAT
    except (KeyError, TypeError, json.JSONDecodeError):
        known = False
    if not known:
        raise ValueError(f"{str(path)!r} is a safetensors file, but not a mahalo metric: its header lacks our mark.")
    if header.get("version") != _VERSION:
        raise ValueError(
            f"{str(path)!r} has format version {header.get('version')!r}; this mahalo reads version {_VERSION}. "
            "Upgrade mahalo, or save the metric again with this version."
        )
    return header


def _assemble(header: dict, tensors: dict[str, np.ndarray], path: Path) -> Metric:
    def wrong(what: str) -> ValueError:
        return ValueError(f"{str(path)!r} is damaged: {what}. Save the metric again with metric.save(path).")

    d = header.get("n_features")
    if not isinstance(d, int) or d < 1:
        raise wrong(f"n_features is {d!r}")
    if "core" not in tensors:
        raise wrong("the core matrix is missing")
    F, basis = tensors["core"], tensors.get("basis")
    root, directions = tensors.get("prior_root"), tensors.get("directions")
    rank = d if basis is None else basis.shape[-1]
    expected: list[tuple[str, np.ndarray | None, list[tuple[int, ...]]]] = [
        ("core", F, [(rank, rank)]),
        ("basis", basis, [(d, rank)]),
        ("prior_root", root, [(d,), (d, d)]),
        ("directions", directions, [] if directions is None else [(directions.shape[0], d)]),
    ]
    for name, array, shapes in expected:
        if array is None:
            continue
        if array.shape not in shapes:
            raise wrong(f"{name} has shape {array.shape}, expected {' or '.join(map(str, shapes))}")
        if array.dtype != np.float64 or not np.isfinite(array).all():
            raise wrong(f"{name} has numbers that are not finite float64")
    if np.abs(F - F.T).max(initial=0.0) > 1e-8 * np.abs(F).max(initial=0.0):
        raise wrong("the core matrix is not symmetric")
    prior = Prior(root, float(header.get("shrinkage", 0.0)))
    return Metric(LinearCoordinates(prior, d, basis), F, directions)
