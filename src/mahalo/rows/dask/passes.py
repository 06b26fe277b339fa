"""The passes over rows on Dask, and what is kept of them.

A fit goes through the rows twice, and a third time for `KMeansBasis`:

1. Every block gives a digest: sizes and means of its classes, their pooled scatter, and the rows drawn by a hash of
   their number; rows that constraints mention come along. Digests are merged in the order of the rows, eight at a time.
2. Once means are known, Σ ‖x − m‖⁴ for the shrinkage of Ledoit and Wolf, and more rows of classes that are rare.
3. Once clusters are found among rows that were drawn, the mean of all rows that are nearest to the centre of each.

What is collected is small, whatever the number of rows: c × d means, a d × d scatter and some 20,000 rows, of which
pairs are drawn and bounds and most bases are found; all else happens on the client as it does for rows in memory. Up to
20,000 rows all are drawn, and a fit is the one in memory but for rounding. Where the lengths of blocks are not known, a
pass before these counts them, through one column of a frame.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
from dask.delayed import Delayed, delayed

from ...linalg import WIDEST, WIDEST_DENSE, ClassMoments
from ..centres import Centring
from ..digest import Carried, Centre, Coding, Digest, Draw, Second, SecondLook, as_block, digest_of, merged
from ..drawing import in_order, place_of
from ..sampled import Needs, SampledRows
from .running import Show, run
from .source import Source, blocks_of_labels, checked, lengths_of

__all__ = ["DaskRows", "tree"]

_EVEN_ROWS = 20_000  # drawn from all rows, of which bases and bounds are found in memory too
_MOST_NUMBERS = 1 << 24  # in them, where they are dense
_LEAST_ROWS = 2_000
_OF_A_CLASS, _OF_CLASSES = 200, 100_000  # rows drawn of a class at least, and of all classes together
_MERGED = 8  # digests at a time


@dataclass(frozen=True)
class DaskRows:
    """Rows of a Dask array or frame X, with labels y (Dask too, or in memory) where there are any.

    `coding` turns a block of labels into codes and classes; `show` is told how far the work is.
    """

    X: Any
    y: Any
    coding: Coding
    show: Show | None = None

    @cached_property
    def _source(self) -> Source:
        X, n_columns, dtype = checked(self.X)
        lengths = lengths_of(X, self.show)
        return Source(X, blocks_of_labels(self.y, lengths), lengths, n_columns, dtype)

    @property
    def sparse(self) -> bool:
        return self._source.sparse

    @property
    def n_columns(self) -> int:
        return self._source.n_columns

    @property
    def total(self) -> int:
        return sum(self._source.lengths)

    def sampled(self, needs: Needs, wanted: np.ndarray, key: int) -> SampledRows:
        """A sample, with the rows numbered `wanted`, and the moments of all rows."""
        self._check(needs)
        share = _even_rows(self._source) / self.total
        draw = Draw(key, min(1.0, share), needs.order, self.coding, self._source.dtype)
        digest = self._first_pass(draw, wanted)
        rows, shares, centres = digest.carried, _shares(digest.labelled.sizes, draw.share), _centres(needs, digest)
        fourths = _Fourths(self, draw, digest.classes)
        if centres or (shares > draw.share).any():
            found = self._second_pass(SecondLook(draw, digest.classes, centres, shares))
            fourths.keep(centres, found.fourths)
            rows = Carried.joined([rows, found.carried])
        is_even = place_of(rows.numbers, key) < draw.share
        rows = rows.take(in_order(rows.numbers, is_even))
        return SampledRows(
            X=rows.X,
            numbers=rows.numbers,
            codes=rows.codes,
            labels=None if self.y is None else _named(digest.classes, rows.codes),
            even=int(is_even.sum()),
            total=self.total,
            labelled=digest.labelled,
            unlabelled=digest.unlabelled,
            fourth=fourths,
            nearest=self._nearest_to,
        )

    def _check(self, needs: Needs) -> None:
        n_columns, widest = self._source.n_columns, WIDEST if self.sparse else WIDEST_DENSE
        if needs.order == "scatter" and n_columns > widest:
            raise ValueError(
                f"this prior (or n_components) takes a matrix of all {n_columns} columns of X; on Dask at most "
                f"{widest} can be. Use prior='identity' or 'diagonal', or fewer columns."
            )
        if self.total < 2:
            raise ValueError(f"at least 2 rows are needed to learn a distance; got {self.total}.")

    def _first_pass(self, draw: Draw, wanted: np.ndarray) -> Digest:
        parts = []
        for block, labels, a, b in self._source:
            here = wanted[np.searchsorted(wanted, a) : np.searchsorted(wanted, b)]
            parts.append(delayed(digest_of, pure=False)(block, labels, a, here, draw))
        return run([tree(parts, partial(merged, coding=self.coding))], "first pass", self.show)[0]

    def _second_pass(self, look: SecondLook) -> Second:
        shared = delayed(look, pure=False, traverse=False)
        parts = [delayed(SecondLook.of, pure=False)(shared, block, labels, a) for block, labels, a, _ in self._source]
        return run([tree(parts, SecondLook.merged)], "second pass", self.show)[0]

    def _nearest_to(self, centring: Centring) -> ClassMoments:
        shared = delayed(centring, pure=False, traverse=False)
        parts = [
            delayed(_nearest_in, pure=False)(shared, block, a, self._source.dtype) for block, _, a, _ in self._source
        ]
        return run([tree(parts, Centring.merged)], "pass for clusters", self.show)[0]


def _nearest_in(centring: Centring, block: Any, first: int, dtype: np.dtype) -> ClassMoments:
    return centring.of(as_block(block, first, dtype))


@dataclass
class _Fourths:
    """Σ ‖x − m‖⁴ around a centre: found already, or by one more pass."""

    rows: DaskRows
    draw: Draw
    classes: np.ndarray
    known: dict[tuple[bool, bool, float], float] = field(default_factory=dict)

    def keep(self, centres: Sequence[Centre], fourths: np.ndarray) -> None:
        self.known |= {_kind(centre): float(fourth) for centre, fourth in zip(centres, fourths, strict=True)}

    def __call__(self, centre: Centre) -> float:
        if _kind(centre) not in self.known:
            look = SecondLook(self.draw, self.classes, (centre,), np.zeros(len(self.classes)))
            self.keep([centre], self.rows._second_pass(look).fourths)
        return self.known[_kind(centre)]


def _even_rows(source: Source) -> int:
    if source.sparse:
        return _EVEN_ROWS
    return max(_LEAST_ROWS, min(_EVEN_ROWS, _MOST_NUMBERS // source.n_columns))


def _named(classes: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Labels as they were given, None where there is none."""
    if (codes >= 0).all():
        return classes[codes]
    with_none = np.append(classes.astype(object), np.array([None]))
    return with_none[codes]


