"""Means, variances and correlations of columns, from blocks of rows, dense or sparse.

A callable returns the blocks anew for each of two passes: first for means, then for deviations from them. E x² − μ² in
one pass would lose all digits where μ² is far above the variance.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from ..types import Matrix
from .blocks import Blocks, sq_norms
from .scatter import ledoit_wolf_intensity

_FAR = 3.0  # deviations; a column whose mean is farther from zero has few zeros: k of them make k μ² ≤ n σ²


class Moments(NamedTuple):
    """Number of rows, and mean and variance of every column."""

    n: int
    mean: np.ndarray
    variance: np.ndarray


def moments(blocks: Blocks) -> Moments:
    """Return mean and variance of every column; the second pass corrects the rounding error of the mean."""
    sizes, sums = zip(*((block.shape[0], _sums(block)) for block in blocks()), strict=True)
    n = sum(sizes)
    centre: np.ndarray = np.sum(sums, axis=0) / n
    first, second = np.zeros_like(centre), np.zeros_like(centre)
    for block in blocks():
        deviations, squares = centred_sums(block, centre)
        first += deviations
        second += squares
    rest = first / n
    return Moments(n, centre + rest, np.maximum(second / n - rest**2, 0.0))


def _sums(block: Matrix) -> np.ndarray:
    if isinstance(block, np.ndarray):
        return block.sum(axis=0, dtype=np.float64)
    return np.bincount(block.indices, block.data, minlength=block.shape[1])


def centred_sums(block: Matrix, centre: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return Σ (x − c) and Σ (x − c)² of every column; zeros of sparse columns add −c and c² each."""
    if isinstance(block, np.ndarray):
        Z = block - centre
        return Z.sum(axis=0), np.einsum("ij,ij->j", Z, Z)
    n, d = block.shape
    column = block.indices
    z = block.data - centre[column]
    n_zeros = n - np.bincount(column, minlength=d)
    return (
        np.bincount(column, z, minlength=d) - n_zeros * centre,
        np.bincount(column, z**2, minlength=d) + n_zeros * centre**2,
    )


def scatter_around(blocks: Blocks, centre: np.ndarray) -> np.ndarray:
    """Return Σ z zᵀ over the rows z = x − centre, computed in units of the columns' deviations."""
    n, squares = 0, np.zeros_like(centre)
    for block in blocks():
        n += block.shape[0]
        squares += centred_sums(block, centre)[1]
    deviation = np.sqrt(squares / n)
    scale = np.where(deviation > 0, deviation, 1.0)
    return n * second_moment(blocks, centre, scale) * np.outer(scale, scale)


