from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from ..rows import Needs
from .common import EIGEN_ROWS, SUPPORT_ROWS, Basis, Seen, indicator

__all__ = ["RandomCombination", "RandomSubset", "SingularVectors"]


class SingularVectors(Basis):
    """The k leading singular vectors of the rows.

    Up to 256 columns, of all rows; beyond, of at most 20,000 of them (in a kernel's feature space 2,000), with a
    warning where there are more. Of rows on Dask, of all of them up to 2,000 columns.
    """

    def __init__(self, k: int = 10):
        self.k = k

    def needs(self, n_columns: int) -> Needs:
        return Needs("scatter" if n_columns <= EIGEN_ROWS else "none")

    def vectors(self, seen: Seen, rng: np.random.Generator) -> np.ndarray:
        from sklearn.utils.extmath import randomized_svd

        k = self._checked_k()
        assert seen.rows is not None
        few = seen.condensed()
        if few is not None:
            _, singular, Vt = np.linalg.svd(few, full_matrices=False)
            return Vt[:k][singular[:k] > max(few.shape) * np.finfo(np.float64).eps * singular[0]].T
        X = seen.rows.take(self._drawn(seen, rng, SUPPORT_ROWS))
        _, singular, Vt = randomized_svd(X, min(k, *X.shape), random_state=int(rng.integers(2**31)))
        return Vt[singular > max(X.shape) * np.finfo(Vt.dtype).eps * singular[0]].T

    def coefficients(self, seen: Seen, rng: np.random.Generator) -> sp.csc_array:
        k = self._checked_k()
        used = self._drawn(seen, rng, EIGEN_ROWS)
        values, vectors = np.linalg.eigh(seen.gram(used))
        leading = vectors[:, ::-1][:, : min(k, int((values > 1e-12 * values[-1]).sum()))]
        J = np.zeros((seen.n_rows, leading.shape[1]))
        J[used] = leading
        return sp.csc_array(J)


class RandomSubset(Basis):
    """k rows drawn at random."""

    def __init__(self, k: int = 10):
        self.k = k

    def coefficients(self, seen: Seen, rng: np.random.Generator) -> sp.csc_array:
        chosen = rng.choice(seen.n_uniform, min(self._checked_k(), seen.n_uniform), replace=False)
        return indicator(seen.n_rows, list(chosen[:, None]))


class RandomCombination(Basis):
    """k random combinations: Gaussian J over all rows; where there are more than 2,000, over so many of them, with a
    warning."""

    def __init__(self, k: int = 10):
        self.k = k

    def coefficients(self, seen: Seen, rng: np.random.Generator) -> sp.csc_array:
        k = self._checked_k()
        used = self._drawn(seen, rng, EIGEN_ROWS)
        J = sp.csr_array((np.ones(len(used)), (used, np.arange(len(used)))), shape=(seen.n_rows, len(used)))
        return sp.csc_array(J @ (rng.standard_normal((len(used), k)) / np.sqrt(len(used))))
