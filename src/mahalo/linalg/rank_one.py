"""Rank-one steps F ← F + β_t (F z_t)(F z_t)ᵀ, a block of them at a time.

What a step reads of F is zᵀFz as the steps before have left it. So a block runs on its Gram matrix Z F Zᵀ alone, and F
takes all of its steps in one go. Only the upper triangle of F is read and kept up; `from_upper` brings back the other
half.

This is SciPy's BLAS, for its products in place, which sees every array here transposed. Each BLAS has its own threads,
and those of NumPy's would fight with these for the cores: what is to be done between blocks should be done from here.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg.blas import dgemm, dsymm, dsyrk, dtrsm
from scipy.linalg.lapack import dpotrf

from .symmetric import log_det

__all__ = ["add_outer", "from_upper", "log_det_of_upper", "steps_in_block", "times_upper"]


def steps_in_block(
    F: np.ndarray, Z: np.ndarray, decide: Callable[[np.ndarray, np.ndarray], object]
) -> tuple[np.ndarray, np.ndarray]:
    """F after one step along each row of Z, and which of the β are not 0; F is used up.

    ``decide(G, beta)`` makes them on G = Z F Zᵀ: it fills in β, and leaves row t of G, from t on, as it was just before
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
    """y_t = F z_t just before step t = V_t + Σ_{q<t} β_q G_qt y_q: a triangular system for all y at once."""
    G *= -beta[:, None]
    return dtrsm(1.0, G.T, V.T, side=1, lower=1, trans_a=1, diag=1, overwrite_b=1).T


def add_outer(A: np.ndarray, weight: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """A + Σ weight_t y_t y_tᵀ over the rows of Y; A is used up."""
    for sign in (1.0, -1.0):
        chosen = np.flatnonzero(sign * weight > 0)
        if len(chosen):
            rows = Y.take(chosen, axis=0)
            rows *= np.sqrt(sign * weight[chosen])[:, None]
            A = dsyrk(sign, rows.T, beta=1.0, c=A.T, lower=1, overwrite_c=1).T
    return A


def times_upper(F: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """Z F."""
    return dsymm(1.0, F.T, Z.T, lower=1).T if F.size and Z.size else np.zeros_like(Z)


def log_det_of_upper(F: np.ndarray) -> float:
    """log det F, −∞ where F is not numerically positive definite."""
    factor, info = dpotrf(F.T, lower=1, clean=0)
    value = log_det(factor) if info == 0 else -np.inf
    return value if np.isfinite(value) else -np.inf


def from_upper(A: np.ndarray) -> np.ndarray:
    """Symmetric, from the upper triangle."""
    return np.triu(A) + np.triu(A, 1).T
