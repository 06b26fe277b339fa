"""Tables and arrays by the suffix of their files."""

from __future__ import annotations

import csv
import glob
import re
import time
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

__all__ = [
    "Files",
    "Named",
    "Table",
    "agreeing",
    "arrow",
    "check_names",
    "existing_files",
    "float_array",
    "is_number",
    "not_decoded",
    "read",
    "refuse_empty",
    "some",
    "whole_parquet",
]

_SUFFIXES = (".csv", ".tsv", ".parquet", ".npy", ".npz", ".svm", ".svmlight", ".libsvm")
_LONGEST_LINE = 32 << 20  # bytes; more is refused before it is held
_SHOWN = 3

Said = Callable[[str], None]


class Named(Protocol):
    """What messages say of a table, held or not."""

    @property
    def source(self) -> str: ...

    @property
    def n_rows(self) -> int: ...

    @property
    def names(self) -> list[str]:
        """Of the columns; none for arrays."""

    @property
    def base(self) -> int | None:
        """The number of the first column in svmlight files."""

    def where(self, row: int, column: str) -> str:
        """Which value that is, in words."""


@dataclass(frozen=True)
class Table:
    """Columns with names (`frame`, a pyarrow table) or a bare array of rows (`matrix`), never both.

    `beside` holds what came along with an array: other arrays of an .npz, the labels of an svmlight file. `base` is
    the number of the first column in svmlight files, 0 or 1; `first` that of the first row, where it is a part.
    """

    source: str
    frame: Any = None
    matrix: Any = None
    beside: dict[str, np.ndarray] = field(default_factory=dict)
    base: int | None = None
    first: int = 0

    @property
    def n_rows(self) -> int:
        return self.frame.num_rows if self.frame is not None else self.matrix.shape[0]

    @property
    def names(self) -> list[str]:
        """Of the columns; none for arrays."""
        return [] if self.frame is None else list(self.frame.column_names)

    def where(self, row: int, column: str) -> str:
        return f"row {self.first + row} of {column!r}"


def read(
    paths: Sequence[str],
    *,
    encoding: str = "utf-8",
    n_features: int | None = None,
    base: int | None = None,
    text: Sequence[str] = (),
    numbers: Sequence[str] | None = None,
    say: Said = print,
) -> Table:
    """All rows of these files, globs and folders, in the order given; shards in the order of their numbers.

    `n_features` is the width that svmlight files, which leave out zeros, are to have; `base` the number of their first
    column, by default 1 unless one of the files has a column 0. Columns in `text`, and all that are not in `numbers`
    where that is given, are kept as they are written in .csv and .tsv files: ids and labels.
    """
    found = Files.at(paths)
    parts = []
    for k, file in enumerate(found.files):
        say(f"reading: {file.name}" + (f", file {k + 1} of {len(found.files)}" if len(found.files) > 1 else ""))
        parts.append(_read_one(file, encoding, text, numbers, say))
    table = parts[0] if len(parts) == 1 else _joined(parts, found.files, found.source)
    if found.kind == ".svm":
        table = _from_base(table, base, n_features)
    if not table.n_rows:
        raise ValueError(f"{found.source} has no rows below its header.")
    return table


def arrow() -> Any:
    """pyarrow, or what to install."""
    try:
        import pyarrow
    except ImportError:
        raise ImportError('reading and writing tables needs pyarrow: pip install "mahalo[tables]"') from None
    return pyarrow


def some(names: Sequence[Any], quote: Callable[[Any], str] = repr) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(map(quote, names[:_SHOWN])) + more


# -- which files -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Files:
    """Files of one kind, in the order of their rows, and what they are called together."""

    files: list[Path]
    source: str
    kind: str

    @classmethod
    def at(cls, paths: Sequence[str]) -> Files:
        """Those of files, globs and folders, in the order given; shards in the order of their numbers."""
        files = [file for path in paths for file in _files(path)]
        kinds = {_kind(file) for file in files}
        if len(kinds) > 1:
            raise ValueError(f"files must all be of one kind; got {', '.join(sorted(kinds))}. Name those of one kind.")
        first = paths[0] if len(paths) == 1 else files[0].name
        return cls(files, files[0].name if len(files) == 1 else f"{first} ({len(files)} files)", kinds.pop())


def existing_files(path: str) -> list[Path]:
    """Return the files that a path, a folder or a glob names, whatever they hold; an empty list if none."""
    place = Path(path)
    if place.is_dir():
        return [file for file in place.iterdir() if file.is_file()]
    return (
        [place] if place.is_file() else [Path(name) for name in glob.glob(path, recursive=True) if Path(name).is_file()]
    )


