"""What callers pass along with rows: names of columns, similarities under a precomputed kernel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["check_names", "checked_block", "names_of_columns", "refuse_similarities"]


def check_names(about: Mapping[str, Any], *tables: Any) -> None:
    """Raise where a table has columns of other names, or in another order, than those noted down at the fit."""
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
    """Return the names of the columns as `mahalo fit` calls them, an empty list where none are noted.

    A column of values has one name for each value, a column of vectors one for each entry.
    """
    made = {name: [f"{name}={value}" for value in values] for name, values in (about.get("one_hot") or {}).items()}
    made |= {name: [f"{name}[{k}]" for k in range(length)] for name, length in (about.get("vectors") or {}).items()}
    return [name for column in about.get("columns") or () for name in made.get(column, [column])]


def _names_in(table: Any) -> list[str]:
    """Of the columns of a table, where all are text."""
    names = getattr(table, "columns", ())
    if isinstance(names, list) and not all(isinstance(name, str) for name in names):  # pyarrow has the values there
        names = getattr(table, "column_names", ())
    names = list(names)
    return names if all(isinstance(name, str) for name in names) else []


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
