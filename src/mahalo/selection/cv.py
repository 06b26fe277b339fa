"""MetricLearnerCV: γ, and every parameter given as a list, chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from operator import or_
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.model_selection import BaseCrossValidator

from ..basis import Basis
from ..basis.base import basis_needs
from ..callbacks import with_callbacks
from ..constraints import Constraints, PairSplit, as_label_array
from ..evaluation import BeforeAfter
from ..features import Features
from ..learner import MetricLearner
from ..losses import LogDet, Loss, as_loss, resting_point
from ..priors import prior_needs
from ..progress import Progress, progress_for
from ..rows import Needs, SampledRows, is_lazy
from ..task import FitData, FitSettings, check_suits_dask, with_sample_weight
from ..validation import Seed, as_rows, is_linear, len_of
from .candidates import SEARCHED, ProblemCandidate, candidate_lists, default_spaces, make_problems, with_rbf_defaults
from .folds import SearchData
from .path import checked_gammas
from .score_table import fold_moments
from .scoring import Scorer, make_scorer
from .search import CandidateSearch
from .splits import Splitting, draw_sample, is_custom_splitter, seed_of

DEFAULT_GAMMAS = (0.01, 0.1, 1.0, 10.0)
_NOTHING_LEARNED = 1e-6  # times the smallest γ: the prior itself


class MetricLearnerCV(MetricLearner):
    """MetricLearner with γ, and every parameter given as a list, chosen by cross-validation.

    Inside every fold one warm-started path serves all γ; residual, cosine and number of components are variants of its
    solutions and cost no solve of their own. The winner is then fitted to all rows, as posed, and certified.

    Parameters
    ----------
    gammas : array-like, optional
        Candidates; default 0.01, 0.1, 1 and 10. The prior itself, nothing learned, is always one more.
    cv : int, splitter or iterable, optional
        Splits of rows. Default: 3 stratified folds, 2 where a class has too few rows for 3, up to three times over
        below 600 rows (1,500 where retrieval is judged); with constraints only, five splits by `PairSplit`.
    scoring : {"accuracy", "auc", "map", "precision@10", "recall@10"} or callable, optional
        "accuracy" (default with labels): 10-NN accuracy of held-out against training rows, unlabelled rows not scored;
        of fewer than 15 training rows two thirds vote.
        "map" (default with holdout="classes"), "precision@k", "recall@k": retrieval among held-out rows, each being a
        query for its own class.
        "auc" (default with constraints only): area under the ROC curve over pairs among held-out rows.
        A callable gets (metric, X_train, y_train, X_test, y_test) and returns a number, larger is better, in any unit:
        every γ is tried, and between problems and γ only equal scores, not near ones, go to the simpler.
        Let it search among X_test: rows that a metric was learned from lie nearer to their class than new ones will.
    holdout : {"rows", "classes"}, default="rows"
        "classes": folds leave whole classes out, and retrieval is judged among rows of classes never seen; choose so
        if the metric is to serve classes that come later. Needs labels y.
    kernel : "auto", kernel or list of them, default="auto"
        "auto": linear and, where labels of dense rows leave the space open (see Notes), "rbf".
    features : "auto", None, features or list of them, default="auto"
        "auto": None and, where the space is open, `Quadratic` up to 40 columns and `Local` up to 20.
    prior : prior or list of them, optional
        Default: ``["identity", "within"]``; with a kernel, sparse rows, or no similar pairs "identity" alone.
    strategy : str or list of str, default=("random", "neighbors")
        Ways to make pairs from labels, to choose among. Ignored when constraints are given.
    kernel_params, basis, residual, normalize, n_components : value or list of values
        As in `MetricLearner`; lists are candidates. Default for "rbf": widths 1 and 3, and beyond 300 constrained rows
        `Landmarks` without a residual; ``basis=[None]`` is the exact problem at any size.
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
    space_ : str
        Space of the metric: "unlearned", "LDA", "linear", "quadratic", "local" or the name of a kernel.
    kernel_, kernel_params_, features_, basis_, prior_, strategy_, residual_, normalize_, n_components_
        What was chosen.
    best_index_ : int
        Position of the winner in `cv_results_`.
    best_score_ : float
        Mean score over folds of the winner.
    cv_results_ : dict
        "space", "gamma", every parameter that may be a list, "scores" (candidates × folds; NaN after a candidate was
        dropped or the race was over), "mean_score" and "std_score" over the folds it was scored in, their number
        "n_folds", and "behind", by how much the score is below that of the winner in the same folds, or on the rows
        where the candidate was first tried and dropped. A path ends where scores by name no longer rise; larger γ carry
        its last score.

    The others are those of `MetricLearner`.

    Notes
    -----
    The space is open with labels of dense rows in memory, LogDet, ``holdout="rows"``, and kernel, kernel_params,
    features, basis, prior and residual at their defaults. Tried are then, in this order: the ordinary distance; the
    space of LDA, prior "within" over `BetweenBasis`; linear; quadratic; local; RBF over 64 landmarks. The first is
    taken over which the lead of the best is within one standard error of the paired difference over held-out rows.

    Candidates race: after every fold those are dropped that are behind the leader by one standard error over all
    held-out rows so far, or by two if their space is simpler or retrieval is scored. The race is over when one
    candidate is left after two folds, or one solution after every row was held out. Quadratic, local and RBF are first
    tried at one γ: on the first fold, beyond 600 rows on a screening fold of so many.

    To choose, at most 2,000 rows (3,000 where retrieval is judged) are looked at, drawn at random in every class, and
    problems are solved to a relative gap of 1 %. Beyond 100 columns, or 300 rows under a kernel without a basis,
    choosing is done over 64 directions, or two for each class if these are more, 256 at most; the winner is learned
    over all. Features are judged as they are fitted. A default space with nothing to learn in a fold is the ordinary
    distance there. Of candidates of one space whose scores by name differ by less than one held-out row the simpler one
    is taken: the earlier in each list, the smaller γ.
    """

    def __init__(
        self,
        *,
        gammas: ArrayLike | None = None,
        cv: int | BaseCrossValidator | Iterable | None = None,
        scoring: str | Callable[..., float] | None = None,
        holdout: str = "rows",
        loss: str | Loss = "logdet",
        kernel: str | Callable | Sequence = "auto",
        kernel_params: dict[str, Any] | Sequence | None = None,
        features: str | Features | BaseEstimator | Sequence | None = "auto",
        basis: int | Basis | ArrayLike | Sequence | None = None,
        residual: float | Sequence[float] = True,
        psd: str = "error",
        prior: str | BaseEstimator | ArrayLike | Sequence | None = None,
        normalize: bool | Sequence[bool] = False,
        bounds: tuple[float, float] | None = None,
        percentiles: tuple[float, float] | None = None,
        strategy: str | Sequence[str] = ("random", "neighbors"),
        pairs_per_class: int | None = None,
        n_components: int | Sequence | None = None,
        solver: str = "auto",
        tol: float = 1e-4,
        max_iter: int | None = None,
        n_jobs: int | None = None,
        random_state: Seed = None,
        verbose: int | Callable[[str], None] = 0,
    ) -> None:
        self.gammas = gammas
        self.cv = cv
        self.scoring = scoring
        self.holdout = holdout
        self.loss = loss
        self.kernel = kernel  # type: ignore[assignment]
        self.kernel_params = kernel_params  # type: ignore[assignment]
        self.features = features
        self.basis = basis
        self.residual = residual  # type: ignore[assignment]
        self.psd = psd
        self.prior = prior  # type: ignore[assignment]
        self.normalize = normalize  # type: ignore[assignment]
        self.bounds = bounds
        self.percentiles = percentiles
        self.strategy = strategy  # type: ignore[assignment]
        self.pairs_per_class = pairs_per_class
        self.n_components = n_components  # type: ignore[assignment]
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @with_callbacks
    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        constraints: Constraints | None = None,
        rows: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Choose by cross-validation, then learn on all rows. Arguments as in `MetricLearner.fit`.

        Weights count in learning; held-out rows count the same in scores.
        """
        with self._fit_progress(X, y, constraints=constraints, rows=rows) as progress:
            self._fit_best(self._make_search(X, y, constraints, rows, sample_weight, progress), progress)
        return self

    def make_search(
        self, X: Any, y: Any = None, *, constraints: Constraints | None = None, rows: ArrayLike | None = None
    ) -> CandidateSearch:
        """Return the folds and candidates of an unweighted fit, without fitting. Arguments as in `fit`."""
        with progress_for(self.verbose) as progress:
            return self._make_search(X, y, constraints, rows, None, progress)

    def fit_best(self, search: CandidateSearch, before_after: BeforeAfter | None = None) -> Self:
        """Fit the best candidate of a search to all rows; `before_after` is its evaluation, if it was made."""
        with progress_for(self.verbose) as progress:
            self._fit_best(search, progress, before_after)
        return self

    def _fit_best(self, search: CandidateSearch, progress: Progress, before_after: BeforeAfter | None = None) -> None:
        self._set_chosen(search, search.best())
        self.before_after_ = self._evaluate(search) if before_after is None else before_after
        refitted, task, solution = search.refit(self.best_index_, progress)
        self._set_chosen(search, refitted)
        self._store(search.fit_data, task, solution)

    def _evaluate(self, search: CandidateSearch) -> BeforeAfter | None:
        """Return the evaluation on held-out rows that a fit makes by itself: none."""
        return None

    def _make_search(
        self,
        X: Any,
        y: Any,
        constraints: Constraints | None,
        rows: ArrayLike | None,
        sample_weight: ArrayLike | None,
        progress: Progress,
    ) -> CandidateSearch:
        if self.holdout not in ("rows", "classes"):
            raise ValueError(f"holdout must be 'rows' or 'classes'; got {self.holdout!r}.")
        for problem in make_problems(self._base_settings(), self._lists()):  # checks parameters before data
            if is_lazy(X):
                check_suits_dask(problem.settings)
        labels = None if y is None or is_lazy(X) else as_label_array(y)
        data = self._validate(X, y, constraints, rows, progress)
        if sample_weight is not None:
            by_number = is_custom_splitter(self.cv)
            data, kept = with_sample_weight(data, sample_weight, pairwise=self._pairwise, splits_by_number=by_number)
            labels = labels if kept is None or labels is None else labels[kept]
        return self.search_validated(data, labels, progress)

    def search_validated(self, data: FitData, labels: np.ndarray | None, progress: Progress) -> CandidateSearch:
        """Return the folds and candidates for validated data; `labels` are the labels as the caller wrote them."""
        X, y, constraints = data.X, data.y, data.constraints
        n_rows = len_of(X)
        if isinstance(X, SampledRows):
            if is_custom_splitter(self.cv):
                raise ValueError(f"with rows on Dask cv must be a number of folds, of a sample; got {self.cv!r}.")
            held, labels, n_total = X.X, X.labels, X.n_total
        else:
            held, n_total = X, n_rows
        if constraints is not None and data.rows is None:
            constraints.check_rows(n_rows)
        if y is None and self.holdout == "classes":
            raise ValueError(
                "holdout='classes' needs labels y to leave classes out by; got constraints alone. Pass y too, or use "
                "holdout='rows'."
            )
        rows = np.arange(n_rows) if data.rows is None else as_rows(data.rows, n_rows)
        seed = seed_of(self.random_state)
        whole = constraints is not None or is_custom_splitter(self.cv)
        scorer = self._scorer(y, constraints)
        retrieval = scorer.by_retrieval
        sample = np.arange(n_rows) if whole else draw_sample(y, n_rows, seed, by_retrieval=retrieval)
        found = SearchData(held, y, labels, rows, constraints, self._pairwise, sample, n_total, data.sample_weight)
        pair_split = None if constraints is None else self._pair_split(constraints)
        splitting = Splitting(self.cv, self.holdout, retrieval, seed, pair_split)
        return CandidateSearch(
            fit_data=data,
            data=found,
            folds=splitting.make_folds(found),
            problems=tuple(self._problems(found)),
            gammas=self._gammas(),
            least_gamma=float(np.min(checked_gammas(self._value("gammas")))),
            scorer=scorer,
            splitting=splitting,
            n_jobs=self.n_jobs,
            progress=progress,
        )

    def fit_settings(self) -> FitSettings:
        """Return the checked parameters of the first candidate."""
        problem = make_problems(self._base_settings(), self._lists())[0]
        return problem.settings_of(problem.variants[0], problem.settings.gamma)

    def refit_settings(self) -> FitSettings | None:  # type: ignore[override]
        """Return the settings of the metric that was chosen; None before a fit."""
        if not hasattr(self, "gamma_"):
            return None
        chosen = {name: getattr(self, f"{name}_") for name in SEARCHED}
        return FitSettings(**self._base_settings() | chosen | {"gamma": self.gamma_})

    @property
    def _may_be_linear(self) -> bool:
        return any(is_linear(kernel) for kernel in self._lists()["kernel"])

    def _prior_candidates(self) -> Any:
        return self._value("prior")

    @property
    def _requires_dense(self) -> bool:
        return all(features is not None for features in self._lists()["features"])

    def _needs(self, has_labels: bool, sparse: bool, n_columns: int) -> Needs:
        lists = self._lists()
        priors = ("identity",) if self.prior is None and sparse else lists["prior"]
        reduces = any(k is not None for k in lists["n_components"])
        found = basis_needs(self._value("basis"), has_labels, n_columns) | Needs("scatter" if reduces else "none")
        return reduce(or_, (prior_needs(prior, has_labels) for prior in priors), found)

    def _defaults(self) -> dict[str, Any]:
        """Return the values of parameters that are None."""
        linear = _is_auto(self.kernel) or is_linear(self.kernel)
        return {"prior": ("identity", "within") if linear else "identity", "gammas": DEFAULT_GAMMAS}

    def _value(self, name: str) -> Any:
        value = getattr(self, name)
        return self._defaults().get(name) if value is None else value

    def _lists(self) -> dict[str, tuple]:
        """Return the candidates of every parameter; of the linear space where kernel and features are "auto"."""
        values = {name: self._value(name) for name in SEARCHED}
        values["kernel"] = "linear" if _is_auto(self.kernel) else self.kernel
        values["features"] = None if _is_auto(self.features) else self.features
        return candidate_lists(values)

    def _problems(self, data: SearchData) -> list[ProblemCandidate]:
        """Return the problems to choose among, simpler ones first."""
        base, lists = self._base_settings(), self._lists_for(data)
        if self._tries_spaces(data):
            return default_spaces(base, lists, data.X.shape[1])
        n_exact = data.n_constrained(self.pairs_per_class) if self.basis is None else 0
        return with_rbf_defaults(make_problems(base, lists), widths=self.kernel_params is None, n_exact=n_exact)

    def _tries_spaces(self, data: SearchData) -> bool:
        """Return whether all spaces are tried: where labels of dense rows in memory leave everything about it open."""
        is_open = _is_auto(self.kernel) and _is_auto(self.features)
        is_open &= self.prior is None and self.basis is None and self.residual is True and self.kernel_params is None
        in_memory = data.n_total == data.n_rows and not sp.issparse(data.X)
        by_labels = data.y is not None and data.constraints is None and self.holdout == "rows"
        by_labels &= self.scoring is None or (isinstance(self.scoring, str) and self.scoring != "auc")
        return is_open and in_memory and by_labels and type(as_loss(self.loss)) is LogDet

    def _lists_for(self, data: SearchData) -> dict[str, tuple]:
        """Return the candidates that the data allow: one strategy for given constraints, no prior from nothing."""
        lists = self._lists()
        if data.constraints is not None:
            lists["strategy"] = lists["strategy"][:1]
        has_similar = data.y is not None or (data.constraints is not None and (data.constraints.pairs.sign > 0).any())
        if self.prior is None and (sp.issparse(data.X) or not has_similar):
            lists["prior"] = ("identity",)
        return lists

    def _base_settings(self) -> dict[str, Any]:
        """Return the settings that are not searched."""
        names = set(FitSettings.names()) - set(SEARCHED) - {"gamma"}
        return {name: self._value(name) for name in names} | {"gamma": float(self._gammas()[-1])}

    def _gammas(self) -> np.ndarray:
        gammas = np.sort(checked_gammas(self._value("gammas")))
        if resting_point(as_loss(self.loss)) <= 0:
            return gammas  # with nothing learned this metric is zero
        return np.concatenate([gammas[:1] * _NOTHING_LEARNED, gammas])

    def _pair_split(self, constraints: Constraints) -> PairSplit:
        """Return the splitter for data without labels."""
        return PairSplit(constraints, random_state=self.random_state)

    def _scorer(self, y: np.ndarray | None, constraints: Constraints | None) -> Scorer:
        return make_scorer(self.scoring, y, constraints, unseen=self.holdout == "classes")

    def _set_chosen(self, search: CandidateSearch, best: int) -> None:
        candidates, scores = search.candidates, search.scores
        n_folds, mean, std = fold_moments(scores)
        for name in SEARCHED:
            setattr(self, f"{name}_", candidates[best].value(name))
        self.space_ = candidates[best].problem.space
        self.gamma_ = candidates[best].gamma
        self.best_index_ = best
        self.best_score_ = float(mean[best])
        self.fold_best_index_ = np.array(search.best_without_each(), dtype=np.intp)
        self.cv_results_: dict[str, Any] = {
            name: [candidate.value(name) for candidate in candidates] for name in SEARCHED
        } | {
            "space": [candidate.problem.space for candidate in candidates],
            "gamma": np.array([candidate.gamma for candidate in candidates]),
            "mean_score": mean,
            "std_score": std,
            "n_folds": n_folds,
            "behind": search.behind(best),
            "scores": scores,
        }


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"
