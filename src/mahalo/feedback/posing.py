"""Rows and judgements as problems of one scale, whole or of a fold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..evaluation.judgements import Judgements
from .negatives import draw_negatives, rank_others
from .problem import FeedbackProblem

WEIGHTS = ("query", "pair", "grade")


@dataclass(frozen=True, eq=False)
class Searches:
    """Queries, documents, judgements and the negatives of every query, from which problems are posed.

    `unit` is the product of the root mean square lengths of queries and documents: temperatures are in it, so that the
    scale of the vectors does not matter.
    """

    queries: np.ndarray
    documents: np.ndarray
    judgements: Judgements
    negatives: np.ndarray
    weights: str
    unit: float

    @classmethod
    def gather(
        cls,
        queries: np.ndarray,
        documents: np.ndarray,
        judgements: Judgements,
        *,
        n_negatives: int,
        weights: str,
        rng: np.random.Generator,
    ) -> Searches:
        """Draw negatives for every query; raise ValueError if all documents are relevant to one."""
        relevant = judgements.relevant()
        rows = relevant.queries
        negatives = np.full((len(queries), min(n_negatives, len(documents))), -1, dtype=np.intp)
        drawn = draw_negatives(rank_others(queries, documents, relevant, rows), n_negatives, rng)
        if (drawn[:, 0] < 0).any():
            raise ValueError(
                f"query row {rows[drawn[:, 0] < 0][0]}: all {len(documents)} documents are relevant to it, so that no "
                "negatives are left. Add documents, or leave the query out."
            )
        negatives[rows, : drawn.shape[1]] = drawn
        unit = _root_mean_square(queries[rows]) * _root_mean_square(documents)
        if not unit > 0:
            raise ValueError("queries and documents must have rows other than zero; got zeros only.")
        return cls(queries, documents, judgements, negatives, weights, unit)

    def pose(self, judgements: Judgements, *, lam: float = 1.0, temperature: float = 1.0) -> FeedbackProblem:
        """Return the problem of some of the judgements; negatives are those of the whole."""
        relevant = judgements.relevant()
        rows, query = np.unique(relevant.query, return_inverse=True)
        against = self.negatives[rows]
        used = np.concatenate([relevant.document, against[against >= 0]])
        used, position = np.unique(used, return_inverse=True)
        negatives = np.full(against.shape, -1, dtype=np.intp)
        negatives[against >= 0] = position[len(query) :]
        return FeedbackProblem(
            queries=self.queries[rows].astype(np.float64),
            documents=self.documents[used].astype(np.float64),
            pairs=np.column_stack([query, position[: len(query)]]),
            negatives=negatives,
            weight=_weights(query, relevant.grade, self.weights),
            temperature=temperature * self.unit,
            lam=lam,
        )


def _weights(query: np.ndarray, grade: np.ndarray, kind: str) -> np.ndarray:
    """Return weights of relevant pairs that sum to 1."""
    weight = np.ones(len(query)) if kind == "pair" else grade.astype(np.float64)
    if kind == "query":
        weight = 1.0 / np.bincount(query)[query]
    return weight / weight.sum()


def _root_mean_square(X: np.ndarray) -> float:
    """Return the root mean square length of rows."""
    return float(np.sqrt(np.einsum("ij,ij->", X, X, dtype=np.float64) / len(X)))
