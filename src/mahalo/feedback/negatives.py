"""Negatives of a query: documents that the frozen vectors rank high although they are not relevant to it."""

from __future__ import annotations

import numpy as np

from ..evaluation.judgements import Judgements
from ..linalg import nearest_of

_DEPTH = 20  # documents that are not relevant, from the nearest on, among which negatives are drawn
_BLOCK = 8_000_000  # scores held at a time


def rank_others(
    queries: np.ndarray, documents: np.ndarray, relevant: Judgements, rows: np.ndarray, depth: int = _DEPTH
) -> np.ndarray:
    """Return the documents nearest to some queries by inner product that are not relevant to them, nearest first.

    One line for each of `rows` of the queries; −1 fills lines of queries to which almost all documents are relevant.
    """
    n_documents = len(documents)
    k = min(depth, n_documents)
    found = np.empty((len(rows), k), dtype=np.intp)
    matrix = relevant.matrix()
    step = max(1, _BLOCK // n_documents)
    for a in range(0, len(rows), step):
        block = rows[a : a + step]
        score = queries[block] @ documents.T
        score[matrix[block].nonzero()] = -np.inf
        top = nearest_of(-score, k)
        found[a : a + step] = np.where(np.isfinite(np.take_along_axis(score, top, axis=1)), top, -1)
    return found


def draw_negatives(ranked: np.ndarray, n_negatives: int, rng: np.random.Generator) -> np.ndarray:
    """Return at most `n_negatives` documents drawn from each line of `rank_others`, filled up with −1 at the end."""
    key = np.where(ranked >= 0, rng.random(ranked.shape), 2.0)
    chosen = np.argsort(key, axis=1, kind="stable")[:, :n_negatives]
    return np.take_along_axis(ranked, chosen, axis=1)
