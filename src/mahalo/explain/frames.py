"""Data frames of results; pandas is imported only to make one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from pandas import DataFrame


Column: TypeAlias = np.ndarray | Sequence[object]


def data_frame(columns: Mapping[str, Column], index: Sequence[object] | np.ndarray, name: str) -> DataFrame:
    """Return a data frame of these columns, with an index called `name`."""
    try:
        from pandas import DataFrame, Index
    except ImportError:
        raise ImportError("tables of results are pandas data frames: pip install pandas") from None
    return DataFrame(columns, index=Index(index, name=name))


def check_row_names(index: Sequence[object] | None, n_rows: int | None) -> Sequence[object] | None:
    """Return the names of rows; raise ValueError unless there is one for each row."""
    if index is not None and n_rows is not None and len(index) != n_rows:
        raise ValueError(f"index must name each of the {n_rows} rows of X, in their order; got {len(index)} names.")
    return index


def tuple_column(rows: Sequence[Iterable[object]]) -> np.ndarray:
    """Return a column of tuples, which may have different lengths."""
    column = np.empty(len(rows), dtype=object)
    for k, values in enumerate(rows):
        column[k] = tuple(values)
    return column
