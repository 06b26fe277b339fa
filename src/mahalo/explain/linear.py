"""Matrix of a linear metric in factored form, for rows too wide to write it out."""

from __future__ import annotations

import numpy as np

from ..linalg import Matrix, to_dense
from ..metric import Metric
from ..priors import Prior


class LinearWeights:
    """W = w W0 + P (F − wI) Pᵀ with P = W0^½ Q: its diagonal, some of its entries, its product with rows.

    Nothing is n_features × n_features unless the prior or F already is.
    """

    def __init__(self, metric: Metric) -> None:
        if not metric.is_linear:
            raise ValueError(
                "explain weighs features, and a metric with a kernel has none. Use influential and suspects, which "
                "work with every kernel, or kernel='linear', features=None."
            )
        c = metric.linear_coordinates
        self.n_features, self._prior, self._basis, self._F = c.n_features, c.prior, c.basis, metric.F
        self._outside = metric.eta * c.residual if c.basis is not None else 0.0

    def times(self, X: Matrix) -> np.ndarray:
        """Return W x for every row x, dense."""
        Z = self._prior.whiten(X)
        if self._basis is None:
            Z = to_dense(Z)
            return self._prior.compose((Z @ self._F).T).T
        inside = np.asarray(Z @ self._basis) @ (self._F - self._outside * np.eye(len(self._F)))
        weighted = self._basis @ inside.T
        if self._outside:
            weighted += self._outside * to_dense(Z).T
        return self._prior.compose(weighted).T

    def diagonal(self) -> np.ndarray:
        """Return W_jj of every feature."""
        Q = np.eye(self.n_features) if self._basis is None else self._basis
        P = self._prior.compose(Q)
        change = self._F - self._outside * np.eye(len(self._F))
        inside = np.einsum("jk,jk->j", P @ change, P)
        return inside + self._outside * _diagonal_of(self._prior, self.n_features) if self._outside else inside

    def submatrix(self, features: np.ndarray) -> np.ndarray:
        """Return W_jk for all pairs of these features."""
        unit = np.zeros((len(features), self.n_features))
        unit[np.arange(len(features)), features] = 1.0
        return self.times(unit)[:, features]


def _diagonal_of(prior: Prior, n_features: int) -> np.ndarray:
    """Return (W0)_jj of every feature."""
    if prior.root is None:
        return np.ones(n_features)
    if prior.root.ndim == 2:
        return np.einsum("jk,jk->j", prior.root, prior.root)
    if prior.directions is None or prior.gain is None:
        return prior.root**2
    # W0 = r (I + A g Aᵀ)² r = r (I + A (2g + g²) Aᵀ) r, A orthonormal
    return prior.root**2 * (1.0 + prior.directions**2 @ (prior.gain * (2.0 + prior.gain)))
