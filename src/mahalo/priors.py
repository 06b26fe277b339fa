"""The metric to start from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from .linalg import column_variances, shrunk_correlation, spd_factor, spd_roots
from .rows import MappedRows, Rows

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
    def of(cls, prior, rows: Rows) -> Prior:
        """From the `prior` parameter of a learner: a name, or an SPD matrix."""
        if isinstance(prior, str):
            if prior == "identity":
                return cls()
            if prior == "diagonal":
                return cls(1.0 / np.sqrt(column_variances(rows.blocks)))
            if prior == "covariance":
                # W0 = D^−½ R⁻¹ D^−½: the units of the columns, in D, stay out of the factorization of R.
                correlation, deviation, shrinkage = shrunk_correlation(rows.blocks)
                values, vectors = spd_factor(correlation, "the correlation matrix of X")
                return cls(spd_roots(values, vectors)[1] / deviation[:, None], shrinkage)
            raise ValueError(f"prior must be 'identity', 'diagonal', 'covariance' or an SPD matrix; got {prior!r}.")
        values, vectors = spd_factor(prior, "prior")
        n_features = rows.shape[1]
        if len(values) != n_features:
            raise ValueError(
                f"prior must be {n_features} × {n_features}, one row a feature; got {len(values)} × {len(values)}."
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

    def whitened(self, rows: Rows) -> Rows:
        """The rows rootᵀ x, made as they are asked for."""
        if self.root is None:
            return rows
        return MappedRows(rows, self.whiten, rows.shape[1], linear=True, dense=self.root.ndim == 2)
