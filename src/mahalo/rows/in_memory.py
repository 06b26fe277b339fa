from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from ..linalg import (
    Matrix,
    Scatter,
    column_variances,
    condense_rows,
    moments,
    row_blocks,
    second_moment,
    shrunk_correlation,
    within_scatter,
)
from .protocol import VectorRows

MAX_CONDENSED_COLUMNS = 256  # up to here one d × d product costs less than reading some of the rows again
_OBJECTS_PER_BLOCK = 1_000


@dataclass(frozen=True)
class ArrayRows:
    """Rows of an array in memory: dense, CSR, or 1-D with objects."""

    X: Matrix

    @property
    def shape(self) -> tuple[int, ...]:
        return self.X.shape

    @property
    def sparse(self) -> bool:
        return sp.issparse(self.X)

    def take(self, index: np.ndarray) -> Matrix:
        return self.X[index]

    def blocks(self) -> Iterator[Matrix]:
        if len(self.shape) == 1:
            return (self.X[a : a + _OBJECTS_PER_BLOCK] for a in range(0, self.shape[0], _OBJECTS_PER_BLOCK))
        return iter(row_blocks(self.X)())


@dataclass(frozen=True)
class InMemoryRows(ArrayRows, VectorRows):
    """Rows of a whole data set, as an array in memory."""

    def scatter(self) -> Scatter:
        return within_scatter(self.blocks, np.zeros(self.shape[0], dtype=np.intp))

    def scatter_within(self, codes: np.ndarray) -> Scatter:
        return within_scatter(self.blocks, codes)

    def column_variances(self) -> np.ndarray:
        return column_variances(self.blocks)

    def condensed(self) -> np.ndarray | None:
        if self.shape[1] > MAX_CONDENSED_COLUMNS:
            return None
        n, mean, variance = moments(self.blocks)
        deviation = np.sqrt(variance)
        R = second_moment(self.blocks, mean, np.where(deviation > 0, deviation, 1.0))
        return condense_rows(n, mean, deviation, R)

    def correlation(self) -> tuple[np.ndarray, np.ndarray, float]:
        return shrunk_correlation(self.blocks)
