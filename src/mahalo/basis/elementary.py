"""Bases of singular vectors, random rows and random combinations."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from ..rows import Needs
from .base import EIGEN_ROWS, GRAM_ROWS, SUPPORT_ROWS, Basis, BasisData, indicator

_MOST_LANDMARKS, _LEFT_OUT = 200, 0.05  # default number of landmarks: as leave this share of κ(x, x), at most
_BATCH = 20  # landmarks drawn at once


class SingularVectors(Basis):
    """Leading k singular vectors of the rows.

    All rows are used up to 256 columns (2,000 for Dask); beyond, at most 20,000 rows, with a warning. In a kernel's
    feature space at most 2,000 rows are used, with a warning.
    """

    def needs(self, n_columns: int) -> Needs:
        return Needs("scatter" if n_columns <= EIGEN_ROWS else "none")

    def vectors(self, data: BasisData, rng: np.random.Generator) -> np.ndarray:
        from sklearn.utils.extmath import randomized_svd

        k = self._check_k()
        assert data.rows is not None
        few = data.condensed()
        if few is not None:
            _, singular, Vt = np.linalg.svd(few, full_matrices=False)
            return Vt[:k][singular[:k] > max(few.shape) * np.finfo(np.float64).eps * singular[0]].T
        X = data.rows.take(self._sample_rows(data, rng, SUPPORT_ROWS))
        _, singular, Vt = randomized_svd(X, min(k, *X.shape), random_state=int(rng.integers(2**31)))
        return Vt[singular > max(X.shape) * np.finfo(Vt.dtype).eps * singular[0]].T

    def coefficients(self, data: BasisData, rng: np.random.Generator) -> sp.csc_array:
        k = self._check_k()
        sampled = self._sample_rows(data, rng, EIGEN_ROWS)
        values, vectors = np.linalg.eigh(data.gram(sampled))
        leading = vectors[:, ::-1][:, : min(k, int((values > 1e-12 * values[-1]).sum()))]
        J = np.zeros((data.n_rows, leading.shape[1]))
        J[sampled] = leading
        return sp.csc_array(J)


class RandomSubset(Basis):
    """Basis of k rows drawn at random."""

    def coefficients(self, data: BasisData, rng: np.random.Generator) -> sp.csc_array:
        chosen = rng.choice(data.n_uniform, min(self._check_k(), data.n_uniform), replace=False)
        return indicator(data.n_rows, list(chosen[:, None]))


class Landmarks(Basis):
    """Basis of k rows that cover a kernel's feature space: the Nyström approximation.

    Rows are drawn with probabilities proportional to what the landmarks before them leave of κ(x, x) (randomly
    pivoted Cholesky), from at most 5,000 rows.

    Parameters
    ----------
    k : int, optional
        Number of landmarks, all rows if there are fewer. Default: as many as leave 5 % of the mean of κ(x, x), at most
        200.
    """

    needs_k_rows = False  # all rows are landmarks where they are fewer
    direction_name = "landmark"

    def __init__(self, k: int | None = None):
        self.k = k  # type: ignore[assignment]

    def coefficients(self, data: BasisData, rng: np.random.Generator) -> sp.csc_array:
        k, share = (_MOST_LANDMARKS, _LEFT_OUT) if self.k is None else (self._check_k(), 0.0)
        if share == 0.0 and k >= data.n_uniform:
            return indicator(data.n_rows, list(np.arange(data.n_uniform)[:, None]))
        rows = data.sample(rng, GRAM_ROWS)
        left = data.diagonal(rows)  # κ(x, x) less its part in the span of the landmarks
        smallest = 1e-12 * max(float(left.max(initial=0.0)), 1e-300)
        enough = share * float(left.sum())
        L = np.zeros((len(rows), 0))
        chosen: list[int] = []
        while len(chosen) < min(k, len(rows)) and (left > smallest).any() and not left.sum() < enough:
            n = min(_BATCH, k - len(chosen), int((left > smallest).sum()))
            weights = np.where(left > smallest, left, 0.0)
            pivots = rng.choice(len(rows), n, replace=False, p=weights / weights.sum())
            columns = data.block(rows, rows[pivots]) - L @ L[pivots].T
            values, vectors = np.linalg.eigh(columns[pivots])
            keep = values > max(smallest, 1e-10 * values[-1])
            new = columns @ (vectors[:, keep] / np.sqrt(values[keep]))
            L = np.concatenate([L, new], axis=1)
            left = np.maximum(left - np.einsum("ij,ij->i", new, new), 0.0)
            left[pivots] = 0.0
            chosen += pivots.tolist()
        if not chosen:
            raise ValueError(
                "no row can be a landmark: κ(x, x) is zero or negative for all rows. Use another kernel, or give k no "
                "smaller than the number of rows."
            )
        return indicator(data.n_rows, list(rows[np.array(chosen)][:, None]))


class RandomCombination(Basis):
    """Basis of k random combinations: Gaussian J over all rows, or over 2,000 of them with a warning if more."""

    def coefficients(self, data: BasisData, rng: np.random.Generator) -> sp.csc_array:
        k = self._check_k()
        sampled = self._sample_rows(data, rng, EIGEN_ROWS)
        J = sp.csr_array((np.ones(len(sampled)), (sampled, np.arange(len(sampled)))), shape=(data.n_rows, len(sampled)))
        return sp.csc_array(J @ (rng.standard_normal((len(sampled), k)) / np.sqrt(len(sampled))))
