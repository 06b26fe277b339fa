"""Parquet files whose rows are too many to hold: read a piece at a time, as their metadata says they are cut."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from .reading import Files, Table, agreeing, arrow, check_names, refuse_empty, whole_parquet

__all__ = ["Piece", "Shards", "too_large"]

IN_MEMORY = 1 << 30  # bytes of numbers that are held at once at most
_PIECE = 1 << 25  # bytes of numbers that are read at once: some row groups, at least one


@dataclass(frozen=True)
class Piece:
    """Row groups of one file that are read together; `first` is the number of their first row, there and of all."""

    file: Path
    groups: tuple[int, ...]
    first_in_file: int
    first: int
    n_rows: int

    def __len__(self) -> int:
        return self.n_rows


@dataclass(frozen=True)
class Shards:
    """The rows of Parquet files, none of them held; `schema` is what the columns of all of them are together."""

    source: str
    schema: Any
    pieces: tuple[Piece, ...]
    n_bytes: int  # that the rows would take as numbers
    base: ClassVar[None] = None

    @property
    def n_rows(self) -> int:
        return self.pieces[-1].first + len(self.pieces[-1])

    @cached_property
    def names(self) -> list[str]:
        return list(self.schema.names)

    def read(self, piece: Piece, names: Sequence[str] | None = None) -> Table:
        """These columns, or all, of one piece."""
        names = self.names if names is None else list(names)
        with whole_parquet(piece.file) as parquet, parquet.ParquetFile(piece.file) as file:
            frame = file.read_row_groups(list(piece.groups), columns=names, use_threads=False).select(names)
        with agreeing([names], [piece.file]) as pa:
            frame = frame.cast(pa.schema([self.schema.field(name) for name in names]))
        return Table(piece.file.name, frame=frame, first=piece.first_in_file)

    def column(self, name: str) -> Table:
        """All rows of one column."""
        return Table(self.source, frame=arrow().concat_tables([self.read(p, [name]).frame for p in self.pieces]))

    def where(self, row: int, column: str) -> str:
        piece = next(piece for piece in reversed(self.pieces) if piece.first <= row)
        return f"row {row - piece.first + piece.first_in_file} of {column!r} in {piece.file.name}"


def too_large(paths: Sequence[str]) -> Shards | None:
    """Files, globs and folders of Parquet whose numbers would take more than `IN_MEMORY`; None for all others."""
    found = Files.at(paths)
    if found.kind != ".parquet":
        return None
    metadata = [_metadata(file) for file in found.files]
    n_rows, n_bytes = sum(of.num_rows for of in metadata), 8 * sum(map(_n_values, metadata))
    if n_bytes <= IN_MEMORY:
        return None
    schemas = [of.schema.to_arrow_schema() for of in metadata]
    with agreeing([schema.names for schema in schemas], found.files) as pa:
        schema = pa.unify_schemas(schemas, promote_options="permissive")
    most = max(1, _PIECE * n_rows // max(n_bytes, 1))
    return Shards(found.source, schema, tuple(_pieces(found.files, metadata, most)), n_bytes)


def _n_values(metadata: Any) -> int:
    """Return how many values a file holds; a list counts as many as it has entries."""
    groups = (metadata.row_group(k) for k in range(metadata.num_row_groups))
    return sum(group.column(j).num_values for group in groups for j in range(group.num_columns))


def _metadata(file: Path) -> Any:
    refuse_empty(file)
    with whole_parquet(file) as parquet:
        found = parquet.read_metadata(file)
        check_names(file, found.schema.to_arrow_schema().names)
    return found


def _pieces(files: Sequence[Path], metadata: Sequence[Any], most: int) -> Iterator[Piece]:
    """Neighbouring row groups of a file, of at most so many rows together; those of no rows left out."""
    first = 0
    for file, of in zip(files, metadata, strict=True):
        sizes, done = [of.row_group(k).num_rows for k in range(of.num_row_groups)], 0
        for groups in _neighbours(sizes, most):
            n_rows = sum(sizes[k] for k in groups)
            yield Piece(file, groups, done, first + done, n_rows)
            done += n_rows
        first += done


def _neighbours(sizes: Sequence[int], most: int) -> Iterator[tuple[int, ...]]:
    together: list[int] = []
    n_rows = 0
    for k, size in enumerate(sizes):
        if together and n_rows + size > most:
            yield tuple(together)
            together, n_rows = [], 0
        if size:
            together.append(k)
            n_rows += size
    if together:
        yield tuple(together)
