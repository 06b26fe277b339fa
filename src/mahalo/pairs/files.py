"""Fields and arrays of pair classifiers in files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike
from typing import TYPE_CHECKING

import numpy as np

from ..metric.files import pack, unpack
from ..persistence import CLASSIFIER, METRIC
from .calibration import Calibration

if TYPE_CHECKING:
    from .classifier import PairClassifier

_SETTINGS = ("threshold", "fpr", "calibration", "base_rate", "test_size", "holdout")


def save(classifier: PairClassifier, path: str | PathLike) -> None:
    c = classifier.calibration_
    fields = {
        "settings": {name: getattr(classifier, name) for name in _SETTINGS},
        "slope": c.slope,
        "offset": c.offset,
        "distance_threshold": classifier.distance_threshold_,
    }
    arrays = {"knots": c.knots, "values": c.values}
    CLASSIFIER.contents(fields, arrays, metric=pack(classifier.metric_)).write(path)


def load(
    cls: type[PairClassifier], path: str | PathLike, kernel: Callable | None, points: Sequence[object] | None
) -> PairClassifier:
    contents = CLASSIFIER.read(path)
    metric = unpack(contents.nested("metric", METRIC), kernel, points)
    with contents.checking():
        settings = contents.fields["settings"]
        if set(settings) != set(_SETTINGS):
            raise ValueError("its header is not whole")
        classifier = cls(**settings)
        classifier.check_parameters()
        slope, offset, threshold = (contents.number(name) for name in ("slope", "offset", "distance_threshold"))
        knots, values = (contents.array(name, (None,)) for name in ("knots", "values"))
        if slope <= 0 or not _is_falling(knots, values):
            raise ValueError("its calibration does not fall with distance")
    classifier.metric_, classifier.distance_threshold_ = metric, threshold
    classifier.calibration_ = Calibration(slope, offset, knots, values)
    classifier.threshold_ = float(classifier.calibration_(threshold))
    return classifier


def _is_falling(knots: np.ndarray, values: np.ndarray) -> bool:
    """Return whether these are as many probabilities as distances, and fall as distances grow."""
    if knots.shape != values.shape:
        return False
    ordered = (np.diff(knots) > 0).all() and (np.diff(values) <= 0).all()
    return bool(ordered and values.min(initial=0.0) >= 0.0 and values.max(initial=0.0) <= 1.0)
