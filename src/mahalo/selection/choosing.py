"""One choice: folds, candidates and their scores."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed
from sklearn.model_selection import RepeatedStratifiedKFold, StratifiedKFold, check_cv

from ..basis import as_basis
from ..constraints import Constraints, PairSplit, class_codes
from ..constraints.sampling import MANY_RANDOM
from ..learner import MetricLearner
from ..losses import as_loss, resting_point
from ..progress import parts_of
from ..task import Task
from ..validation import as_generator, is_linear, len_of, warn
from .folds import Fold

__all__ = ["Choosing", "own_splits"]

_UNTOUCHED = 1e-6  # times the smallest γ: the prior itself
LOOSE = 1e-2  # relative gap inside folds
_MOST_ROWS = 3_000  # that folds are made of
_MOST_PAIRS = 10_000  # that are learned from in a fold
_FEW_ROWS, _FEW_QUESTIONS = 600, 1_500  # judged rows, by a vote and by retrieval, below which folds are repeated
_MOST_REPEATS = 3
_FALLEN = 0.02  # below the best score, at two γ in a row: larger ones are not tried, where scores are from 0 to 1
_ROUNDING = 1e-12  # of the largest score
_WIDE = 100  # columns (rows under a kernel) beyond which choosing is done over some directions
_DIRECTIONS = 64, 256  # at least and at most; between them two for each class


class Choosing:
    """One choice: folds, candidates and their scores."""

    def __init__(self, cv: Any, X: Any, y: Any, labels: Any, constraints: Constraints | None, rows: np.ndarray) -> None:
        if y is None and cv.holdout == "classes":
            raise ValueError(
                "holdout='classes' needs labels y to leave classes out by; got constraints alone. Pass y too, or use "
                "holdout='rows'."
            )
        self.cv, self.choices, self.constraints = cv, cv._choices(), constraints
        if constraints is not None:
            self.choices = dataclasses.replace(self.choices, strategy=self.choices.strategy[:1])
        if cv.prior is None and (sp.issparse(X) or (y is None and not (constraints.pairs.sign > 0).any())):  # type: ignore[union-attr]
            self.choices = dataclasses.replace(self.choices, prior=("identity",))  # nothing to find another from
        given = cv._gammas()
        at_rest = resting_point(as_loss(cv.loss)) > 0  # elsewhere the metric that nothing is learned from is zero
        self.gammas = np.concatenate([given[:1] * _UNTOUCHED, given]) if at_rest else given
        self.score = cv._score(y, constraints)
        whole = constraints is not None or own_splits(cv.cv)
        part = np.arange(len_of(X)) if whole else _sample(y, len_of(X), self._seed)
        self._all = X, y, labels, rows, part
        self.n_held = self.n_total = len_of(X)  # rows at hand, and of which they are a sample where more are on disk
        X = _taken(X, part, cv._pairwise)
        y, labels = (None if a is None else a[part] for a in (y, labels))
        rows = rows[part]
        self.n_classes = 0 if y is None else len(np.unique(y[y >= 0]))
        self.folds = [Fold(X, y, labels, rows, *split, cv._pairwise) for split in self._splits(X, y, rows)]

    @property
    def class_names(self) -> list[str]:
        """Names of the classes, in the order of their codes."""
        _, y, labels, _, _ = self._all
        if y is None:
            return []
        names = [""] * (int(y.max(initial=-1)) + 1)
        codes, first = np.unique(y, return_index=True)
        for code, row in zip(codes.tolist(), first.tolist(), strict=True):
            if code >= 0:
                names[code] = str(code if labels is None else labels[row])
        return names

    def folds_of_all(self) -> list[Fold]:
        """Return the folds, extended from the sample that choosing looks at to all rows.

        Held-out rows of a fold stay held out. The other rows go in equal shares of every class to the folds, or, where
        classes are held out, to the fold that holds out their class; unlabelled rows are always learned from.
        """
        X, y, labels, rows, part = self._all
        if len(part) == len_of(X):
            return self.folds
        rng = np.random.default_rng(self._seed)
        fold_of = np.full(len_of(X), -1)
        assert y is not None  # without labels there is no sample
        others = np.setdiff1d(np.flatnonzero(y >= 0), part)
        order = others[np.lexsort((rng.random(len(others)), y[others]))]
        fold_of[order] = np.arange(len(order)) % len(self.folds)
        if self.cv.holdout == "classes":
            for k, fold in enumerate(self.folds):
                fold_of[np.isin(y, np.unique(y[part[fold.test]]))] = k
        for k, fold in enumerate(self.folds):
            fold_of[part[fold.test]] = k
        return [
            Fold(X, y, labels, rows, np.flatnonzero(fold_of != k), np.flatnonzero(fold_of == k), self.cv._pairwise)
            for k in range(len(self.folds))
        ]

    @property
    def table(self) -> list[dict[str, Any]]:
        """Every candidate, from the simplest on."""
        return [candidate | {"gamma": gamma} for candidate in self.choices.every for gamma in self.gammas.tolist()]

    def best(self, without: int | None = None) -> int:
        """The candidate with the best mean score over all folds, or all but one; near-ties go to the simplest.

        First the solution, a problem at a γ, by its best variant: near is less than one held-out row behind, or, of
        scores of a callable, in whatever units, equal but for rounding. Then the simplest of its variants that is
        within one standard error, over folds, of the best.
        """
        kept = np.arange(len(self.folds)) != without
        shape = len(self.choices.problems), len(self.choices.variants), len(self.gammas)
        scores = self.scores[:, kept].reshape(*shape, -1)
        mean = scores.mean(axis=-1)
        n_judged = sum(len(fold.test) for fold, keep in zip(self.folds, kept, strict=True) if keep)
        near = _ROUNDING * np.abs(mean).max() if callable(self.cv.scoring) else 1.0 / max(n_judged, 1)
        problem, gamma = np.argwhere(mean.max(axis=1) >= mean.max() - near)[0]
        variants = scores[problem, :, gamma]
        behind = variants[mean[problem, :, gamma].argmax()] - variants
        error = behind.std(axis=1) / np.sqrt(max(1, behind.shape[1] - 1))
        variant = np.flatnonzero(behind.mean(axis=1) <= error)[0]
        return int(np.ravel_multi_index((problem, variant, gamma), shape))

    @cached_property
    def scores(self) -> np.ndarray:
        """Candidates × folds."""
        if self.constraints is not None:
            _check_learnable(self.constraints, self.folds)
        work = [(problem, fold) for problem in self.choices.problems for fold in range(len(self.folds))]
        done = Parallel(n_jobs=self.cv.n_jobs)(
            delayed(self._of_problem)(*problem, self.folds[fold]) for problem, fold in self._said(work)
        )
        # problem × fold × variant × γ → (problem × variant × γ) × fold
        shape = (len(self.choices.problems), len(self.folds), len(self.choices.variants), len(self.gammas))
        scores = np.array(done).reshape(shape).transpose(0, 2, 3, 1).reshape(-1, len(self.folds))
        if not np.isfinite(scores).all():
            k, f = np.argwhere(~np.isfinite(scores))[0]
            what = ", ".join(f"{name}={value!r}" for name, value in self.table[k].items())
            raise ValueError(
                f"scoring returned {scores[k, f]} for {what} in fold {f}; it must return finite numbers, larger for "
                "better."
            )
        return scores

    def _said(self, work: list) -> Iterator:
        """The work, with a word on how far it is."""

        def name(item: tuple) -> str:
            (prior, strategy), fold = item
            return f"fold {fold + 1}, prior {prior}, {strategy} pairs"

        return parts_of(work, self.cv.verbose, "choosing", name)

    def _of_problem(self, prior: Any, strategy: str, fold: Fold) -> np.ndarray:
        """Scores in one fold of all variants and γ of one problem."""
        variants = self.choices.variants
        task = self.task(prior, strategy, fold)
        scores = np.empty((len(variants), len(self.gammas)))
        best, fallen, enough = -np.inf, 0, np.inf if callable(self.cv.scoring) else _FALLEN
        for k, solution in task.path(self.gammas * self.weight_of_pairs(strategy)):
            metrics = {weight: task.metric(solution, float(weight)) for weight in self.choices.residual}
            scores[:, k] = [self.score(fold.variant(metrics[rho], n, cosine), fold) for n, rho, cosine in variants]
            best = max(best, scores[:, k].max())
            fallen = fallen + 1 if scores[:, k].max() < best - enough else 0
            if fallen == 2:
                scores[:, k + 1 :] = scores[:, k : k + 1]
                break
        return scores

    def task(self, prior: Any, strategy: str, fold: Fold) -> Task:
        """Posed with the least residual of all; variants with more of it are judged with theirs added."""
        residual = min(float(weight) for weight in self.choices.residual)
        learner = self._learner(prior, strategy, residual, fold)
        data = fold.X_train, fold.y_train, self.constraints, fold.train_rows
        return Task.of(learner, *data, quiet=True, kept=fold.kept)

    def _learner(self, prior: Any, strategy: str, residual: float, fold: Fold) -> MetricLearner:
        cv = self.cv
        values: dict[str, Any] = {"prior": prior, "strategy": strategy, "residual": residual, "n_components": None}
        values |= {"normalize": False, "gamma": float(self.gammas[-1]), "tol": max(cv.tol, LOOSE)}
        if self.constraints is None and self.n_classes:
            values["pairs_per_class"] = self._pairs_per_class(strategy)
        kernel, directions = not is_linear(cv.kernel), int(np.clip(2 * self.n_classes, *_DIRECTIONS))
        if cv._value("basis") is None and (len(fold.train) if kernel else fold.X.shape[1]) > max(_WIDE, directions):
            values["basis"] = as_basis(directions, kernel_space=kernel, has_labels=fold.y is not None)
        return cv._learner(**values)

    def _pairs_per_class(self, strategy: str) -> int:
        """In a fold."""
        each, most = self.cv.pairs_per_class, _MOST_PAIRS // (2 * self.n_classes)
        if each is None:
            each = MANY_RANDOM if strategy == "random" else most
        return max(10, min(each, most))

    def weight_of_pairs(self, strategy: str) -> float:
        """Of many classes a fold has fewer pairs each than the fit to all rows will have: they stand for several.

        γ has the same say in both then. Tried for retrieval alone: better from ten labels a class on.
        """
        if self.constraints is not None or strategy != "random" or not self.cv._by_retrieval:
            return 1.0
        return (self.cv.pairs_per_class or MANY_RANDOM) / self._pairs_per_class(strategy)

    def _splits(self, X: Any, y: Any, rows: Any) -> Iterable[tuple[np.ndarray, np.ndarray]]:
        cv = self.cv.cv
        if isinstance(cv, PairSplit):
            return cv.split(X, rows=rows)
        if y is None:
            if cv is None:
                assert self.constraints is not None
                return self.cv._pair_split(self.constraints).split(X, rows=rows)
            return check_cv(cv).split(X)
        if self.cv.holdout == "classes":
            return _by_classes(y, 3 if cv is None else cv, self._seed)
        if cv is None:
            return _quietly(*self._stratified(X, y), y)
        splitter = check_cv(cv, y, classifier=True)
        return splitter.split(X, y) if own_splits(cv) else _quietly(splitter.split(X, y), int(cv), y)

    def _stratified(self, X: Any, y: np.ndarray) -> tuple[Iterable[tuple[np.ndarray, np.ndarray]], int]:
        """Three folds, or two where classes are small, and which of these; repeated where rows are few."""
        sizes = np.bincount(class_codes(y)[y >= 0])
        retrieval = self.cv._by_retrieval
        _check_labels(int(sizes.max()), retrieval)
        # Of a class of three, three folds hold out one row each, which has none to look for.
        n_splits = 2 if retrieval and sizes.max() < 4 else max(2, min(3, int(sizes.min())))
        few = _FEW_QUESTIONS if retrieval else _FEW_ROWS
        n_repeats = int(np.clip(-(-few // int(sizes.sum())), 1, _MOST_REPEATS))
        if n_repeats == 1:
            return StratifiedKFold(n_splits, shuffle=True, random_state=self._seed).split(X, y), n_splits
        repeated = RepeatedStratifiedKFold(n_splits=n_splits, n_repeats=n_repeats, random_state=self._seed)
        return repeated.split(X, y), n_splits

    @cached_property
    def _seed(self) -> int:
        """Of the rows looked at and of the folds: the number given, or one drawn from the generator given."""
        given = self.cv.random_state
        if given is None or isinstance(given, (int, np.integer)):
            return int(given or 0)
        return int(as_generator(given).integers(2**31))


def own_splits(cv: Any) -> bool:
    """Whether folds are the caller's own, which are of all rows."""
    return not (cv is None or isinstance(cv, (int, np.integer)))


