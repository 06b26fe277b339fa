"""The rival that adapters are trained with elsewhere: a linear map under a supervised contrastive loss."""

from __future__ import annotations

from itertools import product

import numpy as np
from scipy.optimize import minimize
from sklearn.model_selection import StratifiedKFold

from mahalo.evaluation import average_precision, precision_at, ranked

__all__ = ["PLAIN", "chosen_map", "contrastive_loss", "contrastive_map", "unit"]

TEMPERATURES = (0.1, 0.2)
PENALTIES = (0.003, 0.01, 0.03, 0.1)
PLAIN = (0.2, 0.03)  # temperature and penalty where nothing is searched
_STEPS = 40


def unit(X: np.ndarray) -> np.ndarray:
    return X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-12)


def contrastive_map(X: np.ndarray, y: np.ndarray, temperature: float, penalty: float, steps: int = _STEPS):
    """d × d matrix A, from the identity on by L-BFGS over all rows at once; rows are then compared by cosine of x A."""
    d = X.shape[1]
    found = minimize(
        contrastive_loss,
        np.eye(d).ravel(),
        args=(X.astype(np.float32), _targets(y), temperature, penalty),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": steps},
    )
    return found.x.reshape(d, d)


def contrastive_loss(a: np.ndarray, X: np.ndarray, targets: np.ndarray, temperature: float, penalty: float):
    """Value and gradient of the mean cross-entropy of softmax(cosine / temperature) against the row's own class, plus
    penalty ‖A − I‖²."""
    n, d = X.shape
    A = a.reshape(d, d).astype(X.dtype)
    Z = X @ A
    length = np.linalg.norm(Z, axis=1, keepdims=True)
    U = Z / length
    S = U @ U.T / temperature
    np.fill_diagonal(S, -np.inf)
    top = S.max(axis=1, keepdims=True)
    P = np.exp(S - top)
    total = P.sum(axis=1, keepdims=True)
    P /= total
    np.fill_diagonal(S, 0.0)
    asked = targets.sum(axis=1)  # 1, or 0 where a row is alone in its class
    value = asked @ (top + np.log(total)).ravel() - np.einsum("ij,ij->", targets, S)
    G = (asked[:, None] * P - targets) / (n * temperature)
    G = (G + G.T) @ U
    G = (G - U * np.einsum("ij,ij->i", G, U)[:, None]) / length
    away = A - np.eye(d, dtype=X.dtype)
    gradient = X.T @ G + 2.0 * penalty * away
    return float(value / n + penalty * (away**2).sum()), gradient.ravel().astype(np.float64)


def _targets(y: np.ndarray) -> np.ndarray:
    """Each row's share of every other row of its class."""
    same = (y[:, None] == y).astype(np.float32)
    np.fill_diagonal(same, 0.0)
    return same / np.maximum(same.sum(axis=1, keepdims=True), 1.0)


def chosen_map(X: np.ndarray, y: np.ndarray, seed: int, most_rows: int) -> tuple[np.ndarray, tuple[float, float]]:
    """The map of all rows with the settings that serve held-out rows best, chosen on at most `most_rows`."""
    if len(y) > most_rows:
        part = np.random.default_rng(seed).choice(len(y), most_rows, replace=False)
        settings = _choose(X[part], y[part], seed)
    else:
        settings = _choose(X, y, seed)
    return contrastive_map(X, y, *settings), settings


def _choose(X: np.ndarray, y: np.ndarray, seed: int) -> tuple[float, float]:
    """By the mean of P@1, P@10 and MAP among held-out rows, three folds, as `EmbeddingAdapter` does."""
    folds = list(StratifiedKFold(3, shuffle=True, random_state=seed).split(X, y))

    def score(settings: tuple[float, float]) -> float:
        return float(np.mean([_held_out(contrastive_map(X[a], y[a], *settings), X[b], y[b]) for a, b in folds]))

    return max(product(TEMPERATURES, PENALTIES), key=score)


def _held_out(A: np.ndarray, X: np.ndarray, y: np.ndarray) -> float:
    """Every row asking for its class among the others."""
    Z = unit(X @ A)
    D = 2.0 - 2.0 * Z @ Z.T
    np.fill_diagonal(D, np.inf)
    relevant = y[:, None] == y
    np.fill_diagonal(relevant, False)
    found = ranked(D, relevant)[relevant.any(axis=1)]
    return float(
        np.mean([precision_at(found, 1).mean(), precision_at(found, 10).mean(), average_precision(found).mean()])
    )
