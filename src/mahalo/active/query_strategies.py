"""Query strategies: selection of the pairs of rows to ask a person about next."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..constraints import Constraints, as_constraints, sq_distances
from ..metric import Metric
from ..types import RowsLike
from ..validation import Seed, as_generator, check_count, in_double
from .answer_closure import AnswerClosure
from .similarity_model import SimilarityModel

_MAX_ALL_PAIRS = 1_000_000  # number of pairs up to which every pair is a candidate
_ANCHORS, _NEIGHBOURS = 2_000, 50  # beyond it: rows whose nearest rows are candidates, and how many of these
_POOL_PER_QUERY = 20  # candidates that "diverse" compares for each pair it selects
_ROWS_PER_QUERY = 0.4  # rows that "groups" queries, for each pair queried so far or now
_OPEN_PER_QUERY = 4  # pairs of groups to select from, for each that "groups" selects


class FittedLearner(Protocol):
    """A fitted learner of a metric."""

    @property
    def metric_(self) -> Metric: ...

    def transform(self, X: RowsLike) -> np.ndarray: ...


def next_pairs(
    learner: FittedLearner,
    X: RowsLike,
    n: int = 10,
    *,
    strategy: str = "uncertain",
    known: Constraints | None = None,
    random_state: Seed = None,
) -> np.ndarray:
    """Return pairs of rows of X to ask a person about, whether they are similar.

    Pairs whose answer follows from earlier answers are left out: rows connected by similar pairs form a group of
    similar rows, and a dissimilar pair holds for all rows of both groups. Of the pairs between two groups at most one
    is returned.

    Parameters
    ----------
    learner : MetricLearner, MetricLearnerCV or OnlineMetricLearner, fitted
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The rows to select pairs from.
    n : int, default=10
        Number of pairs; fewer are returned if there are no more open ones.
    strategy : {"uncertain", "diverse", "change", "groups"}, default="uncertain"
        "uncertain": pairs with a probability of being similar near ½, estimated from learned distances and the `known`
        answers. "diverse": of those, pairs of different rows that differ in different directions. "change": pairs
        whose answer is expected to change the metric most. "groups": the pairs most probably similar among a small
        random set of rows, until the groups of these rows are determined. Such answers imply many more: learn from
        ``AnswerClosure.of(known, n_rows).constraints()``.
    known : Constraints, optional
        The answers so far, pairs by row of X.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the sample of candidates, if there are too many pairs to compare all, and of the rows of "groups".

    Returns
    -------
    ndarray of shape (n, 2)
        Row indices, best first.
    """
    check_is_fitted(learner)
    check_count(n, "n")
    if strategy not in _STRATEGIES:
        raise ValueError(f"strategy must be {', '.join(map(repr, _STRATEGIES))}; got {strategy!r}.")
    known = as_constraints(known)
    T = np.asarray(learner.transform(in_double(X)), dtype=np.float64)
    if len(T) < 2:
        raise ValueError(f"a pair takes two rows; X has {len(T)}. Pass more rows.")
    closure, rng = AnswerClosure.of(known, len(T)), as_generator(random_state)
    pairs = Constraints().pairs if known is None else known.pairs
    if strategy == "groups":
        index = _open_pairs_of_few_rows(T, closure, pairs.index, n, rng)
    else:
        index = _open_pairs(T, closure, np.arange(len(T)), rng)
    if not len(index):
        return np.empty((0, 2), dtype=np.intp)
    sq = sq_distances(T, index)
    model = SimilarityModel.fit(sq, sq_distances(T, pairs.index), pairs.sign > 0)
    unscaled_sq = _unscaled_sq_distances(learner.metric_, X, index, sq)
    candidates = _Candidates(T, index, sq, unscaled_sq, closure.group[index], model, _bounds_of(learner))
    order = _STRATEGIES[strategy](candidates, n)
    return index[_one_per_group_pair(order, closure.group_pairs(index), n)]


@dataclass(frozen=True, eq=False)
class _Candidates:
    """Open pairs to select from.

    `T` holds the rows in the learned space, `index` the pairs, `sq` their squared distances, `unscaled_sq` those before
    rows are scaled to unit length (which the bounds refer to), `groups` the groups of both rows, and `bounds` the
    squared bounds (upper, lower) of the learner.
    """

    T: np.ndarray
    index: np.ndarray
    sq: np.ndarray
    unscaled_sq: np.ndarray
    groups: np.ndarray
    model: SimilarityModel
    bounds: tuple[float, float]


def _order_by_uncertainty(candidates: _Candidates, n: int) -> np.ndarray:
    """Return candidates in order of |P(similar) − ½|."""
    return np.argsort(np.abs(candidates.model.probability(candidates.sq) - 0.5), kind="stable")


def _order_by_change(candidates: _Candidates, n: int) -> np.ndarray:
    """Return candidates in descending order of E h(x⁺/x), the expected divergence of a step to the bound.

    With x = d²/bound and x⁺ = 1, h(1/x) = 1/x + ln x − 1 if the bound is violated, else 0.
    """
    p, (upper, lower) = candidates.model.probability(candidates.sq), candidates.bounds
    sq = candidates.unscaled_sq
    near, far = np.maximum(sq / upper, 1.0), np.minimum(np.maximum(sq, 1e-300) / lower, 1.0)
    expected = p * (1.0 / near + np.log(near) - 1.0) + (1.0 - p) * (1.0 / far + np.log(far) - 1.0)
    return np.argsort(-expected, kind="stable")


def _order_by_diversity(candidates: _Candidates, n: int) -> np.ndarray:
    """Return candidates, first a greedy selection of uncertain pairs that differ in direction and in rows."""
    uncertain = _order_by_uncertainty(candidates, n)
    pool = uncertain[: _POOL_PER_QUERY * n]
    index = candidates.index[pool]
    D = candidates.T[index[:, 0]] - candidates.T[index[:, 1]]
    D /= np.maximum(np.linalg.norm(D, axis=1, keepdims=True), 1e-300)
    p = candidates.model.probability(candidates.sq[pool])
    score = 4.0 * p * (1.0 - p)
    order = []
    for _ in range(min(n, len(pool))):
        k = int(score.argmax())
        order.append(k)
        shares_row = np.isin(index, index[k]).any(axis=1)
        score = score * (1.0 - (D @ D[k]) ** 2) * np.where(shares_row, 0.5, 1.0)
        score[k] = -1.0
    return np.concatenate([pool[order], np.delete(uncertain, order)])


def _order_by_similarity(candidates: _Candidates, n: int) -> np.ndarray:
    """Return the nearest candidates first, but one of each group before a second: its answer may imply the others."""
    near = np.argsort(candidates.sq, kind="stable")
    used_groups: set[int] = set()
    first = []
    for k, ends in enumerate(candidates.groups[near[: _POOL_PER_QUERY * n]].tolist()):
        if used_groups.isdisjoint(ends):
            used_groups.update(ends)
            first.append(k)
    return np.concatenate([near[first], np.delete(near, first)])


_STRATEGIES: dict[str, Callable[[_Candidates, int], np.ndarray]] = {
    "uncertain": _order_by_uncertainty,
    "diverse": _order_by_diversity,
    "change": _order_by_change,
    "groups": _order_by_similarity,
}


def _one_per_group_pair(order: np.ndarray, group_pairs: np.ndarray, n: int) -> np.ndarray:
    """Return the first n of `order`, only the first of each pair of groups."""
    _, first = np.unique(group_pairs[order], return_index=True)
    return order[np.sort(first)[:n]]


def _open_pairs(T: np.ndarray, closure: AnswerClosure, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return candidate pairs of these rows whose answer is not implied."""
    index = rows[_candidate_pairs(T[rows], rng)]
    return index[~closure.implies(index)]


