"""Labels and ids of rows: a column of the table, an array beside it, or a file of their own."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mahalo.constraints import as_labels

from .columns import column_of
from .reading import Named, Table, is_number, not_decoded, read, some
from .vectors import refuse_lists

__all__ = ["Classes", "check_ids", "no_measurements", "numbers_in", "one_of", "read_beside", "read_ids", "read_labels"]


@dataclass(frozen=True)
class Classes:
    """Names of the classes, the number of rows in each, and of those in none."""

    names: np.ndarray
    sizes: np.ndarray
    n_unlabelled: int

    @classmethod
    def of(cls, y: Any) -> Classes:
        labels = as_labels(y)
        known = labels.codes >= 0
        sizes = np.bincount(labels.codes[known], minlength=len(labels.classes))
        return cls(labels.classes, sizes, int((~known).sum()))


def read_labels(table: Table, column: str | None, file: str | None, encoding: str = "utf-8") -> np.ndarray | None:
    """One label for each row, None where there is none; svmlight files bring their own."""
    one_of("label", column, file)
    if file is not None:
        return no_measurements(read_beside(file, table, "labels", encoding), file)
    if column is None and "label" in table.beside and table.matrix is not None and len(table.beside) == 1:
        column = "label"
    return None if column is None else no_measurements(_from_table(table, column, "label"), column)


def no_measurements(labels: np.ndarray, called: str) -> np.ndarray:
    """The same, or an error where they are not classes."""
    among = labels if labels.dtype.kind in "fO" else ()
    numbers = np.array([value for value in among if isinstance(value, (float, np.floating))], dtype=np.float64)
    broken = numbers[np.isfinite(numbers) & (numbers != np.round(numbers))]
    if len(broken):
        raise ValueError(
            f"{called!r} holds measurements, such as {broken[0]:g}, not classes: name another column (--label), or "
            "cut it into classes first."
        )
    return labels


def read_ids(table: Table, column: str | None, file: str | None, encoding: str = "utf-8") -> list[str] | None:
    """One name for each row, as text, each different."""
    one_of("id", column, file)
    if column is None and file is None:
        return None
    given = _from_table(table, column, "id") if column is not None else read_beside(str(file), table, "ids", encoding)
    return check_ids(given, table, str(column or file))


def one_of(what: str, column: str | None, file: str | None) -> None:
    if column is not None and file is not None:
        raise ValueError(f"--{what} names a column, --{what}s a file; give one of them.")


def check_ids(given: np.ndarray, table: Named, called: str) -> list[str]:
    """As text, or an error where one is missing or stands there twice."""
    if any(name is None for name in given):
        row = next(k for k, name in enumerate(given) if name is None)
        raise ValueError(f"row {row} of {table.source} has no id (the first row is 0); every row needs one.")
    ids = [str(name) for name in given]
    twice = [name for name, n in Counter(ids).items() if n > 1] if len(set(ids)) < len(ids) else []
    if twice:
        raise ValueError(
            f"ids must name every row once; {some(twice)} of {called} stand there more than once. Use another "
            "column, or leave the copies out."
        )
    return ids


def _from_table(table: Table, name: str, what: str) -> np.ndarray:
    if table.frame is not None:
        column = column_of(table, name, f"{what} column")
        refuse_lists(column.type, name, table.source, what)
        return _values(column, f"{what}s")
    if name not in table.beside:
        has = f"beside its rows it has {some(list(table.beside))}" if table.beside else "an array has no columns"
        raise ValueError(f"no {what} {name!r} in {table.source}: {has}; give --{what}s FILE.")
    values = _of_length(table.beside[name], table, name)
    return values if table.base is None else _as_classes(values)


def read_beside(file: str, table: Named, what: str, encoding: str) -> np.ndarray:
    """From a file of their own, one for each row of the table."""
    path = Path(file)
    if path.suffix.lower() == ".txt":
        lines = np.array([line or None for line in _lines(path, encoding)], dtype=object)
        values = lines if what == "ids" else numbers_in(lines)
    elif path.suffix.lower() == ".npy" and path.is_file():
        values = _one_dimension(path)
    else:
        named = read([file], encoding=encoding, numbers=(), say=lambda text: None)
        if named.frame is None or len(named.names) != 1:
            raise ValueError(f"{path.name} must hold one column of {what}; it has {some(named.names) or 'an array'}.")
        values = _values(named.frame.column(0), what)
    return _of_length(values, table, path.name)


def _lines(path: Path, encoding: str) -> list[str]:
    try:
        return path.read_text(encoding=encoding).removeprefix("\ufeff").splitlines()
    except (UnicodeError, LookupError) as error:
        raise not_decoded(path, encoding, error) from None


def _one_dimension(path: Path) -> np.ndarray:
    try:
        values = np.load(path, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise ValueError(f"{path.name} cannot be read: {error}. Save plain arrays with numpy.") from None
    if values.ndim != 1:
        raise ValueError(f"{path.name} has shape {values.shape}; wanted one value for each row.")
    return values


def _of_length(values: np.ndarray, table: Named, what: str) -> np.ndarray:
    if np.shape(values) != (table.n_rows,):
        raise ValueError(f"{what} holds {len(values):,} values for the {table.n_rows:,} rows of {table.source}.")
    return values


def _as_classes(values: np.ndarray) -> np.ndarray:
    """Whole numbers of svmlight as text, so that −1 is a class like another."""
    return np.array([str(int(v)) for v in values], dtype=object) if (values == np.rint(values)).all() else values


def _values(column: Any, what: str) -> np.ndarray:
    """Numbers as an array of them, anything else as objects, None where missing; ids as they are written."""
    from pyarrow import types

    if column.null_count == 0 and (types.is_integer(column.type) or types.is_floating(column.type)):
        return column.to_numpy()
    values = np.empty(len(column), dtype=object)
    values[:] = column.to_pylist()
    return values if what == "ids" else numbers_in(values)


def numbers_in(values: np.ndarray) -> np.ndarray:
    """Labels written as numbers as such, where all are: sorted as numbers are, and −1 for none."""
    given = [value for value in values if value is not None]
    if not given or not all(isinstance(value, str) and is_number(value) for value in given):
        return values
    numbers = np.array(given, dtype=np.float64)
    if not np.isfinite(numbers).all() or len(np.unique(numbers)) < len(set(given)):  # 1 and 01 are two classes
        return values
    whole = (numbers == np.rint(numbers)).all() and (np.abs(numbers) < 2**53).all()
    found = np.empty(len(values), dtype=object)
    found[[value is not None for value in values]] = (numbers.astype(np.int64) if whole else numbers).tolist()
    return found if len(given) < len(values) else found.astype(np.int64 if whole else np.float64)
