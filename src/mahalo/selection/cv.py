"""Choosing by cross-validation: γ, and whatever else is given as a list."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Any

import numpy as np

from ..basis.base import basis_needs
from ..constraints import Constraints, PairSplit, as_label_array
from ..learner import MetricLearner
from ..priors import prior_needs
from ..progress import progress, stages
from ..rows import Needs, SampledRows, is_lazy
from ..task import Task
from ..validation import as_rows, check_parameters, is_linear, len_of
from .candidates import CHOSEN, Choices
from .choosing import Choosing, own_splits
from .judging import Score, resolve_scoring, scorer
from .path import checked_gammas

__all__ = ["MetricLearnerCV"]

DEFAULT_GAMMAS = tuple(np.logspace(-3, 2, 11))


class MetricLearnerCV(MetricLearner):
    """MetricLearner with γ, and whatever else is given as a list, chosen by cross-validation.

    Inside every fold one warm-started path serves all γ; residual, cosine and number of components are variants of its
    solutions and cost no solve of their own. The winner is then fitted to all rows, as posed, and certified.

    Parameters
    ----------
    gammas : array-like, optional
        Candidates; default 11 values from 0.001 to 100. The prior itself, nothing learned, is always one more.
    cv : int, splitter or iterable, optional
        Splits of rows. Default: 3 stratified folds, 2 where a class has too few rows for 3, up to three times over
        below 600 rows (1,500 where retrieval is judged); with constraints only, five splits by `PairSplit`.
    scoring : {"accuracy", "auc", "map", "precision@10", "recall@10"} or callable, optional
        "accuracy" (default with labels): 10-NN accuracy of held-out against training rows, unlabelled rows not scored.
        "map" (default with holdout="classes"), "precision@k", "recall@k": retrieval among held-out rows, each in turn
        asking for its own class.
        "auc" (default with constraints only): area under the ROC curve over pairs among held-out rows.
        A callable gets (metric, X_train, y_train, X_test, y_test) and returns a number, larger is better, in any unit:
        every γ is tried, and between problems and γ only equal scores, not near ones, go to the simpler.
        Let it search among X_test: rows that a metric was learned from lie nearer to their class than new ones will.
    holdout : {"rows", "classes"}, default="rows"
        "classes": folds leave whole classes out, and retrieval is judged among rows of classes never seen; choose so
        if the metric is to serve classes that come later. Needs labels y.
    prior : prior or list of them, optional
        Default: ``["identity", "within"]``; with a kernel, sparse rows, or no similar pairs "identity" alone.
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
    best_index_ : int
        Position of the winner in `cv_results_`.
    best_score_ : float
        Mean score over folds of the winner.
    cv_results_ : dict
        "prior", "strategy", "n_components", "residual", "normalize", "gamma", "mean_score", "std_score" and "scores"
        (candidates × folds). A path ends where scores by name have fallen for good; larger γ carry its last score.

    The others are those of `MetricLearner`.

    Notes
    -----
    To choose, at most 3,000 rows are looked at, drawn at random in every class, and problems are solved to a relative
    gap of 1 %. Beyond 100 columns, or rows under a kernel, choosing is done over 64 directions, or two for each class
    if these are more, 256 at most; the winner is learned over all. Of candidates whose scores by name differ by less
    than one held-out row the simpler one is taken: the earlier in each list, the smaller γ.
    """

    def __init__(
        self,
        *,
        gammas: Any = None,
        cv: Any = None,
        scoring: Any = None,
        holdout: Any = "rows",
        loss: Any = "logdet",
        kernel: Any = "linear",
        kernel_params: Any = None,
        basis: Any = None,
        residual: Any = True,
        psd: str = "error",
        prior: Any = None,
        normalize: Any = False,
        bounds: Any = None,
        percentiles: Any = None,
        strategy: Any = ("random", "neighbors"),
        pairs_per_class: Any = None,
        n_components: Any = None,
        solver: Any = "auto",
        tol: Any = 1e-4,
        max_iter: Any = None,
        n_jobs: Any = None,
        random_state: Any = None,
        verbose: Any = 0,
    ) -> None:
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

    def fit(self, X: Any, y: Any = None, *, constraints: Any = None, rows: Any = None) -> MetricLearnerCV:
        """Choose by cross-validation, then learn on all rows. Arguments as in `MetricLearner.fit`."""
        choosing, X, y, constraints, rows = self._choosing(X, y, constraints, rows)
        self._choose(choosing)
        with stages(self.verbose, "posing", Task.N_STAGES) as on_stage:
            task = Task.of(self._refit_settings(), X, y, constraints, rows, on_stage=on_stage)
        with progress(self.verbose, self.tol, self.gamma_) as on_step:
            solution = task.solve(self.gamma_, on_step=on_step)
        self._keep(X, y, task, solution)
        return self

    def _choosing(
        self, X: Any, y: Any, constraints: Any, rows: Any
    ) -> tuple[Choosing, Any, Any, Constraints | None, np.ndarray]:
        """Folds and candidates; and what was given, as a task wants it."""
        labels = None if y is None or is_lazy(X) else as_label_array(y)
        X, y, constraints, rows = self._validated(X, y, constraints, rows)
        held = X
        if isinstance(X, SampledRows):
            if own_splits(self.cv):
                raise ValueError(
                    f"with rows on Dask cv must be a number of folds, of a sample of them; got {self.cv!r}."
                )
            held, labels = X.X, X.labels
        if constraints is not None and rows is None:
            constraints.check_rows(len_of(X))
        rows = np.arange(len_of(X)) if rows is None else as_rows(rows, len_of(X))
        choosing = Choosing(self, held, y, labels, constraints, rows)
        if isinstance(X, SampledRows):
            choosing.n_total = X.n_total
        return choosing, X, y, constraints, rows

    def _prior_candidates(self) -> Any:
        return self._value("prior")

    def _check_parameters(self) -> None:
        if self.holdout not in ("rows", "classes"):
            raise ValueError(f"holdout must be 'rows' or 'classes'; got {self.holdout!r}.")
        for candidate in self._choices().every:
            check_parameters(self._learner(**candidate, gamma=1.0))

    def _needs(self, has_labels: bool, sparse: bool, n_columns: int) -> Needs:
        choices = self._choices()
        priors = ("identity",) if self.prior is None and sparse else choices.prior
        of_all = any(k is not None for k in choices.n_components)
        found = basis_needs(self._value("basis"), has_labels, n_columns) | Needs("scatter" if of_all else "none")
        return reduce(or_, (prior_needs(prior, has_labels) for prior in priors), found)

    def _defaults(self) -> dict[str, Any]:
        """What parameters stand for that are left at None."""
        return {"prior": ("identity", "within") if is_linear(self.kernel) else "identity", "gammas": DEFAULT_GAMMAS}

    def _value(self, name: str) -> Any:
        value = getattr(self, name)
        return self._defaults().get(name) if value is None else value

    def _choices(self) -> Choices:
        return Choices.of({name: self._value(name) for name in CHOSEN})

    def _gammas(self) -> np.ndarray:
        return np.sort(checked_gammas(self._value("gammas")))

    def _pair_split(self, constraints: Constraints) -> PairSplit:
        """Folds where only constraints are known."""
        return PairSplit(constraints, random_state=self.random_state)

    def _score(self, y: np.ndarray | None, constraints: Any) -> Score:
        return scorer(self.scoring, y, constraints, unseen=self.holdout == "classes")

    @property
    def _by_retrieval(self) -> bool:
        """Whether, with labels, held-out rows are judged by what they find among each other, each for its class."""
        scoring = resolve_scoring(self.scoring, has_labels=True, unseen=self.holdout == "classes")
        return isinstance(scoring, str) and scoring not in ("accuracy", "auc")

    def _primary_measure(self, *, labelled: bool) -> str:
        """Return the measure of evaluation that settings are chosen by; for a callable, the default one."""
        if not labelled:
            return "pair AUC"
        if isinstance(self.scoring, str) and self.scoring != "accuracy":
            return {"map": "MAP", "auc": "AUC"}.get(self.scoring, self.scoring.replace("precision", "P"))
        return "MAP" if self.holdout == "classes" else "10-NN"

    def _learner(self, **values: Any) -> MetricLearner:
        """A MetricLearner of these values and all other parameters of this one."""
        names = set(MetricLearner().get_params()) & set(self.get_params()) - set(values) - {"verbose"}
        return MetricLearner(**{name: self._value(name) for name in names}, **values)

    @property
    def _simplest(self) -> MetricLearner:
        """Of all candidates the first."""
        return self._learner(**self._choices().every[0], gamma=float(self._gammas()[0]))

    def _refit_settings(self) -> MetricLearner | None:
        return self._learner(**self._chosen, gamma=self.gamma_) if hasattr(self, "gamma_") else None

    @property
    def _chosen(self) -> dict[str, Any]:
        return {name: getattr(self, f"{name}_") for name in CHOSEN}

    def _choose(self, choosing: Choosing) -> None:
        table, scores = choosing.table, choosing.scores
        mean = scores.mean(axis=1)
        best = choosing.best()
        for name in CHOSEN:
            setattr(self, f"{name}_", table[best][name])
        self.gamma_ = float(table[best]["gamma"])
        self.best_index_ = best
        self.best_score_ = float(mean[best])
        self.cv_results_ = {name: [row[name] for row in table] for name in CHOSEN} | {
            "gamma": np.array([row["gamma"] for row in table]),
            "mean_score": mean,
            "std_score": scores.std(axis=1),
            "scores": scores,
        }
