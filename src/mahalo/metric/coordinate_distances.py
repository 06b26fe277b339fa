"""Distances between fixed rows under many metrics over the same coordinates."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ..linalg import sq_norms
from .pairwise import cosines, is_positive

if TYPE_CHECKING:
    from .metric import Metric


class CoordinateDistances:
    """Squared distances of all rows of X to all rows of Y under κ = φᵀ F φ + w (κ0 − φᵀφ), for any F and w.

    φ and κ0 − φᵀφ of the rows are computed once, also where Y is X; rows are dense vectors in double precision.
    """

    def __init__(self, metric: Metric, X: np.ndarray, Y: np.ndarray) -> None:
        self.features, self.coordinates = metric.features, metric.coordinates
        if metric.features is not None:
            X, Y = metric.features.transform(X), metric.features.transform(Y)
        self.phi_x = self.coordinates.map(X)
        self.phi_y = self.phi_x if Y is X else self.coordinates.map(Y)
        self._rows = X, Y

    def is_for(self, metric: Metric) -> bool:
        """Return whether a metric has these features and coordinates, whatever its core matrix and residual."""
        return metric.features is self.features and metric.coordinates.shares_map(self.coordinates)

    @cached_property
    def _outside(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """κ0 − φᵀφ of all rows of X with all rows of Y, and of the rows of each with themselves."""
        X, Y = self._rows
        own_x = self.coordinates.base_diagonal(X) - sq_norms(self.phi_x)
        own_y = own_x if Y is X else self.coordinates.base_diagonal(Y) - sq_norms(self.phi_y)
        return self.coordinates.base(X, Y) - self.phi_x @ self.phi_y.T, own_x, own_y

    def sq_distances(self, metric: Metric) -> np.ndarray:
        """Return squared distances of all rows of X to all rows of Y."""
        F, weight = metric.F, metric.base_weight
        moved = self.phi_x @ F
        K = moved @ self.phi_y.T
        own_x = np.einsum("ij,ij->i", moved, self.phi_x)
        own_y = own_x if self.phi_y is self.phi_x else np.einsum("ij,ij->i", self.phi_y @ F, self.phi_y)
        if weight and self.coordinates.leaves_out:
            outside, outside_x, outside_y = self._outside
            K += weight * outside
            own_x, own_y = own_x + weight * outside_x, own_y + weight * outside_y
        if metric.normalize:
            K, own_x, own_y = cosines(K, own_x, own_y), is_positive(own_x), is_positive(own_y)
        K *= 2.0
        distances = own_x[:, None] + own_y
        distances -= K
        return distances
