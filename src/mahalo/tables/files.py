"""Paths, globs and folders, resolved to table files in the order of their rows."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from .options import DEFAULT_FORMAT, TextFormat

STANDARD_INPUT = "standard input"  # name of a file that holds it
_JSON_LINES = (".jsonl", ".ndjson")
_DELIMITED = (".csv", ".tsv")
_SUFFIXES = (*_DELIMITED, ".parquet", *_JSON_LINES, ".npy", ".npz", ".svm", ".svmlight", ".libsvm")
_WITHOUT_ENCODING = {*_SUFFIXES[2:], ".safetensors"}
_LISTED = ", ".join(_SUFFIXES[:-3]) + " or .svm"
_NO_SHARDS = ".answers.jsonl"  # of the studio, beside the rows it asks about


@dataclass(frozen=True)
class TableFiles:
    """Files of one format in the order of their rows, and the name that messages give them together."""

    files: list[Path]
    source: str
    kind: str

    @classmethod
    def find(cls, paths: Sequence[str], form: TextFormat = DEFAULT_FORMAT) -> TableFiles:
        """Return the files of paths, globs and folders, in that order; shards in the order of their numbers."""
        files = [file for path in paths for file in _table_files(path)]
        kinds = {_kind(file, form) for file in files}
        if len(kinds) > 1:
            raise ValueError(f"files must all be of one kind; got {', '.join(sorted(kinds))}. Name those of one kind.")
        for file in files:
            if not file.stat().st_size:
                raise ValueError(f"{file.name} is empty; wanted a header and rows.")
        first = paths[0] if len(paths) == 1 else files[0].name
        return cls(files, files[0].name if len(files) == 1 else f"{first} ({len(files)} files)", kinds.pop())

    def position(self, k: int) -> str:
        """Return ", file 2 of 5" for the second of several files; empty for a single one."""
        return f", file {k + 1} of {len(self.files)}" if len(self.files) > 1 else ""


def existing_files(path: str) -> list[Path]:
    """Return the files that a path, a folder or a glob names, of any format; an empty list if none."""
    place = Path(path)
    if place.is_dir():
        return [file for file in place.iterdir() if file.is_file()]
    names = [path] if place.is_file() else glob.glob(path, recursive=True)
    return [Path(name) for name in names if Path(name).is_file()]


def _table_files(path: str) -> list[Path]:
    found = existing_files(path)
    if Path(path).is_dir():
        found = [file for file in found if _is_shard(file)]
        if not found:
            raise FileNotFoundError(f"no table in the folder {path!r}; wanted files ending in {_LISTED}.")
    if not found:
        raise FileNotFoundError(f"no file at {path!r}.")
    return sorted(found, key=_natural_order)


def _is_shard(file: Path) -> bool:
    """Return whether a file in a folder is a table."""
    hidden = file.name.startswith(".") or file.name.endswith(_NO_SHARDS)
    return file.suffix.lower() in _SUFFIXES and not hidden


def _natural_order(path: Path) -> list[tuple[int, int, str]]:
    """Return a sort key that puts part-2 before part-10."""
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.split(r"(\d+)", str(path))]


def _kind(file: Path, form: TextFormat) -> str:
    """Return the suffix of the format of a file."""
    suffix = file.suffix.lower()
    if file.name == STANDARD_INPUT:
        return ".jsonl" if form.json_lines else ".csv"
    if suffix in _SUFFIXES:
        return ".svm" if suffix in (".svmlight", ".libsvm") else ".jsonl" if suffix in _JSON_LINES else suffix
    if form.json_lines:
        return ".jsonl"
    if suffix == ".txt" and form.separator is not None:
        return ".csv"
    remedy = " Is it a table? Say what is between its columns: --sep tab." if suffix == ".txt" else ""
    raise ValueError(f"{file.name} ends in {suffix or 'no suffix'!r}; wanted a table ending in {_LISTED}.{remedy}")


def check_format(paths: Iterable[str], form: TextFormat) -> None:
    """Raise ValueError if a convention concerns none of the files of these paths, globs and folders."""
    files = [file for path in paths for file in existing_files(path)]
    if not files:
        return  # the reader says which is missing
    from_pipe = any(file.name == STANDARD_INPUT for file in files)
    suffixes = {file.suffix.lower() for file in files if file.name != STANDARD_INPUT}
    if form.json_lines and not from_pipe and suffixes <= {*_SUFFIXES, ".txt", ".safetensors"}:
        raise ValueError(
            "--json-lines is for standard input and for names without a known suffix; "
            f"{files[0].name} is read by its suffix. Leave --json-lines out."
        )
    reads_text = (from_pipe and not form.json_lines) or not suffixes <= _WITHOUT_ENCODING
    if form.encoding != DEFAULT_FORMAT.encoding and not reads_text:
        raise ValueError(f"--encoding is for .csv, .tsv and .txt files; got {files[0].name}. Leave --encoding out.")
    if form.separator is None or (from_pipe and not form.json_lines) or suffixes & {*_DELIMITED, ".txt"}:
        return
    raise ValueError(f"--sep is for .csv, .tsv and .txt files; got {files[0].name}. Leave --sep out.")
