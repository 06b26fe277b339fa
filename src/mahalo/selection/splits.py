"""Splits of rows into training and held-out rows."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import RepeatedStratifiedKFold, StratifiedKFold, check_cv

from ..constraints import PairSplit, class_codes
from ..validation import Seed, as_generator, warn
from .folds import Fold, SearchData

_MAX_ROWS, _MAX_SEARCHED = 2_000, 3_000  # rows that folds are made of, scored by a vote and by retrieval
_FEW_ROWS, _FEW_QUERIES = 600, 1_500  # scored rows, by a vote and by retrieval, below which folds are repeated
_MAX_REPEATS = 3
_FEW_SCREENED = 600  # rows of the screening fold


@dataclass(frozen=True)
class Splitting:
    """Rule by which rows are split into folds.

    Attributes
    ----------
    cv : int, splitter, iterable or None
    holdout : {"rows", "classes"}
    by_retrieval : bool
        Whether held-out rows are searched for among each other.
    seed : int
    pair_split : PairSplit or None
        Splitter for data without labels.
    """

    cv: Any
    holdout: str
    by_retrieval: bool
    seed: int
    pair_split: PairSplit | None

    def make_folds(self, data: SearchData) -> tuple[Fold, ...]:
        """Return the folds of the sample of the data."""
        part = data.sample
        X = data.X[part] if len(part) < data.n_rows else data.X
        return data.sampled_folds(self._splits(X, None if data.y is None else data.y[part], data.rows[part]))

    def screening_fold(self, data: SearchData) -> Fold | None:
        """Return one fold of some of the sampled rows, to drop costly candidates by; None where rows are few."""
        part = data.sample
        if data.y is None or data.pairwise or len(part) <= _FEW_SCREENED or is_custom_splitter(self.cv):
            return None
        rng = np.random.default_rng(self.seed)
        y = data.y[part]
        labelled = np.flatnonzero(y >= 0)
        order = labelled[np.lexsort((rng.random(len(labelled)), y[labelled]))]
        chosen = order[:: -(-len(order) // _FEW_SCREENED)]  # the same share of every class
        is_test = np.arange(len(chosen)) % 3 == 0
        return data.fold(np.sort(part[chosen[~is_test]]), np.sort(part[chosen[is_test]]))

    def extend_folds(self, data: SearchData, folds: tuple[Fold, ...]) -> tuple[Fold, ...]:
        """Return folds of all rows from folds of the sample.

        Held-out rows stay held out. The other rows are dealt to the folds, the same share of every class, or, where
        classes are held out, go to the fold that holds out their class; unlabelled rows are always trained on.
        """
        if len(data.sample) == data.n_rows:
            return folds
        y = data.y
        assert y is not None
        rng = np.random.default_rng(self.seed)
        fold_of = np.full(data.n_rows, -1)
        others = np.setdiff1d(np.flatnonzero(y >= 0), data.sample)
        order = others[np.lexsort((rng.random(len(others)), y[others]))]
        fold_of[order] = np.arange(len(order)) % len(folds)
        if self.holdout == "classes":
            for k, fold in enumerate(folds):
                assert fold.y_test is not None
                fold_of[np.isin(y, np.unique(fold.y_test))] = k
        for k, fold in enumerate(folds):
            fold_of[data.sample[fold.test]] = k
        return tuple(data.fold(np.flatnonzero(fold_of != k), np.flatnonzero(fold_of == k)) for k in range(len(folds)))

    def _splits(self, X: Any, y: np.ndarray | None, rows: np.ndarray) -> Iterable[tuple[np.ndarray, np.ndarray]]:
        cv = self.cv
        if isinstance(cv, PairSplit):
            return cv.split(X, rows=rows)
        if y is None:
            if cv is None:
                assert self.pair_split is not None
                return self.pair_split.split(X, rows=rows)
            return check_cv(cv).split(X)
        if self.holdout == "classes":
            return _by_classes(y, 3 if cv is None else cv, self.seed)
        if cv is None:
            return _with_one_warning(*self._stratified(X, y), y)
        splitter = check_cv(cv, y, classifier=True)
        splits = splitter.split(X, y)
        return splits if is_custom_splitter(cv) else _with_one_warning(splits, int(cv), y)

    def _stratified(self, X: Any, y: np.ndarray) -> tuple[Iterable[tuple[np.ndarray, np.ndarray]], int]:
        """Return three folds, or two where classes are small, and which of these; repeated where rows are few."""
        sizes = np.bincount(class_codes(y)[y >= 0])
        _check_labels(int(sizes.max()), self.by_retrieval)
        # Three folds of a class of three hold out one row each, for which nothing is relevant.
        n_splits = 2 if self.by_retrieval and sizes.max() < 4 else max(2, min(3, int(sizes.min())))
        few = _FEW_QUERIES if self.by_retrieval else _FEW_ROWS
        n_repeats = int(np.clip(-(-few // int(sizes.sum())), 1, _MAX_REPEATS))
        if n_repeats == 1:
            return StratifiedKFold(n_splits, shuffle=True, random_state=self.seed).split(X, y), n_splits
        repeated = RepeatedStratifiedKFold(n_splits=n_splits, n_repeats=n_repeats, random_state=self.seed)
        return repeated.split(X, y), n_splits


def seed_of(random_state: Seed) -> int:
    """Return the number given, 0 for None, or a number drawn from a generator."""
    if random_state is None or isinstance(random_state, (int, np.integer)):
        return int(random_state or 0)
    return int(as_generator(random_state).integers(2**31))


def is_custom_splitter(cv: Any) -> bool:
    """Return whether folds are the caller's own, made of all rows."""
    return not (cv is None or isinstance(cv, (int, np.integer)))


