"""What the baselines share: an estimator around a matrix W, and descent over the cone W ⪰ 0."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from mahalo.linalg import symmetrize

__all__ = ["Descent", "MatrixMetric", "descend", "edge_scatter", "project_psd", "sq_distances_under"]

Objective = Callable[[np.ndarray], tuple[float, np.ndarray]]

_WINDOW = 10  # steps over which progress is judged
_SUFFICIENT = 1e-4  # share of the predicted decrease a step must bring (Armijo)
_SHORTEST = 1e-10


class MatrixMetric(TransformerMixin, BaseEstimator):
    """d²(x, y) = (x−y)ᵀ W (x−y), with W in `matrix_` after `fit`."""

    matrix_: np.ndarray

    def transform(self, X) -> np.ndarray:
        """Rows where the learned distance is the Euclidean one: x ↦ W^½ x."""
        check_is_fitted(self)
        values, vectors = np.linalg.eigh(self.matrix_)
        return np.asarray(X) @ (vectors * np.sqrt(np.maximum(values, 0.0)))


@dataclass(frozen=True)
class Descent:
    """Where a descent ended, the objective at every step, and whether it ended by itself."""

    W: np.ndarray
    values: tuple[float, ...]
    converged: bool


def sq_distances_under(W: np.ndarray, X: np.ndarray) -> np.ndarray:
    """(x_i−x_j)ᵀ W (x_i−x_j) for all rows."""
    K = X @ W @ X.T
    own = np.diagonal(K)
    return np.maximum(own[:, None] + own[None, :] - 2.0 * K, 0.0)


def edge_scatter(weight: np.ndarray, X: np.ndarray) -> np.ndarray:
    """Σ_ij weight_ij (x_i−x_j)(x_i−x_j)ᵀ = Xᵀ (diag(w1 + wᵀ1) − w − wᵀ) X."""
    both = weight + weight.T
    return symmetrize(X.T @ (both.sum(axis=1)[:, None] * X - both @ X))


def project_psd(W: np.ndarray) -> np.ndarray:
    """The nearest positive semidefinite matrix."""
    values, vectors = np.linalg.eigh(symmetrize(W))
    return (vectors * np.maximum(values, 0.0)) @ vectors.T


def descend(objective: Objective, W: np.ndarray, *, tol: float, max_iter: int) -> Descent:
    """Spectral projected gradient over W ⪰ 0 (Birgin, Martínez and Raydan), monotone.

    The direction is proj(W − αG) − W with the Barzilai–Borwein step α = ⟨S,S⟩/⟨S,Y⟩; a backtracking line search along
    it makes every step a descent. Ends when ten steps bring less than tol · max(1, |f|), or no step descends.
    """
    value, G = objective(W)
    values, alpha = [value], 1.0 / max(float(np.abs(G).max()), 1e-300)
    for _ in range(max_iter):
        D = project_psd(W - alpha * G) - W
        step = _line_search(objective, W, D, value, float((G * D).sum()))
        if step is None:
            return Descent(W, tuple(values), True)
        t, value, G_new = step
        S, Y = t * D, G_new - G
        curvature = float((S * Y).sum())
        alpha = float((S * S).sum()) / curvature if curvature > 0 else 2.0 * alpha
        W, G = W + S, G_new
        values.append(value)
        if len(values) > _WINDOW and values[-1 - _WINDOW] - value <= tol * max(1.0, abs(value)):
            return Descent(W, tuple(values), True)
    warnings.warn(
        f"stopped after {max_iter} steps; the last {_WINDOW} still brought {values[-1 - _WINDOW] - value:.2e} of an "
        f"objective of {value:.4g}. Raise max_iter or tol.",
        ConvergenceWarning,
        stacklevel=3,
    )
    return Descent(W, tuple(values), False)


def _line_search(
    objective: Objective, W: np.ndarray, D: np.ndarray, value: float, slope: float
) -> tuple[float, float, np.ndarray] | None:
    """(t, f, ∇f) at W + tD, halving t until f falls enough; None where D does not descend."""
    if slope >= 0:
        return None
    t = 1.0
    while t > _SHORTEST:
        new, G = objective(W + t * D)
        if new <= value + _SUFFICIENT * t * slope:
            return t, new, G
        t *= 0.5
    return None
