"""Weights of the columns under a metric over features g(x) ⊗ x: means of its local matrices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..features import LocalMap
from ..metric import Metric, Scaling
from .frames import data_frame

if TYPE_CHECKING:
    from pandas import DataFrame

_MOST_ROWS = 200  # rows of each region, or in all, at which the local matrix is computed


@dataclass(frozen=True, eq=False)
class LocalWeights:
    """Means of the local matrix over rows, and over the rows of every region of `Local` features.

    Attributes
    ----------
    matrix : ndarray of shape (n_features, n_features)
        Mean of `Metric.at` over the rows.
    regions : dict of str to ndarray of shape (n_features,)
        Diagonal of the mean over the rows that belong most to each region; empty for other features.
    deviation : ndarray of shape (n_features,)
        Standard deviations σ_j of the features. Tables show weights per standard deviation, σ_j matrix_jk σ_k.
    """

    matrix: np.ndarray
    regions: dict[str, np.ndarray]
    deviation: np.ndarray

    def features(self, names: Sequence[str]) -> DataFrame:
        """Return one row for each feature, the largest weights first."""
        variance = self.deviation**2
        weight = np.diagonal(self.matrix) * variance
        order = np.argsort(-weight, kind="stable")
        columns = {"weight": weight[order]} | {name: (part * variance)[order] for name, part in self.regions.items()}
        return data_frame(columns, [names[j] for j in order], "feature")

    def pairs(self, names: Sequence[str]) -> DataFrame:
        """Return one row for each pair of features, largest absolute weights first."""
        j, k = np.triu_indices(len(self.matrix), 1)
        weight = self.matrix[j, k] * self.deviation[j] * self.deviation[k]
        order = np.argsort(-np.abs(weight), kind="stable")
        first, second = ([names[f] for f in end[order]] for end in (j, k))
        return data_frame({"with": second, "weight": weight[order]}, first, "feature")


def local_weights(metric: Metric, X: np.ndarray) -> LocalWeights:
    """Return the weights of features at the rows of X, at most 200 of each region."""
    X = np.asarray(X, dtype=np.float64)
    regions = _regions(metric, X)
    means = {name: np.mean([metric.at(X[row]) for row in _sample(rows)], axis=0) for name, rows in regions.items()}
    matrix = np.average(list(means.values()), axis=0, weights=[len(rows) for rows in regions.values()])
    diagonals = {name: np.diagonal(mean) for name, mean in means.items()} if len(means) > 1 else {}
    return LocalWeights(matrix, diagonals, Scaling.of(X).scale)


def _regions(metric: Metric, X: np.ndarray) -> dict[str, np.ndarray]:
    """Return the rows that belong most to each region that has any; all rows where there are no regions."""
    if not isinstance(metric.features, LocalMap):
        return {"all": np.arange(len(X))}
    rows = X if metric.scaling is None else metric.scaling.apply(X)
    nearest = metric.features.memberships(rows).argmax(axis=1)
    return {f"region {j + 1}": np.flatnonzero(nearest == j) for j in np.unique(nearest).tolist()}


def _sample(rows: np.ndarray) -> np.ndarray:
    if len(rows) <= _MOST_ROWS:
        return rows
    return np.sort(np.random.default_rng(0).choice(rows, _MOST_ROWS, replace=False))
