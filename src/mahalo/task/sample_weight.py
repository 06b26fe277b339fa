"""Weights of training rows: checked, and rows of weight 0 left out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from ..constraints import codes_of
from ..rows import SampledRows
from ..validation import len_of
from .settings import FitData


def with_sample_weight(
    data: FitData, sample_weight: ArrayLike, *, pairwise: bool = False, splits_by_number: bool = False
) -> tuple[FitData, np.ndarray | None]:
    """Return weighted data without rows of weight 0, and the positions of the rows that are left, None for all.

    `pairwise` says that X is a precomputed kernel matrix, `splits_by_number` that the caller splits rows by number.
    """
    n_rows = len_of(data.X)
    if isinstance(data.X, SampledRows):
        raise ValueError("sample_weight needs rows in memory; pass some of them, such as X[:10_000].compute().")
    weight = _checked(sample_weight, n_rows)
    kept = np.flatnonzero(weight)
    if len(kept) == n_rows:
        return replace(data, sample_weight=weight), None
    if pairwise:
        raise ValueError(
            f"{n_rows - len(kept)} rows have weight 0, but with kernel='precomputed' similarities to them would be "
            "asked for ever after; leave out their rows and columns of X yourself."
        )
    if splits_by_number:
        raise ValueError(
            f"{n_rows - len(kept)} rows have weight 0 and are left out, but cv may split rows by their number; leave "
            "them out of X yourself, or let cv be a number of folds."
        )
    rows = np.arange(n_rows) if data.rows is None else data.rows
    y = None if data.y is None else codes_of(data.y[kept], require_two_classes=data.constraints is None)
    return FitData(data.X[kept], y, data.constraints, rows[kept], weight[kept]), kept


def _checked(sample_weight: ArrayLike, n_rows: int) -> np.ndarray:
    """Return finite weights ≥ 0, one for each row and not all 0."""
    weight = np.asarray(sample_weight, dtype=np.float64)
    weight = np.full(n_rows, weight) if weight.ndim == 0 else weight
    if weight.shape != (n_rows,):
        raise ValueError(
            f"sample_weight must be one number for each of the {n_rows} rows of X; got an array of shape "
            f"{weight.shape}."
        )
    wrong = ~np.isfinite(weight) | (weight < 0)
    if wrong.any():
        raise ValueError(f"sample_weight must be finite numbers ≥ 0; got {weight[wrong][0]} for row {wrong.argmax()}.")
    n_positive = np.count_nonzero(weight)
    if n_positive < 2:
        raise ValueError(
            f"all weights but {n_positive} of sample_weight are zero; at least 2 rows are needed to learn a distance."
        )
    return weight
