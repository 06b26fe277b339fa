"""All that a user says about rows on disk, read and checked."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..constraints import Constraints
from ..explain.fingerprint import Fingerprint, fingerprint
from ..explain.provenance import DataRecord, TableRecord
from ..metric import Scaling
from .tables import Classes, Columns, Named, Rows, read, read_constraints, read_ids, read_labels, rows_of
from .tables.row_names import warn_of_constants, warn_of_row_names
from .watching import Watch

__all__ = ["Known", "Source", "columns_of", "gather", "names_in", "refuse_nothing_known"]


@dataclass(frozen=True)
class Source:
    """Where rows are, and what is known about them: columns by name, files by path."""

    data: list[str]
    label: str | None = None
    labels: str | None = None
    id: str | None = None
    ids: str | None = None
    columns: list[str] | None = None
    drop: list[str] | None = None
    one_hot: list[str] | None = None
    pairs: str | None = None
    triplets: str | None = None
    encoding: str = "utf-8"

    @property
    def inputs(self) -> list[str | None]:
        """Paths of all files that are read, and None for those not given."""
        return [*self.data, self.labels, self.ids, self.pairs, self.triplets]


@dataclass(frozen=True)
class Known:
    """Rows of numbers, and what is known about them."""

    source: Source
    table: Named
    rows: Rows
    y: Any
    ids: list[str] | None
    constraints: Constraints | None

    @property
    def X(self) -> Any:
        return self.rows.X

    @property
    def n_pieces(self) -> int | None:
        """In which rows are read; None where they are held."""
        return None

    @cached_property
    def classes(self) -> Classes | None:
        return None if self.y is None else Classes.of(self.y)

    @cached_property
    def fingerprint(self) -> Fingerprint:
        return fingerprint(self.X, self.y)

    def table_record(self, encoder: str | None = None) -> TableRecord:
        """Return what new tables are checked by."""
        source, encoding = self.source, self.rows.encoding
        columns = {} if encoding is None else dataclasses.asdict(encoding)
        return TableRecord(label=source.label, id=source.id, svmlight_base=self.table.base, encoder=encoder, **columns)

    def data_record(self, scaling: Scaling | None, n_chosen_by: int | None = None) -> DataRecord:
        """Return what is recorded of the rows and labels."""
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
        """What brings columns to mean 0 and deviation 1."""
        return Scaling.of(self.X)

    def scaled(self, scaling: Scaling) -> Any:
        """The rows in these units."""
        return scaling.apply(self.X)


def gather(source: Source, watch: Watch) -> Known:
    """Everything, checked; labels, pairs or triplets must be among it."""
    text = [name for name in (source.label, source.id) if name is not None]
    table = read(source.data, encoding=source.encoding, text=text, say=watch.show)
    y = read_labels(table, source.label, source.labels, source.encoding)
    refuse_nothing_known(source, table, has_labels=y is not None)
    ids = read_ids(table, source.id, source.ids, source.encoding)
    columns = columns_of(source, table)
    rows = rows_of(table, columns)
    if rows.encoding is not None:
        warn_of_row_names(table, rows.encoding, columns, source.data, source.encoding)
        warn_of_constants(table, rows.encoding, rows.X.min(axis=0) == rows.X.max(axis=0))
    if table.n_rows < 2:
        raise ValueError(f"{table.source} has one row; at least 2 are needed to learn a distance.")
    constraints = read_constraints(source.pairs, source.triplets, table.n_rows, ids, source.encoding)
    return Known(source, table, rows, y, ids, constraints)


def refuse_nothing_known(source: Source, table: Named, has_labels: bool) -> None:
    if not has_labels and source.pairs is None and source.triplets is None:
        raise ValueError(
            f"nothing is known about the rows of {table.source}: give --label COLUMN, --labels FILE, --pairs FILE or "
            "--triplets FILE."
        )


def columns_of(source: Source, table: Named) -> Columns:
    """What was said about columns."""
    given = (names_in(names, table) for names in (source.columns, source.drop, source.one_hot))
    return Columns(source.label, source.id, *given)


def names_in(given: list[str] | None, table: Named) -> tuple[str, ...]:
    """Names of columns, several of them separated by commas; or one name that has commas itself."""
    return tuple(name for text in given or () for name in _split(text, table))


def _split(text: str, table: Named) -> list[str]:
    return [text] if text in table.names else [name.strip() for name in text.split(",") if name.strip()]
