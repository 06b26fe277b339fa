"""Distances of pairs of held-out rows under a metric learned from the other rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..constraints import Constraints, PairSplit
from ..learner import MetricLearner
from ..linalg import Matrix
from ..validation import Seed, as_generator, len_of

_MAX_PAIRS = 20_000  # drawn from labels


@dataclass(frozen=True)
class HeldOutPairs:
    """Pairs of held-out rows: row numbers in X, distances, and True for pairs that are the same."""

    index: np.ndarray
    distances: np.ndarray
    same: np.ndarray


def fit_and_hold_out(
    learner: MetricLearner,
    X: Matrix,
    y: np.ndarray | None,
    constraints: Constraints | None,
    test_size: float,
    holdout: str,
    seed: Seed,
) -> tuple[HeldOutPairs, np.ndarray, np.ndarray]:
    """Fit the learner on part of the rows; return pairs of the others, the rows learned from, and those held out.

    `y` holds class codes, −1 for unlabelled rows; constraints are by row of X.
    """
    rng = as_generator(seed)
    train, test = _split(len_of(X), y, constraints, test_size, holdout, rng)
    index, same = _pairs_of_rows(y, constraints, test, rng)
    if same.all() or not same.any():
        counts = f"{int(same.sum())} that are the same and {int((~same).sum())} that are not"
        raise ValueError(
            f"pairs of both kinds must have both their rows held out, to calibrate on; there are {counts}. Pass more "
            "pairs or labels, or a larger test_size."
        )
    learner.fit(
        X[train],
        None if y is None else y[train],
        constraints=constraints,
        rows=None if constraints is None else train,
    )
    index = test[index]
    distances = learner.metric_.pair_distances(X[index[:, 0]], X[index[:, 1]])
    return HeldOutPairs(index, distances, same), train, test


def _split(
    n: int, y: np.ndarray | None, constraints: Constraints | None, share: float, holdout: str, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows to learn from and the rows to hold out."""
    if constraints is not None:
        return next(PairSplit(constraints, n_splits=1, test_size=share, random_state=rng).split(np.empty(n)))
    assert y is not None
    if holdout == "classes":
        classes = np.unique(y[y >= 0])
        n_held_out = min(max(2, round(share * len(classes))), len(classes) - 2)
        if n_held_out < 2:
            raise ValueError(
                f"holdout='classes' needs four classes, two to learn from and two held out; got {len(classes)}."
            )
        held_out = np.isin(y, rng.choice(classes, n_held_out, replace=False))
    else:
        # The same share of every class, but at least two rows if it has four; unlabelled rows are learned from.
        held_out = np.zeros(n, dtype=bool)
        for code in np.unique(y[y >= 0]):
            rows = rng.permutation(np.flatnonzero(y == code))
            held_out[rows[: max(round(share * len(rows)), 2 if len(rows) >= 4 else 0)]] = True
    return np.flatnonzero(~held_out), np.flatnonzero(held_out)


def _pairs_of_rows(
    y: np.ndarray | None, constraints: Constraints | None, rows: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return pairs among these rows, by position, and which are the same."""
    if constraints is None:
        assert y is not None
        return draw_pairs(y[rows], rng)
    pairs = constraints.on_rows(rows)[0].pairs
    return pairs.index, pairs.sign > 0


def draw_pairs(y: np.ndarray, seed: Seed) -> tuple[np.ndarray, np.ndarray]:
    """Draw distinct pairs of rows from class codes, half of them of one class; return them and which are."""
    n_classes = len(np.unique(y[y >= 0]))
    if n_classes < 2:
        return np.empty((0, 2), dtype=np.intp), np.empty(0, dtype=bool)
    per_class = max(10, _MAX_PAIRS // (2 * n_classes))
    rng = as_generator(seed)
    pairs = Constraints.from_labels(y, pairs_per_class=per_class, random_state=rng).pairs
    _, first = np.unique(np.sort(pairs.index, axis=1), axis=0, return_index=True)
    # Small classes have few pairs of one class, so the larger kind is cut to the size of the smaller.
    kinds = [rng.permutation(first[(pairs.sign[first] > 0) == same]) for same in (True, False)]
    chosen = np.concatenate([kind[: min(map(len, kinds))] for kind in kinds])
    return pairs.index[chosen], pairs.sign[chosen] > 0
