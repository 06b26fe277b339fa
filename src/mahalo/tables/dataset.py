"""Rows, labels, ids and constraints, loaded by the options of a command."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ..constraints import Constraints
from ..explain.encoder_record import EncoderRecord
from ..explain.fingerprint import Fingerprint, fingerprint
from ..explain.provenance import DataRecord, TableRecord
from ..linalg import Matrix
from ..metric import Scaling
from ..progress import SILENT, Progress
from ..text import load_encoder
from .column_warnings import warn_constants, warn_row_names
from .columns import ColumnChoice, Encoding, encode_table
from .constraint_files import read_constraints
from .labels_and_ids import Classes, read_ids, read_labels
from .options import RowOptions
from .parquet_shards import open_large
from .table import Table, TableInfo, read_table
from .text_columns import join_texts

if TYPE_CHECKING:
    from dask.array import Array as DaskArray

__all__ = ["Dataset", "choose_columns", "load_dataset", "load_in_memory", "require_supervision"]


@dataclass(frozen=True)
class Dataset:
    """Rows of numbers with their labels, ids and constraints.

    `encoding` is None if columns have no names, `text` the columns of the sentences that `encoder` encoded.
    """

    options: RowOptions
    table: TableInfo
    X: Matrix
    encoding: Encoding | None
    y: np.ndarray | DaskArray | None
    ids: list[str] | None
    constraints: Constraints | None
    text: tuple[str, ...] = field(default=(), kw_only=True)
    encoder: EncoderRecord | str | None = field(default=None, kw_only=True)

    @property
    def n_pieces(self) -> int | None:
        """Number of pieces in which rows are read; None if they are in memory."""
        return None

    @cached_property
    def classes(self) -> Classes | None:
        """Classes of the labels."""
        return None if self.y is None else Classes.count(self.y)

    @cached_property
    def fingerprint(self) -> Fingerprint:
        """Checksums of rows and labels."""
        return fingerprint(self.X, self.y)

    def table_record(self) -> TableRecord:
        """Return the columns that new tables are checked by."""
        columns = {} if self.encoding is None else dataclasses.asdict(self.encoding)
        label, id, base = self.options.label, self.options.id, self.table.svmlight_base
        return TableRecord(label=label, id=id, svmlight_base=base, text=self.text, encoder=self.encoder, **columns)

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
            fingerprint=self.fingerprint,
        )

    def scaling(self) -> Scaling:
        """Return the scaling to mean 0 and standard deviation 1."""
        return Scaling.of(self.X)

    def scaled(self, scaling: Scaling) -> Matrix:
        """Return the scaled rows."""
        return scaling.apply(self.X)


def load_dataset(options: RowOptions, progress: Progress = SILENT, *, kernel: str = "auto") -> Dataset:
    """Load a dataset into memory, or, if it is too large for that, as Dask arrays that read it in pieces.

    `kernel` is the one to learn with: only a linear one can do with pieces.
    """
    shards = open_large(options.data)
    if shards is None:
        return load_in_memory(options, progress)
    if options.text:
        raise ValueError(
            f"--text needs all rows in memory, where those of {shards.source} take {shards.size}. Give fewer files."
        )
    from .streamed_dataset import load_in_pieces

    return load_in_pieces(options, shards, kernel, progress)


def load_in_memory(options: RowOptions, progress: Progress = SILENT, *, supervised: bool = True) -> Dataset:
    """Load and check a dataset; if `supervised`, it must have labels, pairs or triplets."""
    strings = [name for name in (options.label, options.id) if name is not None]
    numbers = () if options.text else None
    table = read_table(options.data, encoding=options.encoding, text=strings, numbers=numbers, show=progress.show)
    y = read_labels(table, options.label, options.labels, options.encoding)
    if supervised:
        require_supervision(options, table, has_labels=y is not None)
    ids = read_ids(table, options.id, options.ids, options.encoding)
    if table.n_rows < 2:
        raise ValueError(f"{table.source} has one row; at least 2 are needed to learn a distance.")
    constraints = read_constraints(options.pairs, options.triplets, table.n_rows, ids, options.encoding)
    if options.text:
        text = _text_columns(options, table)
        texts, encoder = join_texts(table, text), load_encoder(options.encoder)
        E = encoder.encode(texts, progress)
        return Dataset(options, table, E, None, y, ids, constraints, text=text, encoder=encoder.record)
    choice = choose_columns(options, table)
    X, encoding = encode_table(table, choice)
    if encoding is not None:
        warn_row_names(table, encoding, choice, options.data, options.encoding)
        warn_constants(table, encoding, X.min(axis=0) == X.max(axis=0))
    return Dataset(options, table, X, encoding, y, ids, constraints, encoder=options.encoder)


def require_supervision(options: RowOptions, table: TableInfo, has_labels: bool) -> None:
    """Raise ValueError if there are neither labels nor pairs nor triplets."""
    if not has_labels and options.pairs is None and options.triplets is None:
        raise ValueError(
            f"there is nothing to learn from about the rows of {table.source}: give --label COLUMN, --labels FILE, "
            "--pairs FILE or --triplets FILE."
        )


def choose_columns(options: RowOptions, table: TableInfo) -> ColumnChoice:
    """Return the columns that options name."""
    columns, drop, one_hot = (_split(names, table) for names in (options.columns, options.drop, options.one_hot))
    return ColumnChoice(options.label, options.id, columns, drop, one_hot)


def _text_columns(options: RowOptions, table: Table) -> tuple[str, ...]:
    """Return the columns of --text; raise ValueError if there is none or one holds the labels."""
    names = tuple(dict.fromkeys(_split(options.text, table)))
    if not names:
        raise ValueError("--text names no column; wanted one with sentences.")
    if options.label in names:
        raise ValueError(f"--text names {options.label!r} to learn from, which --label leaves out; name it in one.")
    return names


def _split(options: Sequence[str], table: TableInfo) -> tuple[str, ...]:
    """Return the names of columns in options, several in one separated by commas."""

    def split(text: str) -> list[str]:
        return [text] if text in table.names else [name.strip() for name in text.split(",") if name.strip()]

    return tuple(name for text in options for name in split(text))
