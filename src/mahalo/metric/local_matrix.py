"""Local form of a metric: the matrix that measures small steps from a row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from ..linalg import symmetrize
from .input_checks import checked_rows

if TYPE_CHECKING:
    from .metric import Metric


def local_matrix(metric: Metric, x: ArrayLike) -> np.ndarray:
    """Return the matrix at one row, d × d: a small step δ from x has squared length δᵀ local_matrix(x) δ."""
    if not metric.coordinates.is_linear:
        raise ValueError(
            "a metric in the feature space of a kernel has no local matrix here; learn over features, such as "
            "features=Local() or Quadratic(), or with kernel='linear', features=None."
        )
    X = np.asarray(x, dtype=np.float64)
    if X.ndim != 1:
        raise ValueError(f"the local matrix is that at one row, of shape ({metric.n_features},); got shape {X.shape}.")
    X = X[None]
    (row,) = checked_rows(metric, X)
    scale = np.ones(len(row))
    if metric.scaling is not None:
        (row,), scale = metric.scaling.apply(row[None]), metric.scaling.scale
    J = np.eye(len(row)) if metric.features is None else metric.features.jacobian(row)
    columns = row if metric.features is None else metric.features.transform(row[None])[0]
    c = metric.linear_coordinates
    G = c.embed(np.concatenate([columns[None], J.T]), metric.root, metric.eta)
    point, steps = G[0], G[1:] / scale[:, None]  # embedded row; rows are embedded unit steps in each column
    if metric.normalize and (length := float(point @ point)) > 0:
        along = steps @ point
        return symmetrize((steps @ steps.T - np.outer(along, along) / length) / length)
    return symmetrize(steps @ steps.T)
