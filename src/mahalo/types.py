"""Types that several rooms share: rows as callers pass them and as the library computes with them, and kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

__all__ = ["Kernel", "Matrix", "MatrixLike", "RowsLike", "RowsT", "Shaped"]


class Shaped(Protocol):
    """Array, sparse matrix, data frame, Dask collection or tensor: rows and columns of numbers."""

    @property
    def shape(self) -> tuple[int, ...]: ...


RowsLike: TypeAlias = Shaped | Sequence[object]  # rows as callers pass them, objects for a kernel function too
RowsT = TypeVar("RowsT", bound=RowsLike)
Matrix: TypeAlias = np.ndarray | sp.csr_array  # validated rows: dense, CSR, or a 1-D array of objects
MatrixLike: TypeAlias = ArrayLike | sp.sparray | sp.spmatrix
Kernel: TypeAlias = Callable[..., np.ndarray]  # kernel(X, Y, **params): similarities of all rows of X with all of Y