def _files(path: str) -> list[Path]:
    place = Path(path)
    if place.is_dir():
        found = [file for file in place.iterdir() if file.suffix.lower() in _SUFFIXES and not file.name.startswith(".")]
        if not found:
            raise FileNotFoundError(f"no table in the folder {path!r}; wanted files ending in {_listed()}.")
    elif place.is_file():
        found = [place]
    else:
        found = [Path(name) for name in glob.glob(path, recursive=True) if Path(name).is_file()]
        if not found:
            raise FileNotFoundError(f"no file at {path!r}.")
    return sorted(found, key=_natural)


def _natural(path: Path) -> list[Any]:
    """part-2 before part-10."""
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.split(r"(\d+)", str(path))]


def _kind(file: Path) -> str:
    suffix = file.suffix.lower()
    if suffix not in _SUFFIXES:
        raise ValueError(f"{file.name} ends in {suffix or 'no suffix'!r}; wanted a table ending in {_listed()}.")
    return ".svm" if suffix in (".svmlight", ".libsvm") else suffix


def _listed() -> str:
    return ", ".join(_SUFFIXES[:5]) + " or .svm"


# -- one file ----------------------------------------------------------------------------------------------------


def _read_one(file: Path, encoding: str, text: Sequence[str], numbers: Sequence[str] | None, say: Said) -> Table:
    kind = _kind(file)
    refuse_empty(file)
    if kind in (".csv", ".tsv"):
        return Table(file.name, frame=_read_text(file, encoding, text, numbers, say))
    if kind == ".parquet":
        return Table(file.name, frame=_read_parquet(file))
    if kind == ".svm":
        return _read_svmlight(file)
    return _read_array(file)


def refuse_empty(file: Path) -> None:
    if not file.stat().st_size:
        raise ValueError(f"{file.name} is empty; wanted a header and rows.")


def _read_text(file: Path, encoding: str, text: Sequence[str], numbers: Sequence[str] | None, say: Said) -> Any:
    """Missing among numbers is what programs write for it, such as NA; among text only what is empty."""
    pa = arrow()
    from pyarrow import csv as tables

    delimiter = "," if _kind(file) == ".csv" else "\t"
    header = _first_line(file)
    try:
        names = _names_in(header.decode(encoding, "replace"), delimiter)
        kept = {*text} if numbers is None else {*text} | set(names).difference(numbers)
        frame = tables.read_csv(
            pa.PythonFile(_Counted(file, say), mode="r"),
            read_options=tables.ReadOptions(block_size=_LONGEST_LINE, encoding=encoding),
            parse_options=tables.ParseOptions(delimiter=delimiter),
            convert_options=tables.ConvertOptions(column_types=dict.fromkeys(kept, pa.string())),
        )
        names = frame.column_names
    except (UnicodeDecodeError, LookupError) as error:
        raise not_decoded(file, encoding, error) from None
    except pa.lib.ArrowInvalid as error:
        if "straddl" in str(error):
            raise _too_long(file) from None
        if "UTF" in str(error) or "ncod" in str(error):
            raise not_decoded(file, encoding, error) from None
        raise ValueError(f"{file.name} cannot be read: {_first_sentence(error)}.") from None
    except (pa.lib.ArrowException, OSError) as error:
        raise ValueError(f"{file.name} cannot be read: {_first_sentence(error)}.") from None
    if any(str(column_type) == "binary" for column_type in frame.schema.types):
        raise not_decoded(file, encoding, None)
    _check_delimiter(file, names, delimiter)
    _check_header(file, frame)
    return _without_empty_text(frame)


def _without_empty_text(frame: Any) -> Any:
    """Text that is empty as null."""
    import pyarrow as pa
    from pyarrow import compute, types

    for k, column in enumerate(frame.columns):
        if types.is_string(column.type):
            given = compute.if_else(compute.equal(column, ""), pa.scalar(None, pa.string()), column)
            frame = frame.set_column(k, frame.column_names[k], given)
    return frame


class _Counted:
    """A file that says how much of it has been read."""

    def __init__(self, path: Path, say: Said):
        self.name, self.size, self.say = path.name, path.stat().st_size, say
        self.file, self.done, self.began = open(path, "rb"), 0, time.perf_counter()  # noqa: SIM115

    def read(self, size: int = -1) -> bytes:
        data = self.file.read(size)
        self.done += len(data)
        spent = time.perf_counter() - self.began
        left = spent * (self.size - self.done) / max(self.done, 1)
        self.say(f"reading: {self.name}, {self.done / self.size:.0%}, {left:.0f} s left")
        return data

    def close(self) -> None:
        self.file.close()

    @property
    def closed(self) -> bool:
        return self.file.closed


