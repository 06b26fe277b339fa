"""Tables of results as pandas data frames; pandas is asked for only where one is made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["data_frame", "names_of_rows", "tuples"]


def data_frame(columns: dict[str, Any], index: Any, name: str) -> DataFrame:
    """Columns by name; `name` is what the index holds."""
    try:
        from pandas import DataFrame, Index
    except ImportError:
        raise ImportError("tables of results are pandas data frames: pip install pandas") from None
    return DataFrame(columns, index=Index(index, name=name))


def names_of_rows(index: Sequence[Any] | None, n_rows: int | None) -> Sequence[Any] | None:
    """Names of all rows, one each, or None where rows go by their numbers."""
    if index is not None and n_rows is not None and len(index) != n_rows:
        raise ValueError(f"index must name each of the {n_rows} rows of X, in their order; got {len(index)} names.")
    return index


def tuples(rows: Sequence[Any]) -> np.ndarray:
    """Tuples of different lengths as one column."""
    column = np.empty(len(rows), dtype=object)
    for k, values in enumerate(rows):
        column[k] = tuple(values)
    return column
