"""What a fit has to know of rows that are not at hand: found block by block, merged in the order of the rows.

A digest holds, of some of the rows, moments of every class (`ClassMoments`) and the few rows themselves that were drawn
or asked for by number. Its size does not depend on the number of rows it is about.

Rows are drawn by a hash of their number, so the sample is the same, to the last bit, however rows are cut into blocks.
Sums differ in their last bits where blocks differ; on the same blocks they are the same to the last bit, whatever the
number of workers and whichever ends first. Nothing is decided by those bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..linalg import ClassMoments, Order, fourth_moment, sq_norms
from .drawing import place_of

__all__ = ["Carried", "Centre", "Coded", "Digest", "Draw", "Second", "SecondLook", "digest_of", "merged"]


class Coded(NamedTuple):
    """Row i is of class `classes[codes[i]]`; −1: of none."""

    codes: np.ndarray
    classes: np.ndarray


Coding = Callable[[Any], Any]  # labels of any kind → something with codes and classes


@dataclass(frozen=True)
class Draw:
    """Which rows to carry: a share of all, and those of these numbers; and which moments to find."""

    key: int
    share: float
    second: Order
    coding: Coding
    dtype: np.dtype


@dataclass(frozen=True)
class Carried:
    """Rows, their numbers and their classes."""

    numbers: np.ndarray
    X: Any
    codes: np.ndarray

    @classmethod
    def joined(cls, parts: Sequence[Carried]) -> Carried:
        parts = [part for part in parts if len(part.numbers)] or list(parts[:1])
        stack = sp.vstack if any(sp.issparse(part.X) for part in parts) else np.vstack
        X = stack([part.X for part in parts])
        return cls(
            np.concatenate([part.numbers for part in parts]),
            sp.csr_array(X) if sp.issparse(X) else X,
            np.concatenate([part.codes for part in parts]),
        )

    def take(self, index: np.ndarray) -> Carried:
        return Carried(self.numbers[index], self.X[index], self.codes[index])


@dataclass(frozen=True)
class Digest:
    """Of the rows of some blocks: their classes and moments, those without a class apart, and some of the rows."""

    classes: np.ndarray
    labelled: ClassMoments
    unlabelled: ClassMoments
    carried: Carried


def as_block(block: Any, first: int, dtype: np.dtype) -> Any:
    """One block of a Dask array or frame as a dense or CSR array of numbers, or an error that names the row."""
    if hasattr(block, "to_numpy"):
        block = block.to_numpy(dtype=dtype, na_value=np.nan)
    if sp.issparse(block):
        block = sp.csr_array(block, dtype=dtype)
        if not block.has_canonical_format:
            block = block.copy()
            block.sum_duplicates()
        finite = np.isfinite(block.data)
    else:
        block = np.asarray(block, dtype=dtype)
        finite = np.isfinite(block)
    if not finite.all():
        at = int(np.argmin(finite.ravel()))
        row = int(np.searchsorted(block.indptr, at, side="right") - 1) if sp.issparse(block) else at // block.shape[1]
        raise ValueError(f"row {first + row} of X contains NaN or infinity; fill it in or drop the row.")
    return block


def _coded(labels: Any, n: int, first: int, coding: Coding) -> Coded:
    if labels is None:
        return Coded(np.full(n, -1, dtype=np.intp), np.empty(0, dtype=np.intp))
    found = coding(labels)
    if len(found.codes) != n:
        raise ValueError(
            f"the block of X that begins with row {first} has {n} rows, its block of y {len(found.codes)}. Give y the "
            "chunks of X, or take both from one frame."
        )
    return Coded(found.codes, found.classes)


def digest_of(block: Any, labels: Any, first: int, wanted: np.ndarray, draw: Draw) -> Digest:
    """Of one block, the rows of which are numbered from `first` on; `wanted` are numbers of rows to carry anyway."""
    X = as_block(block, first, draw.dtype)
    n = X.shape[0]
    codes, classes = _coded(labels, n, first, draw.coding)
    numbers = np.arange(first, first + n)
    known = codes >= 0
    keep = place_of(numbers, draw.key) < draw.share
    keep[wanted - first] = True
    every = known.all()
    return Digest(
        classes,
        ClassMoments.of(X if every else X[known], codes if every else codes[known], len(classes), draw.second),
        ClassMoments.of(X[~known], np.zeros(n - int(known.sum()), dtype=np.intp), 1, draw.second),
        Carried(numbers[keep], X[keep], codes[keep]),
    )


def merged(digests: Sequence[Digest], coding: Coding) -> Digest:
    """Of the rows of all of them, which are in order."""
    parts = [digest.classes.astype(object) for digest in digests]
    union = coding(np.concatenate(parts))
    n_classes = len(union.classes)
    places = np.split(union.codes, np.cumsum([len(part) for part in parts])[:-1])
    labelled = [d.labelled.among(place, n_classes) for d, place in zip(digests, places, strict=True)]
    carried = [
        Carried(d.carried.numbers, d.carried.X, np.append(place, -1)[d.carried.codes])
        for d, place in zip(digests, places, strict=True)
    ]
    return Digest(
        union.classes,
        reduce(ClassMoments.merged, labelled),
        reduce(ClassMoments.merged, [d.unlabelled for d in digests]),
        Carried.joined(carried),
    )


# -- once the means are known ----------------------------------------------------------------------------------------


class Centre(NamedTuple):
    """What rows are measured from: the means of their classes (rows without one left out), or one row for all.

    `scale` divides the columns, where it is not None; `unit` divides squared distances.
    """

    means: np.ndarray
    by_class: bool
    scale: np.ndarray | None = None
    unit: float = 1.0


@dataclass(frozen=True)
class Second:
    """What a second look at the rows adds: Σ ‖x − m‖⁴ around every centre, and more rows."""

    fourths: np.ndarray
    carried: Carried


@dataclass(frozen=True)
class SecondLook:
    """What to look for once classes, sizes and means are known: fourth moments around centres, rows of rare classes."""

    draw: Draw
    classes: np.ndarray
    centres: tuple[Centre, ...]
    shares: np.ndarray  # of every class

    def of(self, block: Any, labels: Any, first: int) -> Second:
        """At one block, the rows of which are numbered from `first` on."""
        X = as_block(block, first, self.draw.dtype)
        codes = self._codes(labels, X.shape[0], first)
        numbers = np.arange(first, first + X.shape[0])
        place = place_of(numbers, self.draw.key)
        more = (place < np.append(self.shares, 0.0)[codes]) & (place >= self.draw.share)
        fourths = np.array([_fourth(X, codes, centre) for centre in self.centres])
        return Second(fourths, Carried(numbers[more], X[more], codes[more]))

    def _codes(self, labels: Any, n: int, first: int) -> np.ndarray:
        """Among all classes."""
        codes, own = _coded(labels, n, first, self.draw.coding)
        both = np.concatenate([self.classes.astype(object), own.astype(object)])
        place = self.draw.coding(both).codes[len(self.classes) :]
        return np.append(place, -1)[codes]

    @staticmethod
    def merged(parts: Sequence[Second]) -> Second:
        return Second(np.sum([part.fourths for part in parts], axis=0), Carried.joined([p.carried for p in parts]))


def _fourth(X: Any, codes: np.ndarray, centre: Centre) -> float:
    if centre.scale is not None:
        own = sq_norms(X, centre.means[0], centre.scale)
        return float(own @ own)
    if not centre.by_class:
        return fourth_moment(X, np.zeros(X.shape[0], dtype=np.intp), centre.means, centre.unit)
    known = codes >= 0
    return fourth_moment(X if known.all() else X[known], codes[known], centre.means, centre.unit)
