from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np

__all__ = ["Rows"]


class Rows(Protocol):
    """What the library asks of data: how many rows and columns, some of the rows, all of them a block at a time.

    A block is an array, a CSR array, or a 1-D array of objects; blocks come in the order of the rows, and may be gone
    through more than once.
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """(n_rows, n_columns), or (n_rows,) for objects."""

    @property
    def sparse(self) -> bool:
        """Whether blocks are CSR arrays."""

    @property
    def n_even(self) -> int:
        """The first so many rows are an even sample of all there are: all of them, unless they are but a sample."""

    def take(self, index: np.ndarray) -> Any:
        """The rows at these positions, in this order."""

    def blocks(self) -> Iterator[Any]:
        """All rows, some thousand at a time."""
