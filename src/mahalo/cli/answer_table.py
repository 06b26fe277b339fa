"""Columns of answers, named by ids, printed as CSV or written to a file."""

from __future__ import annotations

import csv
import sys
from collections.abc import Mapping

import numpy as np

__all__ = ["name_rows", "print_csv"]

_FORMATS = {"distance": ".6g", "probability": ".4f"}


def name_rows(rows: np.ndarray, ids: list[str] | None) -> np.ndarray:
    """Return the ids of rows, or their numbers if they have none."""
    return rows if ids is None else np.array(ids, dtype=object)[rows]


def print_csv(columns: Mapping[str, np.ndarray]) -> None:
    """Print columns as CSV on standard output."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(columns)
    cells = [[format(value, _FORMATS.get(name, "")) for value in values] for name, values in columns.items()]
    writer.writerows(zip(*cells, strict=True))
