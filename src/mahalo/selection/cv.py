"""Choosing by cross-validation: γ, and whatever else is given as a list."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.model_selection import RepeatedStratifiedKFold, StratifiedKFold, check_cv

from ..basis import as_basis
from ..constraints import Constraints, PairSplit, class_codes
from ..learner import MetricLearner
from ..progress import progress, say
from ..solvers import Solution
from ..task import Task
from ..validation import as_generator, as_rows, check_parameters, is_linear, len_of
from .candidates import CHOSEN, Choices
from .folds import Fold
from .judging import scorer
from .path import checked_gammas

__all__ = ["MetricLearnerCV"]

DEFAULT_GAMMAS = tuple(np.logspace(-3, 2, 11))
_UNTOUCHED = 1e-6  # times the smallest γ: the prior itself
_LOOSE = 1e-2  # relative gap inside folds
_MOST_ROWS = 3_000  # that folds are made of
_MOST_PAIRS = 10_000  # that are learned from in a fold
_FEW_ROWS = 1_000  # judged rows below which folds are repeated
_MOST_REPEATS = 5
_FALLEN = 0.02  # below the best score, at two γ in a row: larger ones are not tried
_KERNEL_ROWS, _KERNEL_DIRECTIONS = 200, 100  # beyond so many rows choosing is done over so many directions


class MetricLearnerCV(MetricLearner):
    """MetricLearner with γ, and whatever else is given as a list, chosen by cross-validation.

    Inside every fold one warm-started path serves all γ; residual, cosine and number of components are variants of its
    solutions and cost no solve of their own. The winner is then fitted to all rows, as posed, and certified.

    Parameters
    ----------
    gammas : array-like, optional
        Candidates; default 11 values from 0.001 to 100. The prior itself, nothing learned, is always one more.
    cv : int, splitter or iterable, optional
        Splits of rows. Default: 3 stratified folds, repeated where rows are few; with constraints only, five splits by
        `PairSplit`.
    scoring : {"accuracy", "auc", "map", "precision@10", "recall@10"} or callable, optional
        "accuracy" (default with labels): 10-NN accuracy of held-out against training rows, unlabelled rows not scored.
        "map", "precision@k", "recall@k": retrieval among held-out rows, each in turn asking for its own class.
        "auc" (default with constraints only): area under the ROC curve over pairs among held-out rows.
        A callable gets (metric, X_train, y_train, X_test, y_test) and returns a number, larger is better.
    holdout : {"rows", "classes"}, default="rows"
        "classes": folds leave whole classes out, and retrieval is judged among rows of classes never seen; choose so
        if the metric is to serve classes that come later.
    prior : prior or list of them, optional
        Default: ``["identity", "within"]``, with a kernel "identity" alone.
    strategy : str or list of str, default=("random", "neighbors")
        Ways to make pairs from labels, to choose among. Ignored when constraints are given.
    residual, normalize, n_components : value or list of values
        As in `MetricLearner`; lists are candidates.
    pairs_per_class : int or None, default=None
        Pairs of either kind for each class to draw from labels; None: as many as measurements found useful, 500 random
        pairs, or all rows with their neighbours. Inside folds there are at most 10,000 of them.
    n_jobs : int, optional
        Folds and problems worked on at once; −1: one for each processor.

    All other parameters are those of `MetricLearner`. The paper's protocol by name is ``MetricLearnerCV(
    prior="identity", strategy="random", pairs_per_class=100, percentiles=(1, 99), gammas=np.logspace(-2, 3, 6))``.

    Attributes
    ----------
    gamma_ : float
        One millionth of the smallest candidate where the prior itself was best.
    prior_, strategy_, residual_, normalize_, n_components_
        What was chosen.
    best_score_ : float
        Mean score over folds of the winner.
    cv_results_ : dict
        "prior", "strategy", "n_components", "residual", "normalize", "gamma", "mean_score", "std_score" and "scores"
        (candidates × folds). A path ends where scores have fallen for good; larger γ carry its last score.

    The others are those of `MetricLearner`.

    Notes
    -----
    To choose, at most 3,000 rows are looked at, drawn at random in every class, and problems are solved to a relative
    gap of 1 %. In the feature space of a kernel, beyond 200 rows, choosing is done over 100 directions. Candidates
    whose scores differ by less than one held-out row go to the simpler one: the earlier in each list, the smaller γ.
    """

    def __init__(
        self,
        *,
        gammas=None,
        cv=None,
        scoring=None,
        holdout="rows",
        loss="logdet",
        kernel="linear",
        kernel_params=None,
        basis=None,
        residual=True,
        psd="error",
        prior=None,
        normalize=False,
        bounds=None,
        percentiles=None,
        strategy=("random", "neighbors"),
        pairs_per_class=None,
        n_components=None,
        solver="auto",
        tol=1e-4,
        max_iter=None,
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
        self.gammas = gammas
        self.cv = cv
        self.scoring = scoring
        self.holdout = holdout
        self.loss = loss
        self.kernel = kernel
        self.kernel_params = kernel_params
        self.basis = basis
        self.residual = residual
        self.psd = psd
        self.prior = prior
        self.normalize = normalize
        self.bounds = bounds
        self.percentiles = percentiles
        self.strategy = strategy
        self.pairs_per_class = pairs_per_class
        self.n_components = n_components
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X, y=None, *, constraints=None, rows=None):
        """Choose by cross-validation, then learn on all rows. Arguments as in `MetricLearner.fit`."""
        labels = y
        X, y, constraints = self._validated(X, y, constraints)
        if constraints is not None and rows is None:
            constraints.check_rows(len_of(X))
        rows = np.arange(len_of(X)) if rows is None else as_rows(rows, len_of(X))
        choosing = _Choosing(self, X, y, None if labels is None else np.asarray(labels), constraints, rows)
        self._choose(choosing)
        winner = self._learner(**self._chosen, gamma=self.gamma_)
        task = Task.of(winner, X, y, constraints, rows)
        with progress(self.verbose, self.tol, self.gamma_) as on_step:
            solution = task.solve(self.gamma_, on_step=on_step)
        self._keep(task, solution)
        return self

    def _check_parameters(self) -> None:
        if self.holdout not in ("rows", "classes"):
            raise ValueError(f"holdout must be 'rows' or 'classes'; got {self.holdout!r}.")
        for candidate in self._choices().every:
            check_parameters(self._learner(**candidate, gamma=1.0))

    def _choices(self) -> Choices:
        if self.prior is not None:
            return Choices.of(self)
        prior = ("identity", "within") if is_linear(self.kernel) else "identity"
        return Choices.of(clone(self).set_params(prior=prior))

    def _learner(self, **values: Any) -> MetricLearner:
        """A MetricLearner of these values and all other parameters of this one."""
        names = set(MetricLearner().get_params()) & set(self.get_params()) - set(values) - {"verbose"}
        return MetricLearner(**{name: getattr(self, name) for name in names}, **values)

    @property
    def _chosen(self) -> dict[str, Any]:
        return {name: getattr(self, f"{name}_") for name in CHOSEN}

    def _choose(self, choosing: _Choosing) -> None:
        table, scores = choosing.table, choosing.scores()
        if not np.isfinite(scores).all():
            k, f = np.argwhere(~np.isfinite(scores))[0]
            what = ", ".join(f"{name}={value!r}" for name, value in table[k].items())
            raise ValueError(
                f"scoring returned {scores[k, f]} for {what} in fold {f}; it must return finite numbers, larger for "
                "better."
            )
        mean = scores.mean(axis=1)
        # Candidates stand from the simplest on: ties and near-ties go to the first.
        best = int(np.flatnonzero(mean >= mean.max() - choosing.near)[0])
        for name in CHOSEN:
            setattr(self, f"{name}_", table[best][name])
        self.gamma_ = float(table[best]["gamma"])
        self.best_score_ = float(mean[best])
        self.cv_results_ = {name: [row[name] for row in table] for name in CHOSEN} | {
            "gamma": np.array([row["gamma"] for row in table]),
            "mean_score": mean,
            "std_score": scores.std(axis=1),
            "scores": scores,
        }


class _Choosing:
    """One choice: folds, candidates and their scores."""

    def __init__(self, cv: MetricLearnerCV, X, y, labels, constraints: Constraints | None, rows: np.ndarray):
        self.cv, self.choices, self.constraints = cv, cv._choices(), constraints
        if constraints is not None:
            self.choices = Choices(**{**vars(self.choices), "strategy": self.choices.strategy[:1]})
        given = np.sort(checked_gammas(DEFAULT_GAMMAS if cv.gammas is None else cv.gammas))
        self.gammas = np.concatenate([given[:1] * _UNTOUCHED, given])
        self.score = scorer(cv.scoring, y, constraints, unseen=cv.holdout == "classes")
        part = _sample(y, len_of(X), cv.random_state) if constraints is None else np.arange(len_of(X))
        X, y, labels, rows = _take(X, part, cv._pairwise), *(None if a is None else a[part] for a in (y, labels, rows))
        self.folds = [Fold(X, y, labels, rows, *split, cv._pairwise) for split in self._splits(X, y, rows)]
        n_judged = sum(len(fold.test) for fold in self.folds)
        self.near = 1.0 / max(n_judged, 1)
        self.n_classes = 0 if y is None else len(np.unique(y[y >= 0]))

    @property
    def table(self) -> list[dict[str, Any]]:
        """Every candidate, in the order of their scores."""
        return [candidate | {"gamma": gamma} for candidate in self.choices.every for gamma in self.gammas.tolist()]

    def scores(self) -> np.ndarray:
        """Candidates × folds."""
        work = [(problem, fold) for problem in self.choices.problems for fold in range(len(self.folds))]
        done = Parallel(n_jobs=self.cv.n_jobs)(
            delayed(self._of_problem)(*problem, self.folds[fold]) for problem, fold in self._said(work)
        )
        # problem × fold × variant × γ → (problem × variant × γ) × fold
        shape = (len(self.choices.problems), len(self.folds), len(self.choices.variants), len(self.gammas))
        return np.array(done).reshape(shape).transpose(0, 2, 3, 1).reshape(-1, len(self.folds))

    def _said(self, work: list) -> Iterator:
        """The work, with a word now and then on how far it is."""
        began = time.perf_counter()
        for k, item in enumerate(work):
            if self.cv.verbose:
                spent = time.perf_counter() - began
                left = f", {spent * (len(work) - k) / k:.0f} s left" if k else ""
                (prior, strategy), fold = item
                say(f"choosing: {k + 1} of {len(work)}, fold {fold + 1}, prior {prior}, {strategy} pairs{left}")
            yield item

    def _of_problem(self, prior: Any, strategy: str, fold: Fold) -> np.ndarray:
        """Scores in one fold of all variants and γ of one problem."""
        variants = self.choices.variants
        # Solved with the least residual, the others being judged with theirs added.
        residual = min(float(variant[1]) for variant in variants)
        learner = self._learner(prior, strategy, residual, fold)
        task = Task.of(learner, fold.X_train, fold.y_train, self.constraints, fold.train_rows, quiet=True)
        scores = np.empty((len(variants), len(self.gammas)))
        best, fallen = -np.inf, 0
        for k, solution in self._solutions(task):
            if fallen == 2:
                scores[:, k] = scores[:, k - 1]
                continue
            metric = task.metric(solution)
            scores[:, k] = [self.score(fold.variant(metric, *variant), fold) for variant in variants]
            best = max(best, scores[:, k].max())
            fallen = fallen + 1 if scores[:, k].max() < best - _FALLEN else 0
        return scores

    def _solutions(self, task: Task) -> Iterable[tuple[int, Solution]]:
        """In increasing order of γ."""
        return task.path(self.gammas)

    def _learner(self, prior: Any, strategy: str, residual: float, fold: Fold) -> MetricLearner:
        cv = self.cv
        values: dict[str, Any] = {"prior": prior, "strategy": strategy, "residual": residual, "n_components": None}
        values |= {"normalize": False, "gamma": float(self.gammas[-1]), "tol": max(cv.tol, _LOOSE)}
        if self.constraints is None and self.n_classes:
            each = 500 if cv.pairs_per_class is None else cv.pairs_per_class
            values["pairs_per_class"] = max(10, min(each, _MOST_PAIRS // (2 * self.n_classes)))
            if cv.pairs_per_class is None and strategy != "random":
                values["pairs_per_class"] = max(10, _MOST_PAIRS // (2 * self.n_classes))
        if not is_linear(cv.kernel) and cv.basis is None and len(fold.train) > _KERNEL_ROWS:
            labelled = fold.y is not None
            values["basis"] = as_basis(_KERNEL_DIRECTIONS, kernel_space=True, has_labels=labelled)
        return cv._learner(**values)

    def _splits(self, X, y, rows) -> Iterable[tuple[np.ndarray, np.ndarray]]:
        cv = self.cv.cv
        if isinstance(cv, PairSplit):
            return cv.split(X, rows=rows)
        if y is None:
            if cv is None:
                return PairSplit(self.constraints, random_state=self.cv.random_state).split(X, rows=rows)
            return check_cv(cv).split(X)
        if self.cv.holdout == "classes":
            return _by_classes(y, 3 if cv is None else cv, self._seed())
        if cv is None:
            smallest = np.bincount(class_codes(y)[y >= 0]).min()
            n_splits, n_judged = max(2, min(3, smallest)), int((y >= 0).sum())
            n_repeats = int(np.clip(-(-_FEW_ROWS // n_judged), 1, _MOST_REPEATS))
            if n_repeats == 1:
                return StratifiedKFold(n_splits, shuffle=True, random_state=self._seed()).split(X, y)
            repeated = RepeatedStratifiedKFold(n_splits=n_splits, n_repeats=n_repeats, random_state=self._seed())
            return repeated.split(X, y)
        return check_cv(cv, y, classifier=True).split(X, y)

    def _seed(self) -> int:
        """Of the folds: the number given, or one drawn from the generator given."""
        given = self.cv.random_state
        if given is None or isinstance(given, (int, np.integer)):
            return int(given or 0)
        return int(as_generator(given).integers(2**31))


def _sample(y: np.ndarray | None, n: int, random_state: Any) -> np.ndarray:
    """All rows, or so many as choosing looks at, in equal shares of every class."""
    if n <= _MOST_ROWS or y is None:
        return np.arange(n)
    seed = random_state if isinstance(random_state, (int, np.integer)) else 0
    rng = np.random.default_rng(int(seed))
    labelled = np.flatnonzero(y >= 0)
    order = labelled[np.lexsort((rng.random(len(labelled)), y[labelled]))]
    place = np.arange(len(order)) - np.searchsorted(y[order], y[order])  # within its class
    share = _MOST_ROWS * np.bincount(y[order])[y[order]] / len(order)
    return np.sort(order[place < np.maximum(share, 6)])


def _take(X: Any, part: np.ndarray, pairwise: bool) -> Any:
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
