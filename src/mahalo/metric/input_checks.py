"""Checks of rows, column names and similarities that a metric is given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.utils import check_array

from ..rows import is_lazy
from ..validation import as_objects, at_least_single

if TYPE_CHECKING:
    from .metric import Metric

CROSS = "cross must be κ0 of the rows of X and Y"

__all__ = [
    "CROSS",
    "check_names",
    "checked_block",
    "checked_rows",
    "names_of_columns",
    "refuse_similarities",
    "require_similarities",
]


def checked_rows(X: Any, metric: Metric, about: Mapping[str, Any]) -> Any:
    """Return rows as a finite array, CSR array or array of objects; raise if they are not like the training rows."""
    if is_lazy(X):
        raise ValueError(
            "rows on Dask are taken by transform, distances, pair_distances and kneighbors; for all else pass "
            "X.compute(), or some of the rows."
        )
    coordinates = metric.coordinates
    if coordinates.takes_objects:
        return as_objects(X)
    check_names(about, X)
    precomputed, n_features = coordinates.is_precomputed, metric.n_features
    accept_sparse = "csr" if not precomputed and metric.features is None else False
    X = check_array(at_least_single(X), accept_sparse=accept_sparse, dtype=[np.float64, np.float32])
    if X.shape[1] != n_features and precomputed:
        raise ValueError(
            f"X must hold similarities to the {n_features} training rows, one column each; it has {X.shape[1]} columns."
        )
    if X.shape[1] != n_features:
        raise ValueError(f"X has {X.shape[1]} features, but this metric was learned on {n_features} features.")
    return sp.csr_array(X) if sp.issparse(X) else X  # the older csr_matrix would make np.matrix of a difference


def check_names(about: Mapping[str, Any], *tables: Any) -> None:
    """Raise ValueError if a table's column names, or their order, differ from those at the fit."""
    wanted = names_of_columns(about)
    for given in map(_names_in, tables):
        if not wanted or not given or given == wanted:
            continue
        lacking = next((name for name in wanted if name not in given), None)
        if lacking is not None:
            raise ValueError(
                f"X has no column {lacking!r}, one of the {len(wanted)} that this metric was learned on; its first is "
                f"{given[0]!r}. Give a table of the same columns, or an array if only the names are others."
            )
        k = next((k for k, pair in enumerate(zip(given, wanted, strict=False)) if pair[0] != pair[1]), len(wanted))
        learned = f"was learned on {wanted[k]!r} there. Reorder" if k < len(wanted) else "has none there. Drop it"
        names = repr(wanted) if len(wanted) <= 5 else f"[{', '.join(map(repr, wanted[:3]))}, …]"
        raise ValueError(f"column {k} of X is {given[k]!r}; this metric {learned}: X[names], names = {names}.")


def names_of_columns(about: Mapping[str, Any]) -> list[str]:
    """Return the column names stored at the fit; empty if none are stored.

    A column of values has one name for each value, a column of vectors one for each entry.
    """
    made = {name: [f"{name}={value}" for value in values] for name, values in (about.get("one_hot") or {}).items()}
    made |= {name: [f"{name}[{k}]" for k in range(length)] for name, length in (about.get("vectors") or {}).items()}
    return [name for column in about.get("columns") or () for name in made.get(column, [column])]


def _names_in(table: Any) -> list[str]:
    """Return the column names if all are strings, else an empty list."""
    names = getattr(table, "columns", ())
    if isinstance(names, list) and not all(isinstance(name, str) for name in names):  # pyarrow has the values there
        names = getattr(table, "column_names", ())
    names = list(names)
    return names if all(isinstance(name, str) for name in names) else []


def require_similarities(cross: Any, diag_x: Any, diag_y: Any, *, itself: bool) -> None:
    """Raise ValueError if similarities that a precomputed kernel cannot compute are missing."""
    if cross is None:
        raise ValueError(
            "with a precomputed kernel, similarities between the rows compared cannot be computed; pass cross=, "
            "κ0 between the rows of X and the rows of Y."
        )
    if not itself and (diag_x is None or diag_y is None):
        raise ValueError("with a precomputed kernel pass diag_x= and diag_y=, κ0 of each row with itself.")


def refuse_similarities(*blocks: Any) -> None:
    """Raise ValueError if similarities are passed to a linear metric."""
    if any(block is not None for block in blocks):
        raise ValueError(
            "cross=, diag_x= and diag_y= are similarities under a kernel; this metric is linear and measures the rows "
            "alone. Leave them out."
        )


def checked_block(block: ArrayLike | None, shape: tuple[int, ...], what: str) -> np.ndarray | None:
    """Return similarities as a finite float64 array of this shape; None stays None."""
    if block is None:
        return None
    block = np.asarray(block, dtype=np.float64)
    if block.shape != shape:
        raise ValueError(f"{what}, of shape {shape}; got shape {block.shape}.")
    if not np.isfinite(block).all():
        raise ValueError(f"{what}, and contains NaN or infinity.")
    return block
