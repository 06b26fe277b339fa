"""Records to compare: columns of texts, each encoded for itself, and of numbers, of one table or of two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..dedupe import number_columns, text_columns
from ..linalg import to_dense
from ..progress import SILENT, Progress
from ..text import load_encoder
from .columns import ColumnChoice, numeric_names, split_names
from .encoding import check_matrix, encode, fit_encoding
from .labels_and_ids import read_ids
from .options import RowOptions
from .table import ReadOptions, Table, read_table
from .text_columns import join_texts, read_texts

_MOST_SHOWN = 6  # columns of numbers in the text of a record


@dataclass(frozen=True, eq=False)
class Records:
    """Rows of a table: ids if they have some, a text to show, and columns of numbers by name."""

    source: str
    n_rows: int
    ids: list[str] | None
    shown: list[str]
    columns: dict[str, np.ndarray]


def load_records(
    options: RowOptions, against: str | None, progress: Progress = SILENT
) -> tuple[Records, Records | None]:
    """Return the records of a table, and of the one it is compared with.

    Columns are those of `options.text` and `options.columns`; without both, all but the ids, which must hold numbers.
    """
    paths = [list(options.data)] if against is None else [list(options.data), [against]]
    tables = [_read(options, one, progress) for one in paths]
    texts = tuple(dict.fromkeys(split_names(options.text, tables[0])))
    numbers = [_numbers(options, table, has_texts=bool(texts), progress=progress) for table in tables]
    if len(numbers) == 2 and list(numbers[0]) != list(numbers[1]):
        raise ValueError(
            f"{tables[0].source} and {tables[1].source} differ in columns of numbers; name some of both: --columns A,B."
        )
    scaled = number_columns(*numbers)
    encoder = load_encoder(options.encoder) if texts else None
    found = []
    for table, plain, block in zip(tables, numbers, scaled, strict=False):
        shown, columns = _describe(plain, table.n_rows), dict(block)
        if encoder is not None:
            joined = join_texts(table, texts)
            columns = text_columns({name: read_texts(table, name) for name in texts}, encoder, progress) | columns
            shown = [f"{text}, {more}" for text, more in zip(joined, shown, strict=True)] if plain else joined
        ids = read_ids(table, options)
        found.append(Records(table.source, table.n_rows, ids, shown, columns))
    return found[0], found[1] if len(found) == 2 else None


def _read(options: RowOptions, paths: Sequence[str], progress: Progress) -> Table:
    strings = [] if options.id is None else [options.id]
    return read_table(paths, ReadOptions(options.text_format, strings, numeric_names(options)), progress)


def _numbers(options: RowOptions, table: Table, has_texts: bool, progress: Progress) -> dict[str, np.ndarray]:
    """Return the columns of numbers by name; none beside texts unless they are named."""
    if has_texts and not options.columns:
        return {}
    if table.matrix is not None:
        X = to_dense(check_matrix(table, may_impute=False))
        names = [f"column {k}" for k in range(X.shape[1])]
    else:
        encoding, first = fit_encoding(table, ColumnChoice.of(options, table), progress)
        X, names = encode(first, encoding, may_impute=False), encoding.names
    return {name: X[:, k] for k, name in enumerate(names)}


def _describe(columns: dict[str, np.ndarray], n_rows: int) -> list[str]:
    """Return the first columns of each row as text."""
    if not columns:
        return [""] * n_rows
    some = dict(list(columns.items())[:_MOST_SHOWN])
    return [
        ", ".join(f"{name} {value:g}" for name, value in zip(some, row, strict=True))
        for row in zip(*some.values(), strict=True)
    ]
