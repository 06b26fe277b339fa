"""Distance before learning, with the methods of the learned one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import paired_euclidean_distances, pairwise_distances

from ..evaluation import Distance
from ..linalg import Matrix
from ..metric import Metric


@dataclass(frozen=True, eq=False)
class Euclidean:
    """Euclidean distance between rows, dense or sparse, with columns divided by their scale if there is one."""

    scale: np.ndarray | None = None

    def distances(self, X: Matrix, Y: Matrix | None = None) -> np.ndarray:
        return pairwise_distances(self._scaled(X), None if Y is None else self._scaled(Y))

    def pair_distances(self, X: Matrix, Y: Matrix) -> np.ndarray:
        return paired_euclidean_distances(self._scaled(X), self._scaled(Y))

    def _scaled(self, X: Matrix) -> Matrix:
        X = _double(X)
        return X if self.scale is None else X / self.scale


@dataclass(frozen=True, eq=False)
class NamedDistance:
    """A distance and its name in words."""

    distance: Distance
    name: str


def distance_before(
    metric: Metric, scale: np.ndarray | None = None, *, space_was_chosen: bool = False
) -> NamedDistance:
    """Return the distance before learning: the Euclidean distance, or that of a kernel unless that was chosen."""
    if metric.coordinates.is_linear or space_was_chosen:
        of_columns = "" if scale is None else " of standardised columns"
        return NamedDistance(Euclidean(scale), f"the Euclidean distance{of_columns}")
    kernel = metric.coordinates.kernel_name
    return NamedDistance(metric.without_learning(), f"the distance of the kernel ({kernel})")


def distance_matrix(distance: Distance, X: Matrix) -> np.ndarray:
    """Return the distances between rows in double precision, with an infinite diagonal: no row is its own neighbour."""
    D = np.array(distance.distances(X), dtype=np.float64)
    np.fill_diagonal(D, np.inf)
    return D


def _double(X: Matrix) -> Matrix:
    return X.astype(np.float64) if sp.issparse(X) else np.asarray(X, dtype=np.float64)
