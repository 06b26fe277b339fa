"""Records to compare: columns of texts, each encoded for itself, and of numbers, of one table or of two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..dedupe import number_columns, text_columns
from ..progress import SILENT, Progress
from ..text import load_encoder
from .columns import encode_table
from .dataset import choose_columns, split_names
from .labels_and_ids import read_ids
from .options import RowOptions
from .table import Table, read_table
from .text_columns import join_texts, read_texts

__all__ = ["Records", "load_records"]

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

    Columns are those of `options.text` and `options.columns`; without both, all that hold numbers.
    """
    tables = [_read(options, options.data, progress)]
    if against is not None:
        tables.append(_read(options, [against], progress))
    texts = tuple(dict.fromkeys(split_names(options.text, tables[0])))
    numbers = [_numbers(options, table, has_texts=bool(texts)) for table in tables]
    if len(numbers) == 2 and set(numbers[0]) != set(numbers[1]):
        raise ValueError(
            f"{tables[0].source} and {tables[1].source} differ in columns of numbers; name them (--columns)."
        )
    scaled = number_columns(*numbers)
    encoder = load_encoder(options.encoder) if texts else None
    found = []
    for table, plain, block in zip(tables, numbers, scaled, strict=False):
        columns = dict(block)
        shown = [
            ", ".join(f"{name} {row[k]:g}" for k, name in enumerate(list(plain)[:_MOST_SHOWN])) for row in _rows(plain)
        ]
        if encoder is not None:
            joined = join_texts(table, texts)
            columns = text_columns({name: read_texts(table, name) for name in texts}, encoder, progress) | columns
            shown = [f"{text}, {more}" for text, more in zip(joined, shown, strict=True)] if plain else joined
        ids = read_ids(table, options.id, None, options.encoding)
        found.append(Records(table.source, table.n_rows, ids, shown, columns))
    return found[0], found[1] if len(found) == 2 else None


def _read(options: RowOptions, paths: Sequence[str], progress: Progress) -> Table:
    strings = [] if options.id is None else [options.id]
    numbers = [name for text in options.columns for name in (text, *text.split(","))] if options.text else None
    return read_table(paths, encoding=options.encoding, text=strings, numbers=numbers, show=progress.show)


def _numbers(options: RowOptions, table: Table, has_texts: bool) -> dict[str, np.ndarray]:
    """Return the columns of numbers by name; none beside texts unless they are named."""
    if has_texts and not options.columns:
        return {}
    X, encoding = encode_table(table, choose_columns(replace(options, label=None), table))
    X = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
    names = [f"column {k}" for k in range(X.shape[1])] if encoding is None else encoding.names
    return {name: X[:, k] for k, name in enumerate(names)}


def _rows(columns: dict[str, np.ndarray]) -> list[list[float]]:
    return np.column_stack(list(columns.values())).tolist() if columns else []
