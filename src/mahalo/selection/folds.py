"""Training and held-out rows, and distances between them under the variants of one solution."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..constraints import Constraints
from ..coordinates import LinearCoordinates
from ..evaluation import pair_auc
from ..metric import Metric, cosines, is_positive, leading_part

__all__ = ["Fold"]


@dataclass(frozen=True)
class Fold:
    """Training and held-out rows; with a precomputed kernel, rows of similarities to the training rows.

    `y` holds class codes, −1 for unlabelled rows, `labels` the labels as they were given.
    """

    X: Any
    y: np.ndarray | None
    labels: np.ndarray | None
    rows: np.ndarray
    train: np.ndarray
    test: np.ndarray
    pairwise: bool
    kept: dict = field(default_factory=dict, repr=False)  # what tasks on the training rows share
    _parts_kept: dict = field(default_factory=dict, repr=False)

    @cached_property
    def X_train(self) -> Any:
        return self.X[np.ix_(self.train, self.train)] if self.pairwise else self.X[self.train]

    @cached_property
    def X_test(self) -> Any:
        return self.X[np.ix_(self.test, self.train)] if self.pairwise else self.X[self.test]

    @property
    def y_train(self) -> np.ndarray | None:
        return None if self.y is None else self.y[self.train]

    @property
    def y_test(self) -> np.ndarray | None:
        return None if self.y is None else self.y[self.test]

    def labels_of(self, part: np.ndarray) -> np.ndarray | None:
        return None if self.labels is None else self.labels[part]

    @property
    def train_rows(self) -> np.ndarray:
        return self.rows[self.train]

    # -- distances under one variant of a metric --------------------------------------------------------------------

    def variant(self, metric: Metric, n_components: int | None, normalize: bool) -> Metric:
        """The metric by distance or by cosine, or of fewer directions."""
        metric = dataclasses.replace(metric, normalize=normalize)
        if n_components is None:
            return metric
        # A part of the rows may have fewer outputs than all.
        return leading_part(metric, self.X_train, min(n_components, metric.n_outputs))

    def sq_distances(self, metric: Metric, *, among: bool) -> np.ndarray:
        """Of held-out rows to training rows, or among themselves."""
        c = metric.coordinates
        if isinstance(c, LinearCoordinates) and c.basis is not None and not sp.issparse(self.X):
            return self._parts(c, among, centred=not metric.normalize).sq_distances(metric)
        if not self.pairwise:
            return metric.distances(self.X_test, None if among else self.X_train, squared=True)
        own = np.diagonal(self.X)
        if among:
            return metric.distances(self.X_test, squared=True, cross=self.X[np.ix_(self.test, self.test)])
        cross = self.X_test
        return metric.distances(
            cross, self.X_train, squared=True, cross=cross, diag_x=own[self.test], diag_y=own[self.train]
        )

    def sq_query_distances(self, metric: Metric, queries: np.ndarray, index: np.ndarray, *, among: bool) -> np.ndarray:
        """Return squared distances of some held-out rows to some training rows, or to some held-out rows.

        `queries` are positions among the held-out rows, `index` among the training rows (held-out rows if `among`).
        """
        if not self.pairwise:
            return metric.distances(self.X_test[queries], (self.X_test if among else self.X_train)[index], squared=True)
        own, a, b = np.diagonal(self.X), self.test[queries], (self.test if among else self.train)[index]
        return metric.distances(
            self.X[np.ix_(a, self.train)],
            self.X[np.ix_(b, self.train)],
            squared=True,
            cross=self.X[np.ix_(a, b)],
            diag_x=own[a],
            diag_y=own[b],
        )

    def _parts(self, c: LinearCoordinates, among: bool, centred: bool) -> _Parts:
        """What all metrics over the same basis share, kept for the last one asked for."""
        kept = self._parts_kept.get((among, centred))
        if kept is None or kept.coordinates.basis is not c.basis:
            X, Y = (rows.astype(np.float64) for rows in (self.X_test, self.X_test if among else self.X_train))
            if centred:  # a common shift changes no distance and spares digits where rows are far from the origin
                centre = Y.mean(axis=0)
                X, Y = X - centre, Y - centre
            kept = self._parts_kept[among, centred] = _Parts(c, X, Y)
        return kept

    def auc(self, metric: Metric, constraints: Constraints | None) -> float:
        """Of telling similar from dissimilar pairs among held-out rows."""
        sq_distances = partial(self.sq_pair_distances, metric)
        return pair_auc(sq_distances, len(self.test), self.y_test, constraints, self.rows[self.test])

    def sq_pair_distances(self, metric: Metric, index: np.ndarray) -> np.ndarray:
        """Of pairs of held-out rows."""
        i, j = index.T
        if not self.pairwise:
            return metric.pair_distances(self.X_test[i], self.X_test[j], squared=True)
        a, b = self.test[i], self.test[j]
        own = np.diagonal(self.X)
        return metric.pair_distances(
            self.X_test[i], self.X_test[j], squared=True, cross=self.X[a, b], diag_x=own[a], diag_y=own[b]
        )


class _Parts:
    """κ = φᵀ F φ + w (κ0 − φᵀφ) of some rows with others: φ and the second term's factor, whatever F and w are."""

    def __init__(self, coordinates: LinearCoordinates, X: np.ndarray, Y: np.ndarray):
        self.coordinates = coordinates
        self.phi_x, self.phi_y = coordinates.map(X), coordinates.map(Y)
        self._rows = X, Y

    @cached_property
    def _outside(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """κ0 − φᵀφ of all rows with all, and of each with itself."""
        Zx, Zy = (self.coordinates.prior.whiten(rows) for rows in self._rows)
        own = (
            np.einsum("ij,ij->i", Z, Z) - np.einsum("ij,ij->i", p, p) for Z, p in ((Zx, self.phi_x), (Zy, self.phi_y))
        )
        return Zx @ Zy.T - self.phi_x @ self.phi_y.T, *own

    def sq_distances(self, metric: Metric) -> np.ndarray:
        F, weight = metric.F, metric.eta * metric.coordinates.residual
        moved = self.phi_x @ F
        K = moved @ self.phi_y.T
        own_x = np.einsum("ij,ij->i", moved, self.phi_x)
        own_y = np.einsum("ij,ij->i", self.phi_y @ F, self.phi_y)
        if weight:
            outside, outside_x, outside_y = self._outside
            K += weight * outside
            own_x, own_y = own_x + weight * outside_x, own_y + weight * outside_y
        if metric.normalize:
            K, own_x, own_y = cosines(K, own_x, own_y), is_positive(own_x), is_positive(own_y)
        return own_x[:, None] + own_y - 2.0 * K
