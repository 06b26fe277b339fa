"""Columns to learn from, and their conversion to rows of numbers."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from ..linalg import Matrix
from ..metric.input_checks import names_of_columns
from .table import Table, TableInfo
from .text import is_number, list_some
from .vectors import check_vectors, is_list, is_vector, vector_lengths, vector_matrix

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "ColumnChoice",
    "Encoding",
    "Missing",
    "check_column",
    "check_matrix",
    "distinct_values",
    "encode",
    "encode_table",
    "find_nonfinite",
    "find_nulls",
    "make_encoding",
    "numeric_columns",
    "raise_if_missing",
    "raise_if_text",
    "select_columns",
    "to_numbers",
]

_MOST_VALUES = 200  # of a one-hot column
_ROW_INDEX = re.compile(r"|__index_level_\d+__|Unnamed: \d+")  # as pandas calls it: in .csv, .parquet, read and written


@dataclass(frozen=True)
class Encoding:
    """Conversion of columns to numbers: one 0/1 column for each value in `one_hot`, one for each entry of `vectors`.

    `one_hot` maps column names to their values, `vectors` to their length. All other columns are numbers already.
    """

    columns: tuple[str, ...]
    one_hot: dict[str, list[str]] = field(default_factory=dict)
    vectors: dict[str, int] = field(default_factory=dict)

    @property
    def plain(self) -> list[str]:
        """Columns of numbers and vectors."""
        return [name for name in self.columns if name not in self.one_hot]

    @property
    def names(self) -> list[str]:
        """Names of the encoded columns."""
        return names_of_columns(vars(self))

    @property
    def sources(self) -> list[str]:
        """Name of each encoded column in messages: entries of a vector have the name of its column."""
        widths = [self.vectors.get(column, len(self.one_hot.get(column, [column]))) for column in self.columns]
        columns = np.repeat(self.columns, widths).tolist()
        return [column if column in self.vectors else name for column, name in zip(columns, self.names, strict=True)]


@dataclass(frozen=True)
class ColumnChoice:
    """Columns that options name."""

    label: str | None = None
    id: str | None = None
    only: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    one_hot: tuple[str, ...] = ()


def encode_table(table: Table, choice: ColumnChoice) -> tuple[Matrix, Encoding | None]:
    """Return the rows to learn from as numbers, and their encoding, which is None for arrays."""
    if table.frame is None:
        if names := choice.only or choice.drop or choice.one_hot:
            raise ValueError(f"{table.source} is an array, whose columns have no names; got {list_some(names)}.")
        return check_matrix(table), None
    names = tuple(select_columns(table, choice))
    one_hot = [name for name in choice.one_hot if name in names]
    vectors = vector_lengths(table, [name for name in names if name not in one_hot])
    encoding = make_encoding(table, names, distinct_values(table, one_hot), vectors)
    return encode(table, encoding), encoding


# -- selection -----------------------------------------------------------------------------------------------------


def select_columns(table: TableInfo, choice: ColumnChoice) -> list[str]:
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


def _refuse_row_index(table: TableInfo, names: Sequence[str]) -> None:
    """Raise ValueError for a row index, which holds the classes if the table is sorted by them."""
    index = next((name for name in names if _ROW_INDEX.fullmatch(name)), None)
    if index is not None:
        called = f"is called {index!r}" if index else "has no name"
        raise ValueError(
            f"a column of {table.source} {called}, as a row index that pandas writes: write the table without it "
            f"(index=False), leave it out (--drop {shlex.quote(index)}), or name all columns to learn from (--columns)."
        )


def check_column(table: TableInfo, name: str, what: str = "column") -> None:
    """Raise ValueError with the nearest name if a table has no such column."""
    if name not in table.names:
        near = get_close_matches(name, table.names, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"it has {list_some(table.names)}."
        raise ValueError(f"no {what} {name!r} in {table.source}; {hint}")


def numeric_columns(table: Table) -> tuple[str, ...]:
    """Return the columns of numbers and vectors, without a row index; none for an array."""
    named = [name for name in table.names if not _ROW_INDEX.fullmatch(name)]
    return tuple(name for name in named if _is_numeric(table.column(name).type))


def _is_numeric(column_type: pa.DataType) -> bool:
    from pyarrow import types

    kinds = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal, types.is_null, is_vector)
    return any(kind(column_type) for kind in kinds)


# -- conversion ----------------------------------------------------------------------------------------------------


def encode(table: Table, encoding: Encoding, may_drop: bool = True) -> np.ndarray:
    """Return rows of numbers; raise ValueError for text and missing values, naming all columns that hold some.

    `may_drop=False`: messages do not propose to drop columns, because a model needs them.
    """
    raise_if_text(table, encoding, may_drop)
    check_vectors(table, encoding.plain, encoding.vectors)
    raise_if_missing(table, find_nulls(table, encoding), may_drop)
    X = to_numbers(table, encoding, may_drop)
    raise_if_missing(table, find_nonfinite(X, encoding), may_drop)
    return X


def to_numbers(table: Table, encoding: Encoding, may_drop: bool = True) -> np.ndarray:
    """Return rows of numbers, finite or not, of columns without text and nulls."""
    X = np.empty((table.n_rows, len(encoding.names)))
    k = 0
    for name in encoding.columns:
        column = table.column(name)
        if name in encoding.one_hot:
            block = _one_hot(column, name, encoding.one_hot[name], table.source)
        elif name in encoding.vectors:
            block = vector_matrix(column, encoding.vectors[name])
        else:
            block = _floats(column, name, table.source, may_drop)[:, None]
        X[:, k : k + block.shape[1]] = block
        k += block.shape[1]
    return X


def _floats(column: pa.ChunkedArray, name: str, source: str, may_drop: bool) -> np.ndarray:
    import pyarrow as pa

    try:
        return column.cast(pa.int8() if pa.types.is_boolean(column.type) else pa.float64()).to_numpy()
    except pa.lib.ArrowInvalid:
        raise ValueError(
            f"{name!r} of {source} has whole numbers beyond 2⁵³, which floating point does not tell apart: "
            + f"if they name rows leave them out (--drop {name}), or " * may_drop
            + "write them as decimals."
        ) from None


def _one_hot(column: pa.ChunkedArray, name: str, values: list[str], source: str) -> np.ndarray:
    from sklearn.preprocessing import OneHotEncoder

    texts, categories = _texts(column)[:, None], np.array(values, dtype=object)
    encoder = OneHotEncoder(categories=[categories], handle_unknown="ignore", sparse_output=False)
    block = encoder.fit(categories[:, None]).transform(texts)
    if unseen := sorted(set(texts[~block.any(axis=1), 0])):
        raise ValueError(
            f"{name!r} of {source} has values that were not there in fitting: {list_some(unseen)}. Leave out these "
            "rows, or fit again with them."
        )
    return block


def _texts(column: pa.ChunkedArray) -> np.ndarray:
    return np.array([None if value is None else str(value) for value in column.to_pylist()], dtype=object)


def distinct_values(table: Table, names: Sequence[str]) -> dict[str, set[str]]:
    """Return the distinct values of each of these columns, as text, for --one-hot."""
    for name in names:
        if is_list(table.column(name).type):
            raise ValueError(
                f"{name!r} of {table.source} holds lists, which --one-hot makes no columns of; leave it out (--drop "
                f"{name})."
            )
    return {name: set(_texts(table.column(name).unique())) - {None} for name in names}


def make_encoding(
    table: TableInfo, names: Sequence[str], values: Mapping[str, set[str]], vectors: Mapping[str, int]
) -> Encoding:
    """Return the encoding of columns with these one-hot `values` and lengths of `vectors`."""
    for name, found in values.items():
        if len(found) > _MOST_VALUES:
            raise ValueError(
                f"{name!r} of {table.source} has {len(found):,} values; --one-hot makes a column of each, of at most "
                f"{_MOST_VALUES}. Leave it out: --drop {name}."
            )
    return Encoding(tuple(names), {name: sorted(found) for name, found in values.items()}, dict(vectors))


# -- refusals ------------------------------------------------------------------------------------------------------


def raise_if_text(table: Table, encoding: Encoding, may_drop: bool = True) -> None:
    """Raise ValueError if columns that should be numbers hold text or dates."""
    text = [name for name in encoding.plain if not _is_numeric(table.column(name).type)]
    if not text:
        return
    listed, column = ",".join(text[:10]), table.column(text[0])
    odd = _first_odd_value(column)
    where = f" ({odd[1]!r} in row {odd[0]} of {text[0]!r}, the first being row 0)" if odd else ""
    found = f"{table.source} has text or dates, not numbers, in {list_some(text)}{where}"
    if not may_drop:
        raise ValueError(f"{found}, where the model measures numbers: mend the values.")
    unique = not is_list(column.type) and len(column.unique()) == len(column) > 1
    as_id = f"name rows by it (--id {text[0]}), " if len(text) == 1 and unique else ""
    raise ValueError(
        f"{found}: mend the values, {as_id}leave them out (--drop {listed}), or make 0/1 columns of the values "
        f"(--one-hot {listed})."
    )


def _first_odd_value(column: pa.ChunkedArray) -> tuple[int, str] | None:
    """Return the row and value of the first text in a column of mostly numbers."""
    values = _texts(column.slice(0, 100_000))
    odd = [(k, value) for k, value in enumerate(values) if value is not None and not is_number(value)]
    return odd[0] if odd and 2 * len(odd) < len(values) else None


@dataclass(frozen=True)
class Missing:
    """Number of missing or infinite values of a column, and the first row with one."""

    count: int
    row: int


def find_nulls(table: Table, encoding: Encoding) -> dict[str, Missing]:
    """Return the nulls of columns that have some, by name."""
    columns = {name: table.column(name) for name in encoding.columns}
    return {
        name: Missing(column.null_count, int(np.argmax(column.is_null().to_numpy())))
        for name, column in columns.items()
        if column.null_count
    }


def find_nonfinite(X: np.ndarray, encoding: Encoding) -> dict[str, Missing]:
    """Return the values that are not finite, by the name of their column."""
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


def raise_if_missing(table: TableInfo, missing: Mapping[str, Missing], may_drop: bool = True) -> None:
    """Raise ValueError if columns have missing values, naming the first."""
    if not missing:
        return
    names, where = list(missing), table.locate(next(iter(missing.values())).row, next(iter(missing)))
    remedy = f", remove these rows, or leave columns out (--drop {','.join(names[:10])})"
    remedy = remedy if may_drop else ", or remove these rows"
    counts = [f"{name!r} ({found.count})" for name, found in missing.items()]
    raise ValueError(
        f"values are missing or not finite in {list_some(counts, str)} of {table.source}, first in {where} (the first "
        f"row is 0): fill them in{remedy}."
    )


def check_matrix(table: Table) -> Matrix:
    """Return the finite rows of an array as floating point numbers."""
    X = table.matrix
    assert X is not None
    values: np.ndarray = X.data if sp.issparse(X) else X  # type: ignore[assignment]
    if not np.isfinite(values.sum()) and not (finite := np.isfinite(values)).all():
        row = "" if sp.issparse(X) else f", first in row {int(np.argwhere(~finite)[0, 0])} (the first row is 0)"
        raise ValueError(
            f"{table.source} has {int((~finite).sum()):,} values that are missing or not finite{row}: fill them in, or "
            "leave these rows out."
        )
    return X if X.dtype.kind == "f" else X.astype(np.float64)
