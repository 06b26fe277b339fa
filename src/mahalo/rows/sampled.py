"""Some of many rows, held in memory, and what is known of all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..linalg import ClassMoments, Moments, Order, Scatter, condensed, invertible, positive_variances, rounding_of
from .centres import Centring
from .digest import Centre
from .held import NARROW, HeldRows

__all__ = ["Needs", "SampledRows"]

_ORDERS: tuple[Order, ...] = ("none", "variances", "scatter")


@dataclass(frozen=True)
class Needs:
    """Moments that a fit asks for: of what order, and whether fourth ones around class means, around that of all."""

    order: Order = "none"
    within: bool = False
    around_all: bool = False

    def __or__(self, other: Needs) -> Needs:
        order = max(self.order, other.order, key=_ORDERS.index)
        return Needs(order, self.within or other.within, self.around_all or other.around_all)


@dataclass
class SampledRows(HeldRows):
    """Rows to draw pairs from and to measure, with the moments of all the rows that they were drawn from.

    Attributes
    ----------
    X : array or CSR array
        The sample: `even` rows first, each row of all being as likely among them; then more of rare classes, and those
        that constraints mention.
    numbers, codes, labels : ndarray
        Of each row of X: its number among all rows, its class 0, 1, … (−1: none), and that class as it was given.
    total : int
        The number of all rows.
    labelled, unlabelled : ClassMoments
        Of all rows, those without a class apart.
    """

    numbers: np.ndarray
    codes: np.ndarray
    labels: np.ndarray | None
    even: int
    total: int
    labelled: ClassMoments = field(repr=False)
    unlabelled: ClassMoments = field(repr=False)
    fourth: Callable[[Centre], float] = field(repr=False)
    nearest: Callable[[Centring], ClassMoments] = field(repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.n_even = self.even

    @property
    def n_all(self) -> int:
        return self.total

    @property
    def dtype(self) -> Any:
        return self.X.dtype

    @property
    def _all(self) -> ClassMoments:
        """All rows as one class."""
        return self.labelled.together().merged(self.unlabelled)

    @property
    def covariance(self) -> np.ndarray | None:
        """Of all rows; None where only means or variances were asked for."""
        found = self._all
        return found.scatter / found.n if found.scatter is not None and found.scatter.ndim == 2 else None

    def class_means(self, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.labelled.sizes, self.labelled.means

    def nearest_to(self, centring: Centring) -> ClassMoments:
        return self.nearest(centring)

    def scatter(self) -> Scatter:
        return self._scatter(self._all, by_class=False)

    def scatter_within(self, codes: np.ndarray) -> Scatter:
        return self._scatter(self.labelled, by_class=True)

    def _scatter(self, of: ClassMoments, by_class: bool) -> Scatter:
        assert of.scatter is not None
        # In a block of sparse rows classes are taken off from all of them together.
        covariance = self.covariance if self.sparse and by_class else None
        rounding = rounding_of(of.sizes, of.means, 0.0 if covariance is None else np.diagonal(covariance))

        def fourth(unit: float) -> float:
            return self.fourth(Centre(of.means, by_class, unit=unit))

        return Scatter.of(of.scatter / max(of.n, 1), of.n, fourth, rounding)

    def column_variances(self) -> np.ndarray:
        found = self._all
        assert found.scatter is not None
        second = found.scatter if found.scatter.ndim == 1 else np.diagonal(found.scatter)
        return positive_variances(Moments(found.n, found.means[0], second / found.n))

    def condensed(self) -> np.ndarray | None:
        """Of all rows too; where all are held, as for any rows that are."""
        found = self._all
        if self.covariance is None or (self.even == self.total and self.shape[1] > NARROW):
            return None
        assert found.scatter is not None
        deviation = np.sqrt(np.diagonal(found.scatter) / found.n)
        unit = np.where(deviation > 0, deviation, 1.0)
        return condensed(found.n, found.means[0], deviation, found.scatter / found.n / np.outer(unit, unit))

    def correlation(self) -> tuple[np.ndarray, np.ndarray, float]:
        found, deviation = self._all, np.sqrt(self.column_variances())
        assert found.scatter is not None
        R = found.scatter / found.n / np.outer(deviation, deviation)
        R, rho = invertible(R, found.n, lambda: self.fourth(Centre(found.means, by_class=False, scale=deviation)))
        return R, deviation, rho
