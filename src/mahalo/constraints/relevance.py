"""Relevance grades of documents for queries, and the triplets that they imply."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

import numpy as np

from ..validation import check_count
from .row_names import as_row_numbers, as_tuples


def check_grades(triples: Iterable[Sequence], index: Sequence[Hashable] | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct (query, document) pairs as row numbers, and the grade of each."""
    rows = as_tuples(triples)
    wrong = next((row for row in rows if len(row) != 3), None)
    if wrong is not None:
        raise ValueError(f"triples must be (query, document, grade); got {wrong!r}.")
    pairs = as_row_numbers([row[:2] for row in rows], 2, "triples", index)
    grade = np.array([row[2] for row in rows], dtype=np.float64)
    if not np.isfinite(grade).all():
        raise ValueError("grades must be finite numbers, larger for better; got NaN or infinity. Leave such rows out.")
    _, first, group = np.unique(pairs, axis=0, return_index=True, return_inverse=True)
    checks = (
        (pairs[:, 0] == pairs[:, 1], "a row is not an answer to itself"),
        (grade != grade[first[group.ravel()]], "this query and document have another grade already"),
    )
    for bad, reason in checks:
        if bad.any():
            raise ValueError(f"triple {rows[int(np.flatnonzero(bad)[0])]!r}: {reason}; drop it.")
    first.sort()
    return pairs[first], grade[first]


def triplets_by_grade(pairs: np.ndarray, grade: np.ndarray, most: int, rng: np.random.Generator) -> np.ndarray:
    """Return triplets (query, better document, worse document), at most `most` for each query, drawn at random."""
    check_count(most, "most_per_query")
    found = [np.empty((0, 3), dtype=np.intp)]
    for query in np.unique(pairs[:, 0]):
        own = np.flatnonzero(pairs[:, 0] == query)
        better, worse = np.nonzero(grade[own][:, None] > grade[own])
        if len(better) > most:
            drawn = np.sort(rng.choice(len(better), most, replace=False))
            better, worse = better[drawn], worse[drawn]
        documents = pairs[own, 1]
        found.append(np.column_stack([np.full(len(better), query), documents[better], documents[worse]]))
    return np.concatenate(found)
