"""Arrays and a JSON header in one safetensors file: written whole or not at all, read without executing anything."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import IO, Any

import numpy as np

__all__ = ["as_plain", "read_arrays", "replacing", "write_arrays", "write_bytes"]

_MOST_NUMBERS = 10_000  # of an array in a header


class _Encoder(json.JSONEncoder):
    """JSON of NumPy's scalars as Python's, and of small arrays as lists where these are allowed."""

    def __init__(self, *, arrays: bool = False, **options: Any) -> None:
        super().__init__(**options)
        self.arrays = arrays

    def default(self, o: Any) -> Any:
        if isinstance(o, (np.bool_, np.number, np.str_)) and not isinstance(o, np.complexfloating):
            return o.item()
        if self.arrays and isinstance(o, np.ndarray):
            if o.size > _MOST_NUMBERS:
                raise TypeError(f"an array of {o.size} values; at most {_MOST_NUMBERS} fit into a header")
            return o.tolist()
        raise TypeError(f"a value of type {type(o).__name__}")


def as_plain(value: Any, *, arrays: bool = False, allow_nan: bool = True) -> Any:
    """Return a value as it comes back from JSON: NumPy's scalars as Python's, tuples as lists.

    With `arrays`, small arrays become lists. TypeError or ValueError where JSON has no such value.
    """
    return json.loads(json.dumps(value, cls=_Encoder, arrays=arrays, allow_nan=allow_nan))


def write_arrays(path: str | PathLike, header: dict, arrays: dict[str, np.ndarray]) -> None:
    """Arrays and a header that names them, whole or not at all."""
    from safetensors.numpy import save

    try:
        header = as_plain(header)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{str(path)!r} cannot be written ({error}). Of parameters a file holds None, strings, numbers, and lists "
            "and dicts of them; set others to one of these."
        ) from None
    arrays = {name: np.ascontiguousarray(a) for name, a in arrays.items()}
    write_bytes(path, save(arrays, metadata={"mahalo": json.dumps(header | {"sha256": _digest(header, arrays)})}))


def write_bytes(path: str | PathLike, data: bytes) -> None:
    with replacing(path) as file:
        file.write(data)


@contextlib.contextmanager
def replacing(path: str | PathLike) -> Iterator[IO[bytes]]:
    """A file to write: first beside `path`, then moved in place, so that a reader never sees half of it."""
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a folder; name a file in it.")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"no folder {str(path.parent)!r} to save {path.name!r} in: make it first.")
    beside = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        with open(beside, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except OSError as error:
        # The number picks the kind of error: PermissionError and so on.
        raise OSError(error.errno, f"could not save: {error.strerror or error}", str(path)) from None
    finally:
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)


def read_arrays(path: str | PathLike, kind: str, versions: tuple[int, ...]) -> tuple[dict, dict[str, np.ndarray]]:
    """(header, arrays) of a file whose header says `"format": kind` and a known version; or ValueError."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"no file at {str(path)!r}.")
    with _opened(path) as file:
        metadata = file.metadata() or {}
    header = _checked_header(path, metadata, kind, versions)
    with _opened(path) as file:
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    if header.pop("sha256", None) != _digest(header, arrays):
        raise ValueError(f"{str(path)!r} is damaged: its numbers are not those that were written; save it again.")
    return header, arrays


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """A safetensors file, whose errors inside are ValueErrors; some of its kinds of numbers numpy does not know."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            yield file
    except (SafetensorError, ValueError, OSError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{str(path)!r} is not a whole safetensors file ({error}). It may be damaged, truncated or of another "
            "kind; save it again."
        ) from None


def _checked_header(path: Path, metadata: dict[str, str], kind: str, versions: tuple[int, ...]) -> dict:
    try:
        header = json.loads(metadata["mahalo"])
        ours = header["format"] == kind
    except (KeyError, TypeError, ValueError, RecursionError):
        ours = False
    if not ours:
        raise ValueError(
            f"{str(path)!r} is a safetensors file, but its header does not say {kind!r}{_instead(metadata)}."
        )
    if header.get("version") not in versions:
        raise ValueError(
            f"{str(path)!r} has format version {header.get('version')!r}; this mahalo reads version {versions[-1]}. "
            "Upgrade mahalo, or save it again with this one."
        )
    return header


def _instead(metadata: dict[str, str]) -> str:
    try:
        return f" but {str(json.loads(metadata['mahalo'])['format'])[:40]!r}"
    except (KeyError, TypeError, ValueError, RecursionError):
        return ""


def _digest(header: dict, arrays: dict[str, np.ndarray]) -> str:
    """A fingerprint of all that was written, to tell damage that leaves the form of the file intact."""
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for name in sorted(arrays):
        digest.update(f"{name} {arrays[name].dtype} {arrays[name].shape}".encode())
        digest.update(np.ascontiguousarray(arrays[name]).tobytes())
    return digest.hexdigest()
