from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..linalg import row_blocks

__all__ = ["HeldRows"]

_OBJECTS = 1_000  # in a block


@dataclass
class HeldRows:
    """Rows in memory: a dense array, a CSR array, or a 1-D array of objects."""

    X: Any
    shape: tuple[int, ...] = field(init=False)
    sparse: bool = field(init=False)

    def __post_init__(self) -> None:
        self.shape, self.sparse = self.X.shape, sp.issparse(self.X)

    def take(self, index: np.ndarray) -> Any:
        return self.X[index]

    def blocks(self) -> Iterator[Any]:
        if len(self.shape) == 1:
            return (self.X[a : a + _OBJECTS] for a in range(0, len(self.X), _OBJECTS))
        return iter(row_blocks(self.X)())
