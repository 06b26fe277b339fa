"""JSON lines: files of one JSON object a row, read by pyarrow."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ..progress import Progress
from .csv_files import LONGEST_LINE, ReportedFile, null_empty_strings
from .formatting import list_some, one_line
from .table import require_pyarrow

if TYPE_CHECKING:
    import pyarrow as pa


def read_json_lines(file: Path, progress: Progress) -> pa.Table:
    """Read a file; objects may lack keys, whose values are missing. Dates stay the strings they are."""
    require_pyarrow()
    import pyarrow as pa

    try:
        frame = _read(file, [], progress)
        # pyarrow turns strings that look like dates into times, which print otherwise.
        if dates := [name for name in frame.column_names if pa.types.is_timestamp(frame.schema.field(name).type)]:
            frame = _read(file, dates, progress).select(frame.column_names)  # pyarrow would put them first
        frame.validate(full=True)
    except (pa.lib.ArrowException, OSError) as error:
        if "straddl" in str(error):
            raise ValueError(
                f"{file.name} has a row of more than {LONGEST_LINE >> 20} MB, which no table has."
            ) from None
        raise ValueError(
            f"{file.name} cannot be read as JSON lines, one object a row: {one_line(error)} (the first row is 0)."
        ) from None
    if nested := [name for name in frame.column_names if pa.types.is_struct(frame.schema.field(name).type)]:
        raise ValueError(
            f"{file.name} has objects inside objects, in {list_some(nested)}; wanted numbers, strings or lists of "
            "numbers."
        )
    return null_empty_strings(frame)


def _read(file: Path, strings: list[str], progress: Progress) -> pa.Table:
    import pyarrow as pa
    from pyarrow import json

    schema = pa.schema([(name, pa.string()) for name in strings]) if strings else None
    return json.read_json(
        pa.PythonFile(ReportedFile(file, progress), mode="r"),
        read_options=json.ReadOptions(block_size=LONGEST_LINE),
        parse_options=json.ParseOptions(explicit_schema=schema),
    )
