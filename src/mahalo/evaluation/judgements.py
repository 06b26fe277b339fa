"""Judgements of searches: which documents are relevant to which queries, and how much."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from ..constraints.row_names import as_row_numbers, as_tuples
from ..validation import warn


@dataclass(frozen=True, eq=False)
class Judgements:
    """Distinct pairs of a query and a document, by row number, and their grades; relevant if the grade is above 0."""

    query: np.ndarray
    document: np.ndarray
    grade: np.ndarray
    n_queries: int
    n_documents: int

    @property
    def queries(self) -> np.ndarray:
        """Row numbers of the queries that have judgements, in increasing order."""
        return np.unique(self.query)

    def relevant(self) -> Judgements:
        """Return the judgements with a grade above 0."""
        return self.select(self.grade > 0)

    def select(self, mask: np.ndarray) -> Judgements:
        """Return the judgements of a mask."""
        return Judgements(self.query[mask], self.document[mask], self.grade[mask], self.n_queries, self.n_documents)

    def matrix(self) -> sp.csr_array:
        """Return the grades as a sparse matrix, queries × documents; judgements of grade 0 are stored."""
        return sp.csr_array((self.grade, (self.query, self.document)), shape=(self.n_queries, self.n_documents))

    def components(self) -> np.ndarray:
        """Return, for every query row, the number of its connected component: queries that share documents."""
        n = self.n_queries + self.n_documents
        edges = sp.coo_array((np.ones(len(self.query)), (self.query, self.n_queries + self.document)), shape=(n, n))
        return connected_components(edges, directed=False)[1][: self.n_queries]


def read_judgements(
    relevance: Iterable[Sequence],
    n_queries: int,
    n_documents: int,
    query_index: Sequence[Hashable] | None = None,
    document_index: Sequence[Hashable] | None = None,
) -> Judgements:
    """Return checked judgements of (query, document) or (query, document, grade) rows; a missing grade is 1.

    Rows name queries and documents by row number, or by their names in `query_index` and `document_index`. Warn of
    queries without a relevant document; raise ValueError if no query has one.
    """
    rows = as_tuples(relevance)
    wrong = next((row for row in rows if len(row) not in (2, 3)), None)
    if wrong is not None:
        raise ValueError(f"relevance must hold (query, document) or (query, document, grade) rows; got {wrong!r}.")
    query = _rows_of([row[0] for row in rows], query_index, n_queries, "query", "queries")
    document = _rows_of([row[1] for row in rows], document_index, n_documents, "document", "documents")
    grade = _grades([row[2] if len(row) == 3 else 1.0 for row in rows])
    order = np.lexsort((document, query))
    same = (np.diff(query[order]) == 0) & (np.diff(document[order]) == 0)
    differs = same & (np.diff(grade[order]) != 0)
    if differs.any():
        row = rows[order[1:][differs][0]]
        raise ValueError(f"relevance {row!r}: this query and document have another grade already; keep one of them.")
    keep = order[np.append(True, ~same)] if len(order) else order
    found = Judgements(query[keep], document[keep], grade[keep], n_queries, n_documents)
    return _require_relevant(found, query_index)


def _rows_of(names: list[Any], index: Sequence[Hashable] | None, n_rows: int, what: str, table: str) -> np.ndarray:
    if index is not None and len(index) != n_rows:
        raise ValueError(f"{what}_index must name the {n_rows} rows of {table}; got {len(index)} names.")
    try:
        found = as_row_numbers([(name,) for name in names], 1, f"relevance ({what})", index).ravel()
    except ValueError as error:
        hint = str(error).replace("index=", f"{what}_index=").replace("rows of X", f"rows of {table}")
        raise ValueError(hint.replace("index must name", f"{what}_index must name")) from None
    if len(found) and found.max() >= n_rows:
        raise ValueError(f"relevance names {what} {found.max()}, but {table} has {n_rows} rows, counted from 0.")
    return found


def _grades(values: list[Any]) -> np.ndarray:
    try:
        grade = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError("grades must be numbers, above 0 for relevant documents; got text or other values.") from None
    if not np.isfinite(grade).all():
        raise ValueError("grades must be finite numbers; got NaN or infinity. Leave such rows out.")
    return grade


def _require_relevant(found: Judgements, query_index: Sequence[Hashable] | None) -> Judgements:
    """Warn of judged queries without a relevant document; raise ValueError if none has one."""
    relevant = found.relevant().queries
    if not len(relevant):
        raise ValueError(
            f"no query has a relevant document: none of the {len(found.query)} grades is above 0. Give relevant "
            "documents a grade above 0."
        )
    without = np.setdiff1d(found.queries, relevant)
    if len(without):
        first = int(without[0]) if query_index is None else query_index[without[0]]
        count = "1 query has" if len(without) == 1 else f"{len(without)} queries have"
        warn(f"{count} no relevant document (grade above 0); left out, the first is {first!r}.")
    return found
