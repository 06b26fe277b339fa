"""Geometric mean metric learning (Zadeh, Hosseini and Sra, 2016): a closed form."""

from __future__ import annotations

from numbers import Real

import numpy as np

from mahalo import Constraints
from mahalo.linalg import spd_factor, spd_roots

from .common import MatrixMetric

__all__ = ["GMML", "geometric_mean"]


class GMML(MatrixMetric):
    """W = S⁻¹ ♯_t D, the point at t on the geodesic from the inverse of the similar pairs' scatter to the dissimilar
    pairs' scatter.

    It minimises (1−t) δ²(W, S⁻¹) + t δ²(W, D) over W ≻ 0, δ the Riemannian distance; t = ½ is the minimiser of
    tr(W S) + tr(W⁻¹ D).

    Parameters
    ----------
    t : float, default=0.5
        From 0 (similar pairs alone) to 1 (dissimilar pairs alone).
    regularization : float, default=0.01
        S and D become S + λI and D + λI with λ this share of their mean eigenvalue.
    pairs_per_class : int, default=100
        Pairs of either kind for each class, drawn as `MetricLearner` draws them.
    random_state : int, default=0
    """

    def __init__(self, t=0.5, *, regularization=0.01, pairs_per_class=100, random_state=0):
        self.t = t
        self.regularization = regularization
        self.pairs_per_class = pairs_per_class
        self.random_state = random_state

    def fit(self, X, y):
        if not (isinstance(self.t, Real) and 0.0 <= float(self.t) <= 1.0):
            raise ValueError(f"t must be a number from 0 to 1; got {self.t!r}.")
        X = np.asarray(X, dtype=np.float64)
        pairs = Constraints.from_labels(y, pairs_per_class=self.pairs_per_class, random_state=self.random_state).pairs
        S, D = (self._scatter(X, pairs.index[pairs.sign == sign]) for sign in (1.0, -1.0))
        self.matrix_ = geometric_mean(np.linalg.inv(S), D, float(self.t))
        return self

    def _scatter(self, X: np.ndarray, index: np.ndarray) -> np.ndarray:
        """Mean of (x_i−x_j)(x_i−x_j)ᵀ over the pairs, regularised."""
        differences = X[index[:, 0]] - X[index[:, 1]]
        scatter = differences.T @ differences / len(index)
        n_features = X.shape[1]
        return scatter + self.regularization * np.trace(scatter) / n_features * np.eye(n_features)


def geometric_mean(A: np.ndarray, B: np.ndarray, t: float) -> np.ndarray:
    """A ♯_t B = A^½ (A^−½ B A^−½)^t A^½ for A, B ≻ 0."""
    root, inverse_root = spd_roots(*spd_factor(A, "A"))
    values, vectors = spd_factor(inverse_root @ B @ inverse_root, "A^−½ B A^−½")
    half = root @ vectors
    return (half * values**t) @ half.T
