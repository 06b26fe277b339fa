"""The pairs that are asked about next."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..constraints import Constraints, as_constraints, sq_distances
from ..validation import Seed, as_generator, check_count, in_double
from .implied import Implied

__all__ = ["next_pairs"]

_ALL_PAIRS = 1_000_000  # of rows, up to which every pair is a candidate
_ANCHORS, _NEIGHBOURS = 2_000, 50  # rows whose nearest are candidates where pairs are more, and how many
_SPREAD = 20  # pairs looked at for each that "diverse" takes
_NEAREST, _GUESS = 0.001, 2.0  # the share of pairs taken to be alike at first, and how many answers that is worth
_ROWS_A_PAIR = 0.4  # rows that "groups" keeps to, for each pair asked about so far or now
_OPEN = 4  # pairs between groups to choose from, for each that "groups" takes


def next_pairs(
    learner: Any,
    X: Any,
    n: int = 10,
    *,
    strategy: str = "uncertain",
    known: Constraints | None = None,
    random_state: Seed = None,
) -> np.ndarray:
    """Pairs of rows of X to ask a person about: alike or not?

    Nothing is asked that the answers so far imply: rows joined by similar pairs are alike, and a dissimilar pair holds
    for all rows that are alike with its ends. Nor is anything asked twice in one go: of two groups of rows one pair is
    taken.

    Parameters
    ----------
    learner : MetricLearner, MetricLearnerCV or OnlineMetricLearner, fitted
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The rows that may be asked about.
    n : int, default=10
        How many pairs; fewer come back where there are no more to ask.
    strategy : {"uncertain", "diverse", "change", "groups"}, default="uncertain"
        "uncertain": pairs that are as likely alike as not, judged by their learned distance among `known` answers.
        "diverse": of those, pairs with different rows that differ in different directions. "change": pairs whose answer
        is expected to move the metric most. "groups": of few rows, drawn at random, those likeliest alike, until it is
        known how all of them belong together. Answers then imply many more: learn from
        ``Implied.of(known, n_rows).constraints()``.
    known : Constraints, optional
        The answers so far, pairs by row of X.
    random_state : int, RandomState, Generator or None, default=None
        Draws candidates where there are too many pairs to look at all, and the rows of "groups".

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
        raise ValueError(f"a pair takes two rows; X has {len(T)}.")
    implied, rng = Implied.of(known, len(T)), as_generator(random_state)
    pairs = Constraints().pairs if known is None else known.pairs
    every = np.arange(len(T))
    index = _among_few(T, implied, pairs.index, n, rng) if strategy == "groups" else _open(T, implied, every, rng)
    if not len(index):
        return np.empty((0, 2), dtype=np.intp)
    sq = sq_distances(T, index)
    answers = sq_distances(T, pairs.index), pairs.sign > 0
    belief = _Belief.of(learner, sq, answers)
    seen = _Seen(T, index, sq, _held_to_bounds(learner, X, index, sq), implied.group[index], belief)
    order = _STRATEGIES[strategy](seen, n)
    return index[_one_between_groups(order, implied.between(index), n)]


@dataclass(frozen=True, eq=False)
class _Belief:
    """P(alike) = 1 / (1 + exp(slope (log d² − centre))), and the bounds (upper, lower) that pairs are held to."""

    centre: float
    slope: float
    bounds: tuple[float, float]

    @classmethod
    def of(cls, learner: Any, sq: np.ndarray, known: tuple[np.ndarray, np.ndarray]) -> _Belief:
        """From the squared distances of candidates and of `known` pairs, and whether those are alike.

        Before there are answers, the nearest candidates are taken to be alike, and half of all not to be.
        """
        from sklearn.linear_model import LogisticRegression

        bounds, (known_sq, alike) = _bounds_of(learner), known
        guessed = np.quantile(sq, [_NEAREST, 0.5])
        log_sq = _log(np.concatenate([known_sq, guessed]))
        weight = np.repeat([1.0, _GUESS], [len(alike), 2])
        model = LogisticRegression().fit(log_sq[:, None], np.append(alike, [True, False]), sample_weight=weight)
        slope = max(-float(model.coef_[0, 0]), 0.1)  # answers may contradict it, but nearer is likelier alike
        return cls(float(model.intercept_[0]) / slope, slope, bounds)

    def alike(self, sq: np.ndarray) -> np.ndarray:
        return 1.0 / (1.0 + np.exp(np.clip(self.slope * (_log(sq) - self.centre), -500, 500)))


@dataclass(frozen=True, eq=False)
class _Seen:
    """Candidates: rows in the learned space, pairs of them, their squared distances and groups, what to make of it.

    `sq_bounded` are the squared distances that bounds are about: those before rows are brought to unit length.
    """

    T: np.ndarray
    index: np.ndarray
    sq: np.ndarray
    sq_bounded: np.ndarray
    groups: np.ndarray
    belief: _Belief


def _uncertain(seen: _Seen, n: int) -> np.ndarray:
    return np.argsort(np.abs(seen.belief.alike(seen.sq) - 0.5), kind="stable")


