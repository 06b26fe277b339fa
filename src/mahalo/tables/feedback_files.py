"""Judged searches from a file: a query, a document and a grade in each row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .formatting import float_array, list_some
from .options import DEFAULT_FORMAT, TextFormat
from .table import ReadOptions, Table, read_table

_NAMES = ("query", "document", "grade")


@dataclass(frozen=True)
class JudgedQueries:
    """Queries, and judgements: a query, a document by its id, or by its row number without ids, and a grade.

    `queries` are texts, or, if `are_rows`, ids of rows of the table of documents.
    """

    source: str
    queries: tuple[str, ...]
    relevance: tuple[tuple[str, object, float], ...]
    are_rows: bool


def read_feedback(
    file: str, ids: Sequence[str] | None, n_rows: int, form: TextFormat = DEFAULT_FORMAT
) -> JudgedQueries:
    """Return the judgements of a table with the columns `query`, `document` and, if there is one, `grade`.

    Other names are taken in this order. Documents are named by `ids`, or by row numbers from 0 without ids. A document
    is relevant if its grade is above 0, or if there is no grade. Queries are texts, unless all are ids of documents.
    """
    table = read_table([file], ReadOptions(form, numbers=()))
    query, document, grade = _columns(table)
    if not all(text.strip() for text in query):
        row = next(k for k, text in enumerate(query) if not text.strip())
        raise ValueError(f"row {row} of {table.source} has no query (the first row is 0); fill it in, or remove it.")
    documents = _check_documents(table, document, ids, n_rows)
    relevance = tuple(zip(query, documents, _grades(table, grade), strict=True))
    are_rows = ids is not None and set(query) <= set(ids)
    return JudgedQueries(table.source, tuple(dict.fromkeys(query)), relevance, are_rows)


def _columns(table: Table) -> tuple[list[str], list[str], list[str] | None]:
    """Return queries, documents and grades as texts; grades may be absent."""
    if table.frame is None or len(table.names) < 2:
        has = "is an array" if table.frame is None else f"has the column {list_some(table.names)}"
        raise ValueError(f"{table.source} {has}; wanted a table with the columns query, document and grade.")
    named = set(_NAMES[:2]) <= set(table.names)
    if not named and len(table.names) > 3:
        raise ValueError(
            f"{table.source} has {len(table.names)} columns: {list_some(table.names)}; wanted query, document and "
            "grade, by these names or in this order."
        )
    names = [name for name in _NAMES if name in table.names] if named else table.names
    values = [["" if value is None else str(value) for value in table.column(name).to_pylist()] for name in names]
    return values[0], values[1], values[2] if len(values) == 3 else None


def _check_documents(
    table: Table, document: list[str], ids: Sequence[str] | None, n_rows: int
) -> Sequence[str] | Sequence[int]:
    """Return documents as ids, or as row numbers where there are none; raise ValueError if one is unknown."""
    if ids is None:
        found = float_array(document)
        if found is None or not (found == np.floor(found)).all():
            raise ValueError(
                f"{table.source} must name documents by row number from 0; for their ids give --id or --ids."
            )
        outside = found[(found < 0) | (found >= n_rows)]
        if len(outside):
            raise ValueError(
                f"{table.source} names document {int(outside[0])}; rows are numbered from 0 to {n_rows - 1}."
            )
        return found.astype(int).tolist()
    known = set(ids)
    unknown = [name for name in dict.fromkeys(document) if name not in known]
    if unknown:
        raise ValueError(
            f"{table.source} names {len(unknown):,} documents that no row has: {list_some(unknown)}. Ids of the table "
            f"are like {list_some(ids[:2])}."
        )
    return document


def _grades(table: Table, grade: list[str] | None) -> list[float]:
    if grade is None:
        return [1.0] * table.n_rows
    values = float_array(grade)
    if values is None or not np.isfinite(values).all():
        raise ValueError(f"the grades of {table.source} must be numbers, above 0 for relevant documents, in every row.")
    return values.tolist()
