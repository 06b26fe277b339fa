"""Protocols for rows of data: access by position and in blocks, and statistics of all rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np

from ..linalg import ClassMoments, Matrix, Scatter, class_means
from .nearest_centre import NearestCentre


def is_lazy(X: object) -> bool:
    """Return True if X is a Dask array or dataframe; Dask is not imported for this."""
    return type(X).__module__.partition(".")[0] in ("dask", "dask_expr")


class Rows(Protocol):
    """Rows that can be taken by position and read block by block, in order and more than once.

    A block is a dense array, a CSR array, or a 1-D array of objects.

    Implementations inherit from it and override the statistics that they can compute with fewer passes.
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """(n_rows, n_columns), or (n_rows,) for objects."""

    @property
    def sparse(self) -> bool:
        """True if the blocks are CSR arrays."""

    @property
    def densifies(self) -> bool:
        """True if these are sparse rows mapped to dense rows that are at least as wide."""
        return False

    @property
    def n_uniform(self) -> int:
        """Number of leading rows that are a uniform sample of all rows; `shape[0]` if no row was left out."""
        return self.shape[0]

    @property
    def n_total(self) -> int:
        """Number of rows in the data set that these rows are, or were sampled from."""
        return self.shape[0]

    def take(self, index: np.ndarray) -> Matrix:
        """Return the rows at these positions, in this order."""

    def blocks(self) -> Iterator[Matrix]:
        """Return an iterator over all rows, some thousand at a time."""

    def class_means(self, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return sizes and means of the classes; rows with code −1 belong to none."""
        return class_means(self.blocks, codes)

    def condensed(self) -> np.ndarray | None:
        """Return a few rows with the same Σ x xᵀ as all rows, or None if computing them is not worth the time."""
        return None

    def nearest_moments(self, nearest: NearestCentre) -> ClassMoments:
        """Return numbers and means of the rows that are nearest to each centre."""
        return NearestCentre.merge(map(nearest.moments, self.blocks()))


class VectorRows(Rows, Protocol):
    """Rows of numbers with the second moments of the data set that they are, or were sampled from."""

    def scatter(self) -> Scatter:
        """Return the scatter of all rows around their mean."""

    def scatter_within(self, codes: np.ndarray) -> Scatter:
        """Return the scatter of the labelled rows around the means of their classes."""

    def column_variances(self) -> np.ndarray:
        """Return the variance of each column, made positive for constant columns."""

    def correlation(self) -> tuple[np.ndarray, np.ndarray, float]:
        """Return the correlations of the columns (shrunk if singular), standard deviations, and the shrinkage."""
