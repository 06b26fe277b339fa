"""The choice of γ, and of the way labels become pairs, by cross-validation."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
from sklearn.model_selection import StratifiedKFold, check_cv

from ..constraints import PairSplit, class_codes
from ..learner import MetricLearner
from ..progress import progress
from ..task import Task
from ..validation import as_generator, as_rows, check_parameters, len_of
from .folds import Fold
from .path import checked_gammas

__all__ = ["MetricLearnerCV"]

DEFAULT_GAMMAS = tuple(np.logspace(-3, 2, 11))


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
        normalize=False,
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
        self.normalize = normalize
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
        labels = y
        X, y, constraints = self._validated(X, y, constraints)
        if constraints is not None and rows is None:
            constraints.check_rows(len_of(X))
        rows = np.arange(len_of(X)) if rows is None else as_rows(rows, len_of(X))
        gammas = np.sort(checked_gammas(DEFAULT_GAMMAS if self.gammas is None else self.gammas))
        strategies = self._strategies() if constraints is None else self._strategies()[:1]
        labels = None if labels is None else np.asarray(labels)
        pairwise = self._pairwise
        folds = [Fold(X, y, labels, rows, *split, pairwise) for split in self._splits(X, y, constraints, rows)]
        score = self._scorer(y, constraints)
        scores = np.array(
            [
                [self._fold_scores(fold, constraints, strategy, gammas, score) for fold in folds]
                for strategy in strategies
            ]
        )  # strategy × fold × gamma
        self._choose(strategies, gammas, scores)
        winner = self._learner(self.strategy_, self.gamma_, verbose=self.verbose)
        task = Task.of(winner, X, y, constraints, rows)
        with progress(self.verbose, self.tol, self.gamma_) as on_step:
            solution = task.solve(self.gamma_, on_step=on_step)
        self._keep(task, solution)
        return self

    def _check_parameters(self) -> None:
        for strategy in self._strategies():
            check_parameters(self._learner(strategy, 1.0))

    def _strategies(self) -> tuple:
        one = isinstance(self.strategy, str) or not np.iterable(self.strategy)
        strategies = (self.strategy,) if one else tuple(self.strategy)
        if not len(strategies):
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
        if self.cv is None:
            smallest = np.bincount(class_codes(y)[y >= 0]).min()
            cv = StratifiedKFold(max(2, min(3, smallest)), shuffle=True, random_state=self._seed())
            return cv.split(X, y)
        return check_cv(self.cv, y, classifier=True).split(X, y)

    def _seed(self) -> int:
        """Of the folds: the number given, or one drawn from the generator given."""
        if self.random_state is None or isinstance(self.random_state, (int, np.integer)):
            return int(self.random_state or 0)
        return int(as_generator(self.random_state).integers(2**31))

    def _scorer(self, y, constraints) -> Callable:
        scoring = self.scoring
        if scoring is None:
            scoring = "auc" if y is None else "accuracy"
        if callable(scoring):
            return lambda metric, f: scoring(metric, f.X_train, f.labels_of(f.train), f.X_test, f.labels_of(f.test))
        if scoring == "accuracy" and y is not None:
            return lambda metric, f: f.knn_accuracy(metric)
        if scoring == "auc":
            return lambda metric, f: f.auc(metric, constraints)
        raise ValueError(
            f"scoring must be 'accuracy' (needs y), 'auc' or a callable; got {self.scoring!r}"
            f"{'' if y is not None else ' without y'}."
        )

    def _fold_scores(self, fold: Fold, constraints, strategy: str, gammas: np.ndarray, score) -> list[float]:
        """Scores of all γ in one fold."""
        learner = self._learner(strategy, gammas[-1])
        task = Task.of(learner, fold.X_train, fold.y_train, constraints, fold.train_rows, quiet=True)
        with progress(self.verbose, self.tol, float(gammas[-1]), f"choosing γ, {strategy}") as on_step:
            return [score(task.metric(solution), fold) for _, solution in task.path(gammas, on_step)]

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
