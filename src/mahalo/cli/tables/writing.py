"""Tables to files, by suffix: whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from mahalo.persistence import replacing

from .reading import arrow, existing_files, some

__all__ = ["Part", "check_output", "refuse_input", "write", "write_parts"]

_TABLES = (".csv", ".tsv", ".parquet")
_ARRAYS = (".npy", ".npz")
Part = tuple[Mapping[str, Any], np.ndarray | None]  # columns by name, and rows
_OF_NPZ = ("X", "file", "allow_pickle")  # names that numpy's writer or our rows have


def check_output(
    path: Path,
    force: bool,
    suffixes: tuple[str, ...] = (*_TABLES, *_ARRAYS),
    option: str = "--out",
    inputs: Sequence[str | Path | None] = (),
) -> None:
    """Raise now, not after the work, where a file cannot be written, or is one of the `inputs`."""
    if path.suffix.lower() not in suffixes:
        raise ValueError(f"{option} {path.name} ends in {path.suffix!r}; wanted {' or '.join(suffixes)}.")
    if path.is_dir():
        raise IsADirectoryError(f"{option} {path} is a folder; name a file in it.")
    refuse_input(path, inputs, option)
    if path.exists() and not force:
        raise FileExistsError(f"{path} exists; pass --force to write over it, or give another {option}.")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"no folder {str(path.parent)!r} to write {path.name!r} in: make it first.")
    probe = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        probe.touch(exist_ok=False)
        probe.unlink()
    except OSError as error:
        raise OSError(error.errno, f"cannot be written: {os.strerror(error.errno or 0)}", str(path)) from None


def refuse_input(path: Path, inputs: Sequence[str | Path | None], option: str) -> None:
    """Raise ValueError where a file to be written is read from, by whatever name, as a symbolic or hard link too."""
    if not path.exists():
        return
    for given in inputs:
        read_from = () if given is None else existing_files(str(given))
        if any(path.samefile(file) for file in read_from):
            raise ValueError(f"{option} {path} is a file that is read from ({given}); give another {option}.")


def write(path: Path, columns: Mapping[str, Any], rows: np.ndarray | None = None, prefix: str = "") -> None:
    """Columns by name, then those of `rows`, named by `prefix` and a number; .npy holds `rows` alone."""
    kind = path.suffix.lower()
    if kind == ".npz":
        _refuse_taken(path, columns, _OF_NPZ)
        arrays: dict[str, Any] = {} if rows is None else {"X": rows}
        arrays |= {name: _plain(values) for name, values in columns.items()}
        with replacing(path) as file:
            np.savez(file, **arrays)
    elif kind == ".npy" and rows is None:
        raise ValueError(".npy holds one array of numbers; write these columns to .npz, .csv or .parquet.")
    else:
        write_parts(path, [(columns, rows)], 0 if rows is None else len(rows), prefix)


def write_parts(path: Path, parts: Iterable[Part], n_rows: int, prefix: str = "") -> None:
    """Columns and rows as of `write`, part by part, `n_rows` in all; no more than one part is held but for .npz."""
    kind = path.suffix.lower()
    if kind == ".npz":
        columns, rows = zip(*parts, strict=True)
        write(path, _joined(columns), np.concatenate(rows), prefix)
        return
    with replacing(path) as file:
        if kind == ".npy":
            _write_array(file, (rows for _, rows in parts if rows is not None), n_rows)
        else:
            _write_frames(file, kind, (_frame(path, *part, prefix) for part in parts))


def _joined(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    frame = arrow().concat_tables([arrow().table(dict(part)) for part in parts])
    return dict(zip(frame.column_names, frame.columns, strict=True))


def _refuse_taken(path: Path, columns: Iterable[str], names: Container[str]) -> None:
    if taken := [name for name in columns if name in names]:
        raise ValueError(f"{path.name} has these names for what is new or its own: {some(taken)}. Rename your columns.")


def _write_array(file: IO[bytes], blocks: Iterable[np.ndarray], n_rows: int) -> None:
    """As np.save does, block by block."""
    for k, block in enumerate(blocks):
        if k == 0:
            shape = (n_rows, *block.shape[1:])
            header = {"descr": np.lib.format.dtype_to_descr(block.dtype), "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(file, header)
        file.write(np.ascontiguousarray(block).data)


def _plain(values: Any) -> np.ndarray:
    """An array of numbers or of text."""
    values = values.to_pylist() if hasattr(values, "to_pylist") else values
    array = np.asarray(values)
    return np.array(["" if value is None else str(value) for value in array]) if array.dtype.kind == "O" else array


def _frame(path: Path, columns: Mapping[str, Any], rows: np.ndarray | None, prefix: str) -> Any:
    pa = arrow()
    numbered = {} if rows is None else {f"{prefix}{k}": rows[:, k] for k in range(rows.shape[1])}
    _refuse_taken(path, columns, numbered)
    return pa.table({n: pa.array(v) if isinstance(v, np.ndarray) else v for n, v in {**columns, **numbered}.items()})


def _write_frames(file: IO[bytes], kind: str, frames: Iterable[Any]) -> None:
    frames = iter(frames)
    first = next(frames)
    with _writer(file, kind, first.schema) as writer:
        writer.write_table(first)
        for frame in frames:
            writer.write_table(frame)


def _writer(file: IO[bytes], kind: str, schema: Any) -> Any:
    from pyarrow import csv, parquet

    if kind == ".parquet":
        return parquet.ParquetWriter(file, schema)
    options = csv.WriteOptions(delimiter="," if kind == ".csv" else "\t", quoting_style="needed")
    return csv.CSVWriter(file, schema, write_options=options)
