"""Columns of vectors: lists of numbers of one length, as Parquet files hold embeddings."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from .table import Table

if TYPE_CHECKING:
    import pyarrow as pa


def is_list(column_type: pa.DataType) -> bool:
    """Return whether a column holds lists, of anything."""
    from pyarrow import types

    return types.is_list(column_type) or types.is_large_list(column_type) or types.is_fixed_size_list(column_type)


def is_vector(column_type: pa.DataType) -> bool:
    """Return whether a column holds lists of numbers."""
    from pyarrow import types

    return is_list(column_type) and (
        types.is_integer(column_type.value_type) or types.is_floating(column_type.value_type)
    )


def vector_lengths(table: Table, names: Sequence[str]) -> dict[str, int]:
    """Return the length of the vectors of each column of them; raise ValueError if a column has several lengths."""
    found = {}
    for name in names:
        column = table.column(name)
        if is_vector(column.type) and (lengths := _lengths(column)).size:
            _check_length(table, name, lengths, int(lengths[lengths >= 0][0]) if (lengths >= 0).any() else 0)
            found[name] = int(lengths.max())
            if found[name] == 0:
                raise ValueError(
                    f"{name!r} of {table.source} holds empty lists; wanted vectors. Leave it out: "
                    f"--drop {shlex.quote(name)}."
                )
    return found


def check_vectors(table: Table, columns: Sequence[str], lengths: Mapping[str, int]) -> None:
    """Raise ValueError unless exactly the columns in `lengths` hold vectors, each of its length."""
    for name in columns:
        vector = is_vector(table.column(name).type)
        if vector != (name in lengths):
            has, wanted = (
                ("vectors", "one number a row") if vector else ("no vectors", f"{lengths[name]} numbers a row")
            )
            raise ValueError(f"{name!r} of {table.source} holds {has}; wanted {wanted}, as in the rows learned from.")
        if vector:
            _check_length(table, name, _lengths(table.column(name)), lengths[name])


def vector_matrix(column: pa.ChunkedArray, length: int) -> np.ndarray:
    """Return the vectors of a column without nulls as rows, NaN where one of their numbers is null."""
    import pyarrow as pa
    from pyarrow import compute

    return compute.list_flatten(column).cast(pa.float64()).to_numpy().reshape(len(column), length)


def _lengths(column: pa.ChunkedArray) -> np.ndarray:
    """Return the number of entries of every list, −1 for null."""
    from pyarrow import compute

    return compute.fill_null(compute.list_value_length(column), -1).to_numpy()


def _check_length(table: Table, name: str, lengths: np.ndarray, wanted: int) -> None:
    odd = np.flatnonzero((lengths != wanted) & (lengths >= 0))
    if not len(odd):
        return
    row, right = int(odd[0]), np.flatnonzero(lengths == wanted)
    expected = f" where row {table.first_row + int(right[0])} has {wanted}" if len(right) else f"; wanted {wanted}"
    raise ValueError(
        f"{name!r} of {table.source} must hold vectors of one length: row {table.first_row + row} has "
        f"{int(lengths[row])} numbers{expected} (the first row is 0). Make all the same length, or remove the others."
    )
