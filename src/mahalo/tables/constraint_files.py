"""Pairs and triplets of rows from a file, by row number or by id."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..constraints import Constraints
from .formatting import escape_formula, float_array, list_some
from .options import DEFAULT_FORMAT, RowOptions, TextFormat
from .table import ReadOptions, Table, read_table

_GRADES = ("grade", "relevance", "score")
_SAME = ("same", "label")  # 1 for a similar pair, 0 for a dissimilar one
_ENDS = ("first", "second")
_Columns = dict[str, list[object]]


def read_constraints(options: RowOptions, n_rows: int, ids: list[str] | None) -> Constraints | None:
    """Return the constraints of both files, or None without files; rows are named by `ids`, or numbered."""
    found = [] if options.pairs is None else [_read_pairs(options.pairs, n_rows, ids, options.text_format)]
    if options.triplets is not None:
        table, columns = _read_columns(options.triplets, options.text_format)
        found.append(Constraints.from_triplets(_row_numbers(table, columns, 3, n_rows, ids), n_rows=n_rows))
    return None if not found else found[0] if len(found) == 1 else found[0] + found[1]


def read_pair_rows(file: str, n_rows: int, ids: list[str] | None, form: TextFormat = DEFAULT_FORMAT) -> np.ndarray:
    """Return pairs of row numbers in the order of the file; a column of answers is ignored."""
    table, columns = _read_columns(file, form)
    for name in _answer_columns(table):
        columns.pop(name, None)
    return _row_numbers(table, columns, 2, n_rows, ids)


def read_labelled_pairs(
    file: str, sides: Sequence[tuple[int, list[str] | None]], form: TextFormat = DEFAULT_FORMAT
) -> tuple[np.ndarray, np.ndarray]:
    """Return pairs of row numbers and their answers, True for the same; pairs without an answer are left out.

    `sides` are the number of rows and the ids of the table that the first column names, and of that of the second.
    Columns called `first` and `second` are these two, if a file has them; then others are ignored.
    """
    table, columns = _read_columns(file, form)
    name = next((name for name in _answer_columns(table) if name in columns), None)
    if name is None:
        raise ValueError(f"{table.source} has no column 'same' with 1 for pairs that are the same and 0 for others.")
    values = columns.pop(name)
    columns = {key: columns[key] for key in _ENDS} if set(_ENDS) <= set(columns) else columns
    _check_width(table, columns, 2)
    answered = [k for k, value in enumerate(values) if value not in (None, "")]
    if not answered:
        raise ValueError(f"no pair of {table.source} is labelled; write 1 or 0 into {name!r}.")
    answers, graded = _parse_answers(table, name, [values[k] for k in answered])
    if graded:
        raise ValueError(f"{name!r} of {table.source} must hold 1 for the same and 0 for different pairs, not grades.")
    ends = []
    for column, (n_rows, ids) in zip(columns.values(), sides, strict=True):
        own = np.array([[column[k]] for k in answered], dtype=object)
        ends.append(_check_numbers(own, table.source, n_rows) if ids is None else _find_ids(own, table.source, ids))
    return np.hstack(ends), answers.astype(bool)


def _answer_columns(table: Table) -> tuple[str, ...]:
    """Return the names of columns that may tell similar from dissimilar pairs; `label` only beside two others."""
    if table.frame is None:
        return ("column 2",)
    return (*_SAME, *_GRADES) if len(table.names) > 2 else ("same", *_GRADES)


def _read_pairs(file: str, n_rows: int, ids: list[str] | None, form: TextFormat) -> Constraints:
    """Return the constraints of a file of two columns that name rows, and one of answers.

    The answers are `same` or `label`, 1 for similar pairs and 0 for dissimilar ones, or a grade, larger for more
    similar; in arrays the third column. Without it all pairs are similar.
    """
    table, columns = _read_columns(file, form)
    name = next((name for name in _answer_columns(table) if name in columns), None)
    values = columns.pop(name) if name is not None else []
    ends = _row_numbers(table, columns, 2, n_rows, ids)
    if name is None:
        return Constraints.from_pairs(ends, n_rows=n_rows)
    answers, graded = _parse_answers(table, name, values)
    if graded:
        triples = [(int(a), int(b), float(grade)) for (a, b), grade in zip(ends, answers, strict=True)]
        return Constraints.from_relevance(triples, n_rows=n_rows, random_state=0)
    return Constraints.from_pairs(ends, same=answers.astype(int), n_rows=n_rows)


def _read_columns(file: str, form: TextFormat) -> tuple[Table, _Columns]:
    """Return a file's table and its columns by name, those of arrays by number."""
    table = read_table([file], ReadOptions(form, numbers=()))
    if table.frame is not None:
        return table, {name: table.column(name).to_pylist() for name in table.names}
    return table, {f"column {k}": column.tolist() for k, column in enumerate(np.asarray(table.matrix).T)}


