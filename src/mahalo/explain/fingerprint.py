"""Rows and labels told again by a hash: whether these are the ones that were learned from."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..constraints import as_labels

__all__ = ["checksum", "fingerprint", "fingerprint_of"]

_BLOCK = 1 << 20  # numbers at a time
_ODD, _GOLDEN = np.uint64(0xD1342543DE82EF95), np.uint64(0x9E3779B97F4A7C15)


def fingerprint(X: Any, y: Any = None) -> dict[str, str | None]:
    """Of all rows, as float64, and of all labels, None where there are none."""
    if y is None:
        return fingerprint_of(X.shape, checksum(X))
    labels = as_labels(y)
    return fingerprint_of(X.shape, checksum(X), labels.classes, [labels.codes])


def fingerprint_of(
    shape: tuple[int, ...], rows: int, classes: np.ndarray | None = None, codes: Iterable[np.ndarray] = ()
) -> dict[str, str | None]:
    """The same of rows that are not at hand: their shape and checksum, the classes, the codes of all in parts."""
    labels = None
    if classes is not None:
        labels = _hash(repr([str(name) for name in classes]).encode(), *(c.astype(np.int64).tobytes() for c in codes))
    return {"rows": _hash(repr((shape, rows)).encode()), "labels": labels}


def checksum(X: Any, first: int = 0) -> int:
    """Of rows that are number `first`, `first + 1`, … of all: a number below 2⁶⁴; those of parts add up, modulo that.

    Every row is a sum of its numbers' bits times powers of an odd number, one for each column, stirred together with
    its place. It tells rows that were changed or moved, not rows that somebody forged.
    """
    n, d = X.shape
    powers = np.cumprod(np.full(d, _ODD))
    total, step = 0, max(1, _BLOCK // max(1, d))
    for a in range(0, n, step):
        block = X[a : a + step]
        rows = np.asarray(block.toarray() if sp.issparse(block) else block, dtype=np.float64) + 0.0  # −0 as 0
        place = np.arange(first + a + 1, first + a + 1 + len(rows), dtype=np.uint64) * _GOLDEN
        row = (rows.view(np.uint64) * powers).sum(axis=1, dtype=np.uint64)
        total += int(_stirred(row ^ place).sum(dtype=np.uint64))
    return total % 2**64


def _stirred(h: np.ndarray) -> np.ndarray:
    """Every bit of the result depends on every bit of h."""
    h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return h ^ (h >> np.uint64(31))


def _hash(*parts: bytes) -> str:
    found = hashlib.sha256()
    for part in parts:
        found.update(part)
    return found.hexdigest()
