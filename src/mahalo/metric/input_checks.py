"""Checks of rows and column names that a metric is given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_array

from ..rows import is_lazy
from ..types import Matrix, RowsLike
from ..validation import as_objects, at_least_single

if TYPE_CHECKING:
    from .metric import Metric


def checked_rows(metric: Metric, X: RowsLike) -> Matrix:
    """Return rows as a finite array, CSR array or array of objects; raise if they are not like the training rows."""
    if is_lazy(X):
        raise ValueError(
            "rows on Dask are taken by transform, distances, pair_distances and kneighbors; for all else pass "
            "X.compute(), or some of the rows."
        )
    coordinates = metric.coordinates
    if coordinates.takes_objects:
        return as_objects(X)
    check_names(metric.column_names, X)
    precomputed, n_features = coordinates.is_precomputed, metric.n_features
    accept_sparse = "csr" if not precomputed and metric.features is None else False
    rows = check_array(at_least_single(X), accept_sparse=accept_sparse, dtype=[np.float64, np.float32])
    n_columns = rows.shape[1]
    if n_columns != n_features and precomputed:
        raise ValueError(
            f"X must hold similarities to the {n_features} training rows, one column each; it has {n_columns} columns."
        )
    if n_columns != n_features:
        raise ValueError(f"X has {n_columns} features, but this metric was learned on {n_features} features.")
    return (
        sp.csr_array(rows) if sp.issparse(rows) else rows
    )  # the older csr_matrix would make np.matrix of a difference


def check_names(wanted: list[str], *tables: object) -> None:
    """Raise ValueError if a table's column names, or their order, differ from those at the fit."""
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


def _names_in(table: object) -> list[str]:
    """Return the column names if all are strings, else an empty list."""
    names = getattr(table, "columns", ())
    if isinstance(names, list) and not all(isinstance(name, str) for name in names):  # pyarrow has the values there
        names = getattr(table, "column_names", ())
    names = list(names)
    return names if all(isinstance(name, str) for name in names) else []
