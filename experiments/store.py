"""Arrays that take long to make, kept on disk: made once, written whole or not at all, found again after an
interruption."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

from mahalo.persistence import FileKind

__all__ = ["Arrays", "Store", "digest"]

_KIND = FileKind("mahalo-experiment", 1, 1, "Delete the file; it is made again.")
Arrays = dict[str, np.ndarray]


class Store:
    """A folder of named sets of arrays, and how many were found in it already.

    All that they depend on belongs into the name of the folder: see `digest`.
    """

    def __init__(self, folder: Path):
        self._folder = folder
        self.n_found = 0

    def get(self, name: str, make: Callable[[], Arrays]) -> Arrays:
        """The arrays of that name; made and kept if there are none, or if their file is damaged."""
        path = self._folder / f"{name}.safetensors"
        if path.is_file():
            try:
                arrays = dict(_KIND.read(path).arrays)
                self.n_found += 1
                return arrays
            except ValueError:
                path.unlink()
        arrays = make()
        path.parent.mkdir(parents=True, exist_ok=True)
        _KIND.contents({}, arrays).write(path)
        return arrays


def digest(*parts) -> str:
    """A short name for settings (anything JSON can hold) and files (as `Path`, by their content)."""
    whole = hashlib.sha256()
    for part in parts:
        if isinstance(part, Path):
            with part.open("rb") as file:
                whole.update(hashlib.file_digest(file, "sha256").digest())
        else:
            whole.update(json.dumps(part, sort_keys=True).encode())
    return whole.hexdigest()[:16]
