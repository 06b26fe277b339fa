"""Rows and labels told again by a hash: whether these are the ones that were learned from."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..constraints import as_labels

__all__ = ["fingerprint"]

_MOST_ROWS = 1_000  # that are looked at, evenly spaced


def fingerprint(X: Any, y: Any = None) -> dict[str, str | None]:
    """Of the shape and up to 1,000 of the rows, as float64; and of all labels, None where there are none."""
    n = X.shape[0]
    rows = X[np.linspace(0, n - 1, min(n, _MOST_ROWS)).astype(np.intp)]
    rows = np.asarray(rows.toarray() if sp.issparse(rows) else rows, dtype=np.float64) + 0.0  # −0 as 0
    return {"rows": _hash(repr(X.shape).encode(), rows.tobytes()), "labels": None if y is None else _of_labels(y)}


def _of_labels(y: Any) -> str:
    labels = as_labels(y)
    return _hash(repr([str(name) for name in labels.classes]).encode(), labels.codes.astype(np.int64).tobytes())


def _hash(*parts: bytes) -> str:
    return hashlib.sha256(b"".join(parts)).hexdigest()
