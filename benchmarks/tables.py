"""The tables: `$MAHALO_DATA`, else the data folder beside the checkout, else what scikit-learn bundles."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine

from .settings import ROOT

__all__ = ["Table", "data_folder", "load_tables", "source_note", "standardised"]

_BUNDLED = {"iris": load_iris, "wine": load_wine, "wdbc": load_breast_cancer, "digits": load_digits}


@dataclass(frozen=True)
class Table:
    """Complete rows of one data set: X float64, y from 0 without gaps."""

    name: str
    X: np.ndarray
    y: np.ndarray

    @property
    def n_classes(self) -> int:
        return int(self.y.max()) + 1


def data_folder() -> Path | None:
    named = os.environ.get("MAHALO_DATA")
    folder = Path(named) if named else ROOT.parent / "shared" / "data"
    return folder if folder.is_dir() else None


def load_tables(max_rows: int | None = None) -> tuple[Table, ...]:
    """Every table, smallest first; `max_rows` leaves out the larger ones."""
    folder = data_folder()
    if folder is None:
        tables = [_complete(name, *load(return_X_y=True)) for name, load in _BUNDLED.items()]
    else:
        tables = [table for path in sorted(folder.glob("*/*.npz")) if (table := _read(path)) is not None]
    if not tables:
        raise FileNotFoundError(f"no npz with X and y in {folder}/*/: set MAHALO_DATA to the data folder")
    kept = [table for table in tables if max_rows is None or len(table.X) <= max_rows]
    return tuple(sorted(kept, key=lambda table: table.X.size))


def source_note() -> str:
    if data_folder() is None:
        return "no data folder found (set MAHALO_DATA): only the tables bundled with scikit-learn were run"
    return "tables: every npz with X and y in the data folder, rows with missing values dropped"


def standardised(X: np.ndarray) -> np.ndarray:
    """Mean 0, variance 1; constant columns go."""
    std = X.std(axis=0)
    return np.ascontiguousarray(((X - X.mean(axis=0)) / np.where(std > 0, std, 1.0))[:, std > 0])


def _read(path: Path) -> Table | None:
    with np.load(path, allow_pickle=False) as file:
        if not {"X", "y"} <= set(file.files):
            return None
        return _complete(path.stem, file["X"], file["y"])


def _complete(name: str, X: np.ndarray, y: np.ndarray) -> Table:
    complete = ~np.isnan(X).any(axis=1)
    return Table(name, np.ascontiguousarray(X[complete]), np.unique(y[complete], return_inverse=True)[1])
