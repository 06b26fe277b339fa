"""Rows derived from other rows when they are read: mapped through a function, or joined by columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from ..linalg import ClassMoments, Matrix
from .nearest_centre import NearestCentre
from .protocol import Rows


@dataclass(frozen=True)
class MappedRows(Rows):
    """Values of a function of other rows, `width` columns each, computed when they are read.

    `linear` declares the function a linear map; `dense` that its values are dense also for sparse rows.
    """

    rows: Rows
    function: Callable[[Matrix], Matrix]
    width: int
    linear: bool = False
    dense: bool = False

    @property
    def shape(self) -> tuple[int, int]:
        return self.rows.shape[0], self.width

    @property
    def sparse(self) -> bool:
        return self.rows.sparse and not self.dense

    @property
    def n_uniform(self) -> int:
        return self.rows.n_uniform

    @property
    def n_total(self) -> int:
        return self.rows.n_total

    @property
    def densifies(self) -> bool:
        return self.rows.sparse and self.dense and self.width >= self.rows.shape[1]

    def take(self, index: np.ndarray) -> Matrix:
        return self.function(self.rows.take(index))

    def blocks(self) -> Iterator[Matrix]:
        return map(self.function, self.rows.blocks())

    # A linear map commutes with sums of rows: the statistics of the rows are mapped instead of all rows.

    def class_means(self, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if not self.linear:
            return super().class_means(codes)
        sizes, means = self.rows.class_means(codes)
        return sizes, self._map_dense(means)

    def condensed(self) -> np.ndarray | None:
        condensed = self.rows.condensed() if self.linear else None
        return None if condensed is None else self._map_dense(condensed)

    def nearest_moments(self, nearest: NearestCentre) -> ClassMoments:
        if not self.linear or nearest.transform is not None:
            return super().nearest_moments(nearest)
        found = self.rows.nearest_moments(NearestCentre(nearest.centres, self.function))
        return replace(found, means=self._map_dense(found.means))

    def _map_dense(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(self.function(X), dtype=np.float64)


@dataclass(frozen=True)
class JoinedRows(Rows):
    """Columns of two sources side by side, each multiplied by a scale of its own."""

    first: Rows
    first_scale: float
    second: Rows
    second_scale: float

    @property
    def shape(self) -> tuple[int, int]:
        return self.first.shape[0], self.first.shape[1] + self.second.shape[1]

    @property
    def sparse(self) -> bool:
        return self.first.sparse

    @property
    def n_uniform(self) -> int:
        return self.first.n_uniform

    @property
    def n_total(self) -> int:
        return self.first.n_total

    @property
    def densifies(self) -> bool:
        return self.first.densifies

    def _join(self, first: Matrix, second: Matrix) -> Matrix:
        parts = [self.first_scale * first, self.second_scale * second]
        return sp.csr_array(sp.hstack(parts)) if sp.issparse(first) else np.hstack(parts)

    def take(self, index: np.ndarray) -> Matrix:
        return self._join(self.first.take(index), self.second.take(index))

    def blocks(self) -> Iterator[Matrix]:
        return map(self._join, self.first.blocks(), self.second.blocks())


def combine(rows: Rows, J: sp.csc_array) -> np.ndarray:
    """Return Jᵀ X, dense: the columns of J (n_rows × k) as combinations of the rows."""
    if isinstance(rows, MappedRows) and rows.linear:
        return rows.function(combine(rows.rows, J))  # maps k rows instead of all
    by_row, first, total = sp.csr_array(J), 0, np.zeros((J.shape[1], rows.shape[1]))
    for block in rows.blocks():
        last = first + block.shape[0]
        part = sp.csr_array(by_row[first:last].T) @ block  # from CSC the block would be converted
        total += part.toarray() if sp.issparse(part) else part
        first = last
    return total
