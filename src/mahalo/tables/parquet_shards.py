"""Parquet files: read whole if they fit into memory, else in pieces of neighbouring row groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from ..progress import SILENT, Progress
from .files import TableFiles
from .formatting import one_line
from .table import Piece, Table, check_unique, matching_shards, require_pyarrow

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from pyarrow.dataset import ParquetFileFragment
    from pyarrow.parquet import FileMetaData

MEMORY_LIMIT = 1 << 30  # bytes; files with more numbers stay on disk
PIECE_SIZE = 1 << 25  # bytes of numbers in a piece, which has at least one row group


@dataclass(frozen=True)
class ParquetShards:
    """Rows of Parquet files on disk; `schema` joins the columns of all files, `n_bytes` is their size as numbers."""

    source: str
    schema: pa.Schema
    pieces: tuple[Piece, ...]
    n_bytes: int
    in_memory: ClassVar[bool] = False
    matrix: ClassVar[None] = None
    arrays: ClassVar[dict[str, np.ndarray]] = {}
    svmlight_base: ClassVar[None] = None

    @classmethod
    def open(cls, found: TableFiles) -> ParquetShards:
        """Read the schemas and row groups of files, and check that they agree."""
        require_pyarrow()
        import pyarrow as pa

        schemas, metadata = [], []
        for file in found.files:
            with _parquet_errors(file):
                fragment = _fragment(file)
                schemas.append(fragment.physical_schema)
                metadata.append(fragment.metadata)
                check_unique(file, schemas[-1].names)
        with matching_shards([schema.names for schema in schemas], found.files):
            schema = pa.unify_schemas(schemas, promote_options="permissive")
        n_rows, n_bytes = sum(each.num_rows for each in metadata), 8 * sum(map(_n_values, metadata))
        most = max(1, PIECE_SIZE * n_rows // max(n_bytes, 1))
        return cls(found.source, schema, tuple(_pieces(found.files, metadata, most)), n_bytes)

    @property
    def n_rows(self) -> int:
        return self.pieces[-1].first + len(self.pieces[-1]) if self.pieces else 0

    @property
    def size(self) -> str:
        return f"{self.n_bytes / 1e9:.1f} GB"

    @cached_property
    def names(self) -> list[str]:
        """Column names."""
        return list(self.schema.names)

    def column_type(self, name: str) -> pa.DataType:
        """Return the type of a column."""
        return self.schema.field(name).type

    def read(self, piece: Piece, names: Sequence[str] | None = None) -> Table:
        """Read one piece: these columns, by default all."""
        import pyarrow as pa

        names = self.names if names is None else list(names)
        with _parquet_errors(piece.file):
            frame = _fragment(piece.file, piece.groups).to_table(columns=names, use_threads=False)
        with matching_shards([names], [piece.file]):
            frame = frame.cast(pa.schema([self.schema.field(name) for name in names]))
        return Table(piece.file.name, frame=frame, first_row=piece.first_in_file)

    def load(self, progress: Progress = SILENT, names: Sequence[str] | None = None) -> Table:
        """Read all rows of these columns, by default of all."""
        import pyarrow as pa

        pieces = progress.track(self.pieces, len(self.pieces), "reading: piece", lambda piece: piece.file.name)
        frames = [self.read(piece, names).frame for piece in pieces]
        return Table(self.source, frame=pa.concat_tables(frames) if frames else self.schema.empty_table())

    def column(self, name: str) -> pa.ChunkedArray:
        """Read a column by name."""
        return self.load(names=[name]).column(name)

    def locate(self, row: int, column: str) -> str:
        """Return the position of a value in words."""
        piece = next(piece for piece in reversed(self.pieces) if piece.first <= row)
        return f"row {row - piece.first + piece.first_in_file} of {column!r} in {piece.file.name}"


def fits_memory(shards: ParquetShards) -> bool:
    """Return whether the numbers of shards take at most `MEMORY_LIMIT` bytes."""
    return shards.n_bytes <= MEMORY_LIMIT


@contextmanager
def _parquet_errors(file: Path) -> Iterator[None]:
    """Turn errors of pyarrow inside the block into a ValueError that names the file."""
    from pyarrow.lib import ArrowException

    try:
        yield
    except (ArrowException, OSError) as error:
        raise ValueError(f"{file.name} is no whole Parquet file ({one_line(error)}). Write it again.") from None


def _fragment(file: Path, groups: Sequence[int] | None = None) -> ParquetFileFragment:
    from pyarrow import dataset, fs

    path, local = str(file.absolute()), fs.LocalFileSystem()
    return dataset.ParquetFileFormat().make_fragment(path, local, row_groups=groups)


def _n_values(metadata: FileMetaData) -> int:
    """Return the number of values in a file; a list counts as many as it has entries."""
    groups = (metadata.row_group(k) for k in range(metadata.num_row_groups))
    return sum(group.column(j).num_values for group in groups for j in range(group.num_columns))


def _pieces(files: Sequence[Path], metadata: Sequence[FileMetaData], most: int) -> Iterator[Piece]:
    """Join neighbouring row groups of each file while they have at most `most` rows; leave out empty ones."""
    first = 0
    for file, each in zip(files, metadata, strict=True):
        groups: list[int] = []
        done = n_rows = 0
        for k in range(each.num_row_groups):
            size = each.row_group(k).num_rows
            if groups and n_rows + size > most:
                yield Piece(file, tuple(groups), done, first + done, n_rows)
                done, groups, n_rows = done + n_rows, [], 0
            if size:
                groups.append(k)
                n_rows += size
        if groups:
            yield Piece(file, tuple(groups), done, first + done, n_rows)
        first += done + n_rows
