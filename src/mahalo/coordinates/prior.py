from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from ..linalg import column_variances, shrunk_correlation, spd_factor, spd_roots

__all__ = ["Prior"]


@dataclass(frozen=True)
class Prior:
    """W0 through a root, W0 = root rootᵀ: x → rootᵀ x makes every prior the identity.

    root is None (identity), a vector (diagonal W0) or a matrix. `shrinkage` is what was needed to make a singular
    covariance invertible, 0 if nothing was.
    """

    root: np.ndarray | None = None
    shrinkage: float = 0.0

    @classmethod
    def of(cls, prior, X) -> Prior:
        """From the `prior` parameter of a learner: a name, or an SPD matrix."""
        if isinstance(prior, str):
            if prior == "identity":
                return cls()
            if prior == "diagonal":
                return cls(1.0 / np.sqrt(column_variances(X)))
            if prior == "covariance":
                # W0 = D^−½ R⁻¹ D^−½: the units of the columns, in D, stay out of the factorization of R.
                correlation, deviation, shrinkage = shrunk_correlation(X)
                values, vectors = spd_factor(correlation, "the correlation matrix of X")
                return cls(spd_roots(values, vectors)[1] / deviation[:, None], shrinkage)
            raise ValueError(f"prior must be 'identity', 'diagonal', 'covariance' or an SPD matrix; got {prior!r}.")
        values, vectors = spd_factor(prior, "prior")
        if len(values) != X.shape[1]:
            raise ValueError(
                f"prior must be {X.shape[1]} × {X.shape[1]}, one row a feature; got {len(values)} × {len(values)}."
            )
        return cls(spd_roots(values, vectors)[0])

    def compose(self, M: np.ndarray) -> np.ndarray:
        """root M: for rows as they come, what M is for whitened ones (x ↦ Mᵀ rootᵀ x)."""
        if self.root is None:
            return M
        return self.root @ M if self.root.ndim == 2 else self.root[:, None] * M

    def whiten(self, X):
        """Rows rootᵀ x; sparse stays sparse unless W0 is dense."""
        if self.root is None:
            return X
        root = self.root.astype(X.dtype, copy=False) if X.dtype.kind == "f" else self.root
        if root.ndim == 2:
            return np.asarray(X @ root)
        return sp.csr_array(X.multiply(root)) if sp.issparse(X) else X * root

    def whitened(self, X):
        """All rows rootᵀ x: an array, or, where that would densify a sparse X, a view that makes rows when asked."""
        dense_root = self.root is not None and self.root.ndim == 2
        return _WhitenedRows(X, self) if sp.issparse(X) and dense_root else self.whiten(X)


@dataclass(frozen=True)
class _WhitenedRows:
    """Rows of `prior.whiten(X)`, made as they are indexed."""

    X: sp.csr_array
    prior: Prior
    densifies = True

    @property
    def shape(self) -> tuple[int, int]:
        return self.X.shape

    def __getitem__(self, rows) -> np.ndarray:
        return self.prior.whiten(self.X[rows])

    def __rmatmul__(self, J):
        """J Z, through J X."""
        return self.prior.whiten(J @ self.X)