def _kind(centre: Centre) -> tuple[bool, bool, float]:
    return centre.by_class, centre.scale is not None, centre.unit


def _centres(needs: Needs, digest: Digest) -> tuple[Centre, ...]:
    found = []
    if needs.within:
        found.append(Centre(digest.labelled.means, by_class=True, unit=digest.labelled.unit))
    if needs.around_all:
        every = digest.labelled.together().merged(digest.unlabelled)
        found.append(Centre(every.means, by_class=False, unit=every.unit))
    return tuple(found)


def _shares(sizes: np.ndarray, share: float) -> np.ndarray:
    """Of every class: the common share, or what gives rare ones a fair number of rows."""
    least = min(_OF_A_CLASS, max(20, _OF_CLASSES // max(len(sizes), 1)))
    return np.clip(least / np.maximum(sizes, 1), share, 1.0)


def tree(parts: Sequence[Delayed], merge: Callable) -> Delayed:
    """Merged in order, a few at a time: the same sums whoever does them."""
    if not len(parts):
        raise ValueError("there is nothing to merge: no block has rows.")
    join = delayed(merge, pure=False)
    while True:
        parts = [join(parts[a : a + _MERGED]) for a in range(0, len(parts), _MERGED)]
        if len(parts) == 1:
            return parts[0]
