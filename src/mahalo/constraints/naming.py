"""What people call rows, as row numbers; and grades of documents, as what they say about distances."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np

from ..validation import as_indices

__all__ = ["as_same", "counted", "graded", "numbered", "ordered_by_grade"]

_SHOWN = 3


def numbered(values: Any, width: int, what: str, index: Any) -> np.ndarray:
    """(n, width) row numbers: the values themselves, or the places in `index` of the names they are."""
    if index is None:
        return as_indices(values, width, what)
    rows = [] if values is None else _rows_of(values)
    wrong = next((row for row in rows if len(row) != width), None)
    if wrong is not None:
        raise ValueError(f"{what} must hold {width} names in every row; got {wrong!r}.")
    return _places([name for row in rows for name in row], what, index).reshape(-1, width)


def _rows_of(values: Any) -> list[tuple]:
    """Of a sequence of rows, or of a frame, which would be gone through by the names of its columns."""
    if hasattr(values, "itertuples"):
        return list(values.itertuples(index=False, name=None))  # row numbers stay whole beside grades that are not
    return [tuple(row) for row in (values.to_numpy() if hasattr(values, "to_numpy") else values)]


def _places(names: list, what: str, index: Any) -> np.ndarray:
    place = {name: k for k, name in enumerate(index)}
    if len(place) < len(index):
        twice = [name for name, n in Counter(index).items() if n > 1]
        raise ValueError(f"index must name every row once; {_some(twice)} stand there more than once.")
    unknown = list(dict.fromkeys(name for name in names if name not in place))
    if unknown:
        raise ValueError(
            f"{what} name rows that are not in index: {_some(unknown)}. index= lists the names of all rows of X, in "
            "their order."
        )
    return np.array([place[name] for name in names], dtype=np.intp)


def _some(names: list) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(map(repr, names[:_SHOWN])) + more


def as_same(same: Any, n: int) -> np.ndarray:
    """n answers to "are these two alike?" from 0 and 1, or booleans."""
    answer = np.asarray(same)
    got = ""
    if answer.shape != (n,) or answer.dtype.kind not in "biuf":
        got = f"{answer.dtype} of shape {answer.shape}"
    elif not (known := np.isin(answer, (0, 1))).all():
        got = f"{answer[np.argmin(known)]} for pair {np.argmin(known)}"
    if got:
        raise ValueError(
            f"same must hold {n} values, one for each pair: 1 or True for alike, 0 or False for not; got {got}. Leave "
            "out pairs that nobody can tell."
        )
    return answer.astype(bool)


def graded(triples: Iterable, index: Any) -> tuple[np.ndarray, np.ndarray]:
    """(query, document) as row numbers, each once, and the grade of each."""
    rows = _rows_of(triples)
    wrong = next((row for row in rows if len(row) != 3), None)
    if wrong is not None:
        raise ValueError(f"triples must be (query, document, grade); got {wrong!r}.")
    pairs = numbered([row[:2] for row in rows], 2, "triples", index)
    grade = np.array([row[2] for row in rows], dtype=np.float64)
    if not np.isfinite(grade).all():
        raise ValueError("grades must be finite numbers, larger for better; got NaN or infinity. Leave such rows out.")
    for bad, reason in ((pairs[:, 0] == pairs[:, 1], "a row is no answer to itself"), (_graded_twice(pairs, grade))):
        if bad.any():
            raise ValueError(f"triple {rows[int(np.flatnonzero(bad)[0])]!r}: {reason}; drop it.")
    _, first = np.unique(pairs, axis=0, return_index=True)
    first.sort()
    return pairs[first], grade[first]


def _graded_twice(pairs: np.ndarray, grade: np.ndarray) -> tuple[np.ndarray, str]:
    if not len(pairs):
        return np.zeros(0, dtype=bool), ""
    _, first, where = np.unique(pairs, axis=0, return_index=True, return_inverse=True)
    return grade != grade[first[where.ravel()]], "this query and document have another grade already"


def ordered_by_grade(pairs: np.ndarray, grade: np.ndarray, most: int, rng: np.random.Generator) -> np.ndarray:
    """Triplets (query, better document, worse document), at most so many of a query, drawn at random."""
    found = [np.empty((0, 3), dtype=np.intp)]
    for query in np.unique(pairs[:, 0]):
        own = np.flatnonzero(pairs[:, 0] == query)
        better, worse = np.nonzero(grade[own][:, None] > grade[own])
        if len(better) > most:
            kept = np.sort(rng.choice(len(better), most, replace=False))
            better, worse = better[kept], worse[kept]
        documents = pairs[own, 1]
        found.append(np.column_stack([np.full(len(better), query), documents[better], documents[worse]]))
    return np.concatenate(found)


def counted(n_rows: int | None, index: Any) -> int | None:
    """The number of rows: given, or that of their names."""
    if index is None:
        return n_rows
    if n_rows is not None and n_rows != len(index):
        raise ValueError(f"index names {len(index)} rows, n_rows says {n_rows}; leave n_rows out.")
    return len(index)
