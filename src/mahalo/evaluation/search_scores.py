"""Scores of searches whose relevant documents are judged one by one: nDCG, reciprocal rank and recall."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from ..linalg import nearest_of
from .ranking import ndcg_at

_K = 10
SEARCH_MEASURES = (f"nDCG@{_K}", "MRR", f"recall@{_K}")
_BLOCK = 8_000_000  # similarities held at a time


def score_searches(
    similarities: Callable[[np.ndarray], np.ndarray], gains: sp.csr_array, left_out: sp.csr_array | None = None
) -> dict[str, np.ndarray]:
    """Return nDCG@10, reciprocal rank of the first relevant document and recall@10 of every query.

    Parameters
    ----------
    similarities : callable
        Takes positions of queries and returns their similarities to all documents, larger for nearer ones.
    gains : sparse array of shape (n_queries, n_documents)
        Gains of the relevant documents, above 0. Queries without any are NaN in all measures.
    left_out : sparse array of shape (n_queries, n_documents), optional
        Stored entries are documents that are taken out of the ranking of a query.
    """
    n, n_documents = gains.shape
    values = {name: np.full(n, np.nan) for name in SEARCH_MEASURES}
    step = max(1, _BLOCK // max(1, n_documents))
    for a in range(0, n, step):
        block = np.arange(a, min(n, a + step))
        S = np.array(similarities(block), dtype=np.float64)
        gain = gains[block].toarray()
        if left_out is not None:
            S[left_out[block].nonzero()] = -np.inf
        some = gain.any(axis=1)
        S, gain, rows = S[some], gain[some], block[some]
        top = nearest_of(-S, _K)
        found = np.take_along_axis(gain, top, axis=1)
        others = gain.copy()
        np.put_along_axis(others, top, 0.0, axis=1)
        best = np.where(gain > 0, S, -np.inf).max(axis=1, keepdims=True)
        values[f"nDCG@{_K}"][rows] = ndcg_at(np.hstack([found, others]), _K)
        values["MRR"][rows] = 1.0 / (1.0 + (best < S).sum(axis=1))
        values[f"recall@{_K}"][rows] = (found > 0).sum(axis=1) / (gain > 0).sum(axis=1)
    return values
