"""What a user says about rows that are too many to hold: looked at once, then read again whenever they are needed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from ..constraints import as_labels
from ..explain.fingerprint import fingerprint_of, rows_looked_at
from ..metric import Scaling
from ..validation import is_linear
from .known import Classes, Known, Source, columns_of, refuse_nothing_known
from .tables import Encoding, Rows, Shards, chosen_columns, encoded, read_constraints, read_ids
from .tables.columns import check_column, encoding_of, refuse_text
from .tables.looking import CodedLabels, Look, Looking, union_of_values, values_of_piece
from .tables.named import check_ids, one_of, read_beside
from .watching import Watch

__all__ = ["gather_in_pieces"]


@dataclass(frozen=True)
class Streamed(Known):
    """Rows and labels are Dask arrays; what else is asked of them was found in the first look."""

    table: Shards
    look: Look
    _classes: Classes | None

    @property
    def n_pieces(self) -> int:
        return len(self.table.pieces)

    @property
    def classes(self) -> Classes | None:
        return self._classes

    @cached_property
    def fingerprint(self) -> dict[str, str | None]:
        if self._classes is None:
            return fingerprint_of(self.X.shape, self.look.rows)
        codes = [self.y] if isinstance(self.y, np.ndarray) else (block.compute() for block in self.y.blocks)
        return fingerprint_of(self.X.shape, self.look.rows, self._classes.names, codes)

    def scaling(self) -> Scaling:
        moments = self.look.moments
        assert moments is not None and moments.scatter is not None
        return Scaling.from_moments(moments.means[0], moments.scatter / moments.n, self.look.largest)

    def scaled(self, scaling: Scaling) -> Any:
        from ..rows.dask import map_rows

        return map_rows(scaling.apply, self.X, self.X.shape[1])


def gather_in_pieces(source: Source, shards: Shards, kernel: str, watch: Watch) -> Known:
    """As `gather`, of rows that are not held."""
    merged_over, read_in_pieces = _on_dask(shards)
    if not is_linear(kernel):
        raise ValueError(
            f"--kernel {kernel} needs all rows in memory, where those of {shards.source} take {_size(shards)}. Give "
            "fewer files, or leave --kernel out."
        )
    _check_names(source, shards)
    encoding = _encoding(source, shards, merged_over, watch)
    looking = Looking(shards, encoding, source.label, rows_looked_at(shards.n_rows))
    look = merged_over(looking, shards.pieces, Look.merged, "first look", watch.show)
    look.refuse_missing(shards)
    numbers = partial(_numbers, shards, encoding)
    X = read_in_pieces(numbers, shards.pieces, np.empty((0, len(encoding.names))))
    y, classes = None, None
    if source.label is not None:
        coded = CodedLabels.of(look.labels)
        y = read_in_pieces(partial(_codes, shards, source.label, coded), shards.pieces, np.empty(0, dtype=np.int64))
        classes = Classes(coded.classes, coded.sizes, coded.n_unlabelled)
    elif source.labels is not None:
        given = read_beside(source.labels, shards, "labels", source.encoding)
        y, classes = as_labels(given).codes, Classes.of(given)
    ids = _ids(source, shards)
    constraints = read_constraints(source.pairs, source.triplets, shards.n_rows, ids, source.encoding)
    return Streamed(source, shards, Rows(X, encoding), y, ids, constraints, look, classes)


def _on_dask(shards: Shards) -> tuple[Any, Any]:
    try:
        from ..rows.dask import merged_over, read_in_pieces
    except ImportError:
        raise ImportError(
            f"the rows of {shards.source} take {_size(shards)} of memory; to go through them a piece at a time needs "
            "Dask: pip install 'mahalo[dask]'"
        ) from None
    return merged_over, read_in_pieces


def _size(shards: Shards) -> str:
    return f"{shards.n_bytes / 1e9:.1f} GB"


def _check_names(source: Source, shards: Shards) -> None:
    """All that can be said before rows are read."""
    one_of("label", source.label, source.labels)
    one_of("id", source.id, source.ids)
    refuse_nothing_known(source, shards, has_labels=source.label is not None or source.labels is not None)
    for name, what in ((source.label, "label column"), (source.id, "id column")):
        if name is not None:
            check_column(shards, name, what)


def _encoding(source: Source, shards: Shards, merged_over: Any, watch: Watch) -> Encoding:
    columns = columns_of(source, shards)
    names = chosen_columns(shards, columns)
    one_hot = [name for name in columns.one_hot if name in names]
    as_they_are = Encoding(tuple(name for name in names if name not in one_hot), {})
    refuse_text(shards.read(shards.pieces[0], as_they_are.columns), as_they_are)
    if not one_hot:
        return as_they_are
    values = partial(values_of_piece, shards, one_hot)
    return encoding_of(shards, names, merged_over(values, shards.pieces, union_of_values, "values", watch.show))


def _ids(source: Source, shards: Shards) -> list[str] | None:
    """Held only where constraints name rows by them."""
    if source.pairs is None and source.triplets is None:
        return None
    if source.id is not None:
        return read_ids(shards.column(source.id), source.id, None)
    if source.ids is not None:
        return check_ids(read_beside(source.ids, shards, "ids", source.encoding), shards, source.ids)
    return None


def _numbers(shards: Shards, encoding: Encoding, piece: Any) -> np.ndarray:
    return encoded(shards.read(piece, encoding.columns), encoding)


def _codes(shards: Shards, label: str, coded: CodedLabels, piece: Any) -> np.ndarray:
    return coded.of_column(shards.read(piece, [label]).frame.column(label))
