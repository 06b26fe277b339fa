"""Frobenius loss."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator


class Frobenius(BaseEstimator):
    """Frobenius loss f(w) = ½ (w − η)²: half the squared Frobenius distance to η I.

    f*(s) = ½ s² + η s where s > −η, and −½ η² below: there the eigenvalue of the core matrix is 0. Learned metrics
    may be singular. With η = 0 and relative distances this is the batch form of the online method of
    Shalev-Shwartz, Singer and Ng.

    Parameters
    ----------
    eta : float, default=1.0
        The resting point, ≥ 0: without constraints the learned metric is η times the prior.
    """

    def __init__(self, eta: float = 1.0):
        self.eta = eta

    def value(self, w: np.ndarray) -> np.ndarray:
        return np.where(w >= 0, 0.5 * (w - self.eta) ** 2, np.inf)

    def conjugate(self, s: np.ndarray) -> np.ndarray:
        s = np.maximum(s, -self.eta)
        return s * (0.5 * s + self.eta)

    def conjugate_slope(self, s: np.ndarray) -> np.ndarray:
        return np.maximum(s + self.eta, 0.0)

    def conjugate_curvature(self, s: np.ndarray) -> np.ndarray:
        return np.where(s > -self.eta, 1.0, 0.0)
