"""Pair classifiers in safetensors files: numbers and a header, no code."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from ..metric.files import pack, unpack
from ..persistence import read_arrays, write_arrays
from .calibration import Calibration

if TYPE_CHECKING:
    from .classifier import PairClassifier

__all__ = ["load", "save"]

_FORMAT, _VERSION = "mahalo-pairs", 1
_SETTINGS = ("threshold", "fpr", "calibration", "base_rate", "test_size", "holdout")


def save(classifier: PairClassifier, path: str | PathLike) -> None:
    metric_header, metric_arrays = pack(classifier.metric_)
    c = classifier.calibration_
    header = {
        "format": _FORMAT,
        "version": _VERSION,
        "settings": {name: getattr(classifier, name) for name in _SETTINGS},
        "slope": c.slope,
        "offset": c.offset,
        "distance_threshold": classifier.distance_threshold_,
        "metric": metric_header,
    }
    arrays = {"knots": c.knots, "values": c.values}
    write_arrays(path, header, arrays | {f"metric.{name}": array for name, array in metric_arrays.items()})


def load(cls: type[PairClassifier], path: str | PathLike, kernel: Any, points: Any) -> PairClassifier:
    header, arrays = read_arrays(path, _FORMAT, (_VERSION,))

    def wrong(what: str) -> ValueError:
        return ValueError(f"{str(path)!r} is damaged: {what}. Save it again with classifier.save(path).")

    knots, values = (arrays.pop(name, None) for name in ("knots", "values"))
    numbers: list[Any] = [header.get(name) for name in ("slope", "offset", "distance_threshold")]
    settings, metric = header.get("settings"), header.get("metric")
    if not all(isinstance(number, float) and np.isfinite(number) for number in numbers):
        raise wrong(f"slope, offset and threshold are {numbers}")
    if numbers[0] <= 0 or knots is None or values is None or not _is_falling(knots, values):
        raise wrong("its calibration does not fall with distance")
    if not isinstance(settings, dict) or set(settings) != set(_SETTINGS) or not isinstance(metric, dict):
        raise wrong("its header is not whole")
    classifier = cls(**settings)
    try:
        classifier._check_parameters()
    except ValueError as error:
        raise wrong(str(error).rstrip(".")) from None
    parts = {name.removeprefix("metric."): array for name, array in arrays.items()}
    classifier.metric_ = unpack(metric, parts, path, kernel, points)
    slope, offset, classifier.distance_threshold_ = numbers
    classifier.calibration_ = Calibration(slope, offset, knots, values)
    classifier.threshold_ = float(classifier.calibration_(classifier.distance_threshold_))
    return classifier


def _is_falling(knots: np.ndarray, values: np.ndarray) -> bool:
    """Whether these are as many probabilities as distances, and fall as distances grow."""
    if knots.ndim != 1 or knots.shape != values.shape:
        return False
    if knots.dtype != np.float64 or values.dtype != np.float64 or not np.isfinite([knots, values]).all():
        return False
    ordered = (np.diff(knots) > 0).all() and (np.diff(values) <= 0).all()
    return bool(ordered and values.min(initial=0.0) >= 0.0 and values.max(initial=0.0) <= 1.0)
