"""The distance before learning, beside the learned one: two objects that are asked the same questions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import paired_euclidean_distances, pairwise_distances

from ..evaluation import Distance
from ..metric import Metric

__all__ = ["Euclidean", "among", "before_learning"]


@dataclass(frozen=True, eq=False)
class Euclidean:
    """Rows compared as they came, dense or sparse, or with columns divided by their scale."""

    scale: np.ndarray | None = None

    def distances(self, X: Any, Y: Any = None) -> np.ndarray:
        return pairwise_distances(self._scaled(X), None if Y is None else self._scaled(Y))

    def pair_distances(self, X: Any, Y: Any) -> np.ndarray:
        return paired_euclidean_distances(self._scaled(X), self._scaled(Y))

    def _scaled(self, X: Any) -> Any:
        X = _double(X)
        return X if self.scale is None else X / self.scale


def before_learning(metric: Metric, scale: np.ndarray | None = None) -> tuple[Distance, str]:
    """What rows were compared by before, and its name: the Euclidean distance, or that of the kernel."""
    if metric.coordinates.is_linear:
        came = "as they came" if scale is None else "with standardised columns"
        return Euclidean(scale), f"the Euclidean distance between rows {came}"
    return (
        metric.without_learning(),
        f"the distance of the kernel ({metric.coordinates.kernel_name}), with nothing learned",
    )


def among(distance: Distance, X: Any) -> np.ndarray:
    """Distances among rows, in double precision, of each with itself infinite: nobody is their own neighbour."""
    D = np.array(distance.distances(X), dtype=np.float64)
    np.fill_diagonal(D, np.inf)
    return D


def _double(X: Any) -> Any:
    return X.astype(np.float64) if sp.issparse(X) else np.asarray(X, dtype=np.float64)
