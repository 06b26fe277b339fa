"""Comparison of two distances on rows or pairs, without folds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.model_selection import StratifiedKFold

from ..constraints import Constraints
from ..linalg import Matrix
from .before_after import BeforeAfter
from .comparison import FoldScores, compare_folds
from .estimate import Estimate, Estimates
from .lda import lda_projection
from .pair_distances import PairDistances
from .queries import QueryScores, choose_queries, score_queries
from .ranking import auc_of_pairs, known_pairs

_MOST_PAIRED = 2_000  # rows whose pairs are in the histograms
_LDA_FOLDS = 5


class Distance(Protocol):
    """An object that measures distances between rows."""

    def distances(self, X: Matrix, Y: Matrix | None = None) -> np.ndarray: ...

    def pair_distances(self, X: Matrix, Y: Matrix) -> np.ndarray: ...


def compare_on_rows(
    before: Distance, after: Distance, X: Matrix, codes: np.ndarray, class_names: Sequence[object]
) -> BeforeAfter:
    """Compare labelled rows, a sample of them where there are many, with all other labelled rows.

    LDA is fitted in five folds of these rows, so that no query is among the rows of its fit.
    """
    labelled = np.flatnonzero(codes >= 0)
    X, codes = X[labelled], codes[labelled]
    queries = choose_queries(np.arange(len(codes)), len(codes), np.random.default_rng(0))

    def score(distances: Callable[[np.ndarray], np.ndarray]) -> QueryScores:
        return score_queries(distances, codes[queries], codes, own=queries)

    def by_distance(distance: Distance, block: np.ndarray) -> np.ndarray:
        return distance.distances(X[queries[block]], X)

    scores = [score(partial(by_distance, distance)) for distance in (before, after)]
    projected = _lda_distances(X, codes, queries)
    paired = queries[:_MOST_PAIRED]
    i, j = np.triu_indices(len(paired), 1)
    same = codes[paired[i]] == codes[paired[j]]
    drawn = [PairDistances.of(_pairwise(distance, X[paired])[i, j], same) for distance in (before, after)]
    fold = FoldScores(
        len(codes) - 1,
        labelled[queries],
        scores=(scores[0], scores[1]),
        lda=None if projected is None else score(projected),
        pair_distances=(drawn[0], drawn[1]),
    )
    return compare_folds(
        [fold],
        primary="10-NN",
        searched="other rows",
        lda_fitted_to="the other folds of these rows",
        held_out=False,
        class_names=class_names,
    )


def _pairwise(distance: Distance, X: Matrix) -> np.ndarray:
    return np.asarray(distance.distances(X, X), dtype=np.float64)


def _lda_distances(X: Matrix, codes: np.ndarray, queries: np.ndarray) -> Callable[[np.ndarray], np.ndarray] | None:
    """Return a function from positions of queries to squared distances in LDA's space, or None without LDA."""
    if sp.issparse(X) or np.bincount(codes).min() < 2:
        return None
    splitter = StratifiedKFold(int(min(_LDA_FOLDS, np.bincount(codes).min())), shuffle=True, random_state=0)
    spaces: dict[int, Callable[[Matrix], np.ndarray]] = {}
    fold_of = np.empty(len(codes), dtype=np.intp)
    for k, (train, test) in enumerate(splitter.split(codes, codes)):
        space = lda_projection(X[train], codes[train])
        if space is None:
            return None
        spaces[k], fold_of[test] = space, k
    indexes = {k: space(X) for k, space in spaces.items()}

    def distances(block: np.ndarray) -> np.ndarray:
        rows = queries[block]
        D = np.empty((len(rows), len(codes)))
        for k in np.unique(fold_of[rows]):
            of_fold = fold_of[rows] == k
            D[of_fold] = euclidean_distances(indexes[k][rows[of_fold]], indexes[k], squared=True)
        return D

    return distances


def compare_on_pairs(before: Distance, after: Distance, X: Matrix, constraints: Constraints) -> BeforeAfter:
    """Compare similar with dissimilar pairs of rows without labels."""
    ends, similar = known_pairs(constraints)
    sides = [
        np.asarray(distance.pair_distances(X[ends[:, 0]], X[ends[:, 1]]), dtype=np.float64)
        for distance in (before, after)
    ]
    measured = [evaluate_pairs(d, ends, similar, np.arange(X.shape[0])) for d in sides]
    drawn = [PairDistances.of(d, similar) for d in sides]
    fold = FoldScores(0, side_estimates=(measured[0], measured[1]), pairs=ends, pair_distances=(drawn[0], drawn[1]))
    return compare_folds([fold], primary="pair AUC", searched="rows", held_out=False)


def evaluate_pairs(distance: np.ndarray, ends: np.ndarray, similar: np.ndarray, rows: np.ndarray) -> Estimates:
    """Return the AUC of similar against dissimilar pairs, whose ends are positions among `rows`."""
    found = auc_of_pairs(distance, ends, similar, len(rows))
    if found is None:
        return {"pair AUC": None}
    auc, influence = found
    members = np.unique(ends)
    return {"pair AUC": Estimate(auc, rows[members], influence[members])}
