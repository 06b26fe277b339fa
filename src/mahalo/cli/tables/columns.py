"""Which columns are learned from, and rows of numbers from them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...metric.input_checks import names_of_columns
from .reading import Named, Table, is_number, some
from .vectors import check_vectors, is_list, is_vector, vector_lengths, vectors_of

__all__ = [
    "Columns",
    "Encoding",
    "Missing",
    "Rows",
    "check_column",
    "chosen_columns",
    "column_of",
    "encoded",
    "encoding_of",
    "not_finite_in",
    "nulls_in",
    "numbers_of",
    "numeric_columns",
    "refuse_missing",
    "refuse_text",
    "rows_of",
    "values_in",
]

_MOST_VALUES = 200  # of a column that becomes one column each
_ROW_INDEX = re.compile(r"|__index_level_\d+__|Unnamed: \d+")  # as pandas calls it: in .csv, .parquet, read and written


@dataclass(frozen=True)
class Encoding:
    """How columns of a table become numbers: as they are, or one 0/1 column for each value in `one_hot`.

    `vectors` has the lengths of the vectors of columns that hold some; each entry becomes a column.
    """

    columns: tuple[str, ...]
    one_hot: dict[str, list[str]] = field(default_factory=dict)
    vectors: dict[str, int] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the entries that a model stores."""
        vectors = {"vectors": self.vectors} if self.vectors else {}
        return {"columns": list(self.columns), "one_hot": self.one_hot} | vectors

    @property
    def names(self) -> list[str]:
        """Names of the columns that come out."""
        return names_of_columns(self.to_dict())

    @property
    def sources(self) -> list[str]:
        """What to call each column that comes out where its values are missing: a vector by its column."""
        widths = [self.vectors.get(column, len(self.one_hot.get(column, [column]))) for column in self.columns]
        told = np.repeat(self.columns, widths).tolist()
        return [column if column in self.vectors else name for column, name in zip(told, self.names, strict=True)]


@dataclass(frozen=True)
class Columns:
    """What the user said about columns."""

    label: str | None = None
    id: str | None = None
    only: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    one_hot: tuple[str, ...] = ()


@dataclass(frozen=True)
class Rows:
    """Rows as numbers; `encoding` is None for arrays, whose columns have no names."""

    X: Any
    encoding: Encoding | None

    @property
    def names(self) -> list[str] | None:
        return None if self.encoding is None else self.encoding.names


def rows_of(table: Table, columns: Columns, may_drop: bool = True) -> Rows:
    """The numbers to learn from."""
    if table.frame is None:
        given = columns.only or columns.drop or columns.one_hot
        if given:
            raise ValueError(f"{table.source} is an array, whose columns have no names; got {some(given)}.")
        return Rows(_checked_matrix(table), None)
    names = chosen_columns(table, columns)
    one_hot = [name for name in columns.one_hot if name in names]
    vectors = vector_lengths(table, [name for name in names if name not in one_hot])
    encoding = encoding_of(table, names, values_in(table, one_hot), vectors)
    return Rows(encoded(table, encoding, may_drop), encoding)


def chosen_columns(table: Named, columns: Columns) -> list[str]:
    """Those named, those that become 0/1 columns too, or all; without label, id and what is dropped."""
    for name in (*columns.only, *columns.drop, *columns.one_hot):
        check_column(table, name)
    asked = (*columns.only, *columns.one_hot) if columns.only else table.names
    left_out = {columns.label: "--label", columns.id: "--id"} | dict.fromkeys(columns.drop, "--drop")
    _refuse_both(columns, left_out)
    names = [name for name in dict.fromkeys(asked) if name not in left_out]
    if not names:
        raise ValueError(f"no columns of {table.source} are left to learn from; it has {some(table.names)}.")
    if not columns.only:
        _refuse_row_index(table, [name for name in names if name not in columns.one_hot])
    return names


def _refuse_both(columns: Columns, left_out: dict[str | None, str]) -> None:
    """A column cannot be learned from and left out."""
    for option, names in (("--columns", columns.only), ("--one-hot", columns.one_hot)):
        both = next((name for name in names if name in left_out), None)
        if both is not None:
            raise ValueError(
                f"{option} names {both!r} to learn from, which {left_out[both]} leaves out; name it in one of them."
            )


