"""Estimates with the influence of every row, so that intervals of differences can be computed over rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from . import intervals


@dataclass(frozen=True, eq=False)
class Estimate:
    """A value measured on some rows, and the influence of each row on it."""

    value: float
    rows: np.ndarray
    influence: np.ndarray

    @classmethod
    def mean(cls, rows: np.ndarray, values: np.ndarray) -> Estimate | None:
        """Return the mean over the rows whose value is finite; None if there is none."""
        known = np.isfinite(values)
        if not known.any():
            return None
        mean = float(values[known].mean())
        return cls(mean, rows[known], (values[known] - mean) / known.sum())

    @property
    def interval(self) -> float | None:
        """Half the width of the 95 % interval over rows; None for a single row."""
        return intervals.over_rows(self.influence)

    def interval_of_difference(self, other: Estimate) -> float | None:
        """Return half the width of the 95 % interval of this value minus another of the same rows."""
        return intervals.over_rows(self.influence - other.influence)

    def against(self, n_index: int) -> Estimate:
        """Return the estimate with influences times √(1 + n/n_index), for an index that is a random sample too.

        Intervals over the n queries alone are too short, as each row of the index serves many queries. Take one row of
        the index to move the mean as much as one query does: then the variance is s²/n + s²/n_index.
        """
        return replace(self, influence=self.influence * np.sqrt(1.0 + len(self.rows) / n_index))


Estimates = dict[str, Estimate | None]  # by measure; None where there was nothing to measure


def pool(parts: Sequence[Estimate]) -> Estimate:
    """Return the mean over folds, weighted by their rows.

    The influence of a row is the sum over the folds that held it out. A fold above the mean adds its distance to the
    mean to every one of its rows.
    """
    n_rows = sum(len(part.rows) for part in parts)
    value = sum(len(part.rows) * part.value for part in parts) / n_rows
    rows, row = np.unique(np.concatenate([part.rows for part in parts]), return_inverse=True)
    influence = np.concatenate([(len(part.rows) * part.influence + (part.value - value)) / n_rows for part in parts])
    return Estimate(float(value), rows, np.bincount(row, influence))
