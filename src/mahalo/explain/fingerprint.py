"""Rows and labels told again by a hash: whether these are the ones that were learned from."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..constraints import as_labels

__all__ = ["fingerprint", "fingerprint_of", "rows_looked_at"]

_MOST_ROWS = 1_000  # that are looked at, evenly spaced


def fingerprint(X: Any, y: Any = None) -> dict[str, str | None]:
    """Of the shape and up to 1,000 of the rows, as float64; and of all labels, None where there are none."""
    rows = X[rows_looked_at(X.shape[0])]
    rows = np.asarray(rows.toarray() if sp.issparse(rows) else rows, dtype=np.float64)
    if y is None:
        return fingerprint_of(X.shape, rows)
    labels = as_labels(y)
    return fingerprint_of(X.shape, rows, labels.classes, [labels.codes])


def rows_looked_at(n: int) -> np.ndarray:
    """Numbers of some of n rows."""
    return np.linspace(0, n - 1, min(n, _MOST_ROWS)).astype(np.intp)


def fingerprint_of(
    shape: tuple[int, ...], rows: np.ndarray, classes: np.ndarray | None = None, codes: Iterable[np.ndarray] = ()
) -> dict[str, str | None]:
    """The same of rows that are not at hand: their shape, those looked at, the classes, the codes of all in parts."""
    labels = None
    if classes is not None:
        labels = _hash(repr([str(name) for name in classes]).encode(), *(c.astype(np.int64).tobytes() for c in codes))
    return {"rows": _hash(repr(shape).encode(), (rows + 0.0).tobytes()), "labels": labels}  # −0 as 0


def _hash(*parts: bytes) -> str:
    found = hashlib.sha256()
    for part in parts:
        found.update(part)
    return found.hexdigest()