def _row_numbers(table: Table, columns: _Columns, width: int, n_rows: int, ids: list[str] | None) -> np.ndarray:
    _check_width(table, columns, width)
    ends = np.empty((table.n_rows, width), dtype=object)
    for k, values in enumerate(columns.values()):
        ends[:, k] = values
    return _check_numbers(ends, table.source, n_rows) if ids is None else _find_ids(ends, table.source, ids)


def _check_width(table: Table, columns: _Columns, width: int) -> None:
    """Raise ValueError unless as many columns as rows are named are left."""
    if len(columns) != width:
        grade = " beside 'same' or 'grade'" if width == 2 else ""
        raise ValueError(
            f"{table.source} has {len(columns)} columns that may name rows: {list_some(list(columns))}; wanted {width}"
            f"{grade}. {_remedy(columns, width)}"
        )


def _remedy(columns: _Columns, width: int) -> str:
    """Return the advice for too many or too few columns."""
    if len(columns) < width:
        return "Add one for each row that is named."
    answers = [name for name, values in columns.items() if {str(value) for value in values} <= {"0", "1"}]
    if width == 2 and len(columns) == 3 and len(answers) == 1:
        return f"If {answers[0]!r} holds 1 for similar pairs and 0 for others, call it 'same'; else leave it out."
    return "Leave the others out (pandas writes none of its own with index=False)."


def _find_ids(ends: np.ndarray, source: str, ids: list[str]) -> np.ndarray:
    """Return the row number of each id, also of one that was written with an apostrophe for spreadsheets."""
    place = {name: k for k, name in enumerate(ids)}
    place = {escape_formula(name): k for name, k in place.items()} | place
    names = [str(name) for name in ends.ravel()]
    unknown = list(dict.fromkeys(name for name in names if name not in place))
    if unknown:
        raise ValueError(
            f"{source} names {len(unknown):,} ids that no row has: {list_some(unknown)}. Ids of the table are like "
            f"{list_some(ids[:2])}."
        )
    return np.array([place[name] for name in names], dtype=np.intp).reshape(ends.shape)


def _check_numbers(ends: np.ndarray, source: str, n_rows: int) -> np.ndarray:
    flat = float_array(ends.ravel().tolist())
    if flat is None or not (flat == np.floor(flat)).all():
        raise ValueError(f"{source} must name rows by number, from 0 on; for names of rows give --id or --ids too.")
    outside = flat[(flat < 0) | (flat >= n_rows)]
    if len(outside):
        raise ValueError(
            f"{source} names row {int(outside[0])}; rows are numbered from 0 to {n_rows - 1}. For names of rows give "
            "--id or --ids too."
        )
    return flat.reshape(ends.shape).astype(np.intp)


def _parse_answers(table: Table, name: str, answers: list[object]) -> tuple[np.ndarray, bool]:
    """Return the answer for each pair, and whether answers are grades."""
    what = "the third column" if table.frame is None else repr(name)
    values = float_array(answers)
    if values is None or not np.isfinite(values).all():
        raise ValueError(f"{what} of {table.source} must hold 1 (similar) and 0 (dissimilar), or grades, in every row.")
    odd = values[~np.isin(values, (0, 1))]
    if name in _SAME and len(odd):
        raise ValueError(f"{name!r} of {table.source} must hold 0 and 1; got {odd[0]:g}. Call grades 'grade'.")
    return values, name in _GRADES or len(odd) > 0
