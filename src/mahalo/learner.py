"""MetricLearner: validate → settings → pose → solve → metric."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from .basis import Basis
from .basis.base import basis_needs
from .callbacks import CallbackMixin, with_callbacks
from .constraints import Constraints, as_constraints, codes_of, none_if_unlabelled
from .evaluation import pair_auc
from .explain import ExplainMixin, provenance_of
from .features import Features
from .losses import Loss
from .priors import prior_needs
from .progress import Progress, progress_for
from .rows import Needs, SampledRows, is_lazy
from .solvers import Solution
from .task import FitData, FitSettings, Task, pose_and_solve, sample_lazy_rows, solve_path, with_sample_weight
from .validation import (
    Seed,
    as_objects,
    check_gram,
    is_linear,
    is_precomputed,
    len_of,
    schema_of,
    upcast_half,
    warn_of_scales,
)

__all__ = ["MetricLearner"]


class MetricLearner(CallbackMixin, ExplainMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Learn a Mahalanobis distance from labels, pairs, triplets or linear constraints.

    The metric W ⪰ 0 minimises a loss, by default the LogDet divergence to the prior, plus γ times a penalty for each
    violated constraint (Jain, Kulis, Davis and Dhillon). The problem is convex; the fit ends with a certificate that
    bounds how far the answer can be from the optimum.

    Parameters
    ----------
    loss : {"logdet", "vonneumann", "frobenius"} or loss object, default="logdet"
        What keeps the metric close to the prior. Objects are those of `mahalo.losses`, such as ``Frobenius(eta=0.0)``
        or ``SDPLogDet()``, or your own. Under losses other than LogDet every violation pays its square.
    kernel : str or callable, default="linear"
        The base similarity: "linear" (a metric on the features themselves), any other name that
        sklearn.metrics.pairwise knows, a callable(X, Y) that returns a matrix of similarities (of objects of any
        kind), or "precomputed" (X is then the n × n kernel matrix).
    kernel_params : dict, optional
        Passed to the kernel, such as {"degree": 2} for "polynomial". For "rbf" {"gamma": g}, or {"width": w}, which
        sets gamma = w / (median squared distance of rows) whatever the unit of the columns; default width 1.
    features : features.Quadratic, features.Local or transformer, optional
        Learn over columns g(x) ⊗ x in place of the rows: a metric that varies with place, for dense rows and the linear
        kernel. A metric over a transformer that is not of `mahalo.features` cannot be saved.
    basis : int, Basis or array, optional
        Learn in these few directions only, the metric being identity plus low rank: their number, an object of
        `mahalo.basis`, or an array R of shape (n_features, k), for kernels J of shape (n_samples, k). None: exact.
    residual : float, default=1.0
        With a basis: the weight, from 0 to 1, that the prior keeps outside it. True or 1: the paper's identity plus low
        rank; False or 0: the low-dimensional part alone.
    psd : {"error", "clip", "shift"}, default="error"
        For kernel matrices with negative eigenvalues, under prior "identity". "clip" learns in the directions with
        positive ones alone (over a basis: residual=False); "shift", without one, adds to κ(x, x) of hashable objects.
    prior : {"identity", "diagonal", "covariance", "within"}, prior object or array, default="identity"
        The metric to stay close to: Euclidean; 1/variance of each feature; the inverse covariance (shrunk where it is
        singular); that within classes, or of similar pairs' differences; one of `mahalo.priors`; or any symmetric
        positive definite matrix W0. "diagonal" and matrices are for the linear kernel only.
    gamma : float, default=1.0
        Price of violating constraints. Small: stay near the prior. np.inf: constraints must hold.
    bounds : (upper, lower), optional
        **Squared** distances that similar pairs should not exceed, dissimilar pairs not fall below. By default
        percentiles of the squared distances in the data.
    percentiles : (low, high), optional
        Percentiles of squared distances under the prior to take bounds from. Default: (5, 95) of all distances, or with
        strategy "neighbors" 10 of the similar and 90 of the dissimilar pairs' own distances. The paper: (1, 99).
    strategy : {"random", "neighbors", "triplets"}, default="random"
        How labels become pairs or triplets; see `Constraints.from_labels`. "random" is the paper's.
    pairs_per_class : int or None, default=100
        Pairs of either kind for each class to draw from labels; None: see `Constraints.from_labels`.
    normalize : bool, default=False
        Compare rows at unit length in the learned space, by cosine: in `transform`, distances, kernel, score and files.
    n_components : int, optional
        Reduce the learned metric to this many directions, those in which the training rows differ most under it.
    solver : {"auto", "newton", "dual", "bregman"}, default="auto"
        "newton" is for LogDet with finite γ, "dual" for every loss and for γ = ∞: "auto" chooses between them, and both
        need tens of steps. "bregman" is the paper's Algorithm 1, for LogDet, slow for large γ.
    tol : float, default=1e-4
        Relative duality gap to reach, ``(P − D) / max(1, |P|)``.
    max_iter : int, optional
        Limit on steps (default 1000 for "newton", 500 for "dual") or sweeps (default 1000).
    random_state : int, RandomState, Generator or None, default=None
        Draws pairs and the sample for percentiles. None is a fixed sequence: fits repeat exactly.
    verbose : int or callable, default=0
        1: a live line of progress; 2: every step. A callable is called with every line of text.

    Attributes
    ----------
    metric_ : Metric
        The learned metric.
    certificate_ : Certificate
        Primal, dual, gap, relative_gap, max_violation, n_violated, converged.
    certified_over_ : str
        Basis of all metrics that the certificate is about, such as "64 landmarks"; empty if it is about any.
    constraints_ : Constraints
        The constraints used, with their bounds, by row of X.
    duals_ : ndarray
        Multiplier λ ≥ 0 of each constraint: how much it shaped the metric. In the units of 1/bound.
    values_ : ndarray
        What each constraint has under what was learned (before `normalize` and `n_components`), to hold against its
        bound: squared distance of a pair, difference of two for a triplet.
    n_dropped_ : int
        Constraints left out because they say nothing or nothing that could be met (identical points).
    n_outside_ : int
        Constraints left out because a row they mention is not among `rows`.
    rank_ : int
        Number of directions learned in: the order of the core matrix F.
    n_iter_ : int
    history_ : tuple of Step
        What each step of the solver did.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from mahalo import MetricLearner
    >>> X, y = load_wine(return_X_y=True)
    >>> learner = MetricLearner(prior="diagonal").fit(X, y)
    >>> learner.certificate_.converged
    True
    >>> learner.transform(X).shape
    (178, 13)
    """

    def __init__(
        self,
        *,
        loss: str | Loss = "logdet",
        kernel: str | Callable = "linear",
        kernel_params: dict[str, Any] | None = None,
        features: Features | BaseEstimator | None = None,
        basis: int | Basis | ArrayLike | None = None,
        residual: float = True,
        psd: str = "error",
        prior: str | ArrayLike = "identity",
        normalize: bool = False,
        gamma: float = 1.0,
        bounds: tuple[float, float] | None = None,
        percentiles: tuple[float, float] | None = None,
        strategy: str = "random",
        pairs_per_class: int | None = 100,
        n_components: int | None = None,
        solver: str = "auto",
        tol: float = 1e-4,
        max_iter: int | None = None,
        random_state: Seed = None,
        verbose: int | Callable[[str], None] = 0,
    ):
        self.loss = loss
        self.kernel = kernel
        self.kernel_params = kernel_params
        self.features = features
        self.basis = basis
        self.residual = residual
        self.psd = psd
        self.prior = prior
        self.normalize = normalize
        self.gamma = gamma
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

    # Under metadata routing, meta-estimators pass on both by default: `rows` split like y, `constraints` whole.
    __metadata_request__fit = {"constraints": True, "rows": True}  # noqa: RUF012
    __metadata_request__score = {"constraints": True, "rows": True}  # noqa: RUF012

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
        """Learn the metric.

        Parameters
        ----------
        X : array-like, sparse matrix, or Dask array or dataframe of shape (n_samples, n_features)
            Rows on Dask are read block by block; pairs, bounds and bases come from a sample of them.
        y : array-like, or Dask array or series, of shape (n_samples,), optional
            Class labels; −1, None or NaN for unlabelled rows. If `constraints` are given, labels make no pairs.
        constraints : Constraints, optional
        rows : array-like of shape (n_samples,), optional
            Number of each row of X in the numbering of the constraints (and of a basis J), where X is a part of it.
        sample_weight : array-like of shape (n_samples,), optional
            Weights ≥ 0. That of a pair or triplet is multiplied by those of its rows; rows of weight 0 are left out,
            and `constraints_` is by the rows that are left.

        Returns
        -------
        self
        """
        settings = self.fit_settings()
        with self._fit_progress(X, y, constraints=constraints, rows=rows) as progress:
            data = self._validate(X, y, constraints, rows, progress)
            if sample_weight is not None:
                data, _ = with_sample_weight(data, sample_weight, pairwise=self._pairwise)
            self._store(data, *pose_and_solve(settings, data, progress))
        return self

    def solve_path(
        self,
        X: Any,
        y: Any,
        gammas: np.ndarray,
        *,
        constraints: Constraints | None = None,
        rows: ArrayLike | None = None,
    ) -> tuple[Task, list[Solution]]:
        """Return the posed task and its solution at every γ; `metric_path` makes metrics of them."""
        settings = self.fit_settings()
        with progress_for(self.verbose) as progress:
            data = self._validate(X, y, constraints, rows, progress)
            return solve_path(settings, data, gammas, progress)

    def fit_settings(self) -> FitSettings:
        """Return the checked parameters of a fit; raise ValueError if one is wrong."""
        return FitSettings(**{name: getattr(self, name) for name in FitSettings.names()})

    def refit_settings(self) -> FitSettings:
        """Return the settings of the metric that was learned."""
        return self.fit_settings()

    def _store(self, data: FitData, task: Task, solution: Solution) -> None:
        """Set the fitted attributes."""
        self.metric_ = task.metric(solution)
        self.certificate_, self.rank_ = solution.certificate, len(solution.F)
        self.certified_over_ = task.basis_in_words(solution)
        self.constraints_ = task.constraints
        self.duals_, self.values_ = task.duals(solution), task.values(solution)
        self.history_, self.n_iter_ = solution.history, max(1, solution.n_iter)
        self.n_dropped_, self.n_outside_ = task.n_dropped, task.n_outside
        self._training_rows = None if isinstance(data.X, SampledRows) else (data.X, data.y)
        self.metric_ = provenance_of(self, self._training_rows).attach(self.metric_)

    def _validate(
        self, X: Any, y: Any, constraints: Constraints | None, rows: ArrayLike | None, progress: Progress
    ) -> FitData:
        """Return checked data: an indexable X, or a sample of rows on Dask, and class codes."""
        constraints = None if constraints is None else as_constraints(constraints)
        if y is None and constraints is None:
            raise ValueError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y is None. "
                "Pass labels y, or constraints=."
            )
        if is_lazy(X) or isinstance(X, SampledRows):
            return self._validate_lazy(X, y, constraints, rows, progress)
        if is_lazy(y):
            raise ValueError("X is in memory and y on Dask; pass y.compute(), or X on Dask too.")
        if self.takes_objects(X):
            X = as_objects(X)
            if len(X) < 2:
                raise ValueError(f"at least 2 objects are needed to learn a distance; got {len(X)}.")
        else:
            X = validate_data(self, upcast_half(X), ensure_min_samples=2, **self._check_kwargs())
            if self._pairwise:
                check_gram(X)
            elif self._may_be_linear:
                warn_of_scales(X, self._prior_candidates(), getattr(self, "feature_names_in_", None))
        if y is not None:
            y = codes_of(y, require_two_classes=constraints is None)
            check_consistent_length(X, y)
        return FitData(X, y, constraints, None if rows is None else np.asarray(rows))

    def _validate_lazy(
        self, X: Any, y: Any, constraints: Constraints | None, rows: ArrayLike | None, progress: Progress
    ) -> FitData:
        """Return a sample of rows on Dask, which may have been drawn before, with their codes and numbers."""
        if rows is not None:
            raise ValueError("constraints on rows of Dask are by the number of the row in X; leave rows= out.")
        validate_data(self, schema_of(X), skip_check_array=True)
        sample = X
        if not isinstance(X, SampledRows):
            needs = partial(self._needs, y is not None)
            sample = sample_lazy_rows(self.fit_settings(), X, y, constraints, needs, progress)
        codes = None if y is None else sample.codes
        return FitData(sample, codes if constraints is None else none_if_unlabelled(codes), constraints, sample.numbers)

    def _needs(self, has_labels: bool, sparse: bool, n_columns: int) -> Needs:
        """Return which moments of all rows a fit needs where it holds a sample of them."""
        found = prior_needs(self.prior, has_labels) | basis_needs(self.basis, has_labels, n_columns)
        return found | Needs("none" if self.n_components is None else "scatter")

    def _prior_candidates(self) -> Any:
        """Return the prior, or the list of those to choose among."""
        return self.prior

    def takes_objects(self, X: Any) -> bool:
        """Return whether X holds objects that only the user's kernel understands, not vectors."""
        if not callable(self.kernel):
            return False
        shape = getattr(X, "shape", None)
        return shape is None or len(shape) != 2

    def _check_kwargs(self) -> dict[str, Any]:
        """Return the arguments of scikit-learn's check of arrays."""
        return {"accept_sparse": False if self._pairwise else "csr", "dtype": [np.float64, np.float32]}

    @property
    def _may_be_linear(self) -> bool:
        """True if the rows may be compared as vectors, without a kernel."""
        return is_linear(self.kernel)

    @property
    def _pairwise(self) -> bool:
        return is_precomputed(self.kernel)

    @property
    def _requires_dense(self) -> bool:
        """True if rows must be dense, for their features."""
        return self.features is not None

    @property
    def _n_features_out(self) -> int:
        return self.metric_.n_outputs

    def transform(self, X: Any) -> np.ndarray:
        """Return rows in the space where the learned distance is Euclidean; a Dask array of rows on Dask."""
        check_is_fitted(self)
        return self.metric_.transform(self._rows(X))

    def _rows(self, X: Any) -> Any:
        if self.metric_.n_features is None:
            return as_objects(X)
        if is_lazy(X):
            validate_data(self, schema_of(X), reset=False, skip_check_array=True)
            return X
        return validate_data(self, upcast_half(X), reset=False, **self._check_kwargs())

    def score(
        self, X: Any, y: Any = None, *, constraints: Constraints | None = None, rows: ArrayLike | None = None
    ) -> float:
        """Return the area under the ROC curve of similar against dissimilar pairs of rows of X, by learned distance.

        The pairs are those of `constraints` with both ends among `rows`, or, from labels, random pairs of either kind;
        then X must have rows of two classes, so cross-validate with a shuffled or stratified splitter. With a
        precomputed kernel the distance is that of the coordinates: the residual, what of a row lies outside the span of
        the training rows or the basis, is left out, because it takes similarities between the rows of X, and X holds
        those to the training rows only.
        """
        check_is_fitted(self)
        if is_lazy(X):
            raise ValueError("score takes rows in memory; pass some of them, such as X[:10_000].compute().")
        X = self._rows(X)
        # Similarities among new rows of a precomputed kernel are not at hand; their coordinates are.
        T = self.metric_.transform(X) if self._pairwise else None

        def sq_distances(index: np.ndarray) -> np.ndarray:
            i, j = index.T
            if T is not None:
                return ((T[i] - T[j]) ** 2).sum(axis=1)
            return self.metric_.pair_distances(X[i], X[j], squared=True)

        return pair_auc(sq_distances, len_of(X), y, as_constraints(constraints), rows)

    def report(self, X: Any, y: Any, path: str | PathLike, **options: Any) -> Path:
        """Write one HTML page on what was learned; arguments are those of `mahalo.report.write`."""
        write = import_module(".report", __package__).write  # a room above: only when it is asked for
        return write(self, X, y, path, **options)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = not self._pairwise and not self._requires_dense
        tags.input_tags.pairwise = self._pairwise
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
