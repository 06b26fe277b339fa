"""Dataset of Parquet shards too large for memory: scanned once, then read again whenever rows are needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from ..constraints import as_labels
from ..explain.fingerprint import Fingerprint, fingerprint_of
from ..linalg import Matrix
from ..metric import Scaling
from ..progress import Progress
from ..validation import is_linear
from .column_stats import ColumnScan, ColumnStats, LabelCodes
from .column_warnings import warn_constants, warn_row_names
from .columns import (
    Encoding,
    check_column,
    distinct_values,
    encode,
    make_encoding,
    raise_if_text,
    select_columns,
)
from .constraint_files import read_constraints
from .dataset import Dataset, choose_columns, require_supervision
from .labels_and_ids import (
    Classes,
    check_ids,
    read_ids,
    read_value_file,
    refuse_column_and_file,
    refuse_measurements,
)
from .options import RowOptions
from .parquet_shards import ParquetShards, Piece
from .vectors import refuse_lists, vector_lengths

__all__ = ["StreamedDataset", "load_in_pieces"]


@dataclass(frozen=True)
class _PieceLabels:
    """Classes, and a function from a piece to the codes of its rows."""

    classes: Classes
    encode: Callable[[Piece], np.ndarray]


@dataclass(frozen=True)
class StreamedDataset(Dataset):
    """Dataset whose rows and labels are Dask arrays, with statistics of its columns."""

    table: ParquetShards
    stats: ColumnStats
    labels: _PieceLabels | None

    @property
    def n_pieces(self) -> int | None:
        """Number of pieces in which rows are read."""
        return len(self.table.pieces)

    @cached_property
    def classes(self) -> Classes | None:
        """Classes of the labels."""
        return None if self.labels is None else self.labels.classes

    @cached_property
    def fingerprint(self) -> Fingerprint:
        """Checksums of rows and labels."""
        if self.labels is None:
            return fingerprint_of(self.X.shape, self.stats.checksum)
        codes = map(self.labels.encode, self.table.pieces)
        return fingerprint_of(self.X.shape, self.stats.checksum, self.labels.classes.names, codes)

    def scaling(self) -> Scaling:
        """Return the scaling to mean 0 and standard deviation 1."""
        return Scaling.from_moments(self.stats.mean, self.stats.variance, self.stats.largest)

    def scaled(self, scaling: Scaling) -> Matrix:
        """Return the scaled rows."""
        from ..rows.dask import map_rows

        return map_rows(scaling.apply, self.X, self.X.shape[1])


def load_in_pieces(options: RowOptions, shards: ParquetShards, kernel: str, progress: Progress) -> StreamedDataset:
    """Scan the rows of shards, and return the dataset as Dask arrays."""
    try:
        from ..rows.dask import merge_pieces, read_in_pieces
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
    _check_columns(options, shards)
    values = None
    if options.labels is not None:
        values = refuse_measurements(
            read_value_file(options.labels, shards, "labels", options.encoding), options.labels
        )
    ids = _read_ids(options, shards)
    constraints = read_constraints(options.pairs, options.triplets, shards.n_rows, ids, options.encoding)
    encoding, one_hot = _first_encoding(options, shards)
    if one_hot:
        find = partial(_distinct_values, shards, one_hot)
        found = merge_pieces(find, shards.pieces, _union, "values", progress.show)
        names = select_columns(shards, choose_columns(options, shards))
        encoding = make_encoding(shards, names, found, encoding.vectors)
    scan = ColumnScan(shards, encoding, options.label)
    stats = merge_pieces(scan, shards.pieces, ColumnStats.merge, "columns", progress.show)
    stats.raise_if_missing(shards)
    warn_constants(shards, encoding, stats.variance == 0)
    X = read_in_pieces(partial(_read_numbers, shards, encoding), shards.pieces, np.empty((0, len(encoding.names))))
    labels = _piece_labels(options, shards, stats, values)
    y = None if labels is None else read_in_pieces(labels.encode, shards.pieces, np.empty(0, dtype=np.int64))
    return StreamedDataset(options, shards, X, encoding, y, ids, constraints, stats, labels, encoder=options.encoder)


def _check_columns(options: RowOptions, shards: ParquetShards) -> None:
    """Raise ValueError for wrong options before rows are read."""
    refuse_column_and_file("label", options.label, options.labels)
    refuse_column_and_file("id", options.id, options.ids)
    require_supervision(options, shards, has_labels=options.label is not None or options.labels is not None)
    for name, what in ((options.label, "label"), (options.id, "id")):
        if name is not None:
            check_column(shards, name, f"{what} column")
            refuse_lists(shards.schema.field(name).type, name, shards.source, what)


def _first_encoding(options: RowOptions, shards: ParquetShards) -> tuple[Encoding, list[str]]:
    """Return the encoding of all but the one-hot columns, by the first piece, and the names of those."""
    choice = choose_columns(options, shards)
    names = select_columns(shards, choice)
    one_hot = [name for name in choice.one_hot if name in names]
    encoding = Encoding(tuple(name for name in names if name not in one_hot))
    first = shards.read(shards.pieces[0], encoding.columns)
    raise_if_text(first, encoding)
    vectors = vector_lengths(first, encoding.columns)
    warn_row_names(first, encoding, choice)
    return replace(encoding, vectors=vectors), one_hot


def _piece_labels(
    options: RowOptions, shards: ParquetShards, stats: ColumnStats, values: np.ndarray | None
) -> _PieceLabels | None:
    if options.label is not None:
        codes = LabelCodes.from_counts(stats.labels, options.label)
        return _PieceLabels(codes.classes, partial(_encode_labels, shards, options.label, codes))
    if values is None:
        return None
    return _PieceLabels(Classes.count(values), partial(_slice, as_labels(values).codes))


def _read_ids(options: RowOptions, shards: ParquetShards) -> list[str] | None:
    """Return checked ids if constraints name rows by them."""
    ids = None
    if options.id is not None:
        ids = read_ids(shards.read_column(options.id), options.id, None)
    elif options.ids is not None:
        ids = check_ids(read_value_file(options.ids, shards, "ids", options.encoding), shards, options.ids)
    return None if options.pairs is None and options.triplets is None else ids


def _read_numbers(shards: ParquetShards, encoding: Encoding, piece: Piece) -> np.ndarray:
    return encode(shards.read(piece, encoding.columns), encoding)


def _encode_labels(shards: ParquetShards, label: str, codes: LabelCodes, piece: Piece) -> np.ndarray:
    return codes.encode(shards.read(piece, [label]).column(label))


def _slice(values: np.ndarray, piece: Piece) -> np.ndarray:
    return values[piece.first : piece.first + len(piece)]


def _distinct_values(shards: ParquetShards, names: Sequence[str], piece: Piece) -> dict[str, set[str]]:
    return distinct_values(shards.read(piece, names), names)


def _union(parts: Sequence[dict[str, set[str]]]) -> dict[str, set[str]]:
    return {name: set().union(*(part[name] for part in parts)) for name in parts[0]}
