"""Tables to files, by suffix: whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Container, Iterable, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from mahalo.persistence import replacing

from .reading import arrow, some

__all__ = ["check_output", "write"]

_TABLES = (".csv", ".tsv", ".parquet")
_ARRAYS = (".npy", ".npz")
_OF_NPZ = ("X", "file", "allow_pickle")  # names that numpy's writer or our rows have


def check_output(path: Path, force: bool, suffixes: tuple[str, ...] = (*_TABLES, *_ARRAYS)) -> None:
    """Raise now, not after the work, where a file cannot be written."""
    if path.suffix.lower() not in suffixes:
        raise ValueError(f"--out {path.name} ends in {path.suffix!r}; wanted {' or '.join(suffixes)}.")
    if path.is_dir():
        raise IsADirectoryError(f"--out {path} is a folder; name a file in it.")
    if path.exists() and not force:
        raise FileExistsError(f"{path} exists; pass --force to write over it, or give another --out.")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"no folder {str(path.parent)!r} to write {path.name!r} in: make it first.")
    probe = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        probe.touch(exist_ok=False)
        probe.unlink()
    except OSError as error:
        raise OSError(error.errno, f"cannot be written: {os.strerror(error.errno or 0)}", str(path)) from None


def write(path: Path, columns: Mapping[str, Any], rows: np.ndarray | None = None, prefix: str = "") -> None:
    """Columns by name, then those of `rows`, named by `prefix` and a number; .npy holds `rows` alone."""
    kind = path.suffix.lower()
    numbered = {} if rows is None else {f"{prefix}{k}": rows[:, k] for k in range(rows.shape[1])}
    if kind != ".npy":
        _refuse_taken(path, columns, _OF_NPZ if kind == ".npz" else numbered)
    with replacing(path) as file:
        if kind in _ARRAYS:
            _write_arrays(file, kind, columns, rows)
        else:
            _write_frame(file, kind, {**columns, **numbered})


def _refuse_taken(path: Path, columns: Iterable[str], names: Container[str]) -> None:
    if taken := [name for name in columns if name in names]:
        raise ValueError(f"{path.name} has these names for what is new or its own: {some(taken)}. Rename your columns.")


def _write_arrays(file: IO[bytes], kind: str, columns: Mapping[str, Any], rows: np.ndarray | None) -> None:
    if kind == ".npy":
        if rows is None:
            raise ValueError(".npy holds one array of numbers; write these columns to .npz, .csv or .parquet.")
        np.save(file, rows, allow_pickle=False)
        return
    arrays = {name: _plain(values) for name, values in columns.items()}
    np.savez(file, allow_pickle=False, **({} if rows is None else {"X": rows}), **arrays)


def _plain(values: Any) -> np.ndarray:
    """An array of numbers or of text."""
    values = values.to_pylist() if hasattr(values, "to_pylist") else values
    array = np.asarray(values)
    return np.array(["" if value is None else str(value) for value in array]) if array.dtype.kind == "O" else array


def _write_frame(file: IO[bytes], kind: str, columns: Mapping[str, Any]) -> None:
    pa = arrow()
    frame = pa.table({name: pa.array(v) if isinstance(v, np.ndarray) else v for name, v in columns.items()})
    if kind == ".parquet":
        from pyarrow import parquet

        parquet.write_table(frame, file)
    else:
        from pyarrow import csv

        csv.write_csv(frame, file, csv.WriteOptions(delimiter="," if kind == ".csv" else "\t", quoting_style="needed"))
