"""Labels and ids of rows: a column of the table, an array of its file, or a file of their own."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..constraints.labels import Labels, as_labels
from .columns import check_column
from .formatting import is_number, list_some
from .options import RowOptions, TextFormat
from .table import ReadOptions, TableSource, read_table
from .vectors import is_list

if TYPE_CHECKING:
    import pyarrow as pa

_MOST_CLASSES = 1_000_000  # largest number of different labels


@dataclass(frozen=True)
class Classes:
    """Names of the classes, the number of rows of each, and the number of unlabelled rows."""

    names: np.ndarray
    sizes: np.ndarray
    n_unlabelled: int

    @classmethod
    def count(cls, labels: Labels) -> Classes:
        """Count the labels of rows."""
        codes = labels.codes[labels.codes >= 0]
        sizes = np.bincount(codes, minlength=len(labels.classes))
        return cls(labels.classes, sizes, len(labels.codes) - len(codes))


def check_value_columns(table: TableSource, options: RowOptions) -> None:
    """Raise ValueError before rows are read if labels or ids are in no column of the table, or in a file too."""
    for what, column, file in (("label", options.label, options.labels), ("id", options.id, options.ids)):
        _refuse_column_and_file(what, column, file)
        if column is not None and table.matrix is None:
            _check_value_column(table, column, what)


def _check_value_column(table: TableSource, name: str, what: str) -> None:
    check_column(table, name, f"{what} column")
    if is_list(table.column_type(name)):
        raise ValueError(f"{name!r} of {table.source} holds lists; wanted one {what} a row. Name another column.")


def read_labels(table: TableSource, options: RowOptions) -> np.ndarray | None:
    """Return one label for each row, None if unlabelled; svmlight files hold their own."""
    column, file = options.label, options.labels
    _refuse_column_and_file("label", column, file)
    if file is not None:
        return _refuse_measurements(_read_value_file(file, table, "labels", options.text_format), file)
    if column is None and table.matrix is not None and list(table.arrays) == ["label"]:
        column = "label"
    return None if column is None else _refuse_measurements(_read_column(table, column, "label"), column)


def _refuse_measurements(labels: np.ndarray, name: str) -> np.ndarray:
    """Return the labels; raise ValueError if they are decimal numbers, not classes."""
    floats = [v for v in labels if isinstance(v, (float, np.floating))] if labels.dtype.kind in "fO" else []
    numbers = np.array(floats, dtype=np.float64)
    broken = numbers[np.isfinite(numbers) & (numbers != np.round(numbers))]
    if len(broken):
        raise ValueError(
            f"{name!r} holds measurements, such as {broken[0]:g}, not classes: name another column (--label), or "
            "cut it into classes first."
        )
    return labels


def class_names(labels: np.ndarray | None, n_rows: int) -> list[str | None]:
    """Return the class of each row as text, None for rows without a label."""
    if labels is None:
        return [None] * n_rows
    found = as_labels(labels)
    return [None if code < 0 else str(found.classes[code]) for code in found.codes]


def read_ids(table: TableSource, options: RowOptions) -> list[str] | None:
    """Return one unique name for each row, as text."""
    column, file = options.id, options.ids
    _refuse_column_and_file("id", column, file)
    if column is not None:
        return _check_ids(_read_column(table, column, "id"), table, column)
    return None if file is None else _check_ids(_read_value_file(file, table, "ids", options.text_format), table, file)


def name_rows(rows: np.ndarray, ids: list[str] | None) -> np.ndarray:
    """Return the ids of rows, or their numbers if they have none."""
    return rows if ids is None else np.array(ids, dtype=object)[rows]


def _refuse_column_and_file(what: str, column: str | None, file: str | None) -> None:
    """Raise ValueError if labels or ids are in a column and in a file."""
    if column is not None and file is not None:
        raise ValueError(f"--{what} names a column, --{what}s a file; give one of them.")


def _check_ids(values: np.ndarray, table: TableSource, name: str) -> list[str]:
    """Return ids as text; raise ValueError if one is missing or occurs twice."""
    row = next((k for k, value in enumerate(values) if value is None), None)
    if row is not None:
        raise ValueError(f"row {row} of {table.source} has no id (the first row is 0); every row needs one.")
    ids = [str(value) for value in values]
    if twice := [value for value, n in Counter(ids).items() if n > 1]:
        raise ValueError(
            f"ids must name every row once; {list_some(twice)} of {name} occur more than once. Use another "
            "column, or leave the copies out."
        )
    return ids


def _read_column(table: TableSource, name: str, what: str) -> np.ndarray:
    if table.matrix is None:
        _check_value_column(table, name, what)
        return _to_array(table.column(name), f"{what}s")
    if name not in table.arrays:
        has = f"beside its rows it has {list_some(list(table.arrays))}" if table.arrays else "an array has no columns"
        raise ValueError(f"no {what} {name!r} in {table.source}: {has}; give --{what}s FILE.")
    values = _check_length(table.arrays[name], table, name)
    if table.svmlight_base is not None and (values == np.rint(values)).all():
        return np.array([str(int(value)) for value in values], dtype=object)  # as text −1 is a class, not unlabelled
    return values


def _read_value_file(file: str, table: TableSource, what: str, form: TextFormat) -> np.ndarray:
    """Read labels or ids, one for each row of the table, from a .txt or .npy file or a table of one column."""
    path = Path(file)
    if path.suffix.lower() == ".txt":
        lines = np.array([line or None for line in _read_lines(path, form.encoding)], dtype=object)
        values = lines if what == "ids" else _parse_numbers(lines)
    elif path.suffix.lower() == ".npy" and path.is_file():
        values = _read_vector(path)
    else:
        found = read_table([file], ReadOptions(form, numbers=()))
        if len(found.names) != 1:
            raise ValueError(
                f"{path.name} must hold one column of {what}; it has {list_some(found.names) or 'an array'}."
            )
        values = _to_array(found.column(found.names[0]), what)
    return _check_length(values, table, path.name)


def _read_lines(path: Path, encoding: str) -> list[str]:
    try:
        return path.read_text(encoding=encoding).removeprefix("\ufeff").splitlines()
    except (UnicodeError, LookupError) as error:
        from .csv_files import encoding_error

        raise encoding_error(path, encoding, error) from None


def _read_vector(path: Path) -> np.ndarray:
    try:
        values = np.load(path, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise ValueError(f"{path.name} cannot be read: {error}. Save plain arrays with numpy.") from None
    if values.ndim != 1:
        raise ValueError(f"{path.name} has shape {values.shape}; wanted one value for each row.")
    return values


def _check_length(values: np.ndarray, table: TableSource, name: str) -> np.ndarray:
    if np.shape(values) != (table.n_rows,):
        raise ValueError(f"{name} holds {len(values):,} values for the {table.n_rows:,} rows of {table.source}.")
    return values


def _to_array(column: pa.ChunkedArray, what: str) -> np.ndarray:
    """Return numbers as an array of them, other values as objects, None if missing; ids stay text."""
    from pyarrow import types

    if column.null_count == 0 and (types.is_integer(column.type) or types.is_floating(column.type)):
        return column.to_numpy()
    if what == "ids" or types.is_nested(column.type):
        values = np.empty(len(column), dtype=object)
        values[:] = column.to_pylist()
        return values
    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)  # without values that no row has
    encoded = column.dictionary_encode().unify_dictionaries()
    names = encoded.chunk(0).dictionary.to_pylist()
    if len(names) > _MOST_CLASSES:
        raise ValueError(
            f"there are more than {_MOST_CLASSES:,} different labels, far too many to learn from; is this the "
            "column of classes?"
        )
    distinct = np.empty(len(names) + 1, dtype=object)  # one object for each value, not for each row
    distinct[:-1] = names
    places = [chunk.indices.fill_null(len(names)).to_numpy() for chunk in encoded.chunks]
    return (_parse_numbers(distinct) if column.null_count else _parse_numbers(distinct[:-1]))[np.concatenate(places)]


def _parse_numbers(values: np.ndarray) -> np.ndarray:
    """Return text labels as numbers if all of them are: then they sort as numbers, and −1 means unlabelled."""
    present = np.array([value is not None for value in values], dtype=bool)
    texts = values[present].tolist()
    if not texts or not all(isinstance(text, str) and is_number(text) for text in texts):
        return values
    numbers = np.array(texts, dtype=np.float64)
    if not np.isfinite(numbers).all() or len(np.unique(numbers)) < len(set(texts)):  # 1 and 01 are two classes
        return values
    whole = (numbers == np.rint(numbers)).all() and (np.abs(numbers) < 2**53).all()
    numbers = numbers.astype(np.int64) if whole else numbers
    if present.all():
        return numbers
    found = np.empty(len(values), dtype=object)
    found[present] = numbers.tolist()
    return found
