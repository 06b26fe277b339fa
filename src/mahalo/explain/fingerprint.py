"""Fingerprints of rows and labels, to recognise those that a metric was learned from."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from ..constraints import as_labels
from ..linalg import Matrix

_BLOCK = 1 << 17  # numbers at a time, so that they stay in the cache
_ODD, _GOLDEN = np.uint64(0xD1342543DE82EF95), np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class Fingerprint:
    """Hashes of all rows, as float64, and of all labels, None where there are none."""

    rows: str | None
    labels: str | None

    def has_rows_of(self, other: Fingerprint | None) -> bool:
        """Return whether both are of the same rows."""
        return other is not None and self.rows is not None and self.rows == other.rows


def fingerprint(X: Matrix, y: ArrayLike | None = None) -> Fingerprint:
    """Return hashes of rows and of their labels."""
    if y is None:
        return fingerprint_of(X.shape, checksum(X))
    if isinstance(y, np.ndarray) and y.dtype == np.intp and y.ndim == 1 and _is_compact(y):
        return fingerprint_of(X.shape, checksum(X), np.arange(y.max() + 1), [y])
    labels = as_labels(y)
    return fingerprint_of(X.shape, checksum(X), labels.classes, [labels.codes])


def _is_compact(codes: np.ndarray) -> bool:
    """Return whether labels are codes 0, 1, …, each of which occurs, and −1 for none."""
    if codes.min(initial=0) < -1 or codes.max(initial=-1) >= len(codes):
        return False
    return bool(np.bincount(codes + 1)[1:].all())


def label_hashes(y: ArrayLike) -> set[str | None]:
    """Return the hashes that labels may have in files: by name, and by number in the order of first appearance."""
    labels = as_labels(y)
    numbers = np.arange(len(labels.classes))
    return {_label_hash(labels.classes, [labels.codes]), _label_hash(numbers, [labels.by_appearance().codes])}


def fingerprint_of(
    shape: tuple[int, ...], rows: int, classes: np.ndarray | None = None, codes: Iterable[np.ndarray] = ()
) -> Fingerprint:
    """Return the fingerprint of rows by shape and checksum, and of labels by their classes and codes, in parts."""
    return Fingerprint(_hash(repr((shape, rows)).encode()), None if classes is None else _label_hash(classes, codes))


def _label_hash(classes: np.ndarray, codes: Iterable[np.ndarray]) -> str:
    return _hash(repr([str(name) for name in classes]).encode(), *(c.astype(np.int64).tobytes() for c in codes))


def checksum(X: Matrix, first: int = 0) -> int:
    """Return a checksum below 2⁶⁴ of rows that are number `first`, `first + 1`, …; those of parts add up, modulo that.

    Every row is a sum of its numbers' bits times powers of an odd number, one for each column, mixed with its number.
    It tells rows that were changed or moved, not rows that somebody forged.
    """
    powers = np.cumprod(np.full(X.shape[1], _ODD))
    total, row_sums = 0, _sparse_row_sums if sp.issparse(X) else _row_sums
    for sums in row_sums(X, powers):
        number = np.arange(first + 1, first + 1 + len(sums), dtype=np.uint64) * _GOLDEN
        total += int(_mixed(sums ^ number).sum(dtype=np.uint64))
        first += len(sums)
    return total % 2**64


def _row_sums(X: np.ndarray, powers: np.ndarray) -> Iterator[np.ndarray]:
    """Yield, for a block of rows at a time, sums of a row's bits times the powers of their columns, modulo 2⁶⁴."""
    step = max(1, _BLOCK // max(1, X.shape[1]))
    for a in range(0, len(X), step):
        rows = np.asarray(X[a : a + step], dtype=np.float64) + 0.0  # −0 as 0
        yield (rows.view(np.uint64) * powers).sum(axis=1, dtype=np.uint64)


def _sparse_row_sums(X: sp.csr_array, powers: np.ndarray) -> Iterator[np.ndarray]:
    """Yield `_row_sums` of sparse rows; zeros have no bits and add nothing."""
    X = sp.csr_array(X, copy=not X.has_canonical_format)
    X.sum_duplicates()
    step = max(1, _BLOCK * X.shape[0] // max(1, X.nnz))
    for a in range(0, X.shape[0], step):
        starts = X.indptr[a : a + step + 1]
        inside = slice(starts[0], starts[-1])
        bits = (X.data[inside].astype(np.float64) + 0.0).view(np.uint64) * powers[X.indices[inside]]
        cumulated = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(bits, dtype=np.uint64)])
        yield np.diff(cumulated[starts - starts[0]])


def _mixed(h: np.ndarray) -> np.ndarray:
    """Return 64-bit hashes (SplitMix64): every bit of the result depends on every bit of h."""
    h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return h ^ (h >> np.uint64(31))


def _hash(*parts: bytes) -> str:
    found = hashlib.sha256()
    for part in parts:
        found.update(part)
    return found.hexdigest()