def _first_line(file: Path) -> bytes:
    with open(file, "rb") as stream:
        line = stream.readline(_LONGEST_LINE + 1)
    if len(line) > _LONGEST_LINE:
        raise _too_long(file)
    return line


def _names_in(header: str, delimiter: str) -> list[str]:
    return next(csv.reader([header.removeprefix("\ufeff").rstrip("\r\n")], delimiter=delimiter), [])


def _too_long(file: Path) -> ValueError:
    return ValueError(
        f"{file.name} has a line of more than {_LONGEST_LINE >> 20} MB, which no table has; are its line ends missing?"
    )


def not_decoded(file: Path, encoding: str, error: Exception | None) -> ValueError:
    if isinstance(error, LookupError) and not isinstance(error, UnicodeError):
        return ValueError(f"--encoding {encoding!r} is not known; wanted one such as utf-8, latin-1 or cp1252.")
    return ValueError(
        f"{file.name} is not in {encoding}; if a spreadsheet wrote it, try --encoding latin-1, or save it as UTF-8."
    )


def _first_sentence(error: Exception) -> str:
    return " ".join(str(error).split()).removesuffix(".")


def _check_header(file: Path, frame: Any) -> None:
    names = frame.column_names
    numbers = [name for name in names if is_number(name)]
    if len(numbers) >= max(1, len(names) / 2) and not _counts_up(numbers) and not _are_names(numbers, frame):
        raise ValueError(
            f"{file.name} has no header: its first line holds numbers ({some(numbers)}). Add a line of column names, "
            "or, if these are names, put a letter in front of each."
        )
    check_names(file, names)


def _are_names(numbers: list[str], frame: Any) -> bool:
    """Return whether numbers in the first line are column names, such as years, and not values of a first row.

    They ascend in whole numbers, and either are evenly spaced beside a text name that its own column does not hold, or
    all lie outside the values of their columns.
    """
    from pyarrow import compute

    if len(numbers) < 2 or not all(name.isdecimal() for name in numbers):
        return False
    steps = np.diff([int(name) for name in numbers])
    if not (steps > 0).all():
        return False
    text = [name for name in frame.column_names if name and not is_number(name)]
    own = [compute.any(compute.equal(_as_text(frame.column(name)), name)).as_py() for name in text]
    evenly = len(numbers) > 2 and len(set(steps.tolist())) == 1
    return (evenly and bool(text) and not any(own)) or all(_lies_outside(frame.column(name), name) for name in numbers)


def _as_text(column: Any) -> Any:
    return column.cast(arrow().string())


def _lies_outside(column: Any, number: str) -> bool:
    """Return whether a number is beyond all values of a column of numbers."""
    from pyarrow import compute, types

    if not (types.is_integer(column.type) or types.is_floating(column.type)) or column.null_count == len(column):
        return False
    span = compute.min_max(column).as_py()
    return not span["min"] <= float(number) <= span["max"]


def _check_delimiter(file: Path, names: list[str], delimiter: str) -> None:
    """One column whose name holds what other files have between columns."""
    other = next((mark for mark in (";", "\t", ",", "|") if mark != delimiter and mark in names[0]), None)
    if len(names) > 1 or other is None:
        return
    suffix = {"\t": ".tsv", ",": ".csv"}.get(other)
    remedy = f"Call it {suffix}" if suffix else f"Save it with {delimiter!r} between columns, or call it .tsv with tabs"
    raise ValueError(f"{file.name} has one column, {names[0]!r}: its values seem to be parted by {other!r}. {remedy}.")


def check_names(file: Path, names: list[str]) -> None:
    if len(set(names)) < len(names):
        twice = [name for name, n in Counter(names).items() if n > 1]
        raise ValueError(f"{file.name} has columns of one name: {some(twice)}. Rename them.")


def is_number(text: str) -> bool:
    """Return whether a text is a number as files write it: without the underscores of Python, as in 1_000."""
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


def float_array(values: Sequence[Any]) -> np.ndarray | None:
    """Return numbers, or texts that are, as an array; None where one of them is neither."""
    if any(isinstance(value, str) and not is_number(value) for value in values):
        return None
    try:
        return np.array([float(value) for value in values])
    except (TypeError, ValueError):
        return None


def _counts_up(names: list[str]) -> bool:
    """0, 1, 2, …: names that other programs give."""
    if not all(name.isdigit() for name in names):
        return False
    first = int(names[0])
    return [int(name) for name in names] == list(range(first, first + len(names)))


def _read_parquet(file: Path) -> Any:
    with whole_parquet(file) as parquet:
        check_names(file, parquet.read_schema(file).names)
        return parquet.read_table(file, partitioning=None)


