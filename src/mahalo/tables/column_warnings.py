"""Warnings of columns that are learned from and should not be: row numbers, codes of rows, constants."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import numpy as np

from ..validation import warn
from .columns import ColumnChoice, Encoding
from .files import TableFiles
from .table import Table, TableInfo, read_table
from .text import list_some

__all__ = ["warn_constants", "warn_row_names"]

_FEWEST = 3  # rows that count up by more than chance


def warn_row_names(
    table: Table, encoding: Encoding, choice: ColumnChoice, paths: Sequence[str] = (), text_encoding: str = "utf-8"
) -> None:
    """Warn of row numbers, and of codes such as 00017 that are all different, in columns that --columns does not name.

    `paths` are the files of the table, which are read again as text: codes lose their zeros as numbers.
    """
    from pyarrow import types

    if table.n_rows < _FEWEST:
        return
    columns = {name: table.column(name) for name in encoding.plain if name not in choice.only}
    unique = {n: c for n, c in columns.items() if types.is_integer(c.type) and len(c.unique()) == table.n_rows}
    found = {name: "counts its rows" for name, column in unique.items() if _counts_up(column.to_numpy())}
    for name, codes in _as_text([name for name in unique if name not in found], paths, text_encoding).items():
        code = next((code for code in codes if len(code) > 1 and code.startswith("0") and code.isdigit()), None)
        found |= {} if code is None else {name: f"has codes such as {code!r}, all different"}
    for name, what in found.items():
        option = shlex.quote(name)
        remedy = f"give --drop {option}" if choice.id is not None else f"give --id {option} or --drop {option}"
        warn(f"{name!r} of {table.source} {what}, and is learned from as a number; if it names rows {remedy}.")


def warn_constants(table: TableInfo, encoding: Encoding, constant: np.ndarray) -> None:
    """Warn of columns with one value in every row; `constant` is a mask of the encoded columns."""
    names = [name for name, same in zip(encoding.names, constant, strict=True) if same and name in encoding.columns]
    if names:
        verb = "has" if len(names) == 1 else "have"
        warn(
            f"{list_some(names)} of {table.source} {verb} the same value in every row, which no distance depends on; "
            f"leave out with --drop {shlex.quote(','.join(names[:10]))}."
        )


def _counts_up(values: np.ndarray) -> bool:
    """Return True if the values count up by one from 0 or 1."""
    return values[0] in (0, 1) and bool((np.diff(values) == 1).all())


def _as_text(names: list[str], paths: Sequence[str], text_encoding: str) -> dict[str, list[str]]:
    """Return columns of .csv and .tsv files as text, by name."""
    if not names or not paths or TableFiles.find(paths).kind not in (".csv", ".tsv"):
        return {}
    table = read_table(paths, encoding=text_encoding, numbers=())
    return {name: table.column(name).to_pylist() for name in names}
