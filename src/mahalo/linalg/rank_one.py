"""Rank-one steps F ← F + β_t (F z_t)(F z_t)ᵀ, a block of them at a time.

A step reads only zᵀFz after the steps before it. So a block runs on its Gram matrix Z F Zᵀ, and F then takes all of its
steps at once. Only the upper triangle of F is read and updated; `from_upper` restores the other half.

This uses SciPy's BLAS, for its in-place products; it sees every array transposed. NumPy's BLAS has threads of its own,
which would compete with these for the cores: work between blocks should use the functions of this module.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg.blas import dgemm, dsymm, dsyrk, dtrsm
from scipy.linalg.lapack import dpotrf

from .symmetric import log_det


def rank_one_steps(
    F: np.ndarray, Z: np.ndarray, decide: Callable[[np.ndarray, np.ndarray], object]
) -> tuple[np.ndarray, np.ndarray]:
    """Return F after one step along each row of Z, and the positions of β ≠ 0; F is overwritten.

    ``decide(G, beta)`` runs the steps on G = Z F Zᵀ: it fills in β, and leaves row t of G, from t on, as just before
    step t.
    """
    if not len(Z):
        return F, np.empty(0, dtype=np.intp)
    V, beta = times_upper(F, Z), np.empty(len(Z))
    G = dgemm(1.0, Z.T, V.T, trans_a=1).T
    decide(G, beta)
    moved = np.flatnonzero(beta)
    if len(moved):
        F = add_outer(F, beta[moved], _before_steps(V.take(moved, axis=0), G[np.ix_(moved, moved)], beta[moved]))
    return F, moved


def _before_steps(V: np.ndarray, G: np.ndarray, beta: np.ndarray) -> np.ndarray:
    """Return y_t = F z_t just before step t, V_t + Σ_{q<t} β_q G_qt y_q: one triangular system for all y."""
    G *= -beta[:, None]
    return dtrsm(1.0, G.T, V.T, side=1, lower=1, trans_a=1, diag=1, overwrite_b=1).T


def add_outer(A: np.ndarray, weight: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Return A + Σ weight_t y_t y_tᵀ over the rows of Y; A is overwritten."""
    for sign in (1.0, -1.0):
        chosen = np.flatnonzero(sign * weight > 0)
        if len(chosen):
            rows = Y.take(chosen, axis=0)
            rows *= np.sqrt(sign * weight[chosen])[:, None]
            A = dsyrk(sign, rows.T, beta=1.0, c=A.T, lower=1, overwrite_c=1).T
    return A


def times_upper(F: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """Return Z F, reading the upper triangle of F."""
    return dsymm(1.0, F.T, Z.T, lower=1).T if F.size and Z.size else np.zeros_like(Z)


def log_det_of_upper(F: np.ndarray) -> float:
    """Return log det F, or −∞ if F is not numerically positive definite."""
    factor, info = dpotrf(F.T, lower=1, clean=0)
    value = log_det(factor) if info == 0 else -np.inf
    return value if np.isfinite(value) else -np.inf


def from_upper(A: np.ndarray) -> np.ndarray:
    """Return the symmetric matrix with the upper triangle of A."""
    return np.triu(A) + np.triu(A, 1).T
