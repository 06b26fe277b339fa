"""What a user says about rows that are too many to hold: looked at once, then read again whenever they are needed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from ..constraints import as_labels
from ..explain.fingerprint import Fingerprint, fingerprint_of
from ..metric import Scaling
from ..validation import is_linear
from .known import Known, Source, columns_of, gather, refuse_nothing_known
from .tables import Classes, Encoding, Rows, Shards, chosen_columns, encoded, read_constraints, read_ids, too_large
from .tables.columns import check_column, encoding_of, refuse_text
from .tables.looking import CodedLabels, Look, Looking, union_of_values, values_of_piece
from .tables.named import check_ids, no_measurements, one_of, read_beside
from .tables.row_names import warn_of_constants, warn_of_row_names
from .tables.shards import Piece
from .tables.vectors import refuse_lists, vector_lengths
from .watching import Watch

__all__ = ["gather_in_pieces", "gathered"]


@dataclass(frozen=True)
class _Labels:
    """The classes, and codes of the rows of a piece among them."""

    classes: Classes
    codes: Callable[[Piece], np.ndarray]


@dataclass(frozen=True)
class Streamed(Known):
    """Rows and labels are Dask arrays; what else is asked of them was found in the first look."""

    table: Shards
    look: Look
    labels: _Labels | None

    @property
    def n_pieces(self) -> int | None:
        return len(self.table.pieces)

    @cached_property
    def classes(self) -> Classes | None:
        return None if self.labels is None else self.labels.classes

    @cached_property
    def fingerprint(self) -> Fingerprint:
        if self.labels is None:
            return fingerprint_of(self.X.shape, self.look.checksum)
        codes = map(self.labels.codes, self.table.pieces)
        return fingerprint_of(self.X.shape, self.look.checksum, self.labels.classes.names, codes)

    def scaling(self) -> Scaling:
        moments = self.look.moments
        assert moments is not None and moments.scatter is not None
        return Scaling.from_moments(moments.means[0], moments.scatter / moments.n, self.look.largest)

    def scaled(self, scaling: Scaling) -> Any:
        from ..rows.dask import map_rows

        return map_rows(scaling.apply, self.X, self.X.shape[1])


def gathered(source: Source, kernel: str, watch: Watch) -> Known:
    """What is known, held in memory or, where that is too much, read a piece at a time."""
    shards = too_large(source.data)
    return gather(source, watch) if shards is None else gather_in_pieces(source, shards, kernel, watch)


def gather_in_pieces(source: Source, shards: Shards, kernel: str, watch: Watch) -> Known:
    """As `gather`, of rows that are not held."""
    merge_pieces, read_in_pieces = _on_dask(shards)
    if not is_linear(kernel):
        raise ValueError(
            f"--kernel {kernel} needs all rows in memory, where those of {shards.source} take {_size(shards)}. Give "
            "fewer files, or leave --kernel out."
        )
    _check_names(source, shards)
    given = None
    if source.labels is not None:
        given = no_measurements(read_beside(source.labels, shards, "labels", source.encoding), source.labels)
    ids = _ids(source, shards)
    constraints = read_constraints(source.pairs, source.triplets, shards.n_rows, ids, source.encoding)
    encoding = _encoding(source, shards, merge_pieces, watch)
    looking = Looking(shards, encoding, source.label)
    look = merge_pieces(looking, shards.pieces, Look.merged, "first look", watch.show)
    look.refuse_missing(shards)
    assert look.moments is not None and look.moments.scatter is not None
    warn_of_constants(shards, encoding, look.moments.scatter.ravel() == 0)
    numbers = partial(_numbers, shards, encoding)
    X = read_in_pieces(numbers, shards.pieces, np.empty((0, len(encoding.names))))
    labels = _labels(source, shards, look, given)
    y = None if labels is None else read_in_pieces(labels.codes, shards.pieces, np.empty(0, dtype=np.int64))
    return Streamed(source, shards, Rows(X, encoding), y, ids, constraints, look, labels)


def _on_dask(shards: Shards) -> tuple[Any, Any]:
    try:
        from ..rows.dask import merge_pieces, read_in_pieces
    except ImportError:
        raise ImportError(
            f"the rows of {shards.source} take {_size(shards)} of memory; to go through them a piece at a time needs "
            "Dask: pip install 'mahalo[dask]'"
        ) from None
    return merge_pieces, read_in_pieces


def _size(shards: Shards) -> str:
    return f"{shards.n_bytes / 1e9:.1f} GB"


def _check_names(source: Source, shards: Shards) -> None:
    """All that can be said before rows are read."""
    one_of("label", source.label, source.labels)
    one_of("id", source.id, source.ids)
    refuse_nothing_known(source, shards, has_labels=source.label is not None or source.labels is not None)
    for name, what in ((source.label, "label"), (source.id, "id")):
        if name is not None:
            check_column(shards, name, f"{what} column")
            refuse_lists(shards.schema.field(name).type, name, shards.source, what)


def _encoding(source: Source, shards: Shards, merge_pieces: Any, watch: Watch) -> Encoding:
    columns = columns_of(source, shards)
    names = chosen_columns(shards, columns)
    one_hot = [name for name in columns.one_hot if name in names]
    as_they_are = Encoding(tuple(name for name in names if name not in one_hot), {})
    first = shards.read(shards.pieces[0], as_they_are.columns)
    refuse_text(first, as_they_are)
    vectors = vector_lengths(first, as_they_are.columns)
    warn_of_row_names(first, as_they_are, columns)
    if not one_hot:
        return replace(as_they_are, vectors=vectors)
    values = partial(values_of_piece, shards, one_hot)
    found = merge_pieces(values, shards.pieces, union_of_values, "values", watch.show)
    return encoding_of(shards, names, found, vectors)


def _labels(source: Source, shards: Shards, look: Look, given: np.ndarray | None) -> _Labels | None:
    if source.label is not None:
        coded = CodedLabels.of(look.labels, source.label)
        return _Labels(coded.classes, partial(_coded, shards, source.label, coded))
    if given is None:
        return None
    return _Labels(Classes.of(given), partial(_of_piece, as_labels(given).codes))


def _ids(source: Source, shards: Shards) -> list[str] | None:
    """Read and checked; kept where constraints name rows by them."""
    ids = None
    if source.id is not None:
        ids = read_ids(shards.column(source.id), source.id, None)
    elif source.ids is not None:
        ids = check_ids(read_beside(source.ids, shards, "ids", source.encoding), shards, source.ids)
    return None if source.pairs is None and source.triplets is None else ids


def _numbers(shards: Shards, encoding: Encoding, piece: Piece) -> np.ndarray:
    return encoded(shards.read(piece, encoding.columns), encoding)


def _coded(shards: Shards, label: str, coded: CodedLabels, piece: Piece) -> np.ndarray:
    return coded.of_column(shards.read(piece, [label]).frame.column(label))


def _of_piece(values: np.ndarray, piece: Piece) -> np.ndarray:
    return values[piece.first : piece.first + len(piece)]
