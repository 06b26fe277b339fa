"""Standardisation of columns, and the metric of raw rows from one of standardised rows."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..linalg import to_dense
from ..types import Matrix

if TYPE_CHECKING:
    from .metric import Metric


@dataclass(frozen=True, eq=False)
class Scaling:
    """x ↦ (x − mean) / scale, column by column."""

    mean: np.ndarray
    scale: np.ndarray

    @classmethod
    def of(cls, X: np.ndarray) -> Scaling:
        """Return the scaling to mean 0 and deviation 1 of the columns of X; a constant column keeps its scale."""
        mean, variance = X.mean(axis=0, dtype=np.float64), X.var(axis=0, dtype=np.float64)
        return cls.from_moments(mean, variance, np.abs(X).max(axis=0, initial=0.0))

    @classmethod
    def from_moments(cls, mean: np.ndarray, variance: np.ndarray, largest: np.ndarray) -> Scaling:
        """Build from moments of the columns; `largest` is the largest absolute value of each."""
        scale = np.sqrt(variance)
        return cls(mean, np.where(scale <= 1e-12 * largest, 1.0, scale))

    def apply(self, X: Matrix) -> np.ndarray:
        """Return scaled rows, computed in float64, in the precision of X, single at least."""
        scaled = (to_dense(X).astype(np.float64, copy=False) - self.mean) / self.scale
        return scaled.astype(np.promote_types(X.dtype, np.float32), copy=False) if X.dtype.kind == "f" else scaled


def absorb_scaling(metric: Metric, scaling: Scaling) -> Metric:
    """Return the metric of x, from one learned on (x − mean) / scale.

    Distances of a linear metric know differences alone: W becomes S⁻¹ W S⁻¹, in the root of the prior. By cosine the
    mean counts, and under a kernel both do; then the metric keeps them and applies them first.
    """
    if not metric.is_linear or metric.normalize:
        return dataclasses.replace(metric, scaling=scaling)
    c = metric.linear_coordinates
    root = np.ones(c.n_features) if c.prior.root is None else c.prior.root
    root = root / (scaling.scale if root.ndim == 1 else scaling.scale[:, None])
    prior = dataclasses.replace(c.prior, root=root)
    return dataclasses.replace(metric, coordinates=dataclasses.replace(c, prior=prior))
