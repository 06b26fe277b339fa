"""From a distance to the probability that two rows are the same, and where to cut."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["Calibration", "cut"]

_ENOUGH = 1_000  # pairs of either kind from which steps are fitted instead of a curve
_BLEND = 1e-3  # share of the curve in the steps, so that no two distances are tied
_FARTHEST = 1e-6  # probabilities stay this far from 0 and 1


@dataclass(frozen=True, eq=False)
class Calibration:
    """A probability that falls with distance: a sigmoid 1 / (1 + exp(slope · d + offset)), or steps between knots.

    `knots` and `values` are empty for the sigmoid alone. Steps are joined by lines and hold a thousandth of the
    sigmoid, so that the probability orders pairs exactly as the distance does.
    """

    slope: float
    offset: float
    knots: np.ndarray
    values: np.ndarray

    @classmethod
    def fitted(cls, distances: np.ndarray, same: np.ndarray, weight: np.ndarray, method: str) -> Calibration:
        """`method` is "sigmoid", "isotonic", or "auto": steps where there are a thousand pairs of either kind."""
        slope, offset = _sigmoid(distances, same, weight)
        if method == "auto":
            method = "isotonic" if min(same.sum(), (~same).sum()) >= _ENOUGH else "sigmoid"
        knots = values = np.empty(0)
        if method == "isotonic":
            knots, values = _steps(distances, same, weight)
        return cls(slope, offset, knots, values)

    @property
    def method(self) -> str:
        return "isotonic" if len(self.knots) else "sigmoid"

    def __call__(self, distances: ArrayLike) -> np.ndarray:
        """The probability of "same" at each distance."""
        d = np.asarray(distances, dtype=np.float64)
        with np.errstate(over="ignore"):
            curve = 1.0 / (1.0 + np.exp(np.clip(self.slope * d + self.offset, -700.0, 700.0)))
        if not len(self.knots):
            return curve
        return (1.0 - _BLEND) * np.interp(d, self.knots, self.values) + _BLEND * curve


def _sigmoid(distances: np.ndarray, same: np.ndarray, weight: np.ndarray) -> tuple[float, float]:
    """By logistic regression on the distance, towards Platt's targets: never surer than the number of pairs allows."""
    from sklearn.linear_model import LogisticRegression

    size = float(distances.std()) or 1.0
    n_same, n_other = float(weight[same].sum()), float(weight[~same].sum())
    target = np.where(same, (n_same + 1.0) / (n_same + 2.0), 1.0 / (n_other + 2.0))
    # A pair with target t counts as t of one that is the same and 1 − t of one that is not.
    d = np.concatenate([distances, distances])[:, None] / size
    y = np.repeat([True, False], len(distances))
    fit = LogisticRegression(C=1e6, max_iter=1000).fit(d, y, np.concatenate([weight * target, weight * (1 - target)]))
    return max(float(-fit.coef_[0, 0]) / size, 1e-12 / size), float(-fit.intercept_[0])


def _steps(distances: np.ndarray, same: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Isotonic regression; each of its steps as one knot at the mean distance of its pairs."""
    from sklearn.isotonic import IsotonicRegression

    order = np.argsort(distances, kind="stable")
    d, w = distances[order], weight[order]
    fitted = IsotonicRegression(increasing=False, y_min=_FARTHEST, y_max=1.0 - _FARTHEST).fit(d, same[order], w)
    p = fitted.predict(d)
    _, step = np.unique(-p, return_inverse=True)
    total = np.bincount(step, w)
    return np.bincount(step, w * d) / total, np.bincount(step, w * p) / total


def cut(distances: np.ndarray, same: np.ndarray, weight: np.ndarray, aim: str, fpr: float) -> float:
    """The largest distance to call "same": best by accuracy or F1, or with at most `fpr` of the others called so."""
    order = np.argsort(distances, kind="stable")
    d, w, s = distances[order], weight[order], same[order]
    hits, alarms = np.cumsum(w * s), np.cumsum(w * ~s)
    last = np.append(d[1:] > d[:-1], True)  # cuts lie between distances that differ
    places = np.flatnonzero(last)
    if aim == "fpr":
        allowed = places[alarms[places] <= fpr * alarms[-1]]
        if not len(allowed):
            return float(np.nextafter(d[0], -np.inf)) if d[0] > 0 else -1.0
        place = allowed[-1]
    else:
        called = hits + alarms
        value = hits - alarms if aim == "accuracy" else 2.0 * hits / (hits[-1] + called)
        place = places[np.argmax(value[places])]
    return float(d[place] if place + 1 == len(d) else 0.5 * (d[place] + d[place + 1]))
