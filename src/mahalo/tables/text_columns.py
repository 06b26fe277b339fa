"""Columns of sentences: checked, and joined to one text a row."""

from __future__ import annotations

from collections.abc import Sequence

from .columns import check_column
from .formatting import list_some
from .table import Table


def join_texts(table: Table, names: Sequence[str]) -> list[str]:
    """Return one text for each row: the values of the columns, empty ones left out, with a space between them.

    Raise ValueError if a column is missing or holds no text, or if a row has no text in any of them.
    """
    if table.frame is None:
        raise ValueError(f"{table.source} is an array, which holds no texts; wanted a table with {list_some(names)}.")
    columns = [read_texts(table, name) for name in names]
    texts = [" ".join(part for part in parts if part) for parts in zip(*columns, strict=True)]
    if empty := [row for row, text in enumerate(texts) if not text]:
        raise ValueError(
            f"{len(empty):,} of {len(texts):,} rows of {table.source} have no text, first "
            f"{table.locate(empty[0], names[0])} (the first row is 0): fill them in, or remove these rows."
        )
    return texts


def read_texts(table: Table, name: str) -> list[str]:
    """Return the values of a column without white space around them, missing ones as empty."""
    from pyarrow import types

    check_column(table, name, "text column")
    column = table.column(name)
    kinds = (types.is_string, types.is_large_string, types.is_null)
    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if not any(kind(column.type) for kind in kinds):
        raise ValueError(
            f"{name!r} of {table.source} holds {column.type}, not text; name a column of texts, or write it as such."
        )
    return ["" if value is None else value.strip() for value in column.to_pylist()]
