"""Second moments of centred rows, d × d or diagonal plus low rank, and their shrinkage.

Σ = Σ_i z_i z_iᵀ / n. Ledoit and Wolf (2004) shrink it to (1 − ρ) Σ + ρ μ I, μ = tr Σ / d, with

    ρ = min(1, noise / spread),   spread = ‖Σ‖²/d − μ²,   noise = (Σ_i ‖z_i‖⁴ − n ‖Σ‖²) / (d n²)

Fourth powers overflow long before squares do. So all of this is computed in a unit of variance, a power of two, which
changes no digit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

_CONSTANT = 1e-12  # relative rounding error: of a deviation to the column's size, of a variance to the total variance
_MIN_SHRINKAGE = 1e-6  # makes a singular covariance invertible


def rounding_of(sizes: np.ndarray, means: np.ndarray, around_all: np.ndarray | float = 0.0) -> np.ndarray:
    """Return the variance that rounding may leave in columns that are constant in every class.

    It depends on the squared means and, where the variance within classes was computed by subtraction, on the variance
    around the common mean, `around_all`.
    """
    sq_size = sizes @ means**2 / max(int(sizes.sum()), 1)
    return _CONSTANT**2 * sq_size + _CONSTANT * around_all


def unit_of(variances: np.ndarray) -> float:
    """Return the power of two just below the largest variance."""
    largest = float(variances.max(initial=0.0))
    return float(np.ldexp(1.0, int(np.frexp(largest)[1]) - 1)) if 0.0 < largest < np.inf else 1.0


def ledoit_wolf_intensity(n: int, d: int, mean: float, sq_norm: float, fourth: float) -> float:
    """Return ρ for n rows z of d columns from μ, ‖Σ‖² and Σ ‖z‖⁴, all in one unit; at least 1e-6."""
    spread = sq_norm / d - mean**2
    if spread <= 0 or n == 0:
        return 1.0
    noise = (fourth - n * sq_norm) / (d * n**2)
    return float(min(max(noise / spread, _MIN_SHRINKAGE), 1.0))


@dataclass(frozen=True)
class Scatter:
    """Eigendecomposition of a second-moment matrix Σ, and the moments that its shrinkage needs.

    Σ = diag(rest) + V diag(values) Vᵀ; `rest` is None if V has all directions.
    """

    n: int
    n_features: int
    values: np.ndarray
    vectors: np.ndarray
    rest: np.ndarray | None
    mean: float  # μ
    unit: float
    sq_norm: float  # ‖Σ‖² / unit²
    fourth: float  # Σ ‖z‖⁴ / unit²

    @classmethod
    def of(cls, S: np.ndarray, n: int, fourth: Callable[[float], float], rounding: np.ndarray | float = 0.0) -> Scatter:
        """Return the scatter of a d × d matrix S of n rows; columns of variance ≤ `rounding` are constant.

        `fourth(unit)` is Σ (‖z‖² / unit)².
        """
        unit = unit_of(np.diagonal(S))
        varies = np.diagonal(S) > rounding
        values, vectors = np.linalg.eigh(S / unit * np.outer(varies, varies))
        values = np.maximum(values, 0.0)
        mean = float(values.mean()) if len(values) else 0.0
        sq_norm = float(values @ values)
        return cls(n, len(S), values * unit, vectors, None, mean * unit, unit, sq_norm, fourth(unit))

    @classmethod
    def empty(cls, d: int) -> Scatter:
        """Return the scatter of no rows."""
        return cls(0, d, np.empty(0), np.empty((d, 0)), np.zeros(d), 0.0, 1.0, 0.0, 0.0)

    @property
    def intensity(self) -> float:
        """Shrinkage intensity ρ of Ledoit and Wolf."""
        return ledoit_wolf_intensity(self.n, self.n_features, self.mean / self.unit, self.sq_norm, self.fourth)

    def shrink(self, shrinkage: float | str, extra: float = 0.0) -> tuple[np.ndarray, np.ndarray | None]:
        """Return (values, rest) of the shrunk matrix: "auto" is Ledoit and Wolf's, a number adds that many μ.

        `extra` μ is added in both cases.
        """
        rho, added = (self.intensity, 0.0) if shrinkage == "auto" else (0.0, float(shrinkage))
        level = (rho + added + extra) * self.mean
        values = (1.0 - rho) * self.values
        if self.rest is None:
            return values + level, None
        return values, (1.0 - rho) * self.rest + level
