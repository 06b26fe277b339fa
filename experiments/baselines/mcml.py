"""Maximally collapsing metric learning (Globerson and Roweis, 2006): a convex problem over W ⪰ 0."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

from .common import MatrixMetric, descend, edge_scatter, sq_distances_under

__all__ = ["MCML"]


class MCML(MatrixMetric):
    """Collapse every class to a point: minimise Σ_i KL(p0(·|i) ‖ p(·|i)) / n.

    p(j|i) ∝ exp(−d²_W(x_i, x_j)) over j ≠ i, and p0(·|i) is uniform over the other rows of i's class. With D² convex
    (linear) in W and log Σ exp convex, so is the objective.

    Parameters
    ----------
    tol : float, default=1e-5
        Ends when ten steps bring less than this, relatively.
    max_iter : int, default=1000
    start : {"identity", "zero"}, default="identity"
        The optimum does not depend on it.

    Attributes
    ----------
    matrix_ : ndarray of shape (n_features, n_features)
    objective_ : tuple of float
        At every step.
    """

    def __init__(self, *, tol=1e-5, max_iter=1000, start="identity"):
        self.tol = tol
        self.max_iter = max_iter
        self.start = start

    def fit(self, X, y):
        X = np.asarray(X, dtype=np.float64)
        wanted = class_neighbours(np.unique(y, return_inverse=True)[1])
        n_features = X.shape[1]
        starts = {"identity": np.eye(n_features) / n_features, "zero": np.zeros((n_features, n_features))}
        if self.start not in starts:
            raise ValueError(f"start must be one of {sorted(starts)}; got {self.start!r}.")
        descent = descend(lambda W: collapse(W, X, wanted), starts[self.start], tol=self.tol, max_iter=self.max_iter)
        self.matrix_, self.objective_ = descent.W, descent.values
        return self


def class_neighbours(codes: np.ndarray) -> np.ndarray:
    """p0: row i is uniform over the other rows of its class (zero where there is none)."""
    same = (codes[:, None] == codes[None, :]).astype(np.float64)
    np.fill_diagonal(same, 0.0)
    return same / np.maximum(same.sum(axis=1, keepdims=True), 1.0)


def collapse(W: np.ndarray, X: np.ndarray, wanted: np.ndarray) -> tuple[float, np.ndarray]:
    """(Σ_ij p0_ij d²_ij + Σ_i log Σ_j exp(−d²_ij)) / n over rows i with a companion, and its gradient.

    It is the divergence up to a constant, and ∇ = Σ_ij (p0_ij − p_ij)(x_i−x_j)(x_i−x_j)ᵀ / n.
    """
    D = sq_distances_under(W, X)
    np.fill_diagonal(D, np.inf)
    log_z = logsumexp(-D, axis=1)
    p = np.exp(-D - log_z[:, None])
    np.fill_diagonal(D, 0.0)
    counted = wanted.sum(axis=1) > 0
    value = (wanted * D).sum() + log_z[counted].sum()
    gradient = edge_scatter(wanted - counted[:, None] * p, X)
    return float(value) / len(X), gradient / len(X)
