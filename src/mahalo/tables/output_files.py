"""Tables and arrays written to files by suffix, whole or not at all."""

from __future__ import annotations

import json
import math
import os
import secrets
from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, TypeAlias

import numpy as np

from ..persistence import replacing
from .files import existing_files
from .formatting import list_some
from .table import require_pyarrow

if TYPE_CHECKING:
    import pyarrow as pa

_TABLES = (".csv", ".tsv", ".parquet", ".jsonl")
_ARRAYS = (".npy", ".npz")
_RESERVED = ("X", "file", "allow_pickle")  # names in .npz files of the rows and of numpy's own parameters

Column: TypeAlias = "np.ndarray | Sequence[object] | pa.ChunkedArray"
Part: TypeAlias = tuple[Mapping[str, Column], np.ndarray | None]  # columns by name, and rows


def check_output(
    path: Path,
    force: bool,
    suffixes: Sequence[str] | None = None,
    option: str = "--out",
    inputs: Sequence[str | Path | None] = (),
) -> None:
    """Raise before the work if a file cannot be written, exists without --force, or is one of the `inputs`.

    `suffixes` are the possible ones, by default those of tables and arrays.
    """
    suffixes = (*_TABLES, *_ARRAYS) if suffixes is None else suffixes
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
    """Raise ValueError if an output file is an input, by the same name or by a symbolic or hard link."""
    if not path.exists():
        return
    for name in inputs:
        if name is not None and any(path.samefile(file) for file in existing_files(str(name))):
            raise ValueError(f"{option} {path} is a file that is read from ({name}); give another {option}.")


def write_table(path: Path, columns: Mapping[str, Column], rows: np.ndarray | None = None, prefix: str = "") -> None:
    """Write columns by name, then those of `rows`, named by `prefix` and a number; .npy holds `rows` alone."""
    kind = path.suffix.lower()
    if kind == ".npz":
        _refuse_names(path, columns, _RESERVED)
        arrays = {} if rows is None else {"X": rows}
        arrays |= {name: _to_array(values) for name, values in columns.items()}
        with replacing(path) as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]
    elif kind == ".npy" and rows is None:
        raise ValueError(".npy holds one array of numbers; write these columns to .npz, .csv or .parquet.")
    else:
        write_parts(path, [(columns, rows)], 0 if rows is None else len(rows), prefix)


def write_parts(path: Path, parts: Iterable[Part], n_rows: int, prefix: str = "") -> None:
    """Write the `n_rows` rows of all parts as `write_table` does; only for .npz more than one part is in memory."""
    kind = path.suffix.lower()
    if kind == ".npz":
        columns, rows = zip(*parts, strict=True)
        write_table(path, _concatenate(columns), np.concatenate(rows), prefix)
        return
    with replacing(path) as file:
        if kind == ".npy":
            _write_array(file, (rows for _, rows in parts if rows is not None), n_rows)
        else:
            require_pyarrow()
            _write_frames(file, kind, (_to_frame(path, *part, prefix) for part in parts))


def _concatenate(parts: Sequence[Mapping[str, Column]]) -> dict[str, Column]:
    require_pyarrow()
    import pyarrow as pa

    frame = pa.concat_tables([pa.table(dict(part)) for part in parts])
    return dict(zip(frame.column_names, frame.columns, strict=True))


def _refuse_names(path: Path, columns: Iterable[str], names: Container[str]) -> None:
    if taken := [name for name in columns if name in names]:
        raise ValueError(
            f"{path.name} has these names for what is new or its own: {list_some(taken)}. Rename your columns."
        )


def _write_array(file: IO[bytes], blocks: Iterable[np.ndarray], n_rows: int) -> None:
    """Write blocks of rows as np.save writes all of them."""
    for k, block in enumerate(blocks):
        if k == 0:
            shape = (n_rows, *block.shape[1:])
            header = {"descr": np.lib.format.dtype_to_descr(block.dtype), "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(file, header)
        file.write(np.ascontiguousarray(block).data)


def _to_array(values: Column) -> np.ndarray:
    """Return a column as an array of numbers or of text."""
    array = np.asarray(values.to_pylist() if hasattr(values, "to_pylist") else values)
    return np.array(["" if value is None else str(value) for value in array]) if array.dtype.kind == "O" else array


def _to_frame(path: Path, columns: Mapping[str, Column], rows: np.ndarray | None, prefix: str) -> pa.Table:
    import pyarrow as pa

    numbered = {} if rows is None else {f"{prefix}{k}": rows[:, k] for k in range(rows.shape[1])}
    _refuse_names(path, columns, numbered)
    return pa.table({n: pa.array(v) if isinstance(v, np.ndarray) else v for n, v in {**columns, **numbered}.items()})


def _write_frames(file: IO[bytes], kind: str, frames: Iterable[pa.Table]) -> None:
    from pyarrow import csv, parquet

    if kind == ".jsonl":
        file.writelines(_json_line(row) for frame in frames for row in frame.to_pylist())
        return
    frames = iter(frames)
    first = next(frames)
    options = csv.WriteOptions(delimiter="," if kind == ".csv" else "\t", quoting_style="needed")
    with (
        parquet.ParquetWriter(file, first.schema)
        if kind == ".parquet"
        else csv.CSVWriter(file, first.schema, write_options=options)
    ) as writer:
        writer.write_table(first)
        for frame in frames:
            writer.write_table(frame)


def _json_line(row: Mapping[str, object]) -> bytes:
    """Return a row as one line of JSON: numbers that are not finite as null, dates as they print."""
    plain = {name: None if isinstance(v, float) and not math.isfinite(v) else v for name, v in row.items()}
    return (json.dumps(plain, ensure_ascii=False, default=str) + "\n").encode()
