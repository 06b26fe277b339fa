"""Conversion of columns to rows of numbers, and errors for values that are no numbers."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from ..explain.imputation import Imputation
from ..metric.input_checks import names_of_columns
from ..progress import Progress
from ..types import Matrix
from .columns import ColumnChoice, is_numeric, select_columns
from .formatting import is_number, list_some
from .table import Piece, Table, TableSource, merge_pieces
from .vectors import check_vectors, is_list, vector_lengths, vector_matrix

if TYPE_CHECKING:
    import pyarrow as pa

_MOST_VALUES = 200  # largest number of values of a one-hot column


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

    def is_number(self, name: str) -> bool:
        """Return whether a column, by its own name, holds one number a row."""
        return name in self.columns and name not in self.one_hot and name not in self.vectors

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


def mixed_encoding(numbers: Encoding, text: Sequence[str], dimension: int) -> Encoding:
    """Return the encoding of rows that are the vector of their texts, and then numbers."""
    name = " ".join(text)
    return Encoding((name, *numbers.columns), numbers.one_hot, {name: dimension, **numbers.vectors})


def numbers_beside_texts(mixed: Encoding) -> Encoding:
    """Return the encoding of the numbers alone, from that of texts and numbers."""
    vectors = {name: length for name, length in mixed.vectors.items() if name != mixed.columns[0]}
    return Encoding(mixed.columns[1:], mixed.one_hot, vectors)


def fit_encoding(table: TableSource, choice: ColumnChoice, progress: Progress) -> tuple[Encoding, Table]:
    """Return the encoding of the chosen columns, with one-hot values of all pieces, and the first piece."""
    names = select_columns(table, choice)
    one_hot = [name for name in choice.one_hot if name in names]
    plain = [name for name in names if name not in one_hot]
    first = table.read(table.pieces[0], plain)
    _raise_if_text(first, plain)
    vectors = vector_lengths(first, plain)
    if not one_hot:
        return Encoding(tuple(names), vectors=vectors), first
    values = merge_pieces(table, partial(_distinct_values, table, one_hot), _union, "values", progress)
    for name, found in values.items():
        if len(found) > _MOST_VALUES:
            raise ValueError(
                f"{name!r} of {table.source} has {len(found):,} values; --one-hot makes a column of each, of at most "
                f"{_MOST_VALUES}. Leave it out: --drop {shlex.quote(name)}."
            )
    return Encoding(tuple(names), {name: sorted(found) for name, found in values.items()}, vectors), first


def _distinct_values(table: TableSource, names: Sequence[str], piece: Piece) -> dict[str, set[str]]:
    """Return the distinct values of each of these columns, as text."""
    part = table.read(piece, names)
    for name in names:
        if is_list(part.column(name).type):
            raise ValueError(
                f"{name!r} of {part.source} holds lists, which --one-hot makes no columns of; leave it out (--drop "
                f"{name})."
            )
    return {name: set(_texts(part.column(name).unique())) - {None} for name in names}


def _union(parts: Sequence[dict[str, set[str]]]) -> dict[str, set[str]]:
    return {name: set().union(*(part[name] for part in parts)) for name in parts[0]}


# -- conversion ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Missing:
    """Number of missing or infinite values of a column, and the first row with one."""

    count: int
    row: int


def encode(
    table: Table,
    encoding: Encoding,
    may_drop: bool = True,
    imputation: Imputation | None = None,
    may_impute: bool = True,
) -> np.ndarray:
    """Return rows of numbers; raise ValueError for text and missing values, naming all columns that hold some.

    `imputation` fills missing numbers. `may_drop=False`: messages do not propose to drop columns, because a model needs
    them; `may_impute=False`: nor to fill them in.
    """
    if imputation is not None:
        return imputation.fill(encode_with_gaps(table, encoding, may_drop))
    _raise_if_text(table, encoding.plain, may_drop)
    X, missing = convert(table, encoding, may_drop)
    raise_if_missing(table, missing, may_drop, may_impute)
    assert X is not None
    return X


def encode_with_gaps(table: Table, encoding: Encoding, may_drop: bool = True) -> np.ndarray:
    """Return rows of numbers, NaN where a number is missing; values of --one-hot and vectors must not be missing."""
    _raise_if_text(table, encoding.plain, may_drop)
    X, missing = convert(table, encoding, may_drop, keep_nan=True)
    raise_if_missing(table, missing, may_drop, may_impute=False)
    assert X is not None
    return X


def convert(
    table: Table, encoding: Encoding, may_drop: bool = True, keep_nan: bool = False
) -> tuple[np.ndarray | None, dict[str, Missing]]:
    """Return rows of numbers, None if there are nulls, and the values by column that are missing or not finite.

    With `keep_nan` missing numbers are NaN, and not among the missing values.
    """
    check_vectors(table, encoding.plain, encoding.vectors)
    columns = {name: table.column(name) for name in encoding.columns}
    nulls = {
        name: Missing(column.null_count, int(np.argmax(column.is_null().to_numpy())))
        for name, column in columns.items()
        if column.null_count and not (keep_nan and encoding.is_number(name))
    }
    if nulls:
        return None, nulls
    X = np.empty((table.n_rows, len(encoding.names)))
    k = 0
    for name, column in columns.items():
        if name in encoding.one_hot:
            block = _one_hot(column, name, encoding.one_hot[name], table.source)
        elif name in encoding.vectors:
            block = vector_matrix(column, encoding.vectors[name])
        else:
            block = _floats(column, name, table.source, may_drop)[:, None]
        X[:, k : k + block.shape[1]] = block
        k += block.shape[1]
    return X, _find_nonfinite(X, encoding, keep_nan)


def _floats(column: pa.ChunkedArray, name: str, source: str, may_drop: bool) -> np.ndarray:
    import pyarrow as pa

    try:
        return column.cast(pa.int8() if pa.types.is_boolean(column.type) else pa.float64()).to_numpy()
    except pa.lib.ArrowInvalid:
        raise ValueError(
            f"{name!r} of {source} has whole numbers beyond 2⁵³, which floating point does not tell apart: "
            + f"if they name rows leave them out (--drop {shlex.quote(name)}), or " * may_drop
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


def _find_nonfinite(X: np.ndarray, encoding: Encoding, keep_nan: bool = False) -> dict[str, Missing]:
    """Return the values that are not finite, by the name of their column; with `keep_nan` numbers may be NaN."""
    if np.isfinite(X.sum()):
        return {}
    bad = ~np.isfinite(X)
    if keep_nan:
        bad &= ~(np.isnan(X) & [encoding.is_number(name) for name in encoding.sources])
    counts = bad.sum(axis=0)
    found: dict[str, Missing] = {}
    for k in np.flatnonzero(counts):
        name, row = encoding.sources[k], int(np.argmax(bad[:, k]))
        before = found.get(name, Missing(0, row))
        found[name] = Missing(before.count + int(counts[k]), min(before.row, row))
    return found


# -- errors ---------------------------------------------------------------------------------------------------------


def _raise_if_text(table: Table, names: Sequence[str], may_drop: bool = True) -> None:
    """Raise ValueError if columns that should be numbers hold text or dates."""
    text = [name for name in names if not is_numeric(table.column(name).type)]
    if not text:
        return
    listed, column = shlex.quote(",".join(text[:10])), table.column(text[0])
    odd = _first_odd_value(column)
    where = f" ({odd[1]!r} in row {odd[0]} of {text[0]!r}, the first being row 0)" if odd else ""
    found = f"{table.source} has text or dates, not numbers, in {list_some(text)}{where}"
    if not may_drop:
        raise ValueError(f"{found}, where the model measures numbers: mend the values.")
    unique = not is_list(column.type) and len(column.unique()) == len(column) > 1
    as_id = f"name rows by it (--id {shlex.quote(text[0])}), " if len(text) == 1 and unique else ""
    raise ValueError(
        f"{found}: mend the values, {as_id}leave them out (--drop {listed}), or make 0/1 columns of the values "
        f"(--one-hot {listed})."
    )


def _first_odd_value(column: pa.ChunkedArray) -> tuple[int, str] | None:
    """Return the row and value of the first text in a column of mostly numbers."""
    values = _texts(column.slice(0, 100_000))
    odd = [(k, value) for k, value in enumerate(values) if value is not None and not is_number(value)]
    return odd[0] if odd and 2 * len(odd) < len(values) else None


def raise_if_missing(
    table: TableSource, missing: Mapping[str, Missing], may_drop: bool = True, may_impute: bool = True
) -> None:
    """Raise ValueError if columns have missing values, naming the first."""
    if not missing:
        return
    names, where = list(missing), table.locate(next(iter(missing.values())).row, next(iter(missing)))
    remedies = ["remove these rows"]
    if may_impute:
        remedies.insert(0, "give --impute mean" if may_drop else "fit again with --impute mean")
    if may_drop:
        remedies.append(f"leave columns out (--drop {shlex.quote(','.join(names[:10]))})")
    remedy = "".join(f", {'or ' * (one is remedies[-1])}{one}" for one in remedies)
    counts = [f"{name!r} ({found.count})" for name, found in missing.items()]
    raise ValueError(
        f"values are missing or not finite in {list_some(counts, str)} of {table.source}, first in {where} (the first "
        f"row is 0): fill them in{remedy}."
    )


def matrix_with_gaps(table: Table) -> np.ndarray:
    """Return the dense rows of an array as floating point numbers, NaN where one is missing."""
    X = table.matrix
    assert X is not None
    if sp.issparse(X):
        raise ValueError(
            f"{table.source} is sparse, where what is left out is zero and not missing; leave --impute out."
        )
    found = np.asarray(X) if X.dtype.kind == "f" else np.asarray(X, dtype=np.float64)
    if np.isinf(found).any():
        row = int(np.argwhere(np.isinf(found))[0, 0])
        raise ValueError(f"{table.source} has infinite values, first in row {row} (the first row is 0): mend them.")
    return found


def check_matrix(table: Table, may_impute: bool = True) -> Matrix:
    """Return the finite rows of an array as floating point numbers."""
    X = table.matrix
    assert X is not None
    values: np.ndarray = X.data if sp.issparse(X) else X  # type: ignore[assignment]
    if not np.isfinite(values.sum()) and not (finite := np.isfinite(values)).all():
        row = "" if sp.issparse(X) else f", first in row {int(np.argwhere(~finite)[0, 0])} (the first row is 0)"
        remedy = "fit with --impute mean, or " if may_impute else "or "
        raise ValueError(
            f"{table.source} has {int((~finite).sum()):,} values that are missing or not finite{row}: fill them in, "
            f"{remedy}leave these rows out."
        )
    return X if X.dtype.kind == "f" else X.astype(np.float64)
