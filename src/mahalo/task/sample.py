"""Sample of rows that do not fit into memory, with the moments of all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..constraints import Constraints, labels_by_appearance, reject_constraints
from ..progress import Progress
from ..rows import Needs, SampledRows
from ..validation import as_generator
from .settings import FitSettings


def sample_lazy_rows(
    settings: FitSettings,
    X: Any,
    y: Any,
    constraints: Constraints | None,
    needs: Callable[[bool, int], Needs],
    progress: Progress,
) -> SampledRows:
    """Return constrained and randomly drawn rows of a Dask collection, with moments of all its rows.

    ``needs(sparse, n_columns)`` says which moments the fit needs.
    """
    from ..rows.dask import DaskRows

    check_suits_dask(settings)
    reject_constraints(y)
    lazy = DaskRows(X, y, labels_by_appearance, progress.show if progress else None)
    wanted = np.empty(0, dtype=np.int64)
    if constraints is not None:
        constraints.check_rows(lazy.n_total)
        wanted = np.unique(np.maximum(constraints.edges()[1], 0))  # −1, the origin, is no row
    seed = int(as_generator(settings.random_state).integers(2**63))
    return lazy.sampled(needs(lazy.sparse, lazy.n_columns), wanted, seed)


def check_suits_dask(settings: FitSettings) -> None:
    """Raise ValueError if the settings have a kernel or features, which need rows in memory."""
    if settings.features is not None:
        raise ValueError("features need rows in memory; with rows on Dask use features=None, or X.compute().")
    if not settings.is_linear:
        raise ValueError(
            f"kernel={settings.kernel!r} needs rows in memory; with rows on Dask use kernel='linear', or fit on some "
            "of them, such as X[:10_000].compute()."
        )
