"""Rows on Dask: arrays, frames and, through them, files larger than memory. All that knows of Dask is in this file.

A fit goes through the rows twice:

1. Every block gives a digest: sizes and means of its classes, their pooled scatter, and the rows drawn by a hash of their
   number; rows that constraints mention come along. Digests are merged in the order of the rows, eight at a time.
2. Once means are known, Σ ‖x − m‖⁴ for the shrinkage of Ledoit and Wolf, and more rows of classes that are rare.

What was collected then is small, whatever the number of rows: c × d means, a d × d scatter and some 20,000 rows, of which
pairs are drawn and bounds and bases are found; all else happens on the client as it does for rows in memory. Up to 20,000
rows all are drawn, and a fit is the one in memory but for rounding. Where the lengths of blocks are not known, a pass before
these counts them, through one column of a frame.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import dask
import dask.array as da
import numpy as np
import scipy.sparse as sp
from dask.callbacks import Callback
from dask.delayed import Delayed, delayed

from ..linalg import WIDEST, WIDEST_DENSE
from .digest import Carried, Centre, Coding, Digest, Draw, SecondLook, digest_of, merged
from .drawing import in_order, place_of
from .sampled import Needs, SampledRows

__all__ = ["DaskRows", "map_rows"]

_EVEN_ROWS = 20_000  # drawn from all rows, of which bases and bounds are found in memory too
_MOST_NUMBERS = 1 << 24  # in them, where they are dense
_LEAST_ROWS = 2_000
_OF_A_CLASS, _OF_CLASSES = 200, 100_000  # rows drawn of a class at least, and of all classes together
_MERGED = 8  # digests at a time

Show = Callable[[str], None]


@dataclass(frozen=True)
class _Source:
    """Blocks of X, and of y where there are labels, and the number of rows before each."""

    blocks: list[Delayed]
    labels: list[Any]
    lengths: tuple[int, ...]
    n_columns: int
    dtype: np.dtype
    sparse: bool

    @property
    def first(self) -> np.ndarray:
        return np.concatenate([[0], np.cumsum(self.lengths)]).astype(np.int64)

    def __iter__(self) -> Iterator[tuple[Delayed, Any, int, int]]:
        """Each block with its labels, the number of its first row and that of the next block's; empty ones left out."""
        for block, labels, a, b in zip(self.blocks, self.labels, self.first[:-1], self.first[1:], strict=True):
            if b > a:
                yield block, labels, int(a), int(b)


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
    def _source(self) -> _Source:
        X, n_columns, dtype = _checked(self.X)
        blocks = X.to_delayed().ravel().tolist() if isinstance(X, da.Array) else X.to_delayed()
        lengths = X.chunks[0] if isinstance(X, da.Array) else (np.nan,) * len(blocks)
        if np.isnan(lengths).any():
            lengths = self._counted(X, blocks)
        labels = _blocks_of_labels(self.y, lengths)
        sparse = isinstance(X, da.Array) and sp.issparse(X._meta)
        return _Source(blocks, labels, tuple(int(n) for n in lengths), n_columns, dtype, sparse)

    def _counted(self, X: Any, blocks: list[Delayed]) -> tuple[int, ...]:
        if not isinstance(X, da.Array):
            blocks = X[[X.columns[0]]].to_delayed()
        return self._run([delayed(_n_rows)(block) for block in blocks], "counting rows")

    @property
    def sparse(self) -> bool:
        return self._source.sparse

    @property
    def total(self) -> int:
        return sum(self._source.lengths)

    def sampled(self, needs: Needs, wanted: np.ndarray, key: int) -> SampledRows:
        """A sample, with the rows numbered `wanted`, and the moments of all rows."""
        source, total = self._source, self.total
        widest = WIDEST if source.sparse else WIDEST_DENSE
        if needs.order == "scatter" and source.n_columns > widest:
            raise ValueError(
                f"this prior (or n_components) takes a matrix of all {source.n_columns} columns of X, and on Dask there may "
                f"be at most {widest}; use prior='identity' or 'diagonal', or fewer columns."
            )
        if total < 2:
            raise ValueError(f"at least 2 rows are needed to learn a distance; got {total}.")
        even = _EVEN_ROWS if source.sparse else max(_LEAST_ROWS, min(_EVEN_ROWS, _MOST_NUMBERS // source.n_columns))
        draw = Draw(key, min(1.0, even / total), needs.order, self.coding, source.dtype)
        digest = self._first_pass(draw, wanted)
        shares = _shares(digest.labelled.sizes, draw.share)
        centres = _centres(needs, digest)
        known: dict[tuple[bool, bool], float] = {}
        carried = [digest.carried]
        if centres or (shares > draw.share).any():
            found = self._second_pass(SecondLook(draw, digest.classes, centres, shares))
            carried.append(found.carried)
            known = {_kind(centre): float(f) for centre, f in zip(centres, found.fourths, strict=True)}

        def fourth(centre: Centre) -> float:
            if _kind(centre) not in known:
                look = SecondLook(draw, digest.classes, (centre,), np.zeros_like(shares))
                known[_kind(centre)] = float(self._second_pass(look).fourths[0])
            return known[_kind(centre)]

        rows = Carried.joined(carried)
        is_even = place_of(rows.numbers, key) < draw.share
        rows = rows.take(in_order(rows.numbers, is_even))
        labels = None if self.y is None else np.append(digest.classes.astype(object), None)[rows.codes]
        return SampledRows(
            X=rows.X,
            numbers=rows.numbers,
            codes=rows.codes,
            labels=labels,
            even=int((place_of(rows.numbers, key) < draw.share).sum()),
            total=total,
            labelled=digest.labelled,
            unlabelled=digest.unlabelled,
            fourth=fourth,
        )

    def _first_pass(self, draw: Draw, wanted: np.ndarray) -> Digest:
        parts = []
        for block, labels, a, b in self._source:
            here = wanted[np.searchsorted(wanted, a) : np.searchsorted(wanted, b)]
            parts.append(delayed(digest_of, pure=False)(block, labels, a, here, draw))
        return self._run([_tree(parts, partial(merged, coding=self.coding))], "first pass")[0]

    def _second_pass(self, look: SecondLook) -> Any:
        shared = delayed(look, pure=False)
        parts = [delayed(SecondLook.of, pure=False)(shared, block, labels, a) for block, labels, a, _ in self._source]
        return self._run([_tree(parts, SecondLook.merged)], "second pass")[0]

    def _run(self, tasks: list[Delayed], what: str) -> tuple:
        with _watched(tasks, what, self.show), _explained(what):
            return dask.compute(*tasks)


def _kind(centre: Centre) -> tuple[bool, bool]:
    return centre.by_class, centre.scale is not None


def _centres(needs: Needs, digest: Digest) -> tuple[Centre, ...]:
    found = []
    if needs.within:
        found.append(Centre(digest.labelled.means, by_class=True))
    if needs.around_all:
        found.append(Centre(digest.labelled.together().merged(digest.unlabelled).means, by_class=False))
    return tuple(found)


def _shares(sizes: np.ndarray, share: float) -> np.ndarray:
    """Of every class: the common share, or what gives rare ones a fair number of rows."""
    least = min(_OF_A_CLASS, max(20, _OF_CLASSES // max(len(sizes), 1)))
    return np.maximum(share, least / np.maximum(sizes, 1))


def _tree(parts: Sequence[Delayed], merge: Callable) -> Delayed:
    """Merged in order, a few at a time: the same sums whoever does them."""
    join = delayed(merge, pure=False)
    while True:
        parts = [join(parts[a : a + _MERGED]) for a in range(0, len(parts), _MERGED)]
        if len(parts) == 1:
            return parts[0]


def _n_rows(block: Any) -> int:
    return block.shape[0]


# -- what may be given -----------------------------------------------------------------------------------------------


def _checked(X: Any) -> tuple[Any, int, np.dtype]:
    """A Dask array or frame whose blocks have all columns, how many these are, and the type of number to reckon with."""
    if isinstance(X, da.Array):
        if X.ndim != 2:
            raise ValueError(f"X must have rows and columns; got a Dask array of shape {X.shape}.")
        if np.isnan(X.shape[1]):
            raise ValueError("the number of columns of X is not known; call X.compute_chunk_sizes() first.")
        if X.numblocks[1] > 1:
            if sp.issparse(X._meta):
                raise ValueError(f"sparse blocks must have all {X.shape[1]} columns; rechunk X before making it sparse.")
            X = X.rechunk({1: -1})
        return X, int(X.shape[1]), _as_float([X.dtype], "X")
    if not hasattr(X, "columns"):
        raise ValueError(f"X must be a Dask array or a Dask dataframe; got {type(X).__name__}.")
    kinds = {name: kind for name, kind in X.dtypes.items() if not _is_number(kind)}
    if kinds:
        listed = ", ".join(f"{name!r} ({kind})" for name, kind in list(kinds.items())[:5])
        raise ValueError(f"columns of X must be numbers; got {listed}. Drop them, or encode them as numbers.")
    return X, len(X.columns), _as_float([getattr(kind, "numpy_dtype", kind) for kind in X.dtypes], "X")


def _is_number(kind: Any) -> bool:
    return getattr(kind, "kind", "O") in "fiub"


def _as_float(kinds: Sequence[Any], what: str) -> np.dtype:
    """Single or double precision, as for rows in memory: single stays single."""
    kind = np.result_type(*kinds)
    if kind.kind not in "fiub":
        raise ValueError(f"{what} must hold numbers; got {kind}.")
    return np.dtype(np.float32 if kind in (np.float16, np.float32) else np.float64)


def _blocks_of_labels(y: Any, lengths: Sequence[int]) -> list[Any]:
    """Labels of each block of X."""
    if y is None:
        return [None] * len(lengths)
    if not type(y).__module__.startswith("dask"):
        y = y if hasattr(y, "shape") else np.asarray(y, dtype=object)
        if y.shape[0] != sum(lengths):
            raise ValueError(f"X has {int(sum(lengths))} rows, y has {y.shape[0]}; give every row one label.")
        first = np.concatenate([[0], np.cumsum(lengths)]).astype(int)
        return [np.asarray(y[a:b]) for a, b in zip(first[:-1], first[1:], strict=True)]
    if isinstance(y, da.Array):
        if not np.isnan(y.shape[0]):
            if y.shape[0] != sum(lengths):
                raise ValueError(f"X has {int(sum(lengths))} rows, y has {y.shape[0]}; give every row one label.")
            y = y.rechunk({0: tuple(int(n) for n in lengths)})
        y = y.rechunk({1: -1}) if y.ndim == 2 else y
        blocks = y.to_delayed().ravel().tolist()
    else:
        blocks = y.to_delayed()
    if len(blocks) != len(lengths):
        raise ValueError(
            f"X comes in {len(lengths)} blocks, y in {len(blocks)}, and their lengths are not known. Take both from one "
            "frame, or call compute_chunk_sizes() on both."
        )
    return blocks


# -- how the work goes -----------------------------------------------------------------------------------------------


@contextmanager
def _explained(what: str) -> Iterator[None]:
    """Errors of a cluster in words; errors about the data pass as they are."""
    try:
        yield
    except Exception as error:
        name = type(error).__name__
        if name == "KilledWorker":
            raise RuntimeError(
                f"{what}: workers died again and again on the same block, as they do when it does not fit into their "
                "memory. Make blocks smaller (X.rechunk, or repartition), or give workers more memory."
            ) from error
        if name in ("FutureCancelledError", "CancelledError", "CommClosedError", "ClosedClientError"):
            raise ConnectionError(
                f"{what}: the connection to the Dask scheduler was lost. Nothing was learned; connect a new Client and "
                "fit again."
            ) from error
        raise


@contextmanager
def _watched(tasks: list[Delayed], what: str, show: Show | None) -> Iterator[None]:
    """Tells `show` how many blocks are done. Work on a cluster is shown by its dashboard; here only by its end."""
    if show is None:
        yield
        return
    with _Counter(what, show):
        yield
    show(f"{what}: done")


class _Counter(Callback):
    """Counts tasks of the schedulers of this machine."""

    def __init__(self, what: str, show: Show) -> None:
        super().__init__()
        self.what, self.show = what, show

    def _start_state(self, dsk: Any, state: dict) -> None:
        self.n_tasks = sum(len(state[kind]) for kind in ("ready", "waiting", "running", "finished"))

    def _posttask(self, key: Any, result: Any, dsk: Any, state: dict, worker_id: Any) -> None:
        self.show(f"{self.what}: {len(state['finished'])} of {self.n_tasks} tasks")


# -- lazy answers ----------------------------------------------------------------------------------------------------


def _as_array(X: Any) -> Any:
    return X if isinstance(X, da.Array) else X.to_dask_array()


def _of_some(function: Callable, width: int, dtype: np.dtype, block: Any) -> np.ndarray:
    return function(block) if block.shape[0] else np.empty((0, width), dtype=dtype)


def map_rows(function: Callable, X: Any, width: int) -> da.Array:
    """function(block) of every block of rows, `width` columns of the precision of X, when it is asked for."""
    X, _, dtype = _checked(X)
    X = _as_array(X)
    return X.map_blocks(
        partial(_of_some, function, width, dtype),
        chunks=(X.chunks[0], (width,)),
        dtype=dtype,
        meta=np.empty((0, width), dtype=dtype),
    )
