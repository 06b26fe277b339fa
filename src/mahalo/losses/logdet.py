"""LogDet loss."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator


class LogDet(BaseEstimator):
    """LogDet loss f(w) = w − ln w − 1: the LogDet divergence to the identity, as a function of the eigenvalues.

    eta is the resting point, f(eta) = 0. The conjugate is f*(s) = −ln(1 − s) for s < 1, ∞ beyond.
    """

    eta = 1.0

    def value(self, w: np.ndarray) -> np.ndarray:
        # ln w from w − 1, exact near 1, or from w itself, exact near 0.
        with np.errstate(divide="ignore", invalid="ignore"):
            log = np.where(w > 0.5, np.log1p(w - 1), np.log(w))
            return np.where(w > 0, (w - 1) - log, np.inf)

    def conjugate(self, s: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(s < 1, -np.log1p(-s), np.inf)

    def conjugate_slope(self, s: np.ndarray) -> np.ndarray:
        """Return ∇f*(s), which maps eigenvalues of S to those of F."""
        return 1.0 / (1.0 - s)

    def conjugate_curvature(self, s: np.ndarray) -> np.ndarray:
        return 1.0 / (1.0 - s) ** 2
