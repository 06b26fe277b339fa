"""Matrices of the library: dense arrays or CSR arrays."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import scipy.sparse as sp

__all__ = ["Matrix", "to_dense"]

Matrix: TypeAlias = np.ndarray | sp.csr_array


def to_dense(X: Matrix) -> np.ndarray:
    """Return X as a dense array; no copy if it is one."""
    return X if isinstance(X, np.ndarray) else X.toarray()
