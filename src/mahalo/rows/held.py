from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..linalg import (
    ClassMoments,
    Scatter,
    class_means,
    column_variances,
    condensed,
    moments,
    row_blocks,
    second_moment,
    shrunk_correlation,
    within_scatter,
)
from .centres import Centring

__all__ = ["NARROW", "HeldRows"]

NARROW = 256  # columns up to which products of them all are found sooner than some rows are gone through again
_OBJECTS = 1_000  # in a block


@dataclass
class HeldRows:
    """Rows in memory: a dense array, a CSR array, or a 1-D array of objects."""

    X: Any
    shape: tuple[int, ...] = field(init=False)
    n_even: int = field(init=False)
    sparse: bool = field(init=False)

    def __post_init__(self) -> None:
        self.shape, self.sparse = self.X.shape, sp.issparse(self.X)
        self.n_even = self.shape[0]

    def take(self, index: np.ndarray) -> Any:
        return self.X[index]

    def blocks(self) -> Iterator[Any]:
        if len(self.shape) == 1:
            return (self.X[a : a + _OBJECTS] for a in range(0, len(self.X), _OBJECTS))
        return iter(row_blocks(self.X)())

    @property
    def n_all(self) -> int:
        """The number of rows that these are, or are a sample of."""
        return self.shape[0]

    # -- of all rows together ---------------------------------------------------------------------------------

    def class_means(self, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Sizes and means of the classes."""
        return class_means(self.blocks, codes)

    def scatter(self) -> Scatter:
        """Around the mean of all rows."""
        return within_scatter(self.blocks, np.zeros(self.shape[0], dtype=np.intp))

    def scatter_within(self, codes: np.ndarray) -> Scatter:
        """Of the labelled rows around the means of their classes."""
        return within_scatter(self.blocks, codes)

    def nearest_to(self, centring: Centring) -> ClassMoments:
        """Numbers and means of the rows that are nearest to every centre."""
        return centring.merged(map(centring.of, self.blocks()))

    def column_variances(self) -> np.ndarray:
        return column_variances(self.blocks)

    def condensed(self) -> np.ndarray | None:
        """Few rows with the Σ x xᵀ of all; None where columns are too many for it to be worth while."""
        if self.shape[1] > NARROW:
            return None
        n, mean, variance = moments(self.blocks)
        deviation = np.sqrt(variance)
        R = second_moment(self.blocks, mean, np.where(deviation > 0, deviation, 1.0))
        return condensed(n, mean, deviation, R)

    def correlation(self) -> tuple[np.ndarray, np.ndarray, float]:
        """Correlations of the columns, shrunk where they are singular, deviations, and by how much."""
        return shrunk_correlation(self.blocks)
