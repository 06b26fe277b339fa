"""Files that a command reads: `-` for standard input, and conventions that must concern one of them."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

_MARK = "-"
# Parameters of commands that are files to read; a question or the name of an annotator may be a dash.
_FILES = (
    *("data", "index", "query", "against", "labels", "ids", "index_ids", "query_ids"),
    *("pairs", "triplets", "feedback", "ask"),
)


@contextmanager
def replace_standard_input(values: Mapping[str, object], *, allowed: bool) -> Iterator[dict[str, object]]:
    """Yield the values of a command's options, `-` replaced by a file with all that standard input holds.

    The file exists inside the block; what is in it can be read more than once, and need not fit into memory.
    """
    places = [name for name in _FILES for entry in _entries(values.get(name)) if entry == _MARK]
    if not places:
        _check_format(values)
        yield dict(values)
        return
    if not allowed:
        raise ValueError("this command reads its rows again later; save standard input to a file and name that.")
    if len(places) > 1:
        raise ValueError("standard input can be read once; got - for two files. Save one of them.")
    if sys.stdin is None or sys.stdin.isatty():
        raise ValueError("- is standard input, which is a terminal here; pipe a table into the command.")
    from ..tables.files import STANDARD_INPUT

    with tempfile.TemporaryDirectory(prefix="mahalo-") as folder:
        path = Path(folder) / STANDARD_INPUT
        with open(path, "wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        replaced = dict(values) | {places[0]: _replaced(values[places[0]], str(path))}
        _check_format(replaced)
        yield replaced


def _check_format(values: Mapping[str, object]) -> None:
    """Raise ValueError if --encoding, --sep or --json-lines concerns none of the files."""
    from ..tables.files import check_format
    from ..tables.options import DEFAULT_FORMAT, TextFormat, parse_separator

    encoding, sep = str(values.get("encoding") or DEFAULT_FORMAT.encoding), values.get("sep")
    separator = None if sep is None else parse_separator(str(sep))
    form = TextFormat(encoding, separator, bool(values.get("json_lines")))
    if form != DEFAULT_FORMAT:
        check_format((str(entry) for name in _FILES for entry in _entries(values.get(name)) if entry is not None), form)


def _entries(value: object) -> list[object]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _replaced(value: object, path: str) -> object:
    if isinstance(value, (list, tuple)):
        return [path if entry == _MARK else entry for entry in value]
    return path


def shown_paths(paths: list[str]) -> list[str]:
    """Return paths for a command to type next: DATA for what came from standard input."""
    from ..tables.files import STANDARD_INPUT

    return ["DATA" if Path(path).name == STANDARD_INPUT else path for path in paths]
