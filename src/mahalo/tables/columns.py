"""Columns to learn from: those that options choose, and warnings of those that should be left out."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

import numpy as np

from ..validation import warn
from .files import TableFiles
from .formatting import list_some
from .options import RowOptions
from .table import ReadOptions, Table, TableSource, read_table
from .vectors import is_vector

if TYPE_CHECKING:
    import pyarrow as pa

_ROW_INDEX = re.compile(r"|__index_level_\d+__|Unnamed: \d+")  # in .csv, in .parquet, and read back by pandas
_FEWEST = 3  # rows; fewer may count up by chance


@dataclass(frozen=True)
class ColumnChoice:
    """Columns that options name."""

    label: str | None = None
    id: str | None = None
    only: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    one_hot: tuple[str, ...] = ()

    @classmethod
    def of(cls, options: RowOptions, table: TableSource) -> ColumnChoice:
        """Return the choice of the options."""
        only, drop, one_hot = (split_names(names, table) for names in (options.columns, options.drop, options.one_hot))
        return cls(options.label, options.id, only, drop, one_hot)


def split_names(entries: Sequence[str], table: TableSource) -> tuple[str, ...]:
    """Return the column names of an option; an entry that is no name itself holds several, separated by commas."""

    def split(entry: str) -> list[str]:
        return [entry] if entry in table.names else [name.strip() for name in entry.split(",") if name.strip()]

    return tuple(name for entry in entries for name in split(entry))


def numeric_names(options: RowOptions) -> list[str] | None:
    """Return the columns of a text file to read as numbers: beside texts only those that are named; None for all."""
    if not options.text:
        return None
    return [name.strip() for entry in options.columns for name in dict.fromkeys((entry, *entry.split(",")))]


def select_columns(table: TableSource, choice: ColumnChoice) -> list[str]:
    """Return the columns of --columns and --one-hot, or all; without label, id and those of --drop."""
    for name in (*choice.only, *choice.drop, *choice.one_hot):
        check_column(table, name)
    left_out = {choice.label: "--label", choice.id: "--id"} | dict.fromkeys(choice.drop, "--drop")
    for option, chosen in (("--columns", choice.only), ("--one-hot", choice.one_hot)):
        if (both := next((name for name in chosen if name in left_out), None)) is not None:
            raise ValueError(
                f"{option} names {both!r} to learn from, which {left_out[both]} leaves out; name it in one of them."
            )
    names = dict.fromkeys((*choice.only, *choice.one_hot) if choice.only else table.names)
    found = [name for name in names if name not in left_out]
    if not found:
        raise ValueError(f"no columns of {table.source} are left to learn from; it has {list_some(table.names)}.")
    if not choice.only:
        _refuse_row_index(table, [name for name in found if name not in choice.one_hot])
    return found


def _refuse_row_index(table: TableSource, names: Sequence[str]) -> None:
    """Raise ValueError for a row index, which holds the classes if the table is sorted by them."""
    index = next((name for name in names if _ROW_INDEX.fullmatch(name)), None)
    if index is not None:
        called = f"is called {index!r}" if index else "has no name"
        raise ValueError(
            f"a column of {table.source} {called}, as a row index that pandas writes: write the table without it "
            f"(index=False), leave it out (--drop {shlex.quote(index)}), or name all columns to learn from (--columns)."
        )


def check_column(table: TableSource, name: str, what: str = "column") -> None:
    """Raise ValueError with the nearest name if a table has no such column."""
    if name not in table.names:
        near = get_close_matches(name, table.names, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"it has {list_some(table.names)}."
        raise ValueError(f"no {what} {name!r} in {table.source}; {hint}")


def numeric_columns(table: Table) -> tuple[str, ...]:
    """Return the columns of numbers and vectors, without a row index; none for an array."""
    named = [name for name in table.names if not _ROW_INDEX.fullmatch(name)]
    return tuple(name for name in named if is_numeric(table.column(name).type))


def is_numeric(column_type: pa.DataType) -> bool:
    """Return whether a column holds numbers, vectors or nothing."""
    from pyarrow import types

    kinds = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal, types.is_null, is_vector)
    return any(kind(column_type) for kind in kinds)


# -- warnings -------------------------------------------------------------------------------------------------------


def warn_row_names(table: Table, names: Sequence[str], choice: ColumnChoice, options: RowOptions) -> None:
    """Warn of row numbers, and of codes such as 00017 that are all different, in columns that --columns does not name.

    The files of `options` are read again as text: read as numbers, codes have lost their zeros.
    """
    from pyarrow import types

    if table.n_rows < _FEWEST:
        return
    columns = {name: table.column(name) for name in names if name not in choice.only}
    unique = {n: c for n, c in columns.items() if types.is_integer(c.type) and len(c.unique()) == table.n_rows}
    found = {name: "counts its rows" for name, column in unique.items() if _counts_up(column.to_numpy())}
    for name, codes in _as_text([name for name in unique if name not in found], options).items():
        code = next((code for code in codes if len(code) > 1 and code.startswith("0") and code.isdigit()), None)
        found |= {} if code is None else {name: f"has codes such as {code!r}, all different"}
    for name, what in found.items():
        option = shlex.quote(name)
        remedy = f"give --drop {option}" if choice.id is not None else f"give --id {option} or --drop {option}"
        warn(f"{name!r} of {table.source} {what}, and is learned from as a number; if it names rows {remedy}.")


def warn_constants(table: TableSource, constant: Sequence[str]) -> None:
    """Warn of columns with one value in every row; names that are no columns of the table are ignored."""
    if names := [name for name in constant if name in table.names]:
        verb = "has" if len(names) == 1 else "have"
        warn(
            f"{list_some(names)} of {table.source} {verb} the same value in every row, which no distance depends on; "
            f"leave out with --drop {shlex.quote(','.join(names[:10]))}."
        )


def _counts_up(values: np.ndarray) -> bool:
    """Return whether values count up by one from 0 or 1."""
    return values[0] in (0, 1) and bool((np.diff(values) == 1).all())


def _as_text(names: list[str], options: RowOptions) -> dict[str, list[str]]:
    """Return columns of .csv and .tsv files as text, by name."""
    if not names or TableFiles.find(options.data, options.text_format).kind not in (".csv", ".tsv"):
        return {}
    table = read_table(options.data, ReadOptions(options.text_format, numbers=()))
    return {name: table.column(name).to_pylist() for name in names}
