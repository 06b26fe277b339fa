"""Second moments of centred rows, d × d or as diagonal plus low rank, and how much to shrink them.

Σ = Σ_i z_i z_iᵀ / n. Ledoit and Wolf (2004) shrink it to (1 − ρ) Σ + ρ μ I, μ = tr Σ / d, with

    ρ = min(1, noise / spread),   spread = ‖Σ‖²/d − μ²,   noise = (Σ_i ‖z_i‖⁴ − n ‖Σ‖²) / (d n²)

Fourth powers leave float64 long before squares do. So all of this is reckoned in a unit of variance of its own, a power
of two, which changes no digit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

__all__ = ["Scatter", "rounding_of", "unit_of"]

_CONSTANT = 1e-12  # of its size, a deviation that is rounding; of what it was taken off from, a variance that is
_LEAST = 1e-6  # shrinkage: a covariance with directions of no size must be invertible


def rounding_of(sizes: np.ndarray, means: np.ndarray, around_all: np.ndarray | float = 0.0) -> np.ndarray:
    """Variance that rounding may make in columns that are constant in every class.

    Of the means, whose squares say how large a column is; and of a difference, where the variance within classes is
    what is left of the one around the mean of all, `around_all`.
    """
    sq_size = sizes @ means**2 / max(int(sizes.sum()), 1)
    return _CONSTANT**2 * sq_size + _CONSTANT * around_all


def unit_of(variances: np.ndarray) -> float:
    """The power of two at the largest of them."""
    largest = float(variances.max(initial=0.0))
    return float(np.ldexp(1.0, int(np.frexp(largest)[1]) - 1)) if 0.0 < largest < np.inf else 1.0


@dataclass(frozen=True)
class Scatter:
    """The eigen-decomposition of Σ, and what shrinking it takes: a few directions beside a diagonal, or all of them.

    Σ = diag(rest) + V diag(values) Vᵀ; `rest` is None where V has all directions.
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
        """Of a whole matrix; columns with a variance no larger than `rounding` makes it are constant.

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
    def of_none(cls, d: int) -> Scatter:
        """Of no rows."""
        return cls(0, d, np.empty(0), np.empty((d, 0)), np.zeros(d), 0.0, 1.0, 0.0, 0.0)

    @property
    def intensity(self) -> float:
        """ρ."""
        spread = self.sq_norm / self.n_features - (self.mean / self.unit) ** 2
        if spread <= 0 or self.n == 0:
            return 1.0
        noise = (self.fourth - self.n * self.sq_norm) / (self.n_features * self.n**2)
        return float(min(max(noise / spread, _LEAST), 1.0))

    def shrunk(self, shrinkage: float | str, extra: float = 0.0) -> tuple[np.ndarray, np.ndarray | None]:
        """(values, rest) of the shrunk matrix: by Ledoit and Wolf, or with a number of μ added; and `extra` μ more."""
        rho, added = (self.intensity, 0.0) if shrinkage == "auto" else (0.0, float(shrinkage))
        level = (rho + added + extra) * self.mean
        values = (1.0 - rho) * self.values
        if self.rest is None:
            return values + level, None
        return values, (1.0 - rho) * self.rest + level
