"""Measures of a distance: votes of nearest neighbours, retrieval, and the separation of similar from dissimilar."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from ..constraints import Constraints, codes_by_appearance
from ..linalg import Matrix

N_NEIGHBORS = 10


def n_voters(n_rows: int) -> int:
    """Return how many neighbours vote among so many rows: 10, or two thirds of the rows if fewer.

    Where nearly all rows vote, the vote depends on the sizes of classes alone.
    """
    return int(np.clip(2 * n_rows // 3, 1, N_NEIGHBORS))


def vote(codes: np.ndarray) -> np.ndarray:
    """Return the majority class of the neighbours of each query.

    `codes` holds the classes 0, 1, … of the neighbours, one row for each query, nearest first. A tie goes to the class
    that reached its count with nearer neighbours, whatever the names and order of the classes.
    """
    if not codes.size:
        return np.full(len(codes), -1)
    counts = _vote_counts(codes)
    winner = counts.argmax(axis=1)
    tied = np.flatnonzero((counts == counts.max(axis=1, keepdims=True)).sum(axis=1) > 1)
    rows, counted, most = np.arange(len(tied)), np.zeros_like(counts[tied]), np.zeros(len(tied), dtype=np.intp)
    for code in codes[tied].T:
        counted[rows, code] += 1
        ahead = counted[rows, code] > most
        winner[tied[ahead]], most[ahead] = code[ahead], counted[rows, code][ahead]
    return winner


def vote_confidence(codes: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Return the probability, for each query, that its own class would win the vote of other such neighbours.

    With a votes for the own class and b for the strongest other one, Φ((a − b)/√(a + b)): the normal approximation if
    every neighbour is drawn anew. Arguments as in `vote`; `truth` holds the classes of the queries.
    """
    counts = _vote_counts(codes, int(truth.max(initial=0)) + 1)
    queries = np.arange(len(codes))
    own = counts[queries, truth]
    counts[queries, truth] = 0
    other = counts.max(axis=1, initial=0)
    return ndtr((own - other) / np.sqrt(np.maximum(own + other, 1)))


def _vote_counts(codes: np.ndarray, n_classes: int = 0) -> np.ndarray:
    """Return how many neighbours each query has of each class."""
    n_classes = max(n_classes, int(codes.max(initial=-1)) + 1)
    flat = codes + n_classes * np.arange(len(codes))[:, None]
    return np.bincount(flat.ravel(), minlength=n_classes * len(codes)).reshape(len(codes), n_classes)


def knn_predict(train: Matrix, y_train: ArrayLike, test: Matrix, k: int = 10) -> np.ndarray:
    """Predict the labels of `test` by the vote of the k nearest rows of `train` in Euclidean distance."""
    classes, codes = np.unique(y_train, return_inverse=True)
    return classes[vote(codes[nearest_rows(test, train, k)])]


def nearest_rows(queries: Matrix, index: Matrix, k: int = 10) -> np.ndarray:
    """Return the numbers of the k rows of `index` nearest to each query by Euclidean distance, nearest first."""
    from sklearn.neighbors import NearestNeighbors

    search = NearestNeighbors(n_neighbors=min(k, index.shape[0])).fit(index)
    return search.kneighbors(queries, return_distance=False)


def pair_auc(
    sq_distances: Callable[[np.ndarray], np.ndarray],
    n_rows: int,
    y: ArrayLike | None,
    constraints: Constraints | None,
    rows: ArrayLike | None,
) -> float:
    """Return the area under the ROC curve of similar pairs by learned distance; a triplet (a, b, c) is two pairs."""
    from sklearn.metrics import roc_auc_score

    if constraints is None:
        if y is None:
            raise ValueError("score needs labels y or constraints= to tell similar from dissimilar rows.")
        codes = codes_by_appearance(y)  # the pairs drawn must not depend on the names of classes
        if len(codes) != n_rows:
            raise ValueError(f"y must have one label for each of the {n_rows} rows of X; got {len(codes)}.")
        if (n := codes.max(initial=-1) + 1) < 2:
            raise ValueError(
                f"score needs rows of at least two classes; these have {'one' if n else 'none'}. Use a shuffled or "
                "stratified splitter, such as cv=StratifiedKFold(3, shuffle=True)."
            )
        constraints = Constraints.from_labels(codes, pairs_per_class=1000, random_state=0)
    else:
        constraints, _ = constraints.for_data(rows, n_rows)
    index, similar = known_pairs(constraints)
    if similar.all() or not similar.any():
        raise ValueError(
            f"score needs similar and dissimilar pairs among the rows to score; got {int(similar.sum())} and "
            f"{int((~similar).sum())}. Use more pairs or larger folds."
        )
    return float(roc_auc_score(similar, -sq_distances(index)))


