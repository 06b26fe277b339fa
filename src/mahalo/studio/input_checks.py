"""Checks of the arguments of a session."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_array

from ..validation import check_magnitude


def checked_rows(X: ArrayLike) -> np.ndarray:
    """Return X as a matrix of finite numbers, whose squares are finite, in single or double precision."""
    if hasattr(X, "tocsr"):
        raise ValueError("X is sparse; a session takes a dense array. Reduce it first, e.g. with TruncatedSVD.")
    rows = np.asarray(check_array(X, dtype=[np.float64, np.float32], ensure_min_samples=3))
    check_magnitude(rows)
    return rows


def checked_kinds(kinds: Sequence[str]) -> tuple[str, ...]:
    kinds = (kinds,) if isinstance(kinds, str) else tuple(kinds)
    if not kinds or set(kinds) - {"pair", "triplet"}:
        raise ValueError(f"kinds must be ('pair',), ('triplet',) or both; got {kinds!r}.")
    return tuple(kind for kind in ("pair", "triplet") if kind in kinds)


def checked_seed(seed: int) -> int:
    """Return a whole number from 0; raise ValueError for anything else."""
    if not isinstance(seed, (int, np.integer)) or seed < 0:
        raise ValueError(f"random_state must be a whole number from 0; got {seed!r}.")
    return int(seed)