def _refuse_row_index(table: Named, names: Sequence[str]) -> None:
    """A table that was sorted by class has the classes in the numbers of its rows."""
    index = next((name for name in names if _ROW_INDEX.fullmatch(name)), None)
    if index is not None:
        called = f"is called {index!r}" if index else "has no name"
        raise ValueError(
            f"a column of {table.source} {called}, as a row index that pandas writes: write the table without it "
            f"(index=False), leave it out (--drop {shlex.quote(index)}), or name all columns to learn from (--columns)."
        )


def column_of(table: Table, name: str, what: str = "column") -> Any:
    """A column by its name, or an error that says which there are."""
    check_column(table, name, what)
    return table.frame.column(name)


def check_column(table: Named, name: str, what: str = "column") -> None:
    if name not in table.names:
        near = get_close_matches(name, table.names, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"it has {some(table.names)}."
        raise ValueError(f"no {what} {name!r} in {table.source}; {hint}")


def encoded(table: Table, encoding: Encoding, may_drop: bool = True) -> np.ndarray:
    """Rows of numbers; text and missing values are refused, all columns of them at once.

    `may_drop` says whether columns may still be left out: not those of a model.
    """
    refuse_text(table, encoding, may_drop)
    check_vectors(table, [name for name in encoding.columns if name not in encoding.one_hot], encoding.vectors)
    refuse_missing(table, nulls_in(table, encoding), may_drop)
    X = numbers_of(table, encoding, may_drop)
    refuse_missing(table, not_finite_in(X, encoding), may_drop)
    return X


def numbers_of(table: Table, encoding: Encoding, may_drop: bool = True) -> np.ndarray:
    """Rows of numbers, as they are, from columns that are neither text nor null."""
    X = np.empty((table.n_rows, len(encoding.names)))
    k = 0
    for name in encoding.columns:
        column = table.frame.column(name)
        if name in encoding.one_hot:
            values = encoding.one_hot[name]
            X[:, k : k + len(values)] = _indicators(column, name, values, table.source)
            k += len(values)
        elif name in encoding.vectors:
            X[:, k : k + encoding.vectors[name]] = vectors_of(column, encoding.vectors[name])
            k += encoding.vectors[name]
        else:
            X[:, k] = _numbers(column, name, table.source, may_drop)
            k += 1
    return X


def _numbers(column: Any, name: str, source: str, may_drop: bool) -> np.ndarray:
    import pyarrow as pa

    try:
        return column.cast(pa.int8() if pa.types.is_boolean(column.type) else pa.float64()).to_numpy()
    except pa.lib.ArrowInvalid:
        raise ValueError(
            f"{name!r} of {source} has whole numbers beyond 2⁵³, which floating point does not tell apart: "
            + f"if they name rows leave them out (--drop {name}), or " * may_drop
            + "write them as decimals."
        ) from None


def numeric_columns(table: Table) -> tuple[str, ...]:
    """Names of the columns of numbers and vectors, without a row index; none of an array."""
    if table.frame is None:
        return ()
    named = [name for name in table.names if not _ROW_INDEX.fullmatch(name)]
    return tuple(name for name in named if _is_numeric(table.frame.column(name).type))


def _is_numeric(column_type: Any) -> bool:
    from pyarrow import types

    kinds = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal, types.is_null, is_vector)
    return any(kind(column_type) for kind in kinds)


def refuse_text(table: Table, encoding: Encoding, may_drop: bool = True) -> None:
    as_numbers = [name for name in encoding.columns if name not in encoding.one_hot]
    text = [name for name in as_numbers if not _is_numeric(table.frame.column(name).type)]
    if not text:
        return
    listed, column = ",".join(text[:10]), table.frame.column(text[0])
    odd = _first_odd_value(column)
    where = f" ({odd[1]!r} in row {odd[0]} of {text[0]!r}, the first being row 0)" if odd else ""
    if not may_drop:
        raise ValueError(
            f"{table.source} has text or dates, not numbers, in {some(text)}{where}, where the model measures numbers: "
            "mend the values."
        )
    named = f"name rows by it (--id {text[0]}), " if len(text) == 1 and _names_rows(column) else ""
    raise ValueError(
        f"{table.source} has text or dates, not numbers, in {some(text)}{where}: mend the values, {named}leave them "
        f"out (--drop {listed}), or make 0/1 columns of the values (--one-hot {listed})."
    )


