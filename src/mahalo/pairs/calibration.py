"""Calibration of distances to probabilities that two rows are the same, and the threshold of a prediction."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

_MIN_ISOTONIC_PAIRS = 1_000  # of either kind, from which "auto" is isotonic regression instead of a sigmoid
_SIGMOID_SHARE = 1e-3  # of the sigmoid in the isotonic curve, so that no two distances are tied
_MIN_PROBABILITY = 1e-6  # probabilities keep this distance from 0 and 1


@dataclass(frozen=True, eq=False)
class Calibration:
    """Decreasing function from distance to probability: a sigmoid, or a piecewise linear curve through knots.

    The sigmoid is 1 / (1 + exp(slope · d + offset)); `knots` and `values` are empty if it is used alone. The piecewise
    linear curve holds a thousandth of the sigmoid, so that probabilities order pairs exactly as distances do.
    """

    slope: float
    offset: float
    knots: np.ndarray
    values: np.ndarray

    @classmethod
    def fit(cls, distances: np.ndarray, same: np.ndarray, weight: np.ndarray, method: str) -> Calibration:
        """Fit a calibration to pairs.

        `method` is "sigmoid", "isotonic", or "auto": isotonic from a thousand pairs of either kind on.
        """
        slope, offset = _fit_sigmoid(distances, same, weight)
        if method == "auto":
            method = "isotonic" if min(same.sum(), (~same).sum()) >= _MIN_ISOTONIC_PAIRS else "sigmoid"
        knots = values = np.empty(0)
        if method == "isotonic":
            knots, values = _fit_isotonic(distances, same, weight)
        return cls(slope, offset, knots, values)

    @property
    def method(self) -> str:
        return "isotonic" if len(self.knots) else "sigmoid"

    def __call__(self, distances: ArrayLike) -> np.ndarray:
        """Return the probability of "same" at each distance."""
        d = np.asarray(distances, dtype=np.float64)
        with np.errstate(over="ignore"):
            sigmoid = 1.0 / (1.0 + np.exp(np.clip(self.slope * d + self.offset, -700.0, 700.0)))
        if not len(self.knots):
            return sigmoid
        return (1.0 - _SIGMOID_SHARE) * np.interp(d, self.knots, self.values) + _SIGMOID_SHARE * sigmoid


def _fit_sigmoid(distances: np.ndarray, same: np.ndarray, weight: np.ndarray) -> tuple[float, float]:
    """Return slope and offset by logistic regression on the distance, with Platt's targets against overconfidence."""
    from sklearn.linear_model import LogisticRegression

    unit = float(distances.std()) or 1.0
    n_same, n_other = float(weight[same].sum()), float(weight[~same].sum())
    target = np.where(same, (n_same + 1.0) / (n_same + 2.0), 1.0 / (n_other + 2.0))
    # A pair with target t counts as a pair that is the same with weight t, and one that is not with weight 1 − t.
    d = np.concatenate([distances, distances])[:, None] / unit
    y = np.repeat([True, False], len(distances))
    fit = LogisticRegression(C=1e6, max_iter=1000).fit(d, y, np.concatenate([weight * target, weight * (1 - target)]))
    return max(float(-fit.coef_[0, 0]) / unit, 1e-12 / unit), float(-fit.intercept_[0])


def _fit_isotonic(distances: np.ndarray, same: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return knots and values of an isotonic regression: each step as one knot at the mean distance of its pairs."""
    from sklearn.isotonic import IsotonicRegression

    order = np.argsort(distances, kind="stable")
    d, w = distances[order], weight[order]
    fitted = IsotonicRegression(increasing=False, y_min=_MIN_PROBABILITY, y_max=1.0 - _MIN_PROBABILITY).fit(
        d, same[order], w
    )
    p = fitted.predict(d)
    _, step = np.unique(-p, return_inverse=True)
    total = np.bincount(step, w)
    return np.bincount(step, w * d) / total, np.bincount(step, w * p) / total


def best_threshold(distances: np.ndarray, same: np.ndarray, weight: np.ndarray, criterion: str, fpr: float) -> float:
    """Return the largest distance to predict "same" at.

    `criterion` is "accuracy" or "f1", which is maximised, or "fpr": a false-positive rate of at most `fpr`.
    """
    order = np.argsort(distances, kind="stable")
    d, w, s = distances[order], weight[order], same[order]
    true_positives, false_positives = np.cumsum(w * s), np.cumsum(w * ~s)
    ends = np.flatnonzero(np.append(d[1:] > d[:-1], True))  # thresholds lie between distances that differ
    if criterion == "fpr":
        allowed = ends[false_positives[ends] <= fpr * false_positives[-1]]
        if not len(allowed):
            return float(np.nextafter(d[0], -np.inf)) if d[0] > 0 else -1.0
        end = allowed[-1]
    else:
        if criterion == "accuracy":
            value = true_positives - false_positives
        else:
            value = 2.0 * true_positives / (true_positives[-1] + true_positives + false_positives)
        end = ends[np.argmax(value[ends])]
    return float(d[end] if end + 1 == len(d) else 0.5 * (d[end] + d[end + 1]))