def _quietly(splits: Iterable, n_splits: int, y: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """The splits, with one warning of ours for many of scikit-learn's where a class has fewer rows than there are."""
    least = int(np.unique(y[y >= 0], return_counts=True)[1].min(initial=n_splits))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The least populated class")
        found = list(splits)
    if least < n_splits:
        warn(
            f"The least populated class has {least} row{'s' * (least > 1)}, fewer than the {n_splits} folds: "
            "in some of them it is not learned from, or not judged. Label more rows of it, or leave it out."
        )
    return found


def _check_labels(largest: int, retrieval: bool) -> None:
    """Raise where no class has rows enough for two folds."""
    if largest >= (3 if retrieval else 2):
        return
    what = "by retrieval needs three labels or more" if retrieval else "needs two labels or more"
    why = "so that two are held out together" if retrieval else "one to learn from and one to judge"
    raise ValueError(
        f"choosing on held-out rows {what} in some class, {why}; y has at most {largest} a class. Label more rows, or "
        "choose nothing: use MetricLearner."
    )


def _check_learnable(constraints: Constraints, folds: list[Fold]) -> None:
    """Raise where a fold has no constraint to learn from."""
    for k, fold in enumerate(folds):
        if constraints.n_constraints and not constraints.on_rows(fold.train_rows)[1].any():
            raise ValueError(
                f"none of the {constraints.n_constraints} constraints has all its rows among the {len(fold.train)} "
                f"that fold {k + 1} of {len(folds)} learns from. Give more constraints, or folds that leave more rows "
                "to learn from, such as cv=PairSplit(constraints, test_size=0.2)."
            )


def _sample(y: np.ndarray | None, n: int, seed: int) -> np.ndarray:
    """All rows, or so many as choosing looks at, in equal shares of every class."""
    if n <= _MOST_ROWS or y is None:
        return np.arange(n)
    rng = np.random.default_rng(seed)
    labelled = np.flatnonzero(y >= 0)
    order = labelled[np.lexsort((rng.random(len(labelled)), y[labelled]))]
    place = np.arange(len(order)) - np.searchsorted(y[order], y[order])  # within its class
    wanted = _MOST_ROWS * np.bincount(y[order])[y[order]] / len(order)
    return np.sort(order[place < np.maximum(wanted, 6)])


def _taken(X: Any, part: np.ndarray, pairwise: bool) -> Any:
    if len(part) == len_of(X):
        return X
    return X[np.ix_(part, part)] if pairwise else X[part]


def _by_classes(y: np.ndarray, n_splits: Any, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Folds that leave out whole classes; unlabelled rows are always among those learned from."""
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
