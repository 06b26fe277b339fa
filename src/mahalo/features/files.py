"""Feature maps read from the fields and arrays of a model file, everything checked."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..persistence import Json
from ..validation import check_positive
from .base import FeatureMap, Standardisation
from .local import LocalMap
from .quadratic import QuadraticMap

FEATURE_KINDS = (QuadraticMap.kind, LocalMap.kind)


def read_features(fields: Mapping[str, Json], arrays: Mapping[str, np.ndarray]) -> FeatureMap | None:
    """Return the feature map of a file's fields and arrays, checked; None if it holds none."""
    kind = fields.get("features")
    if kind is None:
        return None
    if kind not in FEATURE_KINDS:
        raise ValueError(f"it has features of the unknown kind {kind!r}")
    mean = arrays["features_mean"]
    scale = check_positive(fields["features_scale"], "features_scale")
    if mean.ndim != 1 or not np.isfinite(mean).all():
        raise ValueError(f"features_mean of shape {mean.shape} is not a finite row")
    standardisation = Standardisation(mean, scale)
    if kind == QuadraticMap.kind:
        return QuadraticMap(standardisation, _columns(arrays.get("features_directions"), len(mean)))
    centres = _columns(arrays["features_centres"].T, len(mean))
    assert centres is not None
    width, strength = (check_positive(fields[f"features_{name}"], name) for name in ("width", "strength"))
    return LocalMap(standardisation, np.ascontiguousarray(centres.T), width, strength)


def _columns(array: np.ndarray | None, n_features: int) -> np.ndarray | None:
    if array is not None and (array.ndim != 2 or len(array) != n_features or not np.isfinite(array).all()):
        raise ValueError(f"an array of its features, of shape {array.shape}, does not fit {n_features} columns")
    return array
