"""Row numbers from names of rows, and checked answers for pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from ..validation import as_indices

_SHOWN = 3


def as_row_numbers(values: ArrayLike | None, width: int, what: str, index: Sequence[Hashable] | None) -> np.ndarray:
    """Return an (n, width) array of row numbers: the values, or the positions in `index` of values that are names."""
    if index is None:
        return as_indices(values, width, what)
    rows = [] if values is None else as_tuples(values)
    wrong = next((row for row in rows if len(row) != width), None)
    if wrong is not None:
        raise ValueError(f"{what} must hold {width} names in every row; got {wrong!r}.")
    return _positions([name for row in rows for name in row], what, index).reshape(-1, width)


def as_tuples(values: ArrayLike | Iterable[Sequence]) -> list[tuple]:
    """Return the rows of a sequence or of a data frame as tuples."""
    if hasattr(values, "itertuples"):
        return list(values.itertuples(index=False, name=None))  # keeps integers beside a column of floats
    rows = values.to_numpy() if hasattr(values, "to_numpy") else values
    return [tuple(row) for row in cast(Iterable[Sequence], rows)]


def _positions(names: list[Hashable], what: str, index: Sequence[Hashable]) -> np.ndarray:
    position = {name: k for k, name in enumerate(index)}
    if len(position) < len(index):
        repeated = [name for name, n in Counter(index).items() if n > 1]
        raise ValueError(f"index must name every row once; {_first_few(repeated)} occur more than once.")
    unknown = list(dict.fromkeys(name for name in names if name not in position))
    if unknown:
        raise ValueError(
            f"{what} name rows that are not in index: {_first_few(unknown)}. index= lists the names of all rows of X, "
            "in their order."
        )
    return np.array([position[name] for name in names], dtype=np.intp)


def _first_few(names: list[Hashable]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(map(repr, names[:_SHOWN])) + more


def as_same_mask(same: ArrayLike, n: int) -> np.ndarray:
    """Return n answers for pairs, 0 and 1 or booleans, as a mask of similar pairs."""
    answer = np.asarray(same)
    got = ""
    if answer.shape != (n,) or answer.dtype.kind not in "biuf":
        got = f"{answer.dtype} of shape {answer.shape}"
    elif not (valid := np.isin(answer, (0, 1))).all():
        got = f"{answer[np.argmin(valid)]} for pair {np.argmin(valid)}"
    if got:
        raise ValueError(
            f"same must hold {n} values, one for each pair: 1 or True for similar, 0 or False for dissimilar; got "
            f"{got}. Leave out pairs without an answer."
        )
    return answer.astype(bool)


def resolve_row_count(n_rows: int | None, index: Sequence[Hashable] | None) -> int | None:
    """Return `n_rows`, or the number of names in `index`; raise ValueError if they differ."""
    if index is None:
        return n_rows
    if n_rows is not None and n_rows != len(index):
        raise ValueError(f"index names {len(index)} rows, but n_rows is {n_rows}; leave n_rows out.")
    return len(index)