def _names_rows(column: Any) -> bool:
    return not is_list(column.type) and len(column.unique()) == len(column) > 1


def _first_odd_value(column: Any) -> tuple[int, str] | None:
    """The first value that is no number, in a column where most are."""
    values = [None if value is None else str(value) for value in column.slice(0, 100_000).to_pylist()]
    odd = [(k, value) for k, value in enumerate(values) if value is not None and not is_number(value)]
    return odd[0] if odd and 2 * len(odd) < len(values) else None


@dataclass(frozen=True)
class Missing:
    """Values of one column: how many are missing or not finite, and the first of their rows."""

    count: int
    row: int


def nulls_in(table: Table, encoding: Encoding) -> dict[str, Missing]:
    """By the name of the column, where there are any."""
    found = {}
    for name in encoding.columns:
        column = table.frame.column(name)
        if column.null_count:
            found[name] = Missing(column.null_count, int(np.argmax(column.is_null().to_numpy())))
    return found


def not_finite_in(X: np.ndarray, encoding: Encoding) -> dict[str, Missing]:
    """Return the values that are not finite by the name of their column, where there are any."""
    if np.isfinite(X.sum()):
        return {}
    bad = ~np.isfinite(X)
    counts = bad.sum(axis=0)
    found: dict[str, Missing] = {}
    for k in np.flatnonzero(counts):
        name, row = encoding.sources[k], int(np.argmax(bad[:, k]))
        before = found.get(name, Missing(0, row))
        found[name] = Missing(before.count + int(counts[k]), min(before.row, row))
    return found


def refuse_missing(table: Named, missing: Mapping[str, Missing], may_drop: bool = True) -> None:
    if not missing:
        return
    names, where = list(missing), table.where(next(iter(missing.values())).row, next(iter(missing)))
    remedy = f", remove these rows, or leave columns out (--drop {','.join(names[:10])})"
    remedy = remedy if may_drop else ", or remove these rows"
    told = [f"{name!r} ({found.count})" for name, found in missing.items()]
    raise ValueError(
        f"values are missing or not finite in {some(told, str)} of {table.source}, first in {where} (the first "
        f"row is 0): fill them in{remedy}."
    )


def _texts(column: Any) -> np.ndarray:
    return np.array([None if value is None else str(value) for value in column.to_pylist()], dtype=object)


def values_in(table: Table, names: Sequence[str]) -> dict[str, set[str]]:
    """The values of each of these columns, as text."""
    for name in names:
        if is_list(column_of(table, name).type):
            raise ValueError(
                f"{name!r} of {table.source} holds lists, which --one-hot makes no columns of; leave it out (--drop "
                f"{name})."
            )
    return {name: set(_texts(column_of(table, name).unique())) - {None} for name in names}


def encoding_of(
    table: Named, names: Sequence[str], values: Mapping[str, set[str]], vectors: Mapping[str, int]
) -> Encoding:
    """Of columns of these names, those that become one column for each value with their values."""
    for name, found in values.items():
        if len(found) > _MOST_VALUES:
            raise ValueError(
                f"{name!r} of {table.source} has {len(found):,} values; --one-hot makes a column of each, of at most "
                f"{_MOST_VALUES}. Leave it out: --drop {name}."
            )
    return Encoding(tuple(names), {name: sorted(found) for name, found in values.items()}, dict(vectors))


def _indicators(column: Any, name: str, values: list[str], source: str) -> np.ndarray:
    texts = _texts(column)
    place = {value: k for k, value in enumerate(values)}
    unseen = sorted({text for text in texts if text not in place})
    if unseen:
        raise ValueError(
            f"{name!r} of {source} has values that were not there in fitting: {some(unseen)}. Leave out these rows, or "
            "fit again with them."
        )
    return np.eye(len(values))[[place[text] for text in texts]]


def _checked_matrix(table: Table) -> Any:
    X = table.matrix
    values = X.data if sp.issparse(X) else X
    if not np.isfinite(values.sum()) and not (finite := np.isfinite(values)).all():
        row = "" if sp.issparse(X) else f", first in row {int(np.argwhere(~finite)[0, 0])} (the first row is 0)"
        raise ValueError(
            f"{table.source} has {int((~finite).sum()):,} values that are missing or not finite{row}: fill them in, or "
            "leave these rows out."
        )
    return X if X.dtype.kind == "f" else X.astype(np.float64)
