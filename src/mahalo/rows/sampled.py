"""A sample of many rows, held in memory, with the moments of all rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from ..linalg import (
    ClassMoments,
    Moments,
    Scatter,
    ScatterKind,
    condense_rows,
    make_invertible,
    positive_variances,
    rounding_of,
)
from .in_memory import MAX_CONDENSED_COLUMNS, ArrayRows
from .moments import Centre
from .nearest_centre import NearestCentre

_ORDERS: tuple[ScatterKind, ...] = ("none", "variances", "scatter")


@dataclass(frozen=True)
class Needs:
    """Moments of all rows that a fit needs.

    `order` is that of the pooled scatter; `within` adds fourth moments around the class means, `around_all` fourth
    moments around the mean of all rows.
    """

    order: ScatterKind = "none"
    within: bool = False
    around_all: bool = False

    def __or__(self, other: Needs) -> Needs:
        order = max(self.order, other.order, key=_ORDERS.index)
        return Needs(order, self.within or other.within, self.around_all or other.around_all)


class FurtherPasses(Protocol):
    """Statistics of all rows that take another pass over the source of a sample."""

    def fourth_moment(self, centre: Centre) -> float:
        """Return Σ ‖x − m‖⁴ around a centre."""

    def nearest_moments(self, nearest: NearestCentre) -> ClassMoments:
        """Return numbers and means of the rows that are nearest to each centre."""


@dataclass(frozen=True)
class SampledRows(ArrayRows):
    """Sample of a data set in memory, with the moments of all its rows: `VectorRows`.

    Attributes
    ----------
    X : array or CSR array
        The sample: first `n_uniform` rows drawn uniformly from all rows, then more rows of rare classes and the rows
        that constraints mention.
    numbers, codes, labels : ndarray
        For each row of X: its number in the data set, its class 0, 1, … (−1: none), and its label.
    n_total : int
        Number of rows of the data set.
    labelled, unlabelled : ClassMoments
        Moments of all rows with a class, and of those without.
    source : FurtherPasses
        The data set, read again for statistics that are not stored here.
    """

    numbers: np.ndarray
    codes: np.ndarray
    labels: np.ndarray | None
    n_uniform: int
    n_total: int
    labelled: ClassMoments = field(repr=False)
    unlabelled: ClassMoments = field(repr=False)
    source: FurtherPasses = field(repr=False)

    @property
    def densifies(self) -> bool:
        return False

    @property
    def dtype(self) -> np.dtype:
        return self.X.dtype

    @property
    def _all(self) -> ClassMoments:
        """Moments of all rows as one class."""
        return self.labelled.pool().merge(self.unlabelled)

    @property
    def covariance(self) -> np.ndarray | None:
        """Covariance of all rows; None if the sample was drawn with means or variances only."""
        found = self._all
        return found.scatter / found.n if found.scatter is not None and found.scatter.ndim == 2 else None

    def class_means(self, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.labelled.sizes, self.labelled.means

    def nearest_moments(self, nearest: NearestCentre) -> ClassMoments:
        return self.source.nearest_moments(nearest)

    def scatter(self) -> Scatter:
        return self._scatter(self._all, by_class=False)

    def scatter_within(self, codes: np.ndarray) -> Scatter:
        return self._scatter(self.labelled, by_class=True)

    def _scatter(self, moments: ClassMoments, by_class: bool) -> Scatter:
        assert moments.scatter is not None
        # Sparse blocks subtract the scatter of class means from that around one centre, which adds to the rounding.
        covariance = self.covariance if self.sparse and by_class else None
        rounding = rounding_of(moments.sizes, moments.means, 0.0 if covariance is None else np.diagonal(covariance))

        def fourth_moment(unit: float) -> float:
            return self.source.fourth_moment(Centre(moments.means, by_class, unit=unit))

        return Scatter.of(moments.scatter / max(moments.n, 1), moments.n, fourth_moment, rounding)

    def column_variances(self) -> np.ndarray:
        found = self._all
        assert found.scatter is not None
        second = found.scatter if found.scatter.ndim == 1 else np.diagonal(found.scatter)
        return positive_variances(Moments(found.n, found.means[0], second / found.n))

    def condensed(self) -> np.ndarray | None:
        found = self._all
        is_complete = self.n_uniform == self.n_total  # then the answer is that of rows in memory
        if self.covariance is None or (is_complete and self.shape[1] > MAX_CONDENSED_COLUMNS):
            return None
        assert found.scatter is not None
        deviation = np.sqrt(np.diagonal(found.scatter) / found.n)
        unit = np.where(deviation > 0, deviation, 1.0)
        return condense_rows(found.n, found.means[0], deviation, found.scatter / found.n / np.outer(unit, unit))

    def correlation(self) -> tuple[np.ndarray, np.ndarray, float]:
        found, deviation = self._all, np.sqrt(self.column_variances())
        assert found.scatter is not None
        R = found.scatter / found.n / np.outer(deviation, deviation)
        centre = Centre(found.means, by_class=False, scale=deviation)
        R, rho = make_invertible(R, found.n, lambda: self.source.fourth_moment(centre))
        return R, deviation, rho
