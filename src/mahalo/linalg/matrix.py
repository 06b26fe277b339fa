"""Types of matrices: dense or CSR arrays inside the library, and what callers may pass as rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

__all__ = ["Matrix", "RowsLike", "to_dense"]

Matrix: TypeAlias = np.ndarray | sp.csr_array
RowsLike: TypeAlias = ArrayLike | sp.sparray | sp.spmatrix | Sequence[object]  # tables, sparse matrices, objects


def to_dense(X: Matrix) -> np.ndarray:
    """Return X as a dense array; no copy if it is one."""
    return X if isinstance(X, np.ndarray) else X.toarray()
