"""Linear discriminant analysis as a reference beside every comparison with labels."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh

from ..linalg import Matrix, ledoit_wolf_intensity, sq_norms

LDA = "LDA"
_MOST_COLUMNS = 2_000


def lda_projection(X: Matrix, codes: np.ndarray) -> Callable[[Matrix], np.ndarray] | None:
    """Fit LDA with Ledoit–Wolf shrinkage of every class and return its projection of rows.

    It is scikit-learn's with ``solver="eigen", shrinkage="auto"``, up to rounding and intensities of at least 10⁻⁶. It
    is many times faster where classes have fewer rows than there are columns: their covariances are never formed one by
    one.

    Return None where it cannot be fitted: rows that are sparse, not numbers, or of more than 2,000 columns, and classes
    that leave it nothing to estimate. Rows with code −1 are left out.
    """
    if sp.issparse(X) or X.ndim != 2 or X.dtype.kind not in "fiub" or X.shape[1] > _MOST_COLUMNS:
        return None
    X, codes = np.asarray(X[codes >= 0], dtype=np.float64), codes[codes >= 0]
    classes = np.unique(codes)
    if len(classes) < 2 or len(X) <= len(classes) or not X.shape[1]:
        return None
    try:
        with np.errstate(all="ignore"):  # numbers that overflow are an error of eigh
            parts = [_covariance_parts(X[codes == c], len(X)) for c in classes]
            rows, ridges = (np.concatenate([p[0] for p in parts]), np.sum([p[1] for p in parts], axis=0))
            within, total = _covariance(rows, ridges), _covariance(*_covariance_parts(X, len(X)))
            directions = eigh(total - within, within)[1]
    except (ValueError, np.linalg.LinAlgError):
        return None
    leading = directions[:, ::-1][:, : len(classes) - 1]
    centre = X.mean(axis=0)
    return lambda rows: (np.asarray(rows, dtype=np.float64) - centre) @ leading


def _covariance_parts(X: np.ndarray, n_total: int) -> tuple[np.ndarray, np.ndarray]:
    """Return R and r: RᵀR + diag(r) is n / n_total times the covariance of n rows, shrunk in units of its deviations.

    With D = diag(deviations), Z the standardised rows and ρ the Ledoit–Wolf intensity the covariance is
    D [(1 − ρ) ZᵀZ / n + ρ μ I] D, μ the mean of the diagonal of ZᵀZ / n. Constant columns have zeros in Z and 1 in D.
    """
    n, d = X.shape
    is_constant = X.min(axis=0) == X.max(axis=0)  # though their mean is rounded
    centred = np.where(is_constant, 0.0, X - X.mean(axis=0))
    deviation = np.sqrt(np.einsum("ij,ij->j", centred, centred) / n)
    scale = np.where(deviation > 0, deviation, 1.0)
    Z = centred / scale
    gram = Z @ Z.T if n < d else Z.T @ Z
    mean = float(gram.trace()) / (n * d)
    rho = ledoit_wolf_intensity(n, d, mean, float(np.vdot(gram, gram)) / n**2, float((sq_norms(Z) ** 2).sum()))
    return np.sqrt((1.0 - rho) / n_total) * centred, (n / n_total * rho * mean) * scale**2


def _covariance(rows: np.ndarray, ridge: np.ndarray) -> np.ndarray:
    return rows.T @ rows + np.diag(ridge)
