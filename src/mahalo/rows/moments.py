"""Moments of all rows and a sample of them, computed block by block and merged in the order of the rows.

A summary of some blocks holds the moments of every class (`ClassMoments`) and a few rows: those sampled and those
requested by number. Its size does not depend on the number of rows.

Rows are sampled by a hash of their number, so the sample is bitwise the same for every division into blocks. Sums
differ in their last bits between divisions; for one division they are bitwise the same for any number and order of
workers. No decision depends on those bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp

from ..linalg import ClassMoments, ScatterKind, fourth_moment, scaled_sq_norms
from ..types import Matrix
from .sampling import hash_uniform


class Encoded(Protocol):
    """Labels as codes: row i belongs to class `classes[codes[i]]`, or to none if its code is −1."""

    @property
    def codes(self) -> np.ndarray: ...

    @property
    def classes(self) -> np.ndarray: ...


EncodeLabels = Callable[[np.ndarray], Encoded]


@dataclass(frozen=True)
class SamplingPlan:
    """Settings of a pass: key and share of the sample, order of the moments, label encoder, and precision."""

    key: int
    share: float
    order: ScatterKind
    encode: EncodeLabels
    dtype: np.dtype


@dataclass(frozen=True)
class NumberedRows:
    """Rows with their numbers in the data set and their classes."""

    numbers: np.ndarray
    X: Matrix
    codes: np.ndarray

    @classmethod
    def concatenate(cls, parts: Sequence[NumberedRows]) -> NumberedRows:
        parts = [part for part in parts if len(part.numbers)] or list(parts[:1])
        stack = sp.vstack if any(sp.issparse(part.X) for part in parts) else np.vstack
        X = stack([part.X for part in parts])
        return cls(
            np.concatenate([part.numbers for part in parts]),
            sp.csr_array(X) if sp.issparse(X) else X,
            np.concatenate([part.codes for part in parts]),
        )

    def take(self, index: np.ndarray) -> NumberedRows:
        return NumberedRows(self.numbers[index], self.X[index], self.codes[index])


@dataclass(frozen=True)
class BlockSummary:
    """Classes, moments of rows with and without a class, and selected rows of one or more blocks."""

    classes: np.ndarray
    labelled: ClassMoments
    unlabelled: ClassMoments
    rows: NumberedRows


def as_block(block: object, first: int, dtype: np.dtype) -> Matrix:
    """Return one block of a Dask array or frame as a dense or CSR array; raise ValueError if a row is not finite.

    `first` is the number of the block's first row, for the message.
    """
    if hasattr(block, "to_numpy"):
        block = block.to_numpy(dtype=dtype, na_value=np.nan)
    if sp.issparse(block):
        X = sp.csr_array(block, dtype=dtype)
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        finite = np.isfinite(X.data)
    else:
        X = np.asarray(block, dtype=dtype)
        finite = np.isfinite(X)
    if not finite.all():
        at = int(np.argmin(finite.ravel()))
        row = int(np.searchsorted(X.indptr, at, side="right") - 1) if sp.issparse(X) else at // X.shape[1]
        raise ValueError(f"row {first + row} of X contains NaN or infinity; fill it in or drop the row.")
    return X


def _encode(labels: np.ndarray | None, n_rows: int, first: int, encode: EncodeLabels) -> tuple[np.ndarray, np.ndarray]:
    """Return (codes, classes) of one block of labels; without labels every code is −1."""
    if labels is None:
        return np.full(n_rows, -1, dtype=np.intp), np.empty(0, dtype=np.intp)
    encoded = encode(labels)
    if len(encoded.codes) != n_rows:
        raise ValueError(
            f"the block of X that begins with row {first} has {n_rows} rows, its block of y {len(encoded.codes)}. Give "
            "y the chunks of X, or take both from one frame."
        )
    return encoded.codes, encoded.classes


def summarize_block(
    block: object, labels: np.ndarray | None, first: int, requested: np.ndarray, plan: SamplingPlan
) -> BlockSummary:
    """Summarize one block whose first row has number `first`; rows numbered `requested` are selected in any case."""
    X = as_block(block, first, plan.dtype)
    n = X.shape[0]
    codes, classes = _encode(labels, n, first, plan.encode)
    numbers = np.arange(first, first + n)
    has_class = codes >= 0
    selected = hash_uniform(numbers, plan.key) < plan.share
    selected[requested - first] = True
    every = has_class.all()
    return BlockSummary(
        classes,
        ClassMoments.of(X if every else X[has_class], codes if every else codes[has_class], len(classes), plan.order),
        ClassMoments.of(X[~has_class], np.zeros(n - int(has_class.sum()), dtype=np.intp), 1, plan.order),
        NumberedRows(numbers[selected], X[selected], codes[selected]),
    )


def merge_summaries(summaries: Sequence[BlockSummary], encode: EncodeLabels) -> BlockSummary:
    """Return the summary of all blocks from those of consecutive ones."""
    parts = [summary.classes.astype(object) for summary in summaries]
    union = encode(np.concatenate(parts))
    n_classes = len(union.classes)
    positions = np.split(union.codes, np.cumsum([len(part) for part in parts])[:-1])
    labelled = [s.labelled.renumber(position, n_classes) for s, position in zip(summaries, positions, strict=True)]
    rows = [
        NumberedRows(s.rows.numbers, s.rows.X, np.append(position, -1)[s.rows.codes])
        for s, position in zip(summaries, positions, strict=True)
    ]
    return BlockSummary(
        union.classes,
        reduce(ClassMoments.merge, labelled),
        reduce(ClassMoments.merge, [s.unlabelled for s in summaries]),
        NumberedRows.concatenate(rows),
    )


# -- the second pass, once the means are known -----------------------------------------------------------------------


class Centre(NamedTuple):
    """Points from which rows are measured: the mean of each row's class (rows without one left out), or one mean.

    `scale`, if not None, divides the columns; `unit` divides squared distances.
    """

    means: np.ndarray
    by_class: bool
    scale: np.ndarray | None = None
    unit: float = 1.0


@dataclass(frozen=True)
class SecondPassResult:
    """Σ ‖x − m‖⁴ around every centre, and additional rows of rare classes."""

    fourth_moments: np.ndarray
    rows: NumberedRows


@dataclass(frozen=True)
class SecondPass:
    """Computation of fourth moments around centres and selection of additional rows, by `shares` of each class."""

    plan: SamplingPlan
    classes: np.ndarray
    centres: tuple[Centre, ...]
    shares: np.ndarray

    def summarize_block(self, block: object, labels: np.ndarray | None, first: int) -> SecondPassResult:
        """Return the result for one block whose first row has number `first`."""
        X = as_block(block, first, self.plan.dtype)
        codes = self._codes(labels, X.shape[0], first)
        numbers = np.arange(first, first + X.shape[0])
        uniform = hash_uniform(numbers, self.plan.key)
        more = (uniform < np.append(self.shares, 0.0)[codes]) & (uniform >= self.plan.share)
        fourth_moments = np.array([_fourth_moment(X, codes, centre) for centre in self.centres])
        return SecondPassResult(fourth_moments, NumberedRows(numbers[more], X[more], codes[more]))

    def _codes(self, labels: np.ndarray | None, n_rows: int, first: int) -> np.ndarray:
        """Return codes of one block as positions in `classes`."""
        codes, block_classes = _encode(labels, n_rows, first, self.plan.encode)
        both = np.concatenate([self.classes.astype(object), block_classes.astype(object)])
        position = self.plan.encode(both).codes[len(self.classes) :]
        return np.append(position, -1)[codes]

    @staticmethod
    def merge(parts: Sequence[SecondPassResult]) -> SecondPassResult:
        """Return the result for all blocks from those of consecutive ones."""
        total = np.sum([part.fourth_moments for part in parts], axis=0)
        return SecondPassResult(total, NumberedRows.concatenate([part.rows for part in parts]))


def _fourth_moment(X: Matrix, codes: np.ndarray, centre: Centre) -> float:
    if centre.scale is not None:
        scaled = scaled_sq_norms(X, centre.means[0], centre.scale)
        return float(scaled @ scaled)
    if not centre.by_class:
        return fourth_moment(X, np.zeros(X.shape[0], dtype=np.intp), centre.means, centre.unit)
    has_class = codes >= 0
    return fourth_moment(X if has_class.all() else X[has_class], codes[has_class], centre.means, centre.unit)
