"""Quadratic features: a metric that varies linearly with place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from ..persistence import FileParts
from ..validation import check_count
from .base import Standardisation, standardise

_MAX_FACTORS = 40  # columns whose products are all formed


class Quadratic(BaseEstimator):
    """Columns x̃ and x̃_i x̃_j (√2 if i ≠ j) / √d, i ≤ j: a metric that varies linearly with place.

    x̃ = (x − mean) / s, s² the mean variance of the columns, so that a shift of the rows changes no distance and a
    factor scales all of them. The columns are those of the base kernel κ0(x, y) = s² (1 + ⟨x̃, ỹ⟩/d) ⟨x̃, ỹ⟩, and
    there are d + d(d + 1)/2 of them.

    Parameters
    ----------
    n_factors : int, optional
        Number of leading principal components whose products are formed, in place of all products of columns.
        Default: all columns, or 40 components where columns are more.
    """

    def __init__(self, n_factors: int | None = None) -> None:
        self.n_factors = n_factors

    def fit_map(self, X: np.ndarray, seed: int) -> QuadraticMap:
        """Return the map fitted to rows: their standardisation, and directions where columns are many."""
        check_count(self.n_factors, "n_factors", or_none=True)
        standardisation = standardise(X)
        n_factors = _MAX_FACTORS if self.n_factors is None else int(self.n_factors)
        if X.shape[1] <= n_factors:
            return QuadraticMap(standardisation, None)
        Z = standardisation.apply(X)
        _, vectors = np.linalg.eigh(Z.T @ Z)
        return QuadraticMap(standardisation, vectors[:, ::-1][:, :n_factors])


@dataclass(frozen=True, eq=False)
class QuadraticMap:
    """Fitted `Quadratic` features; `directions` (d × k) are None where all products of columns are formed."""

    standardisation: Standardisation
    directions: np.ndarray | None
    kind: ClassVar[str] = "quadratic"

    @property
    def n_features_in(self) -> int:
        return len(self.standardisation.mean)

    @property
    def _n_factors(self) -> int:
        return self.n_features_in if self.directions is None else self.directions.shape[1]

    @property
    def n_columns(self) -> int:
        k = self._n_factors
        return self.n_features_in + k * (k + 1) // 2

    def transform(self, X: np.ndarray) -> np.ndarray:
        """Return s (x̃, z_i z_j (√2 if i ≠ j) / √k) of every row, z = x̃ or its leading components."""
        x = self.standardisation.apply(X)
        z = x if self.directions is None else x @ self.directions
        i, j, weights = self.products()
        products = z[:, i] * z[:, j] * weights
        return self.standardisation.scale * np.concatenate([x, products], axis=1)

    def jacobian(self, x: np.ndarray) -> np.ndarray:
        """Return ∂φ/∂x at one row, n_columns × d."""
        (row,) = self.standardisation.apply(x[None])
        D = np.eye(len(row)) if self.directions is None else self.directions.T  # ∂z/∂x̃
        z = D @ row
        i, j, weights = self.products()
        products = (D[i] * z[j, None] + D[j] * z[i, None]) * weights[:, None]
        return np.concatenate([np.eye(len(row)), products])  # s · ∂/∂x̃ · 1/s

    def products(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return i, j and the weight of every product z_i z_j, i ≤ j."""
        i, j = np.triu_indices(self._n_factors)
        return i, j, np.where(i == j, 1.0, np.sqrt(2.0)) / np.sqrt(self._n_factors)

    def file_parts(self) -> FileParts:
        scale, mean = self.standardisation.scale, self.standardisation.mean
        fields = {"features": self.kind, "features_scale": scale}
        return FileParts(fields, {"features_mean": mean, "features_directions": self.directions})
