"""All γ at once: the whole regularisation path, and the choice of γ (and strategy) by cross-validation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.model_selection import StratifiedKFold, check_cv

from .constraints import Constraints, PairSplit, as_constraints, as_labels, class_codes, len_of
from .learner import (
    MetricLearner,
    check_gamma,
    check_rows,
    leading_part,
    make_metric,
    pair_auc,
    prepare,
    solve,
    warn_if_zero,
    warn_unless_converged,
)
from .metric import Metric
from .progress import progress
from .solvers import Certificate, Solution

__all__ = ["MetricLearnerCV", "MetricPath", "metric_path"]

DEFAULT_GAMMAS = tuple(np.logspace(-3, 2, 11))


@dataclass(frozen=True)
class MetricPath:
    """One metric for each γ, in the order the γ were given."""

    gammas: np.ndarray
    metrics: tuple[Metric, ...]
    certificates: tuple[Certificate, ...]
    duals: np.ndarray
    constraints: Constraints = field(repr=False)


def metric_path(X, y=None, *, gammas=None, constraints=None, rows=None, **params) -> MetricPath:
    """The metrics of many γ for the price of a few fits.

    Parameters
    ----------
    X, y, constraints, rows
        As in `MetricLearner.fit`.
    gammas : array-like, optional
        Default: 21 values from 0.01 to 1000. Solved in increasing order, each from the one before; returned in the
        order given.
    **params
        Any parameter of `MetricLearner` but gamma.

    Returns
    -------
    MetricPath
        With gammas, metrics, certificates, duals (one row a γ) and the constraints.
    """
    if "gamma" in params:
        raise ValueError(f"metric_path takes gammas=, all of them at once; got gamma={params['gamma']!r}.")
    gammas = _checked_gammas(np.logspace(-2, 3, 21) if gammas is None else gammas)
    learner = MetricLearner(**params)
    learner._check_parameters()
    X, y = learner._validated(X, y, constraints)
    learner.set_params(gamma=gammas.max())
    setup = prepare(learner, X, y, as_constraints(constraints), rows)
    solutions: list[Solution | None] = [None] * len(gammas)
    with progress(learner.verbose, learner.tol, float(gammas.max()), "path") as on_step:
        for k, solution in _warm_solutions(learner, setup, gammas, on_step):
            warn_unless_converged(solution, learner.tol)
            solutions[k] = solution
    done = [s for s in solutions if s is not None]
    metrics = tuple(make_metric(setup, s, X, learner.n_components) for s in done)
    for metric in metrics:
        warn_if_zero(metric, stacklevel=3)
    return MetricPath(
        gammas=gammas,
        metrics=metrics,
        certificates=tuple(s.certificate for s in done),
        duals=np.ldexp(np.array([s.lam for s in done]), -2 * setup.exponent),
        constraints=setup.constraints,
    )


def _warm_solutions(learner, setup, gammas: np.ndarray, on_step) -> Iterator[tuple[int, Solution]]:
    """(position, solution) for each γ in increasing order."""
    solution = None
    for k in np.argsort(gammas, kind="stable"):
        # A penalised solution is no start for hard constraints: its multipliers belong to another slack.
        start = None if np.isinf(gammas[k]) else solution
        solution = solve(learner, setup, gammas[k], start=start, on_step=on_step)
        yield int(k), solution


def _checked_gammas(gammas) -> np.ndarray:
    gammas = np.atleast_1d(np.asarray(gammas, dtype=np.float64))
    if gammas.ndim != 1 or not len(gammas):
        raise ValueError(f"gammas must be a list of numbers; got shape {gammas.shape}.")
    for gamma in gammas:
        check_gamma(float(gamma))
    return gammas


class MetricLearnerCV(MetricLearner):
    """MetricLearner with γ, and the way labels become pairs, chosen by cross-validation.

    Inside every fold one warm-started path serves all γ. The winner is then fitted to all rows.

    Parameters
    ----------
    gammas : array-like, optional
        Candidates; default 11 values from 0.001 to 100.
    strategy : str or sequence of str, default=("random", "neighbors")
        Ways to make pairs from labels, to choose among. Ignored when constraints are given.
    cv : int, splitter or iterable, optional
        Splits of rows. Default: 3 stratified folds; with constraints only, five splits by `PairSplit`.
    scoring : {"accuracy", "auc"} or callable, optional
        "accuracy" (default with labels): 10-NN accuracy of held-out against training rows, unlabelled rows not scored.
        With `n_components` neighbours are looked for among what `transform` keeps.
        "auc" (default with constraints only): area under the ROC curve over pairs among held-out rows.
        A callable gets (metric, X_train, y_train, X_test, y_test) and returns a number, larger is better.

    pairs_per_class : int or None, default=None
        Pairs of either kind for each class to draw from labels; None: as many as measurements found useful, 500 random
        pairs, or all rows with their neighbours.

    All other parameters are those of `MetricLearner`. The paper's protocol by name is
    ``MetricLearnerCV(strategy="random", pairs_per_class=100, percentiles=(1, 99), gammas=np.logspace(-2, 3, 6))``.

    Attributes
    ----------
    gamma_ : float
    strategy_ : str
    best_score_ : float
        Mean score over folds of the winner.
    cv_results_ : dict
        "strategy", "gamma", "mean_score", "std_score", "scores" (candidates × folds).

    The others are those of `MetricLearner`.
    """

    def __init__(
        self,
        *,
        gammas=None,
        cv=None,
        scoring=None,
        loss="logdet",
        kernel="linear",
        kernel_params=None,
        basis=None,
        residual=True,
        psd="error",
        prior="identity",
        bounds=None,
        percentiles=None,
        strategy=("random", "neighbors"),
        pairs_per_class=None,
        n_components=None,
        solver="auto",
        tol=1e-4,
        max_iter=None,
        random_state=None,
        verbose=0,
    ):
        self.gammas = gammas
        self.cv = cv
        self.scoring = scoring
        self.loss = loss
        self.kernel = kernel
        self.kernel_params = kernel_params
        self.basis = basis
        self.residual = residual
        self.psd = psd
        self.prior = prior
        self.bounds = bounds
        self.percentiles = percentiles
        self.strategy = strategy
        self.pairs_per_class = pairs_per_class
        self.n_components = n_components
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X, y=None, *, constraints=None, rows=None):
        """Choose γ (and strategy) by cross-validation, then learn on all rows. Arguments as in `MetricLearner.fit`."""
        self._check_parameters()
        X, y = self._validated(X, y, constraints)
        constraints = as_constraints(constraints)
        if constraints is not None and rows is None:
            constraints.check_rows(len_of(X))
        check_rows(rows, len_of(X))
        rows = np.arange(len_of(X)) if rows is None else np.asarray(rows)
        gammas = np.sort(_checked_gammas(DEFAULT_GAMMAS if self.gammas is None else self.gammas))
        strategies = self._strategies()
        if constraints is not None:
            strategies = strategies[:1]
        pairwise = isinstance(self.kernel, str) and self.kernel == "precomputed"
        folds = [_Fold(X, y, rows, train, test, pairwise) for train, test in self._splits(X, y, constraints, rows)]
        score = self._scorer(y, constraints)
        scores = np.array(
            [
                [self._fold_scores(fold, constraints, strategy, gammas, score) for fold in folds]
                for strategy in strategies
            ]
        )  # strategy × fold × gamma
        self._choose(strategies, gammas, scores)
        winner = self._learner(self.strategy_, self.gamma_, verbose=self.verbose)
        setup = prepare(winner, X, y, constraints, rows)
        self._keep(X, setup, winner._solve(setup))
        return self

    def _strategies(self) -> tuple:
        strategies = (
            (self.strategy,) if isinstance(self.strategy, str) or not np.iterable(self.strategy) else self.strategy
        )
        if not len(strategies := tuple(strategies)):
            raise ValueError("strategy must name at least one of 'random', 'neighbors' and 'triplets'; got none.")
        return strategies

    def _learner(self, strategy: str, gamma: float, verbose=0) -> MetricLearner:
        names = set(MetricLearner().get_params()) & set(self.get_params())
        shared = {k: getattr(self, k) for k in names - {"strategy", "verbose"}}
        return MetricLearner(**shared, strategy=strategy, gamma=gamma, verbose=verbose)

    def _splits(self, X, y, constraints, rows):
        if y is None:
            if self.cv is None:
                return PairSplit(constraints, random_state=self.random_state).split(X, rows=rows)
            if isinstance(self.cv, PairSplit):
                return self.cv.split(X, rows=rows)
            return check_cv(self.cv).split(X)
        if isinstance(self.cv, PairSplit):
            return self.cv.split(X, rows=rows)
        labels = as_labels(y).codes
        if self.cv is None:
            smallest = np.bincount(class_codes(y)[class_codes(y) >= 0]).min()
            cv = StratifiedKFold(max(2, min(3, smallest)), shuffle=True, random_state=self._seed())
            return cv.split(X, labels)
        return check_cv(self.cv, labels, classifier=True).split(X, labels)

    def _seed(self):
        return self.random_state if isinstance(self.random_state, (int, np.integer)) else 0

    def _scorer(self, y, constraints) -> Callable:
        scoring = self.scoring
        if scoring is None:
            scoring = "auc" if y is None else "accuracy"
        if callable(scoring):
            return lambda metric, f: scoring(metric, f.X_train, f.y_train, f.X_test, f.y_test)
        if scoring == "accuracy" and y is not None:
            return lambda metric, f: f.knn_accuracy(metric)
        if scoring == "auc":
            return lambda metric, f: f.auc(metric, constraints)
        raise ValueError(
            f"scoring must be 'accuracy' (needs y), 'auc' or a callable; got {self.scoring!r}"
            f"{'' if y is not None else ' without y'}."
        )

    def _fold_scores(self, fold: _Fold, constraints, strategy: str, gammas: np.ndarray, score) -> list[float]:
        """Scores of all γ in one fold."""
        learner = self._learner(strategy, gammas[-1])
        setup = prepare(learner, fold.X_train, fold.y_train, constraints, fold.train_rows, quiet=True)
        out = []
        with progress(self.verbose, self.tol, float(gammas[-1]), f"choosing γ, {strategy}") as on_step:
            for _, solution in _warm_solutions(learner, setup, gammas, on_step):
                metric = make_metric(setup, solution, fold.X_train, None)
                if self.n_components is not None:  # a fold may have fewer outputs than all rows have
                    metric = leading_part(metric, fold.X_train, min(self.n_components, metric.n_outputs))
                out.append(score(metric, fold))
        return out

    def _choose(self, strategies, gammas, scores: np.ndarray) -> None:
        if not np.isfinite(scores).all():
            s, f, g = np.argwhere(~np.isfinite(scores))[0]
            raise ValueError(
                f"scoring returned {scores[s, f, g]} for gamma={gammas[g]:g}, strategy={strategies[s]!r} in fold {f}; "
                "it must return finite numbers, larger for better."
            )
        mean = scores.mean(axis=1)
        # Ties go to the smaller γ (nearer the prior) and the earlier strategy.
        best = np.unravel_index(np.argmax(mean), mean.shape)
        self.strategy_, self.gamma_ = strategies[best[0]], float(gammas[best[1]])
        self.best_score_ = float(mean[best])
        candidates = list(product(strategies, gammas.tolist()))
        by_candidate = scores.transpose(0, 2, 1).reshape(len(candidates), -1)
        self.cv_results_ = {
            "strategy": [s for s, _ in candidates],
            "gamma": np.array([g for _, g in candidates]),
            "mean_score": by_candidate.mean(axis=1),
            "std_score": by_candidate.std(axis=1),
            "scores": by_candidate,
        }


@dataclass(frozen=True)
class _Fold:
    """Training and held-out rows; with a precomputed kernel, rows of similarities to the training rows."""

    X: Any
    y: np.ndarray | None
    rows: np.ndarray | None
    train: np.ndarray
    test: np.ndarray
    pairwise: bool

    @cached_property
    def X_train(self):
        return self.X[np.ix_(self.train, self.train)] if self.pairwise else self.X[self.train]

    @cached_property
    def X_test(self):
        return self.X[np.ix_(self.test, self.train)] if self.pairwise else self.X[self.test]

    @property
    def y_train(self):
        return None if self.y is None else self.y[self.train]

    @property
    def y_test(self):
        return None if self.y is None else self.y[self.test]

    @property
    def train_rows(self):
        return None if self.rows is None else self.rows[self.train]

    def knn_accuracy(self, metric: Metric, k: int = 10) -> float:
        """Of k nearest training rows on held-out rows; unlabelled rows neither vote nor count."""
        codes = class_codes(self.y)
        votes_of, truth = codes[self.train], codes[self.test]
        voters, judged = np.flatnonzero(votes_of >= 0), np.flatnonzero(truth >= 0)
        k, n_right = min(k, len(voters)), 0
        for part in np.array_split(judged, 1 + len(judged) * len(voters) // 40_000_000):
            nearest = np.argpartition(self._sq_distances(metric, part)[:, voters], k - 1, axis=1)[:, :k]
            votes = np.zeros((len(part), codes.max() + 1))
            np.add.at(votes, (np.arange(len(part))[:, None], votes_of[voters][nearest]), 1.0)
            n_right += int((votes.argmax(axis=1) == truth[part]).sum())
        return n_right / len(judged)

    def _sq_distances(self, metric: Metric, part: np.ndarray) -> np.ndarray:
        """Between some held-out rows and all training rows; in the space of `transform` where that is limited."""
        if metric.directions is not None:
            T, T_train = (metric.transform(rows).astype(np.float64) for rows in (self.X_test[part], self.X_train))
            return euclidean_distances(T, T_train, squared=True)
        if not self.pairwise:
            return metric.distances(self.X_test[part], self.X_train, squared=True)
        own = np.diagonal(self.X)
        cross = self.X_test[part]
        return metric.distances(
            cross, self.X_train, squared=True, cross=cross, diag_x=own[self.test[part]], diag_y=own[self.train]
        )

    def auc(self, metric: Metric, constraints: Constraints | None) -> float:
        """Of telling similar from dissimilar pairs among held-out rows."""
        test_rows = None if self.rows is None else self.rows[self.test]

        def sq_distances(index: np.ndarray) -> np.ndarray:
            i, j = index.T
            if not self.pairwise:
                return metric.pair_distances(self.X_test[i], self.X_test[j], squared=True)
            a, b = self.test[i], self.test[j]
            own = np.diagonal(self.X)
            return metric.pair_distances(
                self.X_test[i], self.X_test[j], squared=True, cross=self.X[a, b], diag_x=own[a], diag_y=own[b]
            )

        return pair_auc(sq_distances, len(self.test), self.y_test, constraints, test_rows)
