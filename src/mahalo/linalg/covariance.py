from __future__ import annotations

import numpy as np
import scipy.sparse as sp

__all__ = ["column_variances", "shrunk_correlation"]


def _moments(X) -> tuple[np.ndarray, np.ndarray]:
    """Column means and variances, without a dense copy of sparse X."""
    if sp.issparse(X):
        # Σ (x − μ)² over the entries, μ² for each zero: a constant column comes out as one, E x² − μ² would not do.
        entries = sp.coo_array(X)
        entries.sum_duplicates()
        n, d = X.shape
        column = entries.coords[1]
        mean = np.bincount(column, entries.data, minlength=d) / n
        square = np.bincount(column, (entries.data - mean[column]) ** 2, minlength=d)
        return mean, (square + (n - np.bincount(column, minlength=d)) * mean**2) / n
    mean = X.mean(axis=0, dtype=np.float64)
    return mean, X.var(axis=0, dtype=np.float64)


def column_variances(X) -> np.ndarray:
    """Variance of each column; a constant column gets the mean of the others (1 if all are constant).

    A constant column separates no two points seen so far, so any positive value is admissible; this one keeps
    the prior on the scale of the data.
    """
    mean, variance = _moments(X)
    scale = np.maximum(np.abs(mean), np.sqrt(variance))
    constant = variance <= (1e-12 * scale) ** 2
    usual = variance[~constant].mean() if not constant.all() else 1.0
    return np.where(constant, usual, variance)


def shrunk_correlation(X) -> tuple[np.ndarray, np.ndarray, float]:
    """Correlations of the columns, shrunk only where they are singular, deviations, and the amount of shrinkage.

    With R the correlation matrix and D the column variances the covariance is D^½ [(1−ρ) R + ρ I] D^½. Where R
    has full rank ρ is 0, the ordinary covariance. Where it has not (fewer rows than columns, dependent or
    constant columns) ρ is the Ledoit–Wolf intensity of the standardised data, at least 1e-6. Shrinking
    correlations rather than covariances keeps the result equivariant to the units of each column.
    """
    n, d = X.shape
    mean, _ = _moments(X)
    deviation = np.sqrt(column_variances(X))
    if sp.issparse(X):
        # Σ = (XᵀX)/n − μμᵀ: d × d is formed, n × d is not.
        Z = X.multiply(1.0 / deviation).tocsr()
        centre = mean / deviation
        R = np.asarray((Z.T @ Z).todense(), dtype=np.float64) / n - np.outer(centre, centre)
    else:
        Z = (X - mean) / deviation
        R = Z.T @ Z / n
        centre = np.zeros(d)
    values = np.linalg.eigvalsh(R)
    rho = 0.0
    if values[0] <= 1e-10 * max(values[-1], 1e-300):
        rho = min(max(_ledoit_wolf_intensity(Z, centre, R), 1e-6), 1.0)
        # Constant columns have R_jj = 0 (others 1); the identity gives them their (substitute) unit variance back.
        added = np.where(np.diagonal(R) > 0.5, rho, 1.0)
        R = (1.0 - rho) * R
        R[np.diag_indices(d)] += added
    return R, deviation, rho


def _ledoit_wolf_intensity(Z, centre: np.ndarray, R: np.ndarray) -> float:
    """Intensity ρ of Ledoit and Wolf (2004) for rows Z − centre with second-moment matrix R."""
    n, d = Z.shape
    mu = np.trace(R) / d
    spread = (R**2).sum() / d - mu**2
    if spread <= 0:
        return 1.0
    # Σ_i ‖z_i z_iᵀ − R‖² = Σ_i ‖z_i‖⁴ − n ‖R‖²  (rows centred; cross terms for sparse rows expanded)
    if sp.issparse(Z):
        sq_norm = np.asarray(Z.multiply(Z).sum(axis=1)).ravel() - 2 * (Z @ centre) + centre @ centre
    else:
        sq_norm = np.einsum("ij,ij->i", Z, Z)
    noise = ((sq_norm**2).sum() - n * (R**2).sum()) / (d * n**2)
    return min(noise / spread, 1.0)
