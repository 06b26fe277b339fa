"""Factors, determinants and roots of symmetric matrices."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg.lapack import dpotrf, dtrtri

from ..errors import NotPositiveDefiniteError


def symmetrize(A: np.ndarray) -> np.ndarray:
    """Return ½ (A + Aᵀ)."""
    return 0.5 * (A + A.T)


def symmetric_product(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return Aᵀ B where it is symmetric but for rounding: exactly symmetric, from its lower triangle in blocks."""
    r = A.shape[1]
    if r <= _BLOCK:
        return symmetrize(A.T @ B)
    product = np.empty((r, r), dtype=A.dtype)
    for start in range(0, r, _BLOCK):
        stop = min(start + _BLOCK, r)
        below = np.matmul(A[:, start:stop].T, B[:, :stop], out=product[start:stop, :stop])
        product[:start, start:stop] = below[:, :start].T
        product[start:stop, start:stop] = symmetrize(below[:, start:])
    return product


def times_lower(X: np.ndarray, L: np.ndarray) -> np.ndarray:
    """Return X L for a lower triangular L, in blocks of columns without the zeros above them."""
    r = len(L)
    if r <= _BLOCK:
        return X @ L
    product = np.empty((len(X), r), dtype=X.dtype)
    for start in range(0, r, _BLOCK):
        block = slice(start, start + _BLOCK)
        np.matmul(X[:, start:], L[start:, block], out=product[:, block])
    return product


# NumPy and SciPy have a BLAS each, with threads of their own, and alternating calls compete for the cores. So matrices
# large enough for threads go to NumPy; small ones to SciPy, whose calls cost less. rank_one.py uses SciPy's BLAS only,
# for its in-place products.
_SMALL = 32
_BLOCK = 64  # columns of a block in a symmetric product


def cholesky_or_none(A: np.ndarray) -> np.ndarray | None:
    """Return the lower factor L with A = L Lᵀ of a symmetric A, or None if A is not numerically positive definite."""
    if len(A) > _SMALL:
        try:
            factor = np.linalg.cholesky(A)
        except np.linalg.LinAlgError:
            return None
        return factor if np.isfinite(factor[-1, -1]) else None
    factor, info = dpotrf(A.T)  # LAPACK reads columns and returns the upper factor of Aᵀ = A
    return factor.T if info == 0 and (not len(factor) or np.isfinite(factor[-1, -1])) else None


def inverse_factor(L: np.ndarray) -> np.ndarray:
    """Return L⁻¹ of a lower triangular factor."""
    inverse = np.zeros_like(L)
    _invert_into(inverse, L)
    return inverse


def _invert_into(inverse: np.ndarray, L: np.ndarray) -> None:
    #  [A 0; C D]⁻¹ = [A⁻¹ 0; −D⁻¹ C A⁻¹ D⁻¹]
    n, k = len(L), len(L) // 2
    if n <= _SMALL:
        inverse[...] = dtrtri(L.T)[0].T  # LAPACK reads columns: Lᵀ, upper triangular
        return
    _invert_into(inverse[:k, :k], L[:k, :k])
    _invert_into(inverse[k:, k:], L[k:, k:])
    np.matmul(inverse[k:, k:] @ L[k:, :k], -inverse[:k, :k], out=inverse[k:, :k])


def log_det(L: np.ndarray) -> float:
    """Return log det(L Lᵀ) of a triangular factor."""
    return 2.0 * float(np.log(L.diagonal()).sum())


def log_det_or_minus_infinity(A: np.ndarray) -> float:
    """Return log det A of a symmetric A, or −∞ if A is not numerically positive definite."""
    factor = cholesky_or_none(A)
    return -np.inf if factor is None else log_det(factor)


def spd_factor(matrix: ArrayLike, what: str) -> tuple[np.ndarray, np.ndarray]:
    """Return eigenvalues and vectors of a symmetric positive definite matrix; raise ValueError if it is not one."""
    A = np.asarray(matrix, dtype=np.float64)
    if A.ndim != 2 or A.shape[0] != A.shape[1]:
        raise ValueError(f"{what} must be a square matrix; got an array of shape {A.shape}.")
    if not np.isfinite(A).all():
        raise ValueError(f"{what} contains NaN or infinity; give finite numbers.")
    largest = np.abs(A).max(initial=0.0)
    if np.abs(A - A.T).max(initial=0.0) > 1e-8 * largest:
        raise NotPositiveDefiniteError(
            f"{what} must be symmetric; it differs from its transpose by {np.abs(A - A.T).max():.3g}. "
            "Pass 0.5 * (A + A.T) if that is what you mean."
        )
    values, vectors = np.linalg.eigh(symmetrize(A))
    if len(values) and values[0] <= 1e-13 * max(values[-1], 0.0):
        raise NotPositiveDefiniteError(
            f"{what} must be positive definite; its smallest eigenvalue is {values[0]:.3g} (largest "
            f"{values[-1]:.3g}). Add a small multiple of the identity, or leave out dependent features."
        )
    return values, vectors


def spd_roots(values: np.ndarray, vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (A^½, A^−½) from the eigendecomposition of A ≻ 0."""
    root = np.sqrt(values)
    return (vectors * root) @ vectors.T, (vectors / root) @ vectors.T
