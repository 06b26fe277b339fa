"""Large margin nearest neighbours (Weinberger and Saul, 2009), in its convex form over W ⪰ 0."""

from __future__ import annotations

import numpy as np
from sklearn.neighbors import NearestNeighbors

from .common import MatrixMetric, descend, edge_scatter, sq_distances_under

__all__ = ["LMNN"]


class LMNN(MatrixMetric):
    """Pull each row's target neighbours in and push impostors out:

        (1−μ) Σ_(i,j) d²_ij + μ Σ_(i,j,l) max(0, 1 + d²_ij − d²_il),  divided by the number of targets (i, j)

    j runs over the nearest rows of i's class before learning, l over the rows of other classes.

    Parameters
    ----------
    n_neighbors : int, default=3
        Targets of each row.
    push : float, default=0.5
        μ.
    tol : float, default=1e-3
        Ends when ten steps bring less than this, relatively.
    max_iter : int, default=1000

    Attributes
    ----------
    matrix_ : ndarray of shape (n_features, n_features)
    objective_ : tuple of float
        At every step.
    """

    def __init__(self, n_neighbors=3, *, push=0.5, tol=1e-3, max_iter=1000):
        self.n_neighbors = n_neighbors
        self.push = push
        self.tol = tol
        self.max_iter = max_iter

    def fit(self, X, y):
        X = np.asarray(X, dtype=np.float64)
        codes = np.unique(y, return_inverse=True)[1]
        targets = target_neighbours(X, codes, self.n_neighbors)
        n_features = X.shape[1]
        descent = descend(
            lambda W: margin_loss(W, X, codes, targets, self.push),
            np.eye(n_features),
            tol=self.tol,
            max_iter=self.max_iter,
        )
        self.matrix_, self.objective_ = descent.W, descent.values
        return self


def target_neighbours(X: np.ndarray, codes: np.ndarray, k: int) -> np.ndarray:
    """(i, j), in order of i: every row with its k nearest of the same class (fewer in smaller classes)."""
    found = []
    for c in range(codes.max() + 1):
        inside = np.flatnonzero(codes == c)
        wanted = min(k, len(inside) - 1)
        if wanted > 0:
            # Without an argument kneighbors leaves each row out of its own neighbours.
            near = NearestNeighbors(n_neighbors=wanted).fit(X[inside]).kneighbors(return_distance=False)
            found.append(np.column_stack([np.repeat(inside, wanted), inside[near.ravel()]]))
    targets = np.concatenate(found)
    return targets[np.argsort(targets[:, 0], kind="stable")]


def margin_loss(
    W: np.ndarray, X: np.ndarray, codes: np.ndarray, targets: np.ndarray, push: float
) -> tuple[float, np.ndarray]:
    """The objective and a subgradient: every active triplet weighs +μ on (i, j) and −μ on (i, l)."""
    D = sq_distances_under(W, X)
    i, j = targets.T
    pulled = D[i, j]
    D[codes[:, None] == codes[None, :]] = np.inf  # rows of the same class are no impostors
    excess = 1.0 + pulled[:, None] - D[i]
    active = excess > 0.0
    value = (1.0 - push) * pulled.sum() + push * excess[active].sum()
    weight = np.zeros_like(D)
    rows, first = np.unique(i, return_index=True)
    weight[rows] = -push * np.add.reduceat(active, first, axis=0, dtype=np.float64)
    weight[i, j] += (1.0 - push) + push * active.sum(axis=1)
    return float(value) / len(targets), edge_scatter(weight, X) / len(targets)
