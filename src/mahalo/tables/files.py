"""Paths, globs and folders, resolved to table files in the order of their rows."""

from __future__ import annotations

import glob
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_SUFFIXES = (".csv", ".tsv", ".parquet", ".npy", ".npz", ".svm", ".svmlight", ".libsvm")
_LISTED = ", ".join(_SUFFIXES[:5]) + " or .svm"


@dataclass(frozen=True)
class TableFiles:
    """Files of one format in the order of their rows, and the name that messages give them together."""

    files: list[Path]
    source: str
    kind: str

    @classmethod
    def find(cls, paths: Sequence[str]) -> TableFiles:
        """Return the files of paths, globs and folders, in that order; shards in the order of their numbers."""
        files = [file for path in paths for file in _table_files(path)]
        kinds = {_kind(file) for file in files}
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
        found = [file for file in found if file.suffix.lower() in _SUFFIXES and not file.name.startswith(".")]
        if not found:
            raise FileNotFoundError(f"no table in the folder {path!r}; wanted files ending in {_LISTED}.")
    if not found:
        raise FileNotFoundError(f"no file at {path!r}.")
    return sorted(found, key=_natural_order)


def _natural_order(path: Path) -> list[tuple[int, int, str]]:
    """Return a sort key that puts part-2 before part-10."""
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.split(r"(\d+)", str(path))]


def _kind(file: Path) -> str:
    suffix = file.suffix.lower()
    if suffix not in _SUFFIXES:
        raise ValueError(f"{file.name} ends in {suffix or 'no suffix'!r}; wanted a table ending in {_LISTED}.")
    return ".svm" if suffix in (".svmlight", ".libsvm") else suffix