def known_pairs(constraints: Constraints) -> tuple[np.ndarray, np.ndarray]:
    """Return pairs of rows and whether they are similar; a triplet is two of them, (a, b) and (a, c)."""
    pairs, triplets = constraints.pairs, constraints.triplets.index
    index = np.concatenate([pairs.index, triplets[:, :2], triplets[:, ::2]])
    return index, np.concatenate([pairs.sign > 0, np.arange(2 * len(triplets)) < len(triplets)])


def auc_of_pairs(
    distance: np.ndarray, ends: np.ndarray, similar: np.ndarray, n_rows: int
) -> tuple[float, np.ndarray] | None:
    """Return P(a similar pair is closer than a dissimilar one) and every row's influence; None without both kinds."""
    near, far = np.sort(distance[similar]), np.sort(distance[~similar])
    if not len(near) or not len(far):
        return None
    # share of the pairs of the other kind on the right side of each pair, ties counting half
    share = np.empty(len(distance))
    share[similar] = 1.0 - share_below(far, distance[similar])
    share[~similar] = share_below(near, distance[~similar])
    auc = float(share[similar].mean())
    influence = (share - auc) / np.where(similar, len(near), len(far))
    return auc, np.bincount(ends[:, 0], influence, n_rows) + np.bincount(ends[:, 1], influence, n_rows)


def share_below(ordered: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the share of the sorted values `ordered` that are below each value; ties count half."""
    both = np.searchsorted(ordered, values, "left") + np.searchsorted(ordered, values, "right")
    return both / (2.0 * len(ordered))


def ranked(distances: np.ndarray, relevant: np.ndarray) -> np.ndarray:
    """Return `relevant` with the columns of every row in order of distance, nearest first."""
    return np.take_along_axis(relevant, np.argsort(distances, axis=1), axis=1)


def average_precision(found: np.ndarray) -> np.ndarray:
    """Return the mean, over the relevant entries of each ranked row, of the precision up to them; NaN without any."""
    row, rank, hits, total = _relevant_entries(found)
    summed = np.bincount(row, hits / (rank + 1.0), len(found))
    return np.divide(summed, total, out=np.full(len(found), np.nan), where=total > 0)


def _relevant_entries(found: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return row, rank and number of relevant entries up to it, for every relevant entry; and their number by row."""
    row, rank = np.nonzero(found)
    total = np.bincount(row, minlength=len(found))
    hits = np.arange(1, len(row) + 1) - (np.cumsum(total) - total)[row]
    return row, rank, hits, total


def precision_at(found: np.ndarray, k: int) -> np.ndarray:
    """Return the share of relevant entries among the first k of each ranked row."""
    return found[:, :k].mean(axis=1)


def recall_at(found: np.ndarray, k: int) -> np.ndarray:
    """Return the share of the relevant entries of each ranked row that are among the first k; NaN without any."""
    total = found.sum(axis=1)
    return np.divide(found[:, :k].sum(axis=1), total, out=np.full(len(found), np.nan), where=total > 0)


def ndcg_at(grades: np.ndarray, k: int) -> np.ndarray:
    """Return Σ g/log₂(rank + 1) over the first k grades of each ranked row, by that of the best order; NaN of zeros."""
    best = -np.sort(-grades, axis=1)[:, :k]
    discount = 1.0 / np.log2(np.arange(best.shape[1]) + 2.0)
    gain, ideal = grades[:, :k] @ discount, best @ discount
    return np.divide(gain, ideal, out=np.full(len(grades), np.nan), where=ideal > 0)


def ranked_auc(found: np.ndarray) -> np.ndarray:
    """Return the probability that a relevant entry of each ranked row precedes an irrelevant one; NaN without both."""
    row, rank, hits, total = _relevant_entries(found)
    others = found.shape[1] - total
    ahead = np.bincount(row, rank + 1.0 - hits, len(found))  # pairs of an irrelevant entry and a later relevant one
    pairs = total * others
    return 1.0 - np.divide(ahead, pairs, out=np.full(len(found), np.nan), where=pairs > 0)
