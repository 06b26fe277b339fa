"""Scores of queries against an index of labelled rows: the vote of ten neighbours, and retrieval by class.

Every query votes. Sorting the whole index costs far more, and is done for a sample of the queries where there are many.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..linalg import nearest_of
from .estimate import Estimate, Estimates
from .ranking import N_NEIGHBORS, average_precision, n_voters, precision_at, ranked_auc, recall_at, vote

MEASURES = ("10-NN", "P@1", "P@10", "MAP", "AUC")
_BLOCK = 8_000_000  # distances held at a time
_MOST_QUERIES = 3_000
_FEWEST_QUERIES = 500
_MOST_DISTANCES = 30_000_000  # of all queries together, unless that leaves fewer than _FEWEST_QUERIES
_MOST_PRODUCTS = 5_000_000_000  # queries × index rows × columns, for votes


@dataclass(frozen=True, eq=False)
class QueryScores:
    """Scores of every query, in the order of the queries.

    Attributes
    ----------
    values : dict of str to ndarray of shape (n_queries,)
        "10-NN" (1 where the vote of the ten nearest rows is right), "P@1", "P@10", "MAP" (average precision) and "AUC".
        NaN for a query without a row of its class in the index.
    codes : ndarray of shape (n_queries,)
        Class of each query.
    predicted : ndarray of shape (n_queries,)
        Class that the vote gives it.
    """

    values: dict[str, np.ndarray]
    codes: np.ndarray
    predicted: np.ndarray

    def estimates(self, rows: np.ndarray) -> Estimates:
        """Return the mean of every measure; `rows` are the numbers of the queries among all rows."""
        return {name: Estimate.mean(rows, values) for name, values in self.values.items()}

    def join(self, other: QueryScores) -> QueryScores:
        """Return the scores of these queries and then of the others; NaN for measures that the others lack."""
        missing = np.full(len(other.codes), np.nan)
        return QueryScores(
            {name: np.append(values, other.values.get(name, missing)) for name, values in self.values.items()},
            np.append(self.codes, other.codes),
            np.append(self.predicted, other.predicted),
        )


def choose_queries(candidates: np.ndarray, n_index: int, rng: np.random.Generator, share: float = 1.0) -> np.ndarray:
    """Return all candidate rows, or a sorted random sample that keeps the number of distances affordable.

    At most 3,000 times `share` (the part of all queries that one fold has), fewer where the index is large.
    """
    most = min(_MOST_QUERIES, max(_FEWEST_QUERIES, _MOST_DISTANCES // max(n_index, 1)))
    most = int(np.ceil(most * share))
    return candidates if len(candidates) <= most else np.sort(rng.choice(candidates, most, replace=False))


def choose_voters(
    candidates: np.ndarray, ranked: np.ndarray, n_products: int, rng: np.random.Generator, share: float = 1.0
) -> np.ndarray:
    """Return candidate rows beyond the `ranked` ones that vote too: all, or a sorted random sample.

    `n_products` is the cost of one query, index rows times columns.
    """
    others = np.setdiff1d(candidates, ranked)
    most = max(0, int(share * (_MOST_PRODUCTS // max(1, n_products))) - len(ranked))
    return others if len(others) <= most else np.sort(rng.choice(others, most, replace=False))


def score_neighbors(codes: np.ndarray, query_codes: np.ndarray, index_codes: np.ndarray) -> QueryScores:
    """Score queries by the classes of their ten nearest rows, nearest first: the vote, and precision at 1 and at 10.

    `index_codes` are the classes of all rows of the index.
    """
    found = codes == query_codes[:, None]
    predicted = vote(codes)
    relevant = np.isin(query_codes, index_codes)
    precision = {f"P@{k}": np.where(relevant, precision_at(found, k), np.nan) for k in (1, N_NEIGHBORS)}
    return QueryScores({"10-NN": (predicted == query_codes).astype(np.float64)} | precision, query_codes, predicted)


def score_queries(
    distances: Callable[[np.ndarray], np.ndarray],
    query_codes: np.ndarray,
    index_codes: np.ndarray,
    *,
    own: np.ndarray | None = None,
    votes: bool = True,
    measures: Sequence[str] = (),
) -> QueryScores:
    """Score queries against an index, a block of queries at a time.

    Parameters
    ----------
    distances : callable
        Takes positions of queries and returns their distances (or squared distances) to all rows of the index.
    query_codes, index_codes : ndarray of int
        Classes; all ≥ 0.
    own : ndarray of int, optional
        Position of each query in the index, where it is a row of it: a query does not find itself.
    votes : bool, default=True
        False to leave out the vote of ten neighbours, or fewer; see `n_voters`.
    measures : sequence of str
        Measures beyond the usual five: "P@k" or "recall@k" for any k, and "retrieval", the mean of P@1, P@10 and MAP.
    """
    n, n_index = len(query_codes), len(index_codes)
    n_found = n_index - (own is not None)
    step = max(1, _BLOCK // max(1, n_index))
    names = dict.fromkeys((*(MEASURES if votes else MEASURES[1:]), *measures))
    values = {name: np.empty(n) for name in names if votes or name != "10-NN"}
    predicted = np.full(n, -1, dtype=np.intp)
    for a in range(0, n, step):
        block = np.arange(a, min(n, a + step))
        D = np.array(distances(block), dtype=np.float64)
        if own is not None:
            D[np.arange(len(block)), own[block]] = np.inf
        order = np.argsort(D, axis=1)[:, :n_found]
        found = index_codes[order] == query_codes[block, None]
        for name in values.keys() - {"10-NN"}:
            values[name][block] = _retrieval(name, found)
        if votes:
            nearest = nearest_of(D, n_voters(n_found))
            predicted[block] = vote(index_codes[nearest])
            values["10-NN"][block] = predicted[block] == query_codes[block]
    return QueryScores(values, query_codes, predicted)


def _retrieval(name: str, found: np.ndarray) -> np.ndarray:
    """Return one retrieval measure of every ranked row; NaN where nothing is relevant."""
    if name == "MAP":
        return average_precision(found)
    if name == "AUC":
        return ranked_auc(found)
    if name == "retrieval":
        return np.mean([_retrieval(part, found) for part in ("P@1", "P@10", "MAP")], axis=0)
    kind, _, k = name.partition("@")
    if kind not in ("P", "recall") or not k.isdigit():
        raise ValueError(f"{name!r} is not a measure of retrieval; use 'P@k', 'recall@k', 'MAP', 'AUC' or 'retrieval'.")
    if kind == "recall":
        return recall_at(found, int(k))
    return np.where(found.any(axis=1), precision_at(found, int(k)), np.nan)
