"""All that a user says about rows on disk, read and checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..constraints import Constraints
from .tables import Columns, Rows, Table, read, read_constraints, read_ids, read_labels, rows_of
from .watching import Watch

__all__ = ["Known", "Source", "gather", "names_in"]


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


@dataclass(frozen=True)
class Known:
    """Rows of numbers, and what is known about them."""

    source: Source
    table: Table
    rows: Rows
    y: np.ndarray | None
    ids: list[str] | None
    constraints: Constraints | None

    @property
    def X(self) -> Any:
        return self.rows.X


def gather(source: Source, watch: Watch) -> Known:
    """Everything, checked; labels, pairs or triplets must be among it."""
    text = [name for name in (source.label, source.id) if name is not None]
    table = read(source.data, encoding=source.encoding, text=text, say=watch.show)
    constrained = source.pairs is not None or source.triplets is not None
    y = read_labels(table, source.label, source.labels, source.encoding)
    if y is None and not constrained:
        raise ValueError(
            f"nothing is known about the rows of {table.source}: give --label COLUMN, --labels FILE, --pairs FILE or "
            "--triplets FILE."
        )
    ids = read_ids(table, source.id, source.ids, source.encoding)
    columns = Columns(
        source.label, source.id, *(names_in(given, table) for given in (source.columns, source.drop, source.one_hot))
    )
    rows = rows_of(table, columns)
    if table.n_rows < 2:
        raise ValueError(f"{table.source} has one row; at least 2 are needed to learn a distance.")
    constraints = read_constraints(source.pairs, source.triplets, table.n_rows, ids, source.encoding)
    return Known(source, table, rows, y, ids, constraints)


def names_in(given: list[str] | None, table: Table) -> tuple[str, ...]:
    """Names of columns, several of them separated by commas; or one name that has commas itself."""
    return tuple(name for text in given or () for name in _split(text, table))


def _split(text: str, table: Table) -> list[str]:
    return [text] if text in table.names else [name.strip() for name in text.split(",") if name.strip()]