def _with_one_warning(splits: Iterable, n_splits: int, y: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the splits; warn once, in place of scikit-learn's many times, if a class has fewer rows than folds."""
    smallest = int(np.unique(y[y >= 0], return_counts=True)[1].min(initial=n_splits))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The least populated class")
        found = list(splits)
    if smallest < n_splits:
        warn(
            f"The least populated class has {smallest} row{'s' * (smallest > 1)}, fewer than the {n_splits} folds: "
            "some of them do not train on it, or do not test it. Label more rows of it, or leave it out."
        )
    return found


def _check_labels(largest: int, retrieval: bool) -> None:
    """Raise ValueError if no class has enough rows for two folds."""
    if largest >= (3 if retrieval else 2):
        return
    what = "by retrieval needs three labels or more" if retrieval else "needs two labels or more"
    why = "so that two are held out together" if retrieval else "one to learn from and one to judge"
    raise ValueError(
        f"choosing on held-out rows {what} in some class, {why}; y has at most {largest} a class. Label more rows, or "
        "choose nothing: use MetricLearner."
    )


def draw_sample(y: np.ndarray | None, n: int, seed: int, *, by_retrieval: bool) -> np.ndarray:
    """Return positions of all rows, or of a sample of labelled ones, the same share of every class."""
    most = _MAX_SEARCHED if by_retrieval else _MAX_ROWS
    if n <= most or y is None:
        return np.arange(n)
    rng = np.random.default_rng(seed)
    labelled = np.flatnonzero(y >= 0)
    order = labelled[np.lexsort((rng.random(len(labelled)), y[labelled]))]
    place = np.arange(len(order)) - np.searchsorted(y[order], y[order])  # within its class
    wanted = most * np.bincount(y[order])[y[order]] / len(order)
    return np.sort(order[place < np.maximum(wanted, 6)])


def _by_classes(y: np.ndarray, n_splits: Any, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield splits that hold out whole classes; unlabelled rows are always trained on."""
    n_classes = len(np.unique(y[y >= 0]))
    if not isinstance(n_splits, (int, np.integer)):
        raise ValueError(f"holdout='classes' takes a number of folds for cv; got {n_splits!r}.")
    if n_classes < 4:
        raise ValueError(
            f"holdout='classes' needs four classes or more, two to learn from and two to judge; got {n_classes}. Use "
            "holdout='rows'."
        )
    groups = np.array_split(np.random.default_rng(seed).permutation(n_classes), min(int(n_splits), n_classes // 2))
    codes = np.unique(y[y >= 0])
    for group in groups:
        held_out = np.isin(y, codes[group])
        yield np.flatnonzero(~held_out), np.flatnonzero(held_out)
