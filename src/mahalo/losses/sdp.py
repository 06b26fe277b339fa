"""Losses of regularised semidefinite programs with a linear objective."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator


class SDPFrobenius(BaseEstimator):
    """Frobenius-regularised SDP loss f(w) = ½ c w², for use with `Constraints.linear_objective`.

    f*(s) = max(s, 0)² / 2c. Rests at η = 0: without constraints and objective all learned distances are 0.

    Parameters
    ----------
    strength : float, default=1.0
        c > 0, weight of the squared Frobenius norm of the metric.
    """

    eta = 0.0

    def __init__(self, strength: float = 1.0):
        self.strength = strength

    def value(self, w: np.ndarray) -> np.ndarray:
        return np.where(w >= 0, 0.5 * self.strength * w * w, np.inf)

    def conjugate(self, s: np.ndarray) -> np.ndarray:
        return np.maximum(s, 0.0) ** 2 / (2.0 * self.strength)

    def conjugate_slope(self, s: np.ndarray) -> np.ndarray:
        return np.maximum(s, 0.0) / self.strength

    def conjugate_curvature(self, s: np.ndarray) -> np.ndarray:
        return np.where(s > 0, 1.0 / self.strength, 0.0)


class SDPLogDet(BaseEstimator):
    """LogDet-regularised SDP loss f(w) = −c ln w, for use with `Constraints.linear_objective`.

    f*(s) = c (ln c − 1 − ln(−s)) for s < 0, ∞ beyond. It has no resting point, so it is defined on the span of the
    constraints only and the metric is 0 outside; and it is unbounded unless objective and constraints limit every
    direction of the span.

    Parameters
    ----------
    strength : float, default=1.0
        c > 0, weight of −log det of the metric.
    """

    eta = 0.0
    on_span = True

    def __init__(self, strength: float = 1.0):
        self.strength = strength

    def value(self, w: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(w > 0, -self.strength * np.log(w), np.inf)

    def conjugate(self, s: np.ndarray) -> np.ndarray:
        c = self.strength
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(s < 0, c * (np.log(c) - 1.0 - np.log(-s)), np.inf)

    def conjugate_slope(self, s: np.ndarray) -> np.ndarray:
        return -self.strength / s

    def conjugate_curvature(self, s: np.ndarray) -> np.ndarray:
        return self.strength / s**2
