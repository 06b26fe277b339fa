"""Von Neumann loss."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator


class VonNeumann(BaseEstimator):
    """Von Neumann loss f(w) = w ln w − w + 1: the von Neumann divergence to the identity (quantum relative entropy).

    Finite at w = 0, so learned metrics may be nearly singular, and grows faster than linearly, so large eigenvalues
    cost more than under LogDet. f*(s) = eˢ − 1; the core matrix is the exponential of a combination of constraints.
    """

    eta = 1.0

    def value(self, w: np.ndarray) -> np.ndarray:
        # ln w from w − 1, exact near 1, or from w itself, exact near 0.
        with np.errstate(divide="ignore", invalid="ignore"):
            log = np.where(w > 0.5, np.log1p(w - 1), np.log(w))
            return np.where(w > 0, w * log - (w - 1), np.where(w == 0, 1.0, np.inf))

    def conjugate(self, s: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            return np.expm1(s)

    def conjugate_slope(self, s: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            return np.exp(s)

    def conjugate_curvature(self, s: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            return np.exp(s)
