from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..linalg import class_means
from .held import HeldRows
from .protocol import Rows

__all__ = ["JoinedRows", "MappedRows", "combine"]


@dataclass(frozen=True)
class MappedRows:
    """Rows put through a function when they are asked for: whitened, or in coordinates of `width` numbers.

    `linear` says that the function is a linear map, `dense` that its values are dense whatever the rows are.
    """

    rows: Rows
    function: Callable[[Any], Any]
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
    def n_even(self) -> int:
        return self.rows.n_even

    @property
    def densifies(self) -> bool:
        """Whether sparse rows become dense and stay as wide."""
        return self.rows.sparse and self.dense and self.width >= self.rows.shape[1]

    def take(self, index: np.ndarray) -> Any:
        return self.function(self.rows.take(index))

    def blocks(self) -> Iterator[Any]:
        return map(self.function, self.rows.blocks())

    def class_means(self, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Sizes and means of the classes; of a linear map the map of the means, few rows instead of all."""
        if not (self.linear and isinstance(self.rows, HeldRows)):
            return class_means(self.blocks, codes)
        sizes, means = self.rows.class_means(codes)
        return sizes, np.asarray(self.function(means), dtype=np.float64)

    def condensed(self) -> np.ndarray | None:
        """Few rows with the Σ x xᵀ of all, where the map is linear and those of the rows are known."""
        if not (self.linear and isinstance(self.rows, HeldRows)):
            return None
        found = self.rows.condensed()
        return None if found is None else np.asarray(self.function(found), dtype=np.float64)


@dataclass(frozen=True)
class JoinedRows:
    """Columns of two sources side by side, each in its own unit: squared distances are weighted sums of theirs."""

    first: Rows
    first_unit: float
    second: Rows
    second_unit: float

    @property
    def shape(self) -> tuple[int, int]:
        return self.first.shape[0], self.first.shape[1] + self.second.shape[1]

    @property
    def sparse(self) -> bool:
        return self.first.sparse

    @property
    def n_even(self) -> int:
        return self.first.n_even

    @property
    def densifies(self) -> bool:
        return getattr(self.first, "densifies", False)

    def _joined(self, first: Any, second: Any) -> Any:
        parts = [self.first_unit * first, self.second_unit * second]
        return sp.csr_array(sp.hstack(parts)) if sp.issparse(first) else np.hstack(parts)

    def take(self, index: np.ndarray) -> Any:
        return self._joined(self.first.take(index), self.second.take(index))

    def blocks(self) -> Iterator[Any]:
        return map(self._joined, self.first.blocks(), self.second.blocks())


def combine(rows: Rows, J: sp.csc_array) -> np.ndarray:
    """Jᵀ X, dense: the columns of J (n_rows × k) as combinations of the rows."""
    if isinstance(rows, MappedRows) and rows.linear:
        return rows.function(combine(rows.rows, J))  # of k rows instead of all
    by_row, first, total = sp.csr_array(J), 0, np.zeros((J.shape[1], rows.shape[1]))
    for block in rows.blocks():
        last = first + block.shape[0]
        part = by_row[first:last].T @ block
        total += part.toarray() if sp.issparse(part) else part
        first = last
    return total
