"""Folds of judgements: queries held out with documents that had feedback, and with documents that had none."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..evaluation.judgements import Judgements

WITH, WITHOUT = "documents with feedback", "documents without"


@dataclass(frozen=True, eq=False)
class Fold:
    """Judgements to learn from, and held-out queries with the relevant documents to be found.

    `kind` is `WITH` if these documents are relevant to queries that were learned from, `WITHOUT` if none is. Other
    relevant documents of the held-out queries are left out of their rankings.
    """

    kind: str
    train: Judgements
    queries: np.ndarray
    searched: Judgements
    left_out: Judgements


def folds_with_feedback(judgements: Judgements, n_folds: int, rng: np.random.Generator) -> list[Fold]:
    """Return folds by query, judged on relevant documents that are also relevant to a query learned from."""
    folds = []
    for queries in np.array_split(rng.permutation(judgements.relevant().queries), n_folds):
        held_out = np.isin(judgements.query, queries)
        train, relevant = judgements.select(~held_out), judgements.select(held_out).relevant()
        seen = np.isin(relevant.document, train.relevant().document)
        folds.append(Fold(WITH, train, np.sort(queries), relevant.select(seen), relevant.select(~seen)))
    return [fold for fold in folds if len(fold.searched.query) and len(fold.train.relevant().query)]


def folds_without_feedback(judgements: Judgements, n_folds: int, rng: np.random.Generator) -> list[Fold]:
    """Return folds by query and document: judgements of the documents to be found are not learned from.

    Queries that share documents (connected components of the judgements) are held out together, so that no judgement
    is lost. Components with more than their share of the queries are divided.
    """
    folds = []
    for queries in _grouped_queries(judgements.relevant(), n_folds, rng):
        held_out = np.isin(judgements.query, queries)
        relevant = judgements.select(held_out).relevant()
        train = judgements.select(~held_out & ~np.isin(judgements.document, relevant.document))
        nothing = relevant.select(np.zeros(len(relevant.query), dtype=bool))
        folds.append(Fold(WITHOUT, train, np.sort(queries), relevant, nothing))
    return [fold for fold in folds if len(fold.queries) and len(fold.train.relevant().query)]


def _grouped_queries(relevant: Judgements, n_folds: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Return the queries of every fold: groups of queries, largest first, each to the smallest fold so far."""
    queries = rng.permutation(relevant.queries)
    component = relevant.components()[queries]
    share = -(-len(queries) // n_folds)
    groups: list[np.ndarray] = []
    for number in np.unique(component):
        members = queries[component == number]
        groups.extend([members] if len(members) <= share else np.array_split(members, -(-len(members) // share)))
    folds: list[list[np.ndarray]] = [[] for _ in range(n_folds)]
    sizes = np.zeros(n_folds, dtype=np.intp)
    for group in sorted(groups, key=len, reverse=True):
        smallest = int(sizes.argmin())
        folds[smallest].append(group)
        sizes[smallest] += len(group)
    return [np.concatenate(fold) for fold in folds if fold]
