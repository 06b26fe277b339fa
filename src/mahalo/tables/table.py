"""A table in memory, and the reader that chooses by suffix."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ..linalg import Matrix
from .files import TableFiles
from .text import list_some, one_line

if TYPE_CHECKING:
    import pyarrow as pa

    from .parquet_shards import ParquetShards

__all__ = [
    "Show",
    "Table",
    "TableInfo",
    "check_unique",
    "matching_shards",
    "parquet_errors",
    "read_table",
    "require_pyarrow",
]

Show: TypeAlias = Callable[[str], None]
TableInfo: TypeAlias = "Table | ParquetShards"  # names, counts and positions of rows, in memory or on disk


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

    @property
    def n_rows(self) -> int:
        return self.frame.num_rows if self.frame is not None else self.matrix.shape[0]  # type: ignore[union-attr]

    @property
    def names(self) -> list[str]:
        """Column names; empty for arrays."""
        return [] if self.frame is None else list(self.frame.column_names)

    def column(self, name: str) -> pa.ChunkedArray:
        """Return a column by name."""
        assert self.frame is not None
        return self.frame.column(name)

    def locate(self, row: int, column: str) -> str:
        """Return the position of a value in words."""
        return f"row {self.first_row + row} of {column!r}"


def read_table(
    paths: Sequence[str],
    *,
    encoding: str = "utf-8",
    n_features: int | None = None,
    svmlight_base: int | None = None,
    text: Sequence[str] = (),
    numbers: Sequence[str] | None = None,
    show: Show | None = None,
) -> Table:
    """Read all rows of files, globs and folders, in that order; shards in the order of their numbers.

    `n_features` is the width of svmlight files, which leave out zeros; `svmlight_base` the number of their first
    column, by default 1 unless one of the files has a column 0. In .csv and .tsv files the columns `text`, such as ids
    and labels, are read as strings, and so are all that are not in `numbers`, unless that is None. `show` receives
    lines of progress.
    """
    found = TableFiles.find(paths)
    report: Show = show or (lambda line: None)
    parts = []
    for k, file in enumerate(found.files):
        report(f"reading: {file.name}" + (f", file {k + 1} of {len(found.files)}" if len(found.files) > 1 else ""))
        parts.append(_read_file(file, found.kind, encoding, text, numbers, report))
    table = parts[0] if len(parts) == 1 else _concatenate(parts, found)
    if found.kind == ".svm":
        from .array_files import number_columns

        table = number_columns(table, svmlight_base, n_features)
    if not table.n_rows:
        raise ValueError(f"{found.source} has no rows below its header.")
    return table


def _read_file(
    file: Path, kind: str, encoding: str, text: Sequence[str], numbers: Sequence[str] | None, show: Show
) -> Table:
    if kind in (".csv", ".tsv"):
        from .csv_files import read_csv

        return Table(file.name, frame=read_csv(file, "," if kind == ".csv" else "\t", encoding, text, numbers, show))
    if kind == ".parquet":
        require_pyarrow()
        from pyarrow import parquet

        with parquet_errors(file):
            check_unique(file, parquet.read_schema(file).names)
            return Table(file.name, frame=parquet.read_table(file, partitioning=None))
    from .array_files import read_array, read_svmlight

    matrix, arrays = (read_svmlight if kind == ".svm" else read_array)(file)
    return Table(file.name, matrix=matrix, arrays=arrays)


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


@contextmanager
def parquet_errors(file: Path) -> Iterator[None]:
    """Turn errors of pyarrow inside the block into a ValueError that names the file."""
    from pyarrow.lib import ArrowException

    try:
        yield
    except (ArrowException, OSError) as error:
        raise ValueError(f"{file.name} is no whole Parquet file ({one_line(error)}). Write it again.") from None


# -- shards ------------------------------------------------------------------------------------------------------


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
