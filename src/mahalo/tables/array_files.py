"""Arrays without column names: .npy, .npz and svmlight files."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
import scipy.sparse as sp

from ..linalg import Matrix
from .formatting import list_some, one_line
from .table import Table


def read_array(file: Path) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return the rows of an .npy or .npz file, and its other arrays by name."""
    try:
        found = np.load(file, allow_pickle=False)
        arrays = {"X": found} if isinstance(found, np.ndarray) else {name: found[name] for name in found.files}
    except (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile, zlib.error) as error:
        why = "it holds Python objects" if "allow_pickle" in str(error) else one_line(error)
        raise ValueError(f"{file.name} cannot be read: {why}. Save plain arrays of numbers with numpy.") from None
    wide = [name for name, array in arrays.items() if array.ndim == 2]
    name = "X" if "X" in arrays else wide[0] if len(wide) == 1 else None
    if name is None:
        raise ValueError(f"{file.name} holds {list_some(list(arrays))}; wanted one array of rows, or one called 'X'.")
    X = arrays.pop(name)
    if X.ndim != 2 or X.dtype.kind not in "fiub" or not X.shape[1]:
        raise ValueError(f"{file.name} holds {X.dtype} of shape {X.shape}; wanted rows × columns of numbers.")
    return X, arrays


def read_svmlight(file: Path) -> tuple[sp.csr_array, dict[str, np.ndarray]]:
    """Return sparse rows, with the column numbers of the file, and their labels."""
    from sklearn.datasets import load_svmlight_file

    try:
        X, y = load_svmlight_file(str(file), zero_based=True)
    except ValueError as error:
        raise ValueError(f"{file.name} cannot be read as svmlight: {one_line(error)}.") from None
    return sp.csr_array(X), {"label": y}


def number_columns(table: Table, base: int | None, n_features: int | None) -> Table:
    """Return a table of svmlight files with its columns numbered from 0, and at least `n_features` of them."""
    X: sp.csr_array = table.matrix
    has_zero = bool((X.indices == 0).any())
    base = (0 if has_zero else 1) if base is None else base
    if base == 1 and has_zero:
        raise ValueError(
            f"{table.source} has a column 0; columns of the rows that the model was fitted on are numbered from 1. "
            "Number both from 1."
        )
    width = max(X.shape[1] - base, n_features or 0)
    X = sp.csr_array((X.data, X.indices - base, X.indptr), (X.shape[0], width))
    return replace(table, matrix=X, svmlight_base=base)


def stack(matrices: Sequence[Matrix], files: Sequence[Path]) -> Matrix:
    """Return the rows of all shards; sparse ones get the width of the widest, dense ones must have the same."""
    if sp.issparse(matrices[0]):
        width, sparse = max(X.shape[1] for X in matrices), cast("list[sp.csr_array]", matrices)
        return sp.csr_array(
            sp.vstack([sp.csr_array((X.data, X.indices, X.indptr), (X.shape[0], width)) for X in sparse])
        )
    for X, file in zip(matrices, files, strict=True):
        if X.shape[1] != matrices[0].shape[1]:
            raise ValueError(
                f"{file.name} has {X.shape[1]} columns, {files[0].name} has {matrices[0].shape[1]}; shards must agree."
            )
    return np.concatenate(matrices)
