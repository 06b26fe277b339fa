"""Input checks for Dask arrays and frames of numbers, and their division into blocks of rows with labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias, cast

import dask.array as da
import numpy as np
import scipy.sparse as sp
from dask.array.utils import meta_from_array
from dask.delayed import Delayed, delayed

from ...types import Shaped
from ..protocol import is_lazy
from .scheduler import Show, run

if TYPE_CHECKING:
    import dask.dataframe as dd
    from numpy.typing import ArrayLike

Collection: TypeAlias = "da.Array | dd.DataFrame"
Labels: TypeAlias = "da.Array | dd.Series | ArrayLike"
LabelBlock: TypeAlias = Delayed | np.ndarray | None


@dataclass(frozen=True)
class Source:
    """Blocks of X, a Dask array or frame, the labels of each block (or None), and the number of rows in each."""

    X: Collection
    labels: Sequence[LabelBlock]
    lengths: tuple[int, ...]
    n_columns: int
    dtype: np.dtype

    @property
    def sparse(self) -> bool:
        return isinstance(self.X, da.Array) and sp.issparse(meta_from_array(self.X))

    def __iter__(self) -> Iterator[tuple[Delayed, LabelBlock, int, int]]:
        """Iterate over non-empty blocks: block, labels, number of its first row, and that of the next block."""
        first = np.concatenate([[0], np.cumsum(self.lengths)]).astype(np.int64).tolist()
        for block, labels, a, b in zip(_delayed_blocks(self.X), self.labels, first[:-1], first[1:], strict=True):
            if b > a:
                yield block, labels, a, b


def _delayed_blocks(X: Collection | dd.Series) -> list[Delayed]:
    if isinstance(X, da.Array):
        return X.to_delayed().ravel().tolist()
    # simplify() drops unused columns. Full optimisation may also merge files when few columns are used; then the
    # blocks of X would no longer match those of y.
    return list(X.simplify().to_delayed(optimize_graph=False))


def count_rows(X: Collection, show: Show | None = None) -> tuple[int, ...]:
    """Return the number of rows in each block; if Dask does not know them, count (in a frame: its first column)."""
    if isinstance(X, da.Array) and not np.isnan(X.chunks[0]).any():
        return tuple(map(int, X.chunks[0]))
    counted = X if isinstance(X, da.Array) else X[[X.columns[0]]]
    return run([delayed(_n_rows, pure=False)(block) for block in _delayed_blocks(counted)], "counting rows", show)


def _n_rows(block: Shaped) -> int:
    return block.shape[0]


def check_columns(X: Collection) -> tuple[Collection, int, np.dtype]:
    """Return X with all columns in each block, their number, and the float dtype; raise ValueError if X is unusable."""
    if isinstance(X, da.Array):
        if X.ndim != 2:
            raise ValueError(f"X must have rows and columns; got a Dask array of shape {X.shape}.")
        if np.isnan(X.shape[1]):
            raise ValueError("the number of columns of X is not known; call X.compute_chunk_sizes() first.")
        if X.numblocks[1] > 1:
            if sp.issparse(meta_from_array(X)):
                raise ValueError(
                    f"sparse blocks must have all {X.shape[1]} columns; rechunk X before making it sparse."
                )
            X = X.rechunk({1: -1})
        return X, int(X.shape[1]), _as_float([X.dtype], "X")
    if not hasattr(X, "columns"):
        raise ValueError(f"X must be a Dask array or a Dask dataframe; got {type(X).__name__}.")
    kinds = {name: kind for name, kind in X.dtypes.items() if not _is_number(kind)}
    if kinds:
        listed = ", ".join(f"{name!r} ({kind})" for name, kind in list(kinds.items())[:5])
        raise ValueError(f"columns of X must be numbers; got {listed}. Drop them, or encode them as numbers.")
    return X, len(X.columns), _as_float([getattr(kind, "numpy_dtype", kind) for kind in X.dtypes], "X")


def _is_number(kind: object) -> bool:
    return getattr(kind, "kind", "O") in "fiub"


def _as_float(kinds: Sequence[np.dtype], what: str) -> np.dtype:
    """Return float32 for half and single precision, else float64, as for rows in memory."""
    kind = np.result_type(*kinds)
    if kind.kind not in "fiub":
        raise ValueError(f"{what} must hold numbers; got {kind}.")
    return np.dtype(np.float32 if kind in (np.float16, np.float32) else np.float64)


def label_blocks(y: Labels | None, lengths: tuple[int, ...]) -> Sequence[LabelBlock]:
    """Return the labels of each block of X, whose blocks have these lengths; None without labels."""
    if y is None:
        return [None] * len(lengths)
    if not is_lazy(y):
        labels = cast(np.ndarray, y) if hasattr(y, "shape") else np.asarray(y, dtype=object)
        _check_length(labels.shape[0], lengths)
        first = np.concatenate([[0], np.cumsum(lengths)]).astype(int)
        return [np.asanyarray(labels[a:b]) for a, b in pairwise(first)]
    lazy = cast("da.Array | dd.Series", y)
    if isinstance(lazy, da.Array):
        if not np.isnan(lazy.shape[0]):
            _check_length(lazy.shape[0], lengths)
            lazy = lazy.rechunk({0: lengths})
        lazy = lazy.rechunk({1: -1}) if lazy.ndim == 2 else lazy
    blocks = _delayed_blocks(lazy)
    if len(blocks) != len(lengths):
        raise ValueError(
            f"X comes in {len(lengths)} blocks, y in {len(blocks)}, and their lengths are not known. Take both from "
            "one frame, or call compute_chunk_sizes() on both."
        )
    return blocks


def _check_length(n_labels: int, lengths: tuple[int, ...]) -> None:
    if n_labels != sum(lengths):
        raise ValueError(f"X has {sum(lengths)} rows, y has {n_labels}; give every row one label.")
