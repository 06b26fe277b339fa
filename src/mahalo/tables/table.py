"""Tables in memory, and the reader that chooses by suffix.

A table in memory is its own single piece; `ParquetShards`, on disk, has several. Both are read in the same way:
``table.read(piece, names)`` for each of ``table.pieces``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, TypeAlias, TypeVar

import numpy as np

from ..progress import SILENT, Progress
from ..types import Matrix
from .files import TableFiles
from .formatting import list_some, one_line
from .options import DEFAULT_FORMAT, TextFormat

if TYPE_CHECKING:
    import pyarrow as pa

    from .parquet_shards import ParquetShards

T = TypeVar("T")
TableSource: TypeAlias = "Table | ParquetShards"  # rows in memory or on disk


@dataclass(frozen=True)
class Piece:
    """Neighbouring rows of one file; `first` numbers the first of them among all rows, `groups` are its row groups."""

    file: Path
    groups: tuple[int, ...]
    first_in_file: int
    first: int
    n_rows: int

    def __len__(self) -> int:
        return self.n_rows


@dataclass(frozen=True)
class Table:
    """Named columns (`frame`) or an array of rows (`matrix`), never both.

    `arrays` holds the other arrays of an .npz file, or the labels of an svmlight file, by name. `first_row` is the
    number of the first row in its file, where the table is a part of one.
    """

    source: str
    frame: pa.Table | None = None
    matrix: Matrix | None = None
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    svmlight_base: int | None = None
    first_row: int = 0
    in_memory: ClassVar[bool] = True

    @property
    def n_rows(self) -> int:
        return self.frame.num_rows if self.frame is not None else self.matrix.shape[0]  # type: ignore[union-attr]

    @property
    def names(self) -> list[str]:
        """Column names; empty for arrays."""
        return [] if self.frame is None else list(self.frame.column_names)

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """Tuple of one piece with all rows."""
        return (Piece(Path(self.source), (), self.first_row, 0, self.n_rows),)

    def read(self, piece: Piece, names: Sequence[str] | None = None) -> Table:
        """Return the table, which is its only piece."""
        return self

    def column(self, name: str) -> pa.ChunkedArray:
        """Return a column by name."""
        assert self.frame is not None
        return self.frame.column(name)

    def column_type(self, name: str) -> pa.DataType:
        """Return the type of a column."""
        return self.column(name).type

    def locate(self, row: int, column: str) -> str:
        """Return the position of a value in words."""
        return f"row {self.first_row + row} of {column!r}"


@dataclass(frozen=True)
class ReadOptions:
    """Conventions of files that do not state them.

    Attributes
    ----------
    form : TextFormat
        Encoding and separator of text files, and whether files of other names are JSON lines.
    text, numbers : sequence of str
        Columns of .csv and .tsv files to read as strings, such as ids and labels; unless `numbers` is None, all that it
        does not name are strings too.
    n_features, svmlight_base : int, optional
        Number of columns of svmlight files, which leave out zeros, and the number of their first column, by default 1
        unless one of the files has a column 0.
    """

    form: TextFormat = DEFAULT_FORMAT
    text: Sequence[str] = ()
    numbers: Sequence[str] | None = None
    n_features: int | None = None
    svmlight_base: int | None = None


def open_table(paths: Sequence[str], options: ReadOptions = ReadOptions(), progress: Progress = SILENT) -> TableSource:
    """Read files, globs and folders as `read_table` does; leave Parquet files on disk if they are too large."""
    found = TableFiles.find(paths, options.form)
    table: TableSource
    if found.kind == ".parquet":
        from .parquet_shards import ParquetShards, fits_memory

        table = shards = ParquetShards.open(found)
        table = shards.load(progress) if fits_memory(shards) else shards
    else:
        table = _read_files(found, options, progress)
    if not table.n_rows:
        raise ValueError(f"{table.source} has no rows below its header.")
    return table


def read_table(paths: Sequence[str], options: ReadOptions = ReadOptions(), progress: Progress = SILENT) -> Table:
    """Read all rows of files, globs and folders, in that order; shards in the order of their numbers."""
    table = open_table(paths, options, progress)
    return table if isinstance(table, Table) else table.load(progress)


def _read_files(found: TableFiles, options: ReadOptions, progress: Progress) -> Table:
    parts = []
    for k, file in enumerate(found.files):
        progress.show(f"reading: {file.name}" + found.position(k))
        parts.append(_read_file(file, found.kind, options, progress))
    table = parts[0] if len(parts) == 1 else _concatenate(parts, found)
    if found.kind != ".svm":
        return table
    from .array_files import number_columns

    return number_columns(table, options.svmlight_base, options.n_features)


def _read_file(file: Path, kind: str, options: ReadOptions, progress: Progress) -> Table:
    if kind in (".csv", ".tsv"):
        from .csv_files import read_csv

        separator = options.form.separator or {".csv": ",", ".tsv": "\t"}[kind]
        return Table(file.name, frame=read_csv(file, separator, options, progress))
    if kind == ".jsonl":
        from .json_files import read_json_lines

        return Table(file.name, frame=read_json_lines(file, progress))
    from .array_files import read_array, read_svmlight

    matrix, arrays = (read_svmlight if kind == ".svm" else read_array)(file)
    return Table(file.name, matrix=matrix, arrays=arrays)


def merge_pieces(
    table: TableSource, summarize: Callable[[Piece], T], merge: Callable[[list[T]], T], what: str, progress: Progress
) -> T:
    """Return summarize(piece) of all pieces, merged in their order: by Dask, unless there is one in memory."""
    if table.in_memory:
        return summarize(table.pieces[0])
    from ..rows import dask

    return dask.merge_pieces(summarize, table.pieces, merge, what, progress.show)


def check_unique(file: Path, names: Sequence[str]) -> None:
    """Raise ValueError if two columns of a file have the same name."""
    if twice := [name for name, n in Counter(names).items() if n > 1]:
        raise ValueError(f"{file.name} has columns of one name: {list_some(twice)}. Rename them.")


def require_pyarrow() -> None:
    """Raise ImportError with the remedy if pyarrow is missing."""
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise ImportError('reading and writing tables needs pyarrow: pip install "mahalo[tables]"') from None


def _concatenate(parts: list[Table], found: TableFiles) -> Table:
    if parts[0].frame is not None:
        with matching_shards([part.names for part in parts], found.files):
            import pyarrow as pa

            frames = [part.frame.select(parts[0].names) for part in parts]  # type: ignore[union-attr]
            return Table(found.source, frame=pa.concat_tables(frames, promote_options="permissive"))
    from .array_files import stack

    matrix = stack([part.matrix for part in parts if part.matrix is not None], found.files)
    shared = set(parts[0].arrays).intersection(*(part.arrays for part in parts))
    arrays = {name: np.concatenate([part.arrays[name] for part in parts]) for name in shared}
    return Table(found.source, matrix=matrix, arrays=arrays)


@contextmanager
def matching_shards(names: Sequence[Sequence[str]], files: Sequence[Path]) -> Iterator[None]:
    """Raise ValueError if files differ in column names, or, inside the block, in types that cannot be joined."""
    from pyarrow.lib import ArrowException

    for own, file in zip(names, files, strict=True):
        if odd := sorted(set(names[0]) ^ set(own)):
            raise ValueError(f"{file.name} and {files[0].name} differ in columns: {list_some(odd)}. Shards must agree.")
    try:
        yield
    except ArrowException as error:
        raise ValueError(f"shards differ in the types of their columns: {one_line(error)}.") from None
