"""Distances of pairs of rows that the metric they are measured with never saw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..constraints import Constraints, PairSplit
from ..validation import Seed, as_generator, len_of

__all__ = ["HeldOut", "fit_and_hold_out", "pairs_of_labels"]

_MOST_PAIRS = 20_000  # drawn from labels


@dataclass(frozen=True)
class HeldOut:
    """Pairs of held-out rows, by number in X: their distance, and whether they are the same."""

    index: np.ndarray
    distances: np.ndarray
    same: np.ndarray


def fit_and_hold_out(
    learner: Any,
    X: Any,
    y: np.ndarray | None,
    constraints: Constraints | None,
    test_size: float,
    holdout: str,
    seed: Seed,
) -> tuple[HeldOut, np.ndarray, np.ndarray]:
    """The learner fitted on some rows; pairs of the others under its metric; the rows learned from and held out.

    `y` holds class codes, −1 for none; constraints are by row of X.
    """
    rng = as_generator(seed)
    train, test = _split(len_of(X), y, constraints, test_size, holdout, rng)
    index, same = _judged(y, constraints, test, rng)
    if same.all() or not same.any():
        counts = f"{int(same.sum())} that are the same and {int((~same).sum())} that are not"
        raise ValueError(
            f"pairs of both kinds must have both their rows held out, to calibrate on; there are {counts}. Give more "
            "pairs or labels, or a larger test_size."
        )
    learner.fit(X[train], **_known(y, constraints, train))
    index = test[index]
    distances = learner.metric_.pair_distances(X[index[:, 0]], X[index[:, 1]])
    return HeldOut(index, distances, same), train, test


def _split(
    n: int, y: np.ndarray | None, constraints: Constraints | None, share: float, holdout: str, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    if constraints is not None:
        return next(PairSplit(constraints, n_splits=1, test_size=share, random_state=rng).split(np.empty(n)))
    assert y is not None
    if holdout == "classes":
        classes = np.unique(y[y >= 0])
        n_out = min(max(2, round(share * len(classes))), len(classes) - 2)
        if n_out < 2:
            raise ValueError(
                f"holdout='classes' needs four classes, two to learn from and two held out; got {len(classes)}."
            )
        out = np.isin(y, rng.choice(classes, n_out, replace=False))
    else:
        # Of every class the same share, at least two rows where it has four; rows without a class are learned from.
        out = np.zeros(n, dtype=bool)
        for code in np.unique(y[y >= 0]):
            rows = rng.permutation(np.flatnonzero(y == code))
            out[rows[: max(round(share * len(rows)), 2 if len(rows) >= 4 else 0)]] = True
    return np.flatnonzero(~out), np.flatnonzero(out)


def _known(y: np.ndarray | None, constraints: Constraints | None, train: np.ndarray) -> dict[str, Any]:
    """What a learner is told about the rows it learns from."""
    labels = {} if y is None else {"y": y[train]}
    return labels if constraints is None else labels | {"constraints": constraints, "rows": train}


def _judged(
    y: np.ndarray | None, constraints: Constraints | None, test: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    if constraints is None:
        assert y is not None
        return pairs_of_labels(y[test], rng)
    pairs = constraints.on_rows(test)[0].pairs
    return pairs.index, pairs.sign > 0


def pairs_of_labels(y: np.ndarray, seed: Seed) -> tuple[np.ndarray, np.ndarray]:
    """Pairs drawn from class codes, as many the same as not, no pair twice; and which are the same."""
    n_classes = len(np.unique(y[y >= 0]))
    if n_classes < 2:
        return np.empty((0, 2), dtype=np.intp), np.empty(0, dtype=bool)
    per_class = max(10, _MOST_PAIRS // (2 * n_classes))
    rng = as_generator(seed)
    pairs = Constraints.from_labels(y, pairs_per_class=per_class, random_state=rng).pairs
    _, first = np.unique(np.sort(pairs.index, axis=1), axis=0, return_index=True)
    # Small classes have few pairs of their own.
    kinds = [rng.permutation(first[(pairs.sign[first] > 0) == same]) for same in (True, False)]
    kept = np.concatenate([kind[: min(map(len, kinds))] for kind in kinds])
    return pairs.index[kept], pairs.sign[kept] > 0