def _change(seen: _Seen, n: int) -> np.ndarray:
    """E h(x⁺/x), the divergence of a whole step to the bound, x⁺ = 1: h(1/x) = 1/x + ln x − 1 where it is violated."""
    p, (upper, lower) = seen.belief.alike(seen.sq), seen.belief.bounds
    sq = seen.sq_bounded
    near, far = np.maximum(sq / upper, 1.0), np.minimum(np.maximum(sq, 1e-300) / lower, 1.0)
    expected = p * (1.0 / near + np.log(near) - 1.0) + (1.0 - p) * (1.0 / far + np.log(far) - 1.0)
    return np.argsort(-expected, kind="stable")


def _diverse(seen: _Seen, n: int) -> np.ndarray:
    """Greedily: of the most uncertain, the pair least like those taken, by direction and by rows."""
    uncertain = _uncertain(seen, n)
    doubtful = uncertain[: _SPREAD * n]
    D = seen.T[seen.index[doubtful, 0]] - seen.T[seen.index[doubtful, 1]]
    D /= np.maximum(np.linalg.norm(D, axis=1, keepdims=True), 1e-300)
    p = seen.belief.alike(seen.sq[doubtful])
    worth = 4.0 * p * (1.0 - p)
    order = []
    for _ in range(min(n, len(doubtful))):
        k = int(worth.argmax())
        order.append(k)
        shared = np.isin(seen.index[doubtful], seen.index[doubtful[k]]).any(axis=1)
        worth = worth * (1.0 - (D @ D[k]) ** 2) * np.where(shared, 0.5, 1.0)
        worth[k] = -1.0
    return np.concatenate([doubtful[order], np.delete(uncertain, order)])


def _likely(seen: _Seen, n: int) -> np.ndarray:
    """The nearest first, of every group one before another: the answer may tell of its others."""
    near = np.argsort(seen.sq, kind="stable")
    taken: set[int] = set()
    first = []
    for k, ends in enumerate(seen.groups[near[: _SPREAD * n]].tolist()):
        if taken.isdisjoint(ends):
            taken.update(ends)
            first.append(k)
    return np.concatenate([near[first], np.delete(near, first)])


_STRATEGIES: dict[str, Callable[[_Seen, int], np.ndarray]] = {
    "uncertain": _uncertain,
    "diverse": _diverse,
    "change": _change,
    "groups": _likely,
}


def _one_between_groups(order: np.ndarray, between: np.ndarray, n: int) -> np.ndarray:
    """The first n of `order` with no two between the same groups."""
    _, first = np.unique(between[order], return_index=True)
    return order[np.sort(first)[:n]]


def _open(T: np.ndarray, implied: Implied, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Candidates among these rows that no answer implies."""
    index = rows[_candidates(T[rows], rng)]
    return index[~implied.tells(index)]


def _among_few(T: np.ndarray, implied: Implied, asked: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Open pairs of the rows that were asked about, and of so many drawn ones that there is enough to choose from."""
    known, drawn = np.unique(asked), rng.permutation(len(T))
    order = np.concatenate([known, drawn[~np.isin(drawn, known)]])
    n_rows = max(2, len(known), int(_ROWS_A_PAIR * (len(asked) + n)))
    while True:
        index = _open(T, implied, order[:n_rows], rng)
        if n_rows >= len(T) or len(np.unique(implied.between(index))) >= _OPEN * n:
            return index
        n_rows += n


def _candidates(T: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """All pairs of rows, or the nearest rows of some and as many random pairs."""
    n = len(T)
    if n * (n - 1) // 2 <= _ALL_PAIRS:
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


def _bounds_of(learner: Any) -> tuple[float, float]:
    """(upper, lower) of a learner's pairs, squared."""
    given = getattr(learner, "bounds_", None)
    if given is not None:
        return given
    pairs = learner.constraints_.pairs if hasattr(learner, "constraints_") else None
    if pairs is None or not len(pairs):
        raise ValueError("next_pairs goes by the bounds of pairs; learn from labels or pairs, or set bounds=.")
    similar = pairs.sign > 0
    sides = [float(np.median(pairs.bound[side])) if side.any() else None for side in (similar, ~similar)]
    upper, lower = sides
    return (upper or lower), (lower or upper)  # type: ignore[return-value]


def _held_to_bounds(learner: Any, X: Any, index: np.ndarray, sq: np.ndarray) -> np.ndarray:
    """Return the squared distances of pairs in the space in which they are learned and bounded.

    With `normalize` rows are compared at unit length, but bounds are about their distances as they are.
    """
    metric = learner.metric_
    if not metric.normalize:
        return sq
    unscaled = dataclasses.replace(metric, normalize=False)
    return sq_distances(np.asarray(unscaled.transform(in_double(X)), dtype=np.float64), index)


def _log(sq: np.ndarray) -> np.ndarray:
    return np.log(np.maximum(sq, 1e-300))