def second_moment(blocks: Blocks, centre: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Return Σ z zᵀ / n over the rows z = (x − centre) / scale."""
    n, total = 0, np.zeros((len(centre), len(centre)))
    for block in blocks():
        n += block.shape[0]
        total += _products(block, centre, scale)
    return total / n


def _products(block: Matrix, centre: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Return Σ z zᵀ over the rows of one block."""
    if isinstance(block, np.ndarray):
        Z = (block - centre) / scale
        return Z.T @ Z
    far, D, S, o = _split_columns(block, centre, scale)
    # Σ (s − o)(s − o)ᵀ = SᵀS − M − Mᵀ with M = (Σ s − n o / 2) oᵀ;  Σ (s − o) dᵀ = SᵀD − o (Σ d)ᵀ
    M = np.outer(_sums(S) - 0.5 * S.shape[0] * o, o)
    cross = S.T @ D - np.outer(o, D.sum(axis=0))
    products = np.empty((len(centre), len(centre)))
    products[np.ix_(~far, ~far)] = (S.T @ S).toarray() - M - M.T
    products[np.ix_(~far, far)] = cross
    products[np.ix_(far, ~far)] = cross.T
    products[np.ix_(far, far)] = D.T @ D
    return products


def condense_rows(n: int, mean: np.ndarray, deviation: np.ndarray, R: np.ndarray) -> np.ndarray:
    """Return at most d + 1 rows with the Σ x xᵀ of n rows of these means, deviations and correlations R.

    With R = V diag(r) Vᵀ that is n μ μᵀ + n D V diag(r) Vᵀ D: the rows are √n μ and √(n r_j) D v_j.
    """
    r, V = np.linalg.eigh(R)
    positive = r > len(r) * np.finfo(np.float64).eps * max(r[-1], 0.0)
    return np.sqrt(n) * np.vstack([mean, np.sqrt(r[positive])[:, None] * V[:, positive].T * deviation])


def scaled_sq_norms(block: Matrix, centre: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Return ‖z‖² of each row z = (x − centre) / scale of one block."""
    if isinstance(block, np.ndarray):
        return sq_norms((block - centre) / scale)
    _, D, S, o = _split_columns(block, centre, scale)
    # ‖s − o‖² + ‖d‖²
    return sq_norms(S) - 2 * (S @ o) + o @ o + sq_norms(D)


def _split_columns(
    block: sp.csr_array, centre: np.ndarray, scale: np.ndarray
) -> tuple[np.ndarray, np.ndarray, sp.csr_array, np.ndarray]:
    """Return sparse rows z in two parts, (far, D, S, o) with z[far] = d and z[~far] = s − o.

    Columns far from zero have few zeros, and are centred as dense ones. The others stay sparse and uncentred, with
    means so small that correcting their products loses no more than a digit or two.
    """
    far = far_from_zero(centre, scale)
    D = (block[:, far].toarray() - centre[far]) / scale[far]
    S = sp.csr_array(block[:, ~far].multiply(1.0 / scale[~far]))
    return far, D, S, centre[~far] / scale[~far]


def far_from_zero(centre: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    """Return the mask of columns whose uncentred products would lose digits."""
    return np.abs(centre) > _FAR * deviation


def centre_far_columns(X: Matrix) -> sp.csr_array:
    """Subtract the mean from those columns of sparse X that are far from zero, and so have few zeros."""
    X = sp.csr_array(X)
    n = max(X.shape[0], 1)
    mean = np.asarray(X.sum(axis=0)).ravel() / n
    mean += centred_sums(X, mean)[0] / n
    far = far_from_zero(mean, np.sqrt(centred_sums(X, mean)[1] / n))
    shift = sp.csr_array(np.where(far, mean, 0.0)[None])
    return sp.csr_array(X - sp.csr_array(np.ones((X.shape[0], 1))) @ shift)


def column_variances(blocks: Blocks) -> np.ndarray:
    """Return the variance of each column; a constant column gets the mean of the others (1 if all are constant).

    A constant column separates no two rows, so any positive value is admissible; this one keeps the prior on the scale
    of the data.
    """
    return positive_variances(moments(blocks))


def positive_variances(columns: Moments) -> np.ndarray:
    """Return the variances, with the mean of the others for constant columns."""
    scale = np.maximum(np.abs(columns.mean), np.sqrt(columns.variance))
    constant = columns.variance <= (1e-12 * scale) ** 2
    usual = columns.variance[~constant].mean() if not constant.all() else 1.0
    return np.where(constant, usual, columns.variance)


def shrunk_correlation(blocks: Blocks) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the correlations of the columns, shrunk only if singular, the deviations, and the shrinkage.

    With R the correlation matrix and D the column variances the covariance is D^½ [(1−ρ) R + ρ I] D^½. Where R
    has full rank ρ is 0, the ordinary covariance. Where it has not (fewer rows than columns, dependent or
    constant columns) ρ is the Ledoit–Wolf intensity of the standardised data, at least 1e-6. Shrinking
    correlations rather than covariances keeps the result equivariant to the units of each column.
    """
    found = moments(blocks)
    deviation = np.sqrt(positive_variances(found))

    def fourth() -> float:
        return float(sum((scaled_sq_norms(block, found.mean, deviation) ** 2).sum() for block in blocks()))

    R, rho = make_invertible(second_moment(blocks, found.mean, deviation), found.n, fourth)
    return R, deviation, rho


def make_invertible(R: np.ndarray, n: int, fourth: Callable[[], float]) -> tuple[np.ndarray, float]:
    """Return the correlations R of n rows, shrunk if singular, and the shrinkage; `fourth()` is Σ ‖z‖⁴."""
    values = np.linalg.eigvalsh(R)
    if values[0] > 1e-10 * max(values[-1], 1e-300):
        return R, 0.0
    d = len(R)
    rho = ledoit_wolf_intensity(n, d, float(np.trace(R)) / d, float((R**2).sum()), fourth())
    # Constant columns have R_jj = 0 (others 1); the identity gives them unit variance.
    added = np.where(np.diagonal(R) > 0.5, rho, 1.0)
    R = (1.0 - rho) * R
    R[np.diag_indices_from(R)] += added
    return R, rho
