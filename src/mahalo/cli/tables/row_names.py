"""Columns that are learned from and should not be: names of rows, and constants."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

import numpy as np

from mahalo.validation import warn

from .columns import Columns, Encoding
from .reading import Files, Named, Table, read, some

__all__ = ["warn_of_constants", "warn_of_row_names"]

_FEWEST = 3  # rows that count up by more than chance


def warn_of_row_names(
    table: Table, encoding: Encoding, columns: Columns, paths: Sequence[str] = (), text_encoding: str = "utf-8"
) -> None:
    """Say which columns are row numbers, or codes such as 00017 that are all different, unless they were asked for.

    `paths` are where the table was read from: codes lose their zeros where they become numbers.
    """
    from pyarrow import types

    if table.n_rows < _FEWEST:
        return
    taken = [name for name in encoding.columns if name not in encoding.one_hot and name not in columns.only]
    whole = [name for name in taken if types.is_integer(table.frame.column(name).type)]
    different = [name for name in whole if len(table.frame.column(name).unique()) == table.n_rows]
    found = {name: "counts its rows" for name in different if _counts_up(table.frame.column(name))}
    written = _as_written([name for name in different if name not in found], paths, text_encoding)
    for name, codes in written.items():
        code = next((code for code in codes if len(code) > 1 and code.startswith("0") and code.isdigit()), None)
        found |= {} if code is None else {name: f"has codes such as {code!r}, all different"}
    for name, what in found.items():
        option = shlex.quote(name)
        given = f"give --drop {option}" if columns.id is not None else f"give --id {option} or --drop {option}"
        warn(f"{name!r} of {table.source} {what}, and is learned from as a number; if it names rows {given}.")


def warn_of_constants(table: Named, encoding: Encoding, constant: np.ndarray) -> None:
    """Warn of columns that have the same value in every row; `constant` says which of those that come out do."""
    names = [name for name, same in zip(encoding.names, constant, strict=True) if same and name in encoding.columns]
    if names:
        verb = "has" if len(names) == 1 else "have"
        warn(
            f"{some(names)} of {table.source} {verb} the same value in every row, which no distance depends on; leave "
            f"out with --drop {shlex.quote(','.join(names[:10]))}."
        )


def _counts_up(column: Any) -> bool:
    """0, 1, 2, … or 1, 2, 3, …"""
    values = column.to_numpy()
    return values[0] in (0, 1) and bool((np.diff(values) == 1).all())


def _as_written(names: list[str], paths: Sequence[str], text_encoding: str) -> dict[str, list[str]]:
    """Columns of .csv and .tsv files as text."""
    if not names or not paths or Files.at(paths).kind not in (".csv", ".tsv"):
        return {}
    table = read(paths, encoding=text_encoding, numbers=(), say=lambda text: None)
    return {name: table.frame.column(name).to_pylist() for name in names}
