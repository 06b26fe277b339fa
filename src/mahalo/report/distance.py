"""The distance before learning, beside the learned one: two objects that are asked the same questions."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import paired_euclidean_distances, pairwise_distances

from ..coordinates import LinearCoordinates
from ..metric import Metric

__all__ = ["Distance", "Euclidean", "among", "before_learning"]


class Distance(Protocol):
    def distances(self, X: Any, Y: Any = None) -> np.ndarray: ...

    def pair_distances(self, X: Any, Y: Any) -> np.ndarray: ...


@dataclass(frozen=True)
class Euclidean:
    """Rows compared as they came, dense or sparse."""

    def distances(self, X: Any, Y: Any = None) -> np.ndarray:
        return pairwise_distances(_double(X), None if Y is None else _double(Y))

    def pair_distances(self, X: Any, Y: Any) -> np.ndarray:
        return paired_euclidean_distances(_double(X), _double(Y))


def before_learning(metric: Metric) -> tuple[Distance, str]:
    """What rows were compared by before, and its name: the Euclidean distance, or that of the kernel."""
    c = metric.coordinates
    if isinstance(c, LinearCoordinates):
        return Euclidean(), "Euclidean distance"
    # κ = κ0 where F is the identity and nothing is left out
    plain = dataclasses.replace(c, residual=1.0)
    kind = c.kernel.kind if isinstance(c.kernel.kind, str) else "your own"
    unlearned = Metric(plain, np.eye(len(metric.F)))
    return unlearned, f"the distance of the kernel ({kind}), nothing learned"


def among(distance: Distance, X: Any) -> np.ndarray:
    """Distances among rows, in double precision, of each with itself infinite: nobody is their own neighbour."""
    D = np.array(distance.distances(X), dtype=np.float64)
    np.fill_diagonal(D, np.inf)
    return D


def _double(X: Any) -> Any:
    return X.astype(np.float64) if sp.issparse(X) else np.asarray(X, dtype=np.float64)
