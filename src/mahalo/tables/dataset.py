"""Rows of numbers with their labels, ids and constraints, loaded from files."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, TypedDict

import numpy as np

from ..constraints import Constraints, as_labels
from ..explain.encoder_record import EncoderRecord
from ..explain.fingerprint import Fingerprint, checksum, fingerprint_of
from ..explain.imputation import Imputation, check_method
from ..explain.provenance import DataRecord, TableRecord
from ..metric import Scaling
from ..progress import SILENT, Progress
from ..selection.block_weight import choose_block_weight
from ..types import Matrix
from ..validation import is_linear
from .column_stats import ColumnStats, ColumnSums
from .columns import ColumnChoice, numeric_names, select_columns, split_names, warn_constants, warn_row_names
from .constraint_files import read_constraints
from .encoding import (
    Encoding,
    check_matrix,
    encode,
    encode_with_gaps,
    fit_encoding,
    matrix_with_gaps,
    mixed_encoding,
)
from .formatting import list_some
from .labels_and_ids import Classes, check_value_columns, read_ids, read_labels
from .options import RowOptions
from .table import Piece, ReadOptions, Table, TableSource, open_table, read_table
from .text_columns import join_texts

if TYPE_CHECKING:
    from dask.array import Array as DaskArray

    from .parquet_shards import ParquetShards


@dataclass(frozen=True)
class Dataset:
    """Rows of numbers with their labels, ids and constraints.

    Attributes
    ----------
    options : RowOptions
        Files and columns that it comes from.
    table : Table or ParquetShards
        Rows as the files hold them: in memory, or on disk if they are too large for that.
    X, y : ndarray, CSR array or Dask array
        Rows of numbers, and labels; on disk, Dask arrays that read them in pieces, and the codes of labels.
    encoding : Encoding or None
        Conversion of columns to those of X; None if columns have no names.
    ids : list of str or None
        Names of rows in memory.
    classes : Classes or None
        Classes of the labels, and their sizes.
    fingerprint : Fingerprint
        Hashes of rows and labels.
    stats : ColumnStats or None
        Statistics of rows on disk.
    text : tuple of str
        Columns of the texts that `encoder` encoded.
    n_text : int
        Number of the first columns of X that are vectors of texts, where others are numbers beside them; else 0.
    imputation : Imputation or None
        Filling of missing numbers, which were `n_imputed`.
    """

    options: RowOptions
    table: TableSource
    X: Matrix
    encoding: Encoding | None
    y: np.ndarray | DaskArray | None
    ids: list[str] | None
    constraints: Constraints | None
    classes: Classes | None
    fingerprint: Fingerprint
    stats: ColumnStats | None = None
    text: tuple[str, ...] = ()
    encoder: EncoderRecord | str | None = None
    n_text: int = 0
    imputation: Imputation | None = None
    n_imputed: int | None = None

    @property
    def n_pieces(self) -> int | None:
        """Number of pieces in which rows are read; None if they are in memory."""
        return None if self.table.in_memory else len(self.table.pieces)

    def table_record(self) -> TableRecord:
        """Return the columns that new tables are checked by."""
        columns = {} if self.encoding is None else dataclasses.asdict(self.encoding)
        label, id, base = self.options.label, self.options.id, self.table.svmlight_base
        return TableRecord(
            label=label,
            id=id,
            svmlight_base=base,
            text=self.text,
            encoder=self.encoder,
            impute=self.imputation,
            **columns,
        )

    def data_record(self, scaling: Scaling | None, n_chosen_by: int | None = None) -> DataRecord:
        """Return the provenance of rows and labels."""
        return DataRecord(
            source=self.table.source,
            n_rows=self.table.n_rows,
            n_features=self.X.shape[1],
            n_classes=None if self.classes is None else len(self.classes.names),
            n_unlabelled=None if self.classes is None else self.classes.n_unlabelled,
            standardised=scaling is not None,
            scale=None if scaling is None else tuple(scaling.scale.tolist()),
            n_chosen_by=n_chosen_by,
            n_imputed=self.n_imputed,
            fingerprint=self.fingerprint,
        )

    def scaling(self) -> Scaling:
        """Return the scaling to mean 0 and standard deviation 1."""
        return Scaling.of(self.X) if self.stats is None else self.stats.scaling()

    def mixed_scaling(self) -> Scaling:
        """Return the scaling of texts with numbers beside them.

        Vectors of texts stay. Numbers get deviation 1, then a common weight under which rows of one class, or of
        similar pairs, are near each other: `choose_block_weight`.
        """
        E, numbers = self.X[:, : self.n_text], Scaling.of(self.X[:, self.n_text :])
        share = 1.0 / np.sqrt(self.X.shape[1] - self.n_text)  # all numbers together are as long as a text
        Z = share * numbers.apply(self.X[:, self.n_text :])
        codes = None if self.y is None else as_labels(np.asarray(self.y)).codes
        weight = share * choose_block_weight(E, Z, codes, self.constraints)
        still = np.zeros(self.n_text)
        return Scaling(np.append(still, numbers.mean), np.append(still + 1.0, numbers.scale / weight))

    def scaled(self, scaling: Scaling | None) -> Matrix:
        """Return the scaled rows; unchanged if `scaling` is None."""
        if scaling is None or self.table.in_memory:
            return self.X if scaling is None else scaling.apply(self.X)
        from ..rows.dask import map_rows

        return map_rows(scaling.apply, self.X, self.X.shape[1])


def load_dataset(
    options: RowOptions,
    progress: Progress = SILENT,
    *,
    kernel: str = "auto",
    in_memory: bool = False,
    supervised: bool = True,
) -> Dataset:
    """Load and check a dataset; if `supervised`, it must have labels, pairs or triplets.

    Parquet files too large for memory stay on disk, unless `in_memory`. `kernel` is the one to learn with: for rows on
    disk it must be linear.
    """
    text = [name for name in (options.label, options.id) if name is not None]
    read = ReadOptions(options.text_format, text, numeric_names(options))
    table = (read_table if in_memory else open_table)(options.data, read, progress)
    if not isinstance(table, Table):
        _check_streaming(table, options, kernel)
    check_value_columns(table, options)
    choice = ColumnChoice.of(options, table)
    if not options.text and table.matrix is None:
        select_columns(table, choice)  # before rows on disk are read
    y = read_labels(table, options)
    if supervised and y is None and options.pairs is None and options.triplets is None:
        raise ValueError(
            f"there is nothing to learn from about the rows of {table.source}: give --label COLUMN, --labels FILE, "
            "--pairs FILE or --triplets FILE."
        )
    ids = read_ids(table, options)
    if table.n_rows < 2:
        raise ValueError(f"{table.source} has one row; at least 2 are needed to learn a distance.")
    constraints = read_constraints(options, table.n_rows, ids)
    rows = (
        _encode_texts(table, choice, options, progress)
        if options.text
        else _encode_columns(table, choice, options, progress)
    )
    return _assemble(options, table, rows, y, ids, constraints)


def _check_streaming(shards: ParquetShards, options: RowOptions, kernel: str) -> None:
    """Raise an error if rows on disk cannot be learned from in pieces."""
    if options.text:
        raise ValueError(
            f"--text needs all rows in memory, where those of {shards.source} take {shards.size}. Give fewer files."
        )
    try:
        from ..rows.dask import read_in_pieces  # noqa: F401
    except ImportError:
        raise ImportError(
            f"the rows of {shards.source} take {shards.size} of memory; reading them in pieces needs Dask: "
            "pip install 'mahalo[dask]'"
        ) from None
    if kernel != "auto" and not is_linear(kernel):
        raise ValueError(
            f"--kernel {kernel} needs all rows in memory, where those of {shards.source} take {shards.size}. Give "
            "fewer files, or leave --kernel out."
        )


# -- rows of numbers -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Rows:
    """Rows of numbers, and how they were made."""

    X: Matrix | DaskArray
    encoding: Encoding | None = None
    stats: ColumnStats | None = None
    text: tuple[str, ...] = ()
    encoder: EncoderRecord | str | None = None
    n_text: int = 0
    imputation: Imputation | None = None
    n_imputed: int | None = None


def _encode_texts(table: TableSource, choice: ColumnChoice, options: RowOptions, progress: Progress) -> _Rows:
    from ..text import load_encoder

    assert isinstance(table, Table)
    names = tuple(dict.fromkeys(split_names(options.text, table)))
    if not names:
        raise ValueError("--text names no column; wanted one with sentences.")
    if options.label in names:
        raise ValueError(f"--text names {options.label!r} to learn from, which --label leaves out; name it in one.")
    texts, encoder = join_texts(table, names), load_encoder(options.encoder)
    E = encoder.encode(texts, progress)
    if not choice.only and not choice.one_hot:
        if options.impute is not None:
            raise ValueError("--impute fills numbers in, and there are none beside the texts; leave it out.")
        return _Rows(E, text=names, encoder=encoder.record)
    if both := [name for name in (*choice.only, *choice.one_hot) if name in names]:
        raise ValueError(f"--text and --columns name {both[0]!r}; encode it as a text, or learn from it as a number.")
    only = choice.only or choice.one_hot
    encoding, first = fit_encoding(table, replace(choice, only=only), progress)
    mixed = mixed_encoding(encoding, names, encoder.dimension)
    Z, filling = _fill_numbers(first, encoding, options.impute)
    X = np.hstack([E, Z])
    return _Rows(X, mixed, text=names, encoder=encoder.record, n_text=encoder.dimension, **filling)


class _Filling(TypedDict, total=False):
    """Fields of `_Rows` about missing numbers."""

    imputation: Imputation
    n_imputed: int


def _fill_numbers(table: Table, encoding: Encoding | None, method: str | None) -> tuple[Matrix, _Filling]:
    """Return the numbers of a table in memory, missing ones filled in by a method that is fitted to them."""
    if method is None:
        return (check_matrix(table) if encoding is None else encode(table, encoding)), {}
    X = matrix_with_gaps(table) if encoding is None else encode_with_gaps(table, encoding)
    imputation = Imputation.fit(X, method, () if encoding is None else encoding.names)
    return imputation.fill(X), {"imputation": imputation, "n_imputed": int(np.isnan(X).sum())}


def _encode_columns(table: TableSource, choice: ColumnChoice, options: RowOptions, progress: Progress) -> _Rows:
    if isinstance(table, Table) and table.matrix is not None:
        if names := choice.only or choice.drop or choice.one_hot:
            raise ValueError(f"{table.source} is an array, whose columns have no names; got {list_some(names)}.")
        X, filling = _fill_numbers(table, None, options.impute)
        return _Rows(X, encoder=options.encoder, **filling)
    encoding, first = fit_encoding(table, choice, progress)
    stats: ColumnStats | None = None
    if isinstance(table, Table):
        X, filling = _fill_numbers(first, encoding, options.impute)
        constant = X.min(axis=0) == X.max(axis=0)
    else:
        filling = _fit_in_pieces(table, encoding, options.impute, progress)
        fill = filling.get("imputation")
        stats = ColumnStats.scan(table, encoding, progress, fill)
        read = partial(_read_numbers, table, encoding, fill)
        X = _read_in_pieces(read, table.pieces, (len(encoding.names),), np.float64)
        constant = stats.variance == 0
    warn_row_names(first, encoding.plain, choice, options)
    warn_constants(table, [name for name, same in zip(encoding.names, constant, strict=True) if same])
    return _Rows(X, encoding, stats, encoder=options.encoder, **filling)


def _fit_in_pieces(shards: ParquetShards, encoding: Encoding, method: str | None, progress: Progress) -> _Filling:
    """Return the filling of rows on disk by the means of their columns."""
    if method is None:
        return {}
    check_method(method)
    if method != "mean":
        raise ValueError(
            f"--impute {method} needs all rows in memory, where those of {shards.source} take {shards.size}. Give "
            "--impute mean, or fewer files."
        )
    sums = ColumnSums.scan(shards, encoding, progress)
    return {"imputation": sums.imputation(encoding.names), "n_imputed": sums.n_missing}


def _read_numbers(table: TableSource, encoding: Encoding, imputation: Imputation | None, piece: Piece) -> np.ndarray:
    return encode(table.read(piece, encoding.columns), encoding, imputation=imputation)


def _slice(values: np.ndarray, piece: Piece) -> np.ndarray:
    return values[piece.first : piece.first + len(piece)]


def _read_in_pieces(
    read: Callable[[Piece], np.ndarray], pieces: Sequence[Piece], width: tuple[int, ...], dtype: type
) -> DaskArray:
    from ..rows import dask

    return dask.read_in_pieces(read, pieces, np.empty((0, *width), dtype=dtype))


def _assemble(
    options: RowOptions,
    table: TableSource,
    rows: _Rows,
    y: np.ndarray | DaskArray | None,
    ids: list[str] | None,
    constraints: Constraints | None,
) -> Dataset:
    labels = None if y is None else as_labels(y)
    names, codes = (None, []) if labels is None else (labels.classes, [labels.codes])
    rows_sum = checksum(rows.X) if rows.stats is None else rows.stats.checksum
    if labels is not None and not table.in_memory:
        y = _read_in_pieces(partial(_slice, labels.codes), table.pieces, (), np.int64)
    return Dataset(
        options=options,
        table=table,
        y=y,
        ids=ids if table.in_memory else None,
        constraints=constraints,
        classes=None if labels is None else Classes.count(labels),
        fingerprint=fingerprint_of(rows.X.shape, rows_sum, names, codes),
        **vars(rows),
    )
