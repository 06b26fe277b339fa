"""Pairs and triplets from a file, by row number or by id."""

from __future__ import annotations

from typing import Any

import numpy as np

from mahalo.constraints import Constraints

from .reading import Table, float_array, read, some

__all__ = ["read_asked", "read_constraints"]

_GRADES = ("grade", "relevance", "score")
_SAME = ("same", "label")  # 1 for a similar pair, 0 for a dissimilar one


def read_constraints(
    pairs: str | None, triplets: str | None, n_rows: int, ids: list[str] | None, encoding: str = "utf-8"
) -> Constraints | None:
    """Of both files, where there are any; rows are named by `ids`, or numbered."""
    given = [] if pairs is None else [_read_pairs(pairs, n_rows, ids, encoding)]
    given += [] if triplets is None else [_read_triplets(triplets, n_rows, ids, encoding)]
    if not given:
        return None
    return given[0] if len(given) == 1 else given[0] + given[1]


def read_asked(file: str, n_rows: int, ids: list[str] | None, encoding: str = "utf-8") -> np.ndarray:
    """Pairs of row numbers, in the order of the file, whatever it says about them."""
    table = _read(file, encoding)
    columns = _columns(table)
    for name in _verdicts(table):
        columns.pop(name, None)
    return _ends(table, columns, 2, n_rows, ids)


def _verdicts(table: Table) -> tuple[str, ...]:
    """Return the names of columns that may say which pairs are similar; `label` only beside two other columns."""
    if table.frame is None:
        return ("column 2",)
    return (*_SAME, *_GRADES) if len(table.names) > 2 else ("same", *_GRADES)


def _read_pairs(file: str, n_rows: int, ids: list[str] | None, encoding: str) -> Constraints:
    """Return the constraints of a file of two columns that name rows, and one that says which pairs are similar.

    That is `same` or `label`, 1 for similar pairs and 0 for dissimilar ones, or a grade, larger for more similar; in
    arrays the third column. Without it all pairs are similar.
    """
    table = _read(file, encoding)
    columns = _columns(table)
    said = next((name for name in _verdicts(table) if name in columns), None)
    values = columns.pop(said) if said is not None else None
    ends = _ends(table, columns, 2, n_rows, ids)
    if said is None:
        return Constraints.from_pairs(ends, n_rows=n_rows)
    verdict, graded = _verdict(table, said, values)
    if graded:
        triples = [(int(a), int(b), float(grade)) for (a, b), grade in zip(ends, verdict, strict=True)]
        return Constraints.from_relevance(triples, n_rows=n_rows, random_state=0)
    return Constraints.from_pairs(ends, same=verdict.astype(int), n_rows=n_rows)


def _read_triplets(file: str, n_rows: int, ids: list[str] | None, encoding: str) -> Constraints:
    """Three columns: the first row is more like the second than like the third."""
    table = _read(file, encoding)
    return Constraints.from_triplets(_ends(table, _columns(table), 3, n_rows, ids), n_rows=n_rows)


def _read(file: str, encoding: str) -> Table:
    return read([file], encoding=encoding, numbers=(), say=lambda text: None)


def _columns(table: Table) -> dict[str, list[Any]]:
    """By name, those of arrays by number."""
    if table.frame is not None:
        return {name: table.frame.column(name).to_pylist() for name in table.names}
    return {f"column {k}": column.tolist() for k, column in enumerate(np.asarray(table.matrix).T)}


def _ends(table: Table, columns: dict[str, list[Any]], width: int, n_rows: int, ids: list[str] | None) -> np.ndarray:
    if len(columns) != width:
        grade = " beside 'same' or 'grade'" if width == 2 else ""
        raise ValueError(
            f"{table.source} has {len(columns)} columns that may name rows: {some(list(columns))}; wanted {width}"
            f"{grade}. {_remedy(columns, width)}"
        )
    ends = np.empty((table.n_rows, width), dtype=object)
    for k, values in enumerate(columns.values()):
        ends[:, k] = values
    return _by_number(ends, table.source, n_rows) if ids is None else _by_id(ends, table.source, ids)


def _remedy(columns: dict[str, list[Any]], width: int) -> str:
    """Return what to do about columns that are too many or too few to name rows."""
    if len(columns) < width:
        return "Add one for each row that is named."
    answers = [name for name, values in columns.items() if {str(value) for value in values} <= {"0", "1"}]
    if width == 2 and len(columns) == 3 and len(answers) == 1:
        return f"If {answers[0]!r} holds 1 for similar pairs and 0 for others, call it 'same'; else leave it out."
    return "Leave the others out (pandas writes none of its own with index=False)."


def _by_id(ends: np.ndarray, source: str, ids: list[str]) -> np.ndarray:
    place = {name: k for k, name in enumerate(ids)}
    names = [str(name) for name in ends.ravel()]
    unknown = list(dict.fromkeys(name for name in names if name not in place))
    if unknown:
        raise ValueError(
            f"{source} names {len(unknown):,} ids that no row has: {some(unknown)}. Ids of the table are like "
            f"{some(ids[:2])}."
        )
    return np.array([place[name] for name in names], dtype=np.intp).reshape(ends.shape)


def _by_number(ends: np.ndarray, source: str, n_rows: int) -> np.ndarray:
    flat = float_array(ends.ravel().tolist())
    if flat is None or not (flat == np.floor(flat)).all():
        raise ValueError(f"{source} must name rows by number, from 0 on; for names of rows give --id or --ids too.")
    numbers = flat.reshape(ends.shape)
    outside = numbers[(numbers < 0) | (numbers >= n_rows)]
    if len(outside):
        raise ValueError(
            f"{source} names row {int(outside[0])}; rows are numbered from 0 to {n_rows - 1}. For names of rows give "
            "--id or --ids too."
        )
    return numbers.astype(np.intp)


def _verdict(table: Table, name: str, given: Any) -> tuple[np.ndarray, bool]:
    """What is said about each pair, and whether it is a grade."""
    what = "the third column" if table.frame is None else repr(name)
    values = float_array(given)
    if values is None or not np.isfinite(values).all():
        raise ValueError(f"{what} of {table.source} must hold 1 (alike) and 0 (not), or grades, in every row.")
    binary = bool(np.isin(values, (0, 1)).all())
    if name in _SAME and not binary:
        odd = values[~np.isin(values, (0, 1))][0]
        raise ValueError(f"{name!r} of {table.source} must hold 0 and 1; got {odd:g}. Call grades 'grade'.")
    return values, name in _GRADES or not binary