@contextmanager
def whole_parquet(file: Path) -> Iterator[Any]:
    """pyarrow's Parquet, whose errors inside are those of the file."""
    arrow()
    from pyarrow import parquet
    from pyarrow.lib import ArrowException

    try:
        yield parquet
    except (ArrowException, OSError) as error:
        raise ValueError(f"{file.name} is no whole Parquet file ({_first_sentence(error)}). Write it again.") from None


def _read_svmlight(file: Path) -> Table:
    """Columns by the numbers in the file, whatever the first of them is."""
    from sklearn.datasets import load_svmlight_file

    try:
        X, y = load_svmlight_file(str(file), zero_based=True)
    except ValueError as error:
        raise ValueError(f"{file.name} cannot be read as svmlight: {_first_sentence(error)}.") from None
    return Table(file.name, matrix=sp.csr_array(X), beside={"label": y})


def _from_base(table: Table, base: int | None, n_features: int | None) -> Table:
    """Columns from the first on, as many as there are to be."""
    has_zero = bool((table.matrix.indices == 0).any())
    base = (0 if has_zero else 1) if base is None else base
    if base == 1 and has_zero:
        raise ValueError(
            f"{table.source} has a column 0; columns of the rows that the model was fitted on are numbered from 1. "
            "Number them alike."
        )
    X = table.matrix
    width = max(X.shape[1] - base, n_features or 0)
    X = sp.csr_array((X.data, X.indices - base, X.indptr), (X.shape[0], width))
    return replace(table, matrix=X, base=base)


def _read_array(file: Path) -> Table:
    try:
        found = np.load(file, allow_pickle=False)
        arrays = {"X": found} if isinstance(found, np.ndarray) else {name: found[name] for name in found.files}
    except (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile, zlib.error) as error:
        why = "it holds Python objects" if "allow_pickle" in str(error) else _first_sentence(error)
        raise ValueError(f"{file.name} cannot be read: {why}. Save plain arrays of numbers with numpy.") from None
    wide = [name for name, array in arrays.items() if array.ndim == 2]
    name = "X" if "X" in arrays else wide[0] if len(wide) == 1 else None
    if name is None:
        raise ValueError(f"{file.name} holds {some(list(arrays))}; wanted one array of rows, or one called 'X'.")
    X = arrays.pop(name)
    if X.ndim != 2 or X.dtype.kind not in "fiub" or not X.shape[1]:
        raise ValueError(f"{file.name} holds {X.dtype} of shape {X.shape}; wanted rows × columns of numbers.")
    return Table(file.name, matrix=X, beside=arrays)


# -- shards ------------------------------------------------------------------------------------------------------


def _joined(parts: list[Table], files: list[Path], source: str) -> Table:
    if parts[0].frame is not None:
        return Table(source, frame=_joined_frames(parts, files))
    width = parts[0].matrix.shape[1]
    if sp.issparse(parts[0].matrix):
        width = max(part.matrix.shape[1] for part in parts)
        wide = [sp.csr_array((p.matrix.data, p.matrix.indices, p.matrix.indptr), (p.n_rows, width)) for p in parts]
        matrix: Any = sp.csr_array(sp.vstack(wide))
    else:
        for part, file in zip(parts, files, strict=True):
            if part.matrix.shape[1] != width:
                raise ValueError(
                    f"{file.name} has {part.matrix.shape[1]} columns, {files[0].name} has {width}; shards must agree."
                )
        matrix = np.concatenate([part.matrix for part in parts])
    shared = set(parts[0].beside).intersection(*(part.beside for part in parts))
    return Table(source, matrix=matrix, beside={k: np.concatenate([p.beside[k] for p in parts]) for k in shared})


def _joined_frames(parts: list[Table], files: list[Path]) -> Any:
    with agreeing([part.names for part in parts], files) as pa:
        return pa.concat_tables([part.frame.select(parts[0].names) for part in parts], promote_options="permissive")


@contextmanager
def agreeing(names: Sequence[Sequence[str]], files: Sequence[Path]) -> Iterator[Any]:
    """pyarrow to join columns of these names with, the same in all files; types that do not agree are an error."""
    for own, file in zip(names, files, strict=True):
        if odd := sorted(set(names[0]) ^ set(own)):
            raise ValueError(f"{file.name} and {files[0].name} differ in columns: {some(odd)}. Shards must agree.")
    pa = arrow()
    try:
        yield pa
    except pa.lib.ArrowException as error:
        raise ValueError(f"shards differ in the types of their columns: {_first_sentence(error)}.") from None
