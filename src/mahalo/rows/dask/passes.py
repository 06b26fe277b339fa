"""Passes over the rows of a Dask collection, and the sample and moments that they return.

A fit reads the rows twice, and a third time for `KMeansBasis`:

1. Every block is summarized: sizes and means of its classes, their pooled scatter, the rows sampled by a hash of their
   number, and the rows that constraints mention. Summaries are merged in the order of the rows, eight at a time.
2. With the means known: Σ ‖x − m‖⁴ for the shrinkage of Ledoit and Wolf, and more rows of rare classes.
3. With clusters found in the sample: the mean of all rows nearest to each cluster centre.

The collected data are small for any number of rows: c × d means, a d × d scatter and some 20,000 rows, from which pairs
are drawn and bounds and most bases are found; everything else happens on the client as for rows in memory. Up to 20,000
rows the sample is the whole data set, and the fit equals that in memory up to rounding. If the lengths of blocks are
unknown, an additional pass counts them first, reading one column of a frame.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np
from dask.delayed import Delayed, delayed

from ...linalg import MAX_DENSE_COLUMNS, MAX_SPARSE_COLUMNS, ClassMoments
from ..moments import (
    BlockSummary,
    Centre,
    EncodeLabels,
    NumberedRows,
    SamplingPlan,
    SecondPass,
    SecondPassResult,
    as_block,
    merge_summaries,
    summarize_block,
)
from ..nearest_centre import NearestCentre
from ..sampled import Needs, SampledRows
from ..sampling import hash_uniform, order_with_first
from .scheduler import Show, run
from .source import Collection, Labels, Source, check_columns, count_rows, label_blocks

_SAMPLE_ROWS = 20_000  # drawn uniformly from all rows; as many as bases and bounds use in memory
_MAX_SAMPLE_NUMBERS = 1 << 24  # rows × columns of a dense sample
_MIN_SAMPLE_ROWS = 2_000
_ROWS_PER_CLASS, _ROWS_OF_CLASSES = 200, 100_000  # minimum sampled from a class, and total of these minima
_MERGED_AT_ONCE = 8


@dataclass(frozen=True)
class DaskRows:
    """Rows of a Dask array or frame X, with labels y on Dask, in memory, or None.

    `encode` turns a block of labels into codes and classes; `show`, if not None, is called with progress messages.
    """

    X: Collection
    y: Labels | None
    encode: EncodeLabels
    show: Show | None = None

    @cached_property
    def _source(self) -> Source:
        X, n_columns, dtype = check_columns(self.X)
        lengths = count_rows(X, self.show)
        return Source(X, label_blocks(self.y, lengths), lengths, n_columns, dtype)

    @property
    def sparse(self) -> bool:
        return self._source.sparse

    @property
    def n_columns(self) -> int:
        return self._source.n_columns

    @property
    def n_total(self) -> int:
        return sum(self._source.lengths)

    def sampled(self, needs: Needs, requested: np.ndarray, key: int) -> SampledRows:
        """Return a sample that includes the rows numbered `requested`, with the moments of all rows."""
        self._check(needs)
        share = _sample_rows(self._source) / self.n_total
        plan = SamplingPlan(key, min(1.0, share), needs.order, self.encode, self._source.dtype)
        summary = self._first_pass(plan, requested)
        rows, shares, centres = (
            summary.rows,
            _class_shares(summary.labelled.sizes, plan.share),
            _centres(needs, summary),
        )
        further = _CachedPasses(self, plan, summary.classes)
        if centres or (shares > plan.share).any():
            second = self.second_pass(SecondPass(plan, summary.classes, centres, shares))
            further.store(centres, second.fourth_moments)
            rows = NumberedRows.concatenate([rows, second.rows])
        is_uniform = hash_uniform(rows.numbers, key) < plan.share
        rows = rows.take(order_with_first(rows.numbers, is_uniform))
        return SampledRows(
            X=rows.X,
            numbers=rows.numbers,
            codes=rows.codes,
            labels=None if self.y is None else _decode(summary.classes, rows.codes),
            n_uniform=int(is_uniform.sum()),
            n_total=self.n_total,
            labelled=summary.labelled,
            unlabelled=summary.unlabelled,
            source=further,
        )

    def _check(self, needs: Needs) -> None:
        n_columns, widest = self._source.n_columns, MAX_SPARSE_COLUMNS if self.sparse else MAX_DENSE_COLUMNS
        if needs.order == "scatter" and n_columns > widest:
            raise ValueError(
                f"this prior (or n_components) takes a matrix of all {n_columns} columns of X; on Dask at most "
                f"{widest} can be. Use prior='identity' or 'diagonal', or fewer columns."
            )
        if self.n_total < 2:
            raise ValueError(f"at least 2 rows are needed to learn a distance; got {self.n_total}.")

    def _first_pass(self, plan: SamplingPlan, requested: np.ndarray) -> BlockSummary:
        parts = []
        for block, labels, a, b in self._source:
            here = requested[np.searchsorted(requested, a) : np.searchsorted(requested, b)]
            parts.append(delayed(summarize_block, pure=False)(block, labels, a, here, plan))
        return run([merge_tree(parts, partial(merge_summaries, encode=self.encode))], "first pass", self.show)[0]

    def second_pass(self, task: SecondPass) -> SecondPassResult:
        """Return the result of a second pass over all blocks."""
        shared = delayed(task, pure=False, traverse=False)
        summarize = delayed(SecondPass.summarize_block, pure=False)
        parts = [summarize(shared, block, labels, a) for block, labels, a, _ in self._source]
        return run([merge_tree(parts, SecondPass.merge)], "second pass", self.show)[0]

    def nearest_moments(self, nearest: NearestCentre) -> ClassMoments:
        """Return numbers and means of the rows that are nearest to each centre, by one pass."""
        shared = delayed(nearest, pure=False, traverse=False)
        summarize = delayed(_nearest_moments, pure=False)
        parts = [summarize(shared, block, a, self._source.dtype) for block, _, a, _ in self._source]
        return run([merge_tree(parts, NearestCentre.merge)], "pass for clusters", self.show)[0]


def _nearest_moments(nearest: NearestCentre, block: object, first: int, dtype: np.dtype) -> ClassMoments:
    return nearest.moments(as_block(block, first, dtype))


@dataclass
class _CachedPasses:
    """Passes over the rows behind a sample, `FurtherPasses`, with a cache of fourth moments."""

    rows: DaskRows
    plan: SamplingPlan
    classes: np.ndarray
    cache: dict[tuple[bool, bool, float], float] = field(default_factory=dict)

    def store(self, centres: Sequence[Centre], fourth_moments: np.ndarray) -> None:
        self.cache |= {_cache_key(centre): float(found) for centre, found in zip(centres, fourth_moments, strict=True)}

    def fourth_moment(self, centre: Centre) -> float:
        """Return Σ ‖x − m‖⁴ around a centre, from the cache or by one more pass."""
        if _cache_key(centre) not in self.cache:
            task = SecondPass(self.plan, self.classes, (centre,), np.zeros(len(self.classes)))
            self.store([centre], self.rows.second_pass(task).fourth_moments)
        return self.cache[_cache_key(centre)]

    def nearest_moments(self, nearest: NearestCentre) -> ClassMoments:
        return self.rows.nearest_moments(nearest)


def _cache_key(centre: Centre) -> tuple[bool, bool, float]:
    return centre.by_class, centre.scale is not None, centre.unit


def _sample_rows(source: Source) -> int:
    if source.sparse:
        return _SAMPLE_ROWS
    return max(_MIN_SAMPLE_ROWS, min(_SAMPLE_ROWS, _MAX_SAMPLE_NUMBERS // source.n_columns))


def _decode(classes: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Return the label of each code, None for −1."""
    if (codes >= 0).all():
        return classes[codes]
    with_none = np.append(classes.astype(object), np.array([None]))
    return with_none[codes]


def _centres(needs: Needs, summary: BlockSummary) -> tuple[Centre, ...]:
    found = []
    if needs.within:
        found.append(Centre(summary.labelled.means, by_class=True, unit=summary.labelled.unit))
    if needs.around_all:
        every = summary.labelled.pool().merge(summary.unlabelled)
        found.append(Centre(every.means, by_class=False, unit=every.unit))
    return tuple(found)


def _class_shares(sizes: np.ndarray, share: float) -> np.ndarray:
    """Return the share to sample from each class: at least `share`, more for rare classes."""
    least = min(_ROWS_PER_CLASS, max(20, _ROWS_OF_CLASSES // max(len(sizes), 1)))
    return np.clip(least / np.maximum(sizes, 1), share, 1.0)


def merge_tree(parts: Sequence[Delayed], merge: Callable) -> Delayed:
    """Return merge(list) over all parts, in order and a few at a time, so that sums do not depend on the workers."""
    if not len(parts):
        raise ValueError("there is nothing to merge: no block has rows.")
    join = delayed(merge, pure=False)
    while True:
        parts = [join(parts[a : a + _MERGED_AT_ONCE]) for a in range(0, len(parts), _MERGED_AT_ONCE)]
        if len(parts) == 1:
            return parts[0]
