"""Model files: arrays and a JSON header in safetensors, written whole or not at all, read without executing anything.

Every header has "format" (the kind of the file), "version", "sha256" (a checksum of all the rest) and the fields of the
kind. A file may hold the contents of another kind, such as an index its metric: that header is a field, and the names
of its arrays have the name of the field before them ("metric.core").
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp

from .types import Matrix

if TYPE_CHECKING:
    from safetensors import safe_open

_MOST_NUMBERS = 10_000  # of an array in a header


Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"


def as_plain(fields: Mapping[str, object], *, arrays: bool = False, allow_nan: bool = True) -> dict[str, Json]:
    """Return fields in the form that JSON gives back: NumPy's scalars as Python's, tuples as lists.

    With `arrays`, small arrays become lists. TypeError or ValueError where JSON has no such value.
    """
    default = _scalar_or_list if arrays else _scalar
    return json.loads(json.dumps(dict(fields), default=default, allow_nan=allow_nan))


def _scalar(value: object) -> Json:
    """Return a scalar of NumPy's as Python's."""
    if isinstance(value, (np.bool_, np.number, np.str_)) and not isinstance(value, np.complexfloating):
        return value.item()
    raise TypeError(f"a value of type {type(value).__name__}")


def _scalar_or_list(value: object) -> Json:
    """Return a scalar of NumPy's as Python's, or a small array as a list."""
    if not isinstance(value, np.ndarray):
        return _scalar(value)
    if value.size > _MOST_NUMBERS:
        raise TypeError(f"an array of {value.size} values; at most {_MOST_NUMBERS} fit into a header")
    return value.tolist()


class FileParts(NamedTuple):
    """Fields and arrays of an object for a model file; an array that is None is left out."""

    fields: Mapping[str, object]
    arrays: Mapping[str, np.ndarray | None]


@dataclass(frozen=True)
class FileKind:
    """A kind of file: its name in headers, the version written, the oldest one read, and how to make it again."""

    name: str
    version: int
    oldest: int
    remedy: str

    def contents(
        self, fields: Mapping[str, object], arrays: Mapping[str, np.ndarray | None], **nested: Contents
    ) -> Contents:
        """Return what a file of this kind holds; `nested` are contents of other kinds, by the name of their field."""
        all_fields, all_arrays = dict(fields), {name: a for name, a in arrays.items() if a is not None}
        for name, inner in nested.items():
            all_fields[name] = inner.header
            all_arrays |= {f"{name}.{part}": array for part, array in inner.arrays.items()}
        return Contents(self, self.version, all_fields, all_arrays)

    def read(self, path: str | PathLike) -> Contents:
        """Read a file of this kind and one of its versions, its checksum verified; or raise ValueError."""
        path = Path(path)
        if not path.is_file():
            raise FileNotFoundError(f"no file at {str(path)!r}.")
        with _opened(path) as file:
            metadata = file.metadata() or {}
        header = self._checked_header(path, metadata)
        with _opened(path) as file:
            arrays = {name: _array(file, name) for name in file.keys()}  # noqa: SIM118
        as_written = json.dumps(header) == metadata["mahalo"]
        if header.pop("sha256", None) != _digest(header, arrays) or not as_written:
            raise ValueError(f"{str(path)!r} is damaged: its numbers are not those that were written; save it again.")
        return self.of_header(header, arrays, str(path))

    def of_header(self, header: Mapping[str, Json], arrays: dict[str, np.ndarray], path: str = "") -> Contents:
        """Return the contents that a header of this kind describes; its version must be one that is read."""
        version = header.get("version")
        if type(version) is not int or not self.oldest <= version <= self.version:
            raise ValueError(
                f"{path!r} has format version {version!r}; this mahalo reads version {self.version}. Upgrade mahalo, "
                "or save it again with this one."
            )
        fields = {name: value for name, value in header.items() if name not in ("format", "version")}
        return Contents(self, version, fields, arrays, path)

    def _checked_header(self, path: Path, metadata: dict[str, str]) -> dict[str, Json]:
        try:
            header = json.loads(metadata["mahalo"])
            found = header["format"]
        except (KeyError, TypeError, ValueError, RecursionError):
            found = None
        if found != self.name:
            instead = "" if found is None else f" but {str(found)[:40]!r}"
            raise ValueError(
                f"{str(path)!r} is a safetensors file, but its header does not say {self.name!r}{instead}."
            )
        return header


METRIC = FileKind("mahalo-metric", 2, 1, "Save the metric again with metric.save(path).")
INDEX = FileKind("mahalo-index", 2, 1, "Build the index again and save it with index.save(path).")
CLASSIFIER = FileKind("mahalo-pairs", 1, 1, "Save it again with classifier.save(path).")
FEEDBACK = FileKind("mahalo-feedback", 1, 1, "Save it again with adapter.save(path).")
HYBRID = FileKind("mahalo-hybrid", 1, 1, "Build the index again and save it with index.save(path).")
STREAM = FileKind("mahalo-stream", 2, 2, "Save it again with learner.save(path).")


def kind_of_file(path: str | PathLike) -> str | None:
    """Return the name of the kind that a file says it is; None for files of other makes."""
    if not Path(path).is_file():
        raise FileNotFoundError(f"no file at {str(path)!r}.")
    with _opened(Path(path)) as file:
        metadata = file.metadata() or {}
    try:
        return str(json.loads(metadata["mahalo"])["format"])
    except (KeyError, TypeError, ValueError, RecursionError):
        return None


@dataclass(frozen=True, eq=False)
class Contents:
    """Fields and arrays of a file, and checks of them that say which file is damaged, by what, and what to do."""

    kind: FileKind
    version: int
    fields: Mapping[str, Any]
    arrays: Mapping[str, np.ndarray]
    path: str = ""

    @property
    def header(self) -> dict[str, object]:
        return {"format": self.kind.name, "version": self.version, **self.fields}

    def write(self, path: str | PathLike) -> None:
        """Write a file, whole or not at all."""
        from safetensors.numpy import save

        try:
            header = as_plain(self.header)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"{str(path)!r} cannot be written ({error}). Of parameters a file holds None, strings, numbers, and "
                "lists and dicts of them; set others to one of these."
            ) from None
        arrays = {name: np.ascontiguousarray(a) for name, a in self.arrays.items()}
        write_bytes(path, save(arrays, metadata={"mahalo": json.dumps(header | {"sha256": _digest(header, arrays)})}))

    def nested(self, name: str, kind: FileKind) -> Contents:
        """Return the contents of another kind that the file holds under this name."""
        header = self.fields.get(name)
        if not isinstance(header, dict):
            raise self.damaged("its header is not whole")
        return kind.of_header(header, self.arrays_under(name), self.path)

    def arrays_under(self, name: str) -> dict[str, np.ndarray]:
        """Return the arrays whose names begin with this one and a dot, by the rest of their names."""
        start = f"{name}."
        return {key.removeprefix(start): a for key, a in self.arrays.items() if key.startswith(start)}

    def damaged(self, what: str) -> ValueError:
        return DamagedFileError(f"{self.path!r} is damaged: {what}. {self.kind.remedy}")

    @contextlib.contextmanager
    def checking(self) -> Iterator[None]:
        """Turn errors of the body into ValueErrors that name the file: of checks, their text; of others, their kind."""
        try:
            yield
        except DamagedFileError:
            raise
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError, MemoryError, RuntimeError) as error:
            plain = isinstance(error, ValueError) and not isinstance(error, UnicodeError)
            what = str(error).rstrip(".") if plain else f"its header is not whole ({type(error).__name__}: {error})"
            raise self.damaged(what) from None

    def number(self, name: str, least: float = -np.inf) -> float:
        """Return a finite float of the header that is at least so large."""
        value = self.fields.get(name)
        if not isinstance(value, float) or not least <= value < np.inf:
            raise self.damaged(f"{name} is {value!r}")
        return value

    def count(self, name: str, least: int = 0) -> int:
        """Return an integer of the header that is at least so large."""
        value = self.fields.get(name)
        if type(value) is not int or value < least:
            raise self.damaged(f"{name} is {value!r}")
        return value

    def array(
        self, name: str, shape: tuple[int | None, ...], dtypes: tuple[type[np.generic], ...] = (np.float64,)
    ) -> np.ndarray:
        """Return an array of finite numbers of this shape, in which None is any length."""
        array = self.arrays.get(name)
        if array is None:
            raise self.damaged(f"{name!r} is missing")
        fits = array.ndim == len(shape) and all(n in (None, m) for n, m in zip(shape, array.shape, strict=True))
        if not fits or array.dtype not in dtypes or not np.isfinite(array).all():
            raise self.damaged(
                f"{name!r} of shape {array.shape}, {array.dtype}, does not belong there or is not finite"
            )
        return array

    def matrix(
        self, name: str, n_columns: int | None, dtypes: tuple[type[np.generic], ...] = (np.float64,)
    ) -> np.ndarray | sp.csr_array | None:
        """Return the rows that `matrix_arrays` wrote under this name, dense or sparse; None where there are none."""
        if name in self.arrays:
            return self.array(name, (None, n_columns), dtypes)
        if f"{name}_data" not in self.arrays:
            return None
        data = self.array(f"{name}_data", (None,), dtypes)
        indices, indptr = (self.array(f"{name}_{part}", (None,), _INTEGERS) for part in ("indices", "indptr"))
        shape = [len(indptr) - 1, n_columns or 0]
        if f"{name}_shape" in self.arrays:
            shape = self.array(f"{name}_shape", (2,), _INTEGERS).tolist()
        if min(shape) < 0 or n_columns not in (None, shape[1]):
            raise self.damaged(f"{name!r} has the shape {shape}")
        small = np.int32 if max(len(data), *shape) < 2**31 else np.int64  # as scikit-learn's kernels want them
        try:
            found = sp.csr_array((data, indices.astype(small), indptr.astype(small)), shape=tuple(shape))
            found.check_format(full_check=True)
        except (TypeError, ValueError, OverflowError, MemoryError) as error:
            raise self.damaged(f"{name!r} is not a valid sparse matrix ({error})") from None
        return found


class DamagedFileError(ValueError):
    """A file whose contents are not those of its kind."""


_INTEGERS = (np.int64, np.int32)


def matrix_arrays(name: str, X: Matrix) -> dict[str, np.ndarray]:
    """Return rows, dense or sparse, as the arrays of a file that `Contents.matrix` reads under this name."""
    if not sp.issparse(X):
        return {name: np.asarray(X)}
    X = sp.csr_array(X)
    parts = {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": np.array(X.shape)}
    return {f"{name}_{part}": a if part == "data" else a.astype(np.int64) for part, a in parts.items()}


def write_bytes(path: str | PathLike, data: bytes) -> None:
    with replacing(path) as file:
        file.write(data)


@contextlib.contextmanager
def replacing(path: str | PathLike) -> Iterator[IO[bytes]]:
    """Open a file to write beside `path`, then move it in place, so that a reader never sees half of it."""
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


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[safe_open]:
    """Open a safetensors file; errors inside are ValueErrors (numpy lacks some of the format's dtypes)."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            yield file
    except (SafetensorError, ValueError, OSError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{str(path)!r} is not a whole safetensors file ({error}). It may be damaged, truncated or of another "
            "kind; save it again."
        ) from None


def _array(file: safe_open, name: str) -> np.ndarray:
    """Return one array of a file; raise TypeError if its numbers are of a type that another package taught numpy."""
    array = file.get_tensor(name)
    if array.dtype.isbuiltin != 1:
        raise TypeError(f"{name!r} holds numbers of type {array.dtype}")
    return array


def _digest(header: dict, arrays: dict[str, np.ndarray]) -> str:
    """Return a checksum of header and arrays, to detect damage that leaves the form of the file intact."""
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for name in sorted(arrays):
        digest.update(f"{name} {arrays[name].dtype} {arrays[name].shape}".encode())
        digest.update(np.ascontiguousarray(arrays[name]).tobytes())
    return digest.hexdigest()
