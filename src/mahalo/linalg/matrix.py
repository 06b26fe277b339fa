"""Rows as a dense array."""

from __future__ import annotations

import numpy as np

from ..types import Matrix

__all__ = ["Matrix", "to_dense"]


def to_dense(X: Matrix) -> np.ndarray:
    """Return X as a dense array; no copy if it is one."""
    return X if isinstance(X, np.ndarray) else X.toarray()