def _open_pairs_of_few_rows(
    T: np.ndarray, closure: AnswerClosure, answered: np.ndarray, n: int, rng: np.random.Generator
) -> np.ndarray:
    """Return open pairs of the rows in answered pairs, and of random rows until there are enough to select from."""
    in_answers, drawn = np.unique(answered), rng.permutation(len(T))
    order = np.concatenate([in_answers, drawn[~np.isin(drawn, in_answers)]])
    n_rows = max(2, len(in_answers), int(_ROWS_PER_QUERY * (len(answered) + n)))
    while True:
        index = _open_pairs(T, closure, order[:n_rows], rng)
        if n_rows >= len(T) or len(np.unique(closure.group_pairs(index))) >= _OPEN_PER_QUERY * n:
            return index
        n_rows += n


def _candidate_pairs(T: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return all pairs of rows; if they are too many, pairs of near rows and as many random pairs."""
    n = len(T)
    if n * (n - 1) // 2 <= _MAX_ALL_PAIRS:
        return np.column_stack(np.triu_indices(n, 1))
    from sklearn.neighbors import NearestNeighbors

    anchors = rng.choice(n, min(n, _ANCHORS), replace=False)
    near = (
        NearestNeighbors(n_neighbors=min(_NEIGHBOURS, n - 1) + 1).fit(T).kneighbors(T[anchors], return_distance=False)
    )
    index = np.column_stack([np.repeat(anchors, near.shape[1]), near.ravel()])
    i = rng.integers(0, n, len(index))
    index = np.concatenate([index, np.column_stack([i, (i + rng.integers(1, n, len(i))) % n])])
    low, high = np.sort(index[index[:, 0] != index[:, 1]], axis=1).T
    return np.column_stack(np.divmod(np.unique(low * n + high), n))


def _bounds_of(learner: FittedLearner) -> tuple[float, float]:
    """Return the squared bounds (upper, lower) of a learner's pairs."""
    bounds = getattr(learner, "bounds_", None)
    if bounds is not None:
        return bounds
    pairs = learner.constraints_.pairs if hasattr(learner, "constraints_") else None
    if pairs is None or not len(pairs):
        raise ValueError("this learner has no bounds of pairs; learn from labels or pairs, or set bounds=.")
    similar = pairs.sign > 0
    sides = [float(np.median(pairs.bound[side])) if side.any() else None for side in (similar, ~similar)]
    upper, lower = sides
    return (upper or lower), (lower or upper)  # type: ignore[return-value]


def _unscaled_sq_distances(metric: Metric, X: RowsLike, index: np.ndarray, sq: np.ndarray) -> np.ndarray:
    """Return squared distances without scaling to unit length, given those of the metric: bounds refer to them."""
    if not metric.normalize:
        return sq
    unscaled = dataclasses.replace(metric, normalize=False)
    return sq_distances(np.asarray(unscaled.transform(in_double(X)), dtype=np.float64), index)
