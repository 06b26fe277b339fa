"""CSV and TSV files: read by pyarrow, with checks of encoding, delimiter, header and line length."""

from __future__ import annotations

import csv
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..progress import Progress
from .formatting import is_number, list_some, one_line
from .options import separator_name
from .table import ReadOptions, check_unique, require_pyarrow

if TYPE_CHECKING:
    import pyarrow as pa

LONGEST_LINE = 32 << 20  # bytes; a longer line is refused before it is in memory


def read_csv(file: Path, delimiter: str, options: ReadOptions, progress: Progress) -> pa.Table:
    """Read a file; columns in `options.text`, or outside `options.numbers`, as strings.

    Among numbers, words such as NA are missing values; among strings, only empty ones are.
    """
    require_pyarrow()
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    header, encoding = _first_line(file), options.form.encoding
    try:
        first = header.decode(encoding, "replace").removeprefix("\ufeff").rstrip("\r\n")
        names = next(csv.reader([first], delimiter=delimiter), [])
        strings = {*options.text} | (set() if options.numbers is None else set(names).difference(options.numbers))
        frame = arrow_csv.read_csv(
            pa.PythonFile(ReportedFile(file, progress), mode="r"),
            read_options=arrow_csv.ReadOptions(block_size=LONGEST_LINE, encoding=encoding),
            parse_options=arrow_csv.ParseOptions(delimiter=delimiter),
            convert_options=arrow_csv.ConvertOptions(column_types=dict.fromkeys(strings, pa.string())),
        )
        names = frame.column_names  # only now decoded by pyarrow
    except (UnicodeDecodeError, LookupError) as error:
        raise encoding_error(file, encoding, error) from None
    except (pa.lib.ArrowException, OSError) as error:
        if isinstance(error, pa.lib.ArrowInvalid) and "straddl" in str(error):
            raise _line_error(file) from None
        if isinstance(error, pa.lib.ArrowInvalid) and ("UTF" in str(error) or "ncod" in str(error)):
            raise encoding_error(file, encoding, error) from None
        raise ValueError(f"{file.name} cannot be read: {one_line(error)}.") from None
    if any(pa.types.is_binary(column_type) for column_type in frame.schema.types):
        raise encoding_error(file, encoding, None)
    _check_delimiter(file, names, delimiter)
    _check_header(file, frame)
    return null_empty_strings(frame)


def null_empty_strings(frame: pa.Table) -> pa.Table:
    """Return a table whose empty strings are missing."""
    import pyarrow as pa
    from pyarrow import compute

    for k, column in enumerate(frame.columns):
        if pa.types.is_string(column.type):
            values = compute.if_else(compute.equal(column, ""), pa.scalar(None, pa.string()), column)
            frame = frame.set_column(k, frame.column_names[k], values)
    return frame


class ReportedFile:
    """A binary file that reports the share of it that has been read."""

    def __init__(self, path: Path, progress: Progress):
        self.name, self.size, self.progress = path.name, path.stat().st_size, progress
        self.file, self.done, self.start = open(path, "rb"), 0, time.perf_counter()  # noqa: SIM115

    def read(self, size: int = -1) -> bytes:
        data = self.file.read(size)
        self.done += len(data)
        left = (time.perf_counter() - self.start) * (self.size - self.done) / max(self.done, 1)
        self.progress.show(f"reading: {self.name}, {self.done / self.size:.0%}, {left:.0f} s left")
        return data

    def close(self) -> None:
        self.file.close()

    @property
    def closed(self) -> bool:
        return self.file.closed


def _first_line(file: Path) -> bytes:
    with open(file, "rb") as stream:
        line = stream.readline(LONGEST_LINE + 1)
    if len(line) > LONGEST_LINE:
        raise _line_error(file)
    return line


def _line_error(file: Path) -> ValueError:
    return ValueError(
        f"{file.name} has a line of more than {LONGEST_LINE >> 20} MB, which no table has; are its line ends missing?"
    )


def encoding_error(file: Path, encoding: str, error: Exception | None) -> ValueError:
    """Return the error for a file that is not in the encoding, or for an encoding that does not exist."""
    if isinstance(error, LookupError) and not isinstance(error, UnicodeError):
        return ValueError(f"--encoding {encoding!r} does not exist; wanted one such as utf-8, latin-1 or cp1252.")
    return ValueError(
        f"{file.name} is not in {encoding}; if a spreadsheet wrote it, try --encoding latin-1, or save it as UTF-8."
    )


# -- header ------------------------------------------------------------------------------------------------------


def _check_delimiter(file: Path, names: list[str], delimiter: str) -> None:
    """Raise ValueError if there is one column whose name holds another delimiter."""
    other = next((mark for mark in (";", "\t", ",", "|") if mark != delimiter and mark in names[0]), None)
    if len(names) > 1 or other is None:
        return
    raise ValueError(
        f"{file.name} has one column, {names[0]!r}: its delimiter seems to be {other!r}. Give --sep "
        f"{separator_name(other)}."
    )


def _check_header(file: Path, frame: pa.Table) -> None:
    names = frame.column_names
    numbers = [name for name in names if is_number(name)]
    if len(numbers) >= max(1, len(names) / 2) and not _is_range(numbers) and not _are_names(numbers, frame):
        raise ValueError(
            f"{file.name} has no header: its first line holds numbers ({list_some(numbers)}). Add a line of column "
            "names, or, if these are names, put a letter in front of each."
        )
    check_unique(file, names)


def _is_range(names: list[str]) -> bool:
    """Return whether names are consecutive whole numbers, as other programs number columns."""
    return all(name.isdigit() for name in names) and bool((np.diff([int(name) for name in names]) == 1).all())


def _are_names(numbers: list[str], frame: pa.Table) -> bool:
    """Return whether numbers in the first line are column names, such as years, and not values of a first row.

    They ascend in whole numbers, and either are evenly spaced beside a text name that its own column does not hold, or
    all lie outside the values of their columns.
    """
    import pyarrow as pa
    from pyarrow import compute

    if len(numbers) < 2 or not all(name.isdecimal() for name in numbers):
        return False
    steps = np.diff([int(name) for name in numbers])
    if not (steps > 0).all():
        return False
    text = [name for name in frame.column_names if name and not is_number(name)]
    repeated = [compute.any(compute.equal(frame.column(name).cast(pa.string()), name)).as_py() for name in text]
    evenly = len(numbers) > 2 and len(set(steps.tolist())) == 1
    return (evenly and bool(text) and not any(repeated)) or all(_is_outside(frame.column(n), n) for n in numbers)


def _is_outside(column: pa.ChunkedArray, number: str) -> bool:
    """Return whether a number is beyond all values of a column of numbers."""
    from pyarrow import compute, types

    if not (types.is_integer(column.type) or types.is_floating(column.type)) or column.null_count == len(column):
        return False
    span = compute.min_max(column).as_py()
    return not span["min"] <= float(number) <= span["max"]
