"""Similarities that callers pass along with rows of a precomputed kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["checked_block", "refuse_similarities"]


def refuse_similarities(*given: Any) -> None:
    if any(block is not None for block in given):
        raise ValueError(
            "cross=, diag_x= and diag_y= are similarities under a kernel; this metric is linear and measures the rows "
            "alone. Leave them out."
        )


def checked_block(block: ArrayLike | None, shape: tuple[int, ...], what: str) -> np.ndarray | None:
    """Similarities that came with the rows."""
    if block is None:
        return None
    block = np.asarray(block, dtype=np.float64)
    if block.shape != shape:
        raise ValueError(f"{what}, of shape {shape}; got shape {block.shape}.")
    if not np.isfinite(block).all():
        raise ValueError(f"{what}, and contains NaN or infinity.")
    return block
