"""The tables: `$MAHALO_DATA`, else the data folder beside the checkout, else what scikit-learn bundles."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine

from experiments.data import Table, read_table

from .settings import ROOT

__all__ = ["Table", "data_folder", "load_tables", "source_note", "standardised"]

_BUNDLED = {"iris": load_iris, "wine": load_wine, "wdbc": load_breast_cancer, "digits": load_digits}


def data_folder() -> Path | None:
    named = os.environ.get("MAHALO_DATA")
    folder = Path(named) if named else ROOT.parent / "shared" / "data"
    return folder if folder.is_dir() else None


def load_tables(max_rows: int | None = None) -> tuple[Table, ...]:
    """Complete rows of every table, smallest first; `max_rows` leaves out the larger ones."""
    folder = data_folder()
    if folder is None:
        tables = [Table(name, *load(return_X_y=True)) for name, load in _BUNDLED.items()]
    else:
        tables = [read_table(path) for path in sorted(folder.glob("*/*.npz")) if path.stem == path.parent.name]
    if not tables:
        raise FileNotFoundError(f"no table NAME/NAME.npz in {folder}: set MAHALO_DATA to the data folder")
    complete = [table.complete() for table in tables]
    kept = [table for table in complete if max_rows is None or len(table.X) <= max_rows]
    return tuple(sorted(kept, key=lambda table: table.X.size))


def source_note() -> str:
    if data_folder() is None:
        return "no data folder found (set MAHALO_DATA): only the tables bundled with scikit-learn were run"
    return "tables: every NAME/NAME.npz in the data folder, rows with missing values dropped"


def standardised(X: np.ndarray) -> np.ndarray:
    """Mean 0, variance 1; constant columns go."""
    std = X.std(axis=0)
    return np.ascontiguousarray(((X - X.mean(axis=0)) / np.where(std > 0, std, 1.0))[:, std > 0])
