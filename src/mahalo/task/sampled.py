"""Rows that do not fit into memory: those of them that a fit looks at, with what it must know of all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..constraints import Constraints, labels_by_appearance, reject_constraints
from ..rows import Needs, SampledRows
from ..validation import as_generator, is_linear

__all__ = ["sampled"]


def sampled(
    settings: Any,
    X: Any,
    y: Any,
    constraints: Constraints | None,
    needs: Callable[[bool, int], Needs],
    show: Callable[[str], None] | None,
) -> SampledRows:
    """Rows on Dask that are constrained or drawn, and moments of all, as `needs` says (sparse? how many columns?)."""
    from ..rows.dask import DaskRows

    if not is_linear(settings.kernel):
        raise ValueError(
            f"kernel={settings.kernel!r} needs rows in memory; with rows on Dask use kernel='linear', or fit on some "
            "of them, such as X[:10_000].compute()."
        )
    reject_constraints(y)
    lazy = DaskRows(X, y, labels_by_appearance, show)
    wanted = np.empty(0, dtype=np.int64)
    if constraints is not None:
        constraints.check_rows(lazy.n_total)
        wanted = np.unique(np.maximum(constraints.edges()[1], 0))  # −1, the origin, is no row
    seed = int(as_generator(settings.random_state).integers(2**63))
    return lazy.sampled(needs(lazy.sparse, lazy.n_columns), wanted, seed)
