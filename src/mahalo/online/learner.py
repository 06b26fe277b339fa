"""OnlineMetricLearner: an estimator that updates its metric by every new pair or labelled row."""

from __future__ import annotations

import dataclasses
from os import PathLike
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from ..basis import Basis
from ..constraints import (
    Constraints,
    as_constraints,
    as_label_array,
    class_codes,
    codes_by_appearance,
    none_if_unlabelled,
)
from ..evaluation import pair_auc
from ..explain import CertificateDiagramMixin
from ..learner import MetricLearner
from ..linalg import Matrix
from ..metric import Metric
from ..priors import Supervision
from ..solvers import Certificate
from ..task import start_metric
from ..types import RowsLike
from ..validation import Seed, as_generator, at_least_single, len_of, warn
from .batch import batch_problem, solve_from
from .files import SavedStream, load_stream, save_stream
from .reservoir import StoredPairs, StoredRows
from .state import StreamState, restore_on_error
from .stream import StepSchedule, Stream, StreamStats
from .update import StreamBatch, StreamSettings, update_state
from .validation import check_only_pairs, check_stream_parameters


class OnlineMetricLearner(CertificateDiagramMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Learn a Mahalanobis distance from a stream of pairs or labels.

    After each pair the metric is the one that minimises the LogDet divergence to the metric before it plus η times the
    loss of the pair, half the square of its relative violation: a rank-one step in closed form that keeps the metric
    positive definite (Jain, Kulis, Dhillon and Grauman). `history_` bounds the regret, `consolidate` solves the batch
    problem over the stored pairs and certifies the optimum.

    The first call fixes the space: prior and basis, and, from percentiles, the bounds. Pass it some hundred rows, or
    your own bounds and prior. One thread may learn while others read: they always see a consistent metric.

    Parameters
    ----------
    eta : float, default=0.1
        Step size, in units in which bounds are 1. A pair's weight multiplies it.
    schedule : {"safe", "fixed", "decaying"}, default="safe"
        "safe": η / max(1, d²/bound)², so that no pair, however wrong, shrinks distances by more than a factor of about
        1 + η. "fixed": η. "decaying": η / √(1 + t / 1000) for pair t.
    targets : bool, default=False
        If True, bounds are values that squared distances should equal, not limits.
    half_life : float, optional
        Number of pairs after which what was learned counts half, for streams that drift; the rest is the prior.
    prior, basis, residual, normalize, bounds, percentiles
        As in `MetricLearner`, with a linear kernel. Over a basis of k directions a pair costs O(k²).
    pairs_per_row : int, default=1
        From labels: number of earlier rows of its class that each row is paired with, and as many of other classes.
    n_pairs_kept : int, default=10000
        Number of pairs stored for `consolidate`: a random sample of all, or with `half_life` the latest.
    n_rows_kept : int, default=1000
        Number of labelled rows stored, in the same way, to pair new rows with.
    tol : float, default=1e-4
        Relative duality gap that `consolidate` reaches.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the samples and of the pairs from labels. None is a fixed seed: streams repeat exactly.

    Attributes
    ----------
    metric_ : Metric
        The metric learned so far.
    history_ : tuple of StreamStats
        After each call: pairs seen and violated, cumulative loss, and the bound on regret. Beyond 2,000 entries every
        second is dropped.
    n_pairs_, n_dropped_ : int
        Pairs learned from, and pairs of identical points, which are left out.
    bounds_ : (upper, lower) or None
        Bounds of the pairs that have none of their own.
    certificate_, stream_certificate_ : Certificate
        After `consolidate`: of the optimum, and of the stream's metric before it, whose gap bounds its distance from
        the optimal objective.
    classes_ : tuple
        Labels seen.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import StandardScaler
    >>> from mahalo import OnlineMetricLearner
    >>> X, y = load_wine(return_X_y=True)
    >>> X = StandardScaler().fit_transform(X)
    >>> learner = OnlineMetricLearner()
    >>> for rows in (slice(0, None, 2), slice(1, None, 2)):
    ...     learner = learner.partial_fit(X[rows], y[rows])
    >>> learner.consolidate().converged
    True
    """

    def __init__(
        self,
        *,
        eta: float = 0.1,
        schedule: str = "safe",
        targets: bool = False,
        half_life: float | None = None,
        prior: str | ArrayLike = "identity",
        basis: int | Basis | ArrayLike | None = None,
        residual: float = True,
        normalize: bool = False,
        bounds: tuple[float, float] | None = None,
        percentiles: tuple[float, float] | None = None,
        pairs_per_row: int = 1,
        n_pairs_kept: int = 10_000,
        n_rows_kept: int = 1_000,
        tol: float = 1e-4,
        random_state: Seed = None,
    ):
        self.eta = eta
        self.schedule = schedule
        self.targets = targets
        self.half_life = half_life
        self.prior = prior
        self.basis = basis
        self.residual = residual
        self.normalize = normalize
        self.bounds = bounds
        self.percentiles = percentiles
        self.pairs_per_row = pairs_per_row
        self.n_pairs_kept = n_pairs_kept
        self.n_rows_kept = n_rows_kept
        self.tol = tol
        self.random_state = random_state

    __metadata_request__fit = {"constraints": True, "rows": True}  # noqa: RUF012
    __metadata_request__partial_fit = {"constraints": True, "rows": True}  # noqa: RUF012
    __metadata_request__score = {"constraints": True, "rows": True}  # noqa: RUF012

    # -- learning ------------------------------------------------------------------------------------------------

    def partial_fit(
        self,
        X: RowsLike,
        y: ArrayLike | None = None,
        *,
        constraints: Constraints | None = None,
        rows: ArrayLike | None = None,
    ) -> Self:
        """Update the metric by new rows. A call that fails changes nothing.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), optional
            Class labels; −1, None or NaN for unlabelled rows. Rows are paired with rows of earlier calls and of this
            one. Not used to make pairs if `constraints` are passed.
        constraints : Constraints, optional
            Pairs of rows of X, learned from in their order; ``from_pairs(pairs, same=...)`` preserves the order.
        rows : array-like of shape (n_samples,), optional
            Index of each row of X in the numbering of the constraints.
        """
        with restore_on_error(self):
            state = self.__dict__.get("_state")
            data = self._validated(X, y, constraints, rows, first=state is None)
            if state is None:
                state = self._initial_state(data)
            self._state = update_state(state, data, self._settings)
        return self

    def fit(
        self,
        X: RowsLike,
        y: ArrayLike | None = None,
        *,
        constraints: Constraints | None = None,
        rows: ArrayLike | None = None,
    ) -> Self:
        """Forget what was learned and pass once over the rows, or the pairs, in random order."""
        with restore_on_error(self):
            data = self._validated(X, y, constraints, rows, first=True)
            if data.constraints is None and data.labels is not None:
                class_codes(data.labels)  # raises unless there are two classes
            state = self._initial_state(data)
            data = data.shuffled(np.random.default_rng([state.seed, 2]))
            self._state = update_state(state, data, self._settings)
        return self

    def _validated(
        self,
        X: RowsLike,
        y: ArrayLike | None,
        constraints: Constraints | None,
        rows: ArrayLike | None,
        *,
        first: bool,
    ) -> StreamBatch:
        """Return checked data, parameters checked too; `first` resets the number of features."""
        self._batch_learner().fit_settings()  # raises if a parameter is wrong
        names = ("eta", "schedule", "targets", "half_life", "pairs_per_row", "n_pairs_kept", "n_rows_kept")
        check_stream_parameters(**{name: getattr(self, name) for name in names})
        constraints = as_constraints(constraints)
        if y is None and constraints is None:
            raise ValueError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y is None. "
                "Pass labels y, or constraints=."
            )
        checked, labels = self._validate_rows(X, reset=first), None
        if y is not None:
            labels = as_label_array(y)
            labels = labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels
            check_consistent_length(checked, labels)
        if constraints is not None:
            check_only_pairs(constraints)
            constraints, in_X = constraints.for_data(rows, len_of(checked))
            if not in_X.any():
                raise ValueError(f"none of the {len(in_X)} constraints has both its rows in X; check rows=.")
        return StreamBatch(checked, labels, constraints)

    def _validate_rows(self, X: RowsLike, *, reset: bool = False) -> Matrix:
        dtypes = [np.float64, np.float32]
        return validate_data(self, at_least_single(X), accept_sparse="csr", dtype=dtypes, reset=reset)

    def _batch_learner(self) -> MetricLearner:
        """Return a batch learner with the parameters that both have."""
        names = ("prior", "basis", "residual", "normalize", "bounds", "percentiles", "tol", "random_state")
        return MetricLearner(**{name: getattr(self, name) for name in names})

    @property
    def _settings(self) -> StreamSettings:
        schedule = StepSchedule(float(self.eta), self.schedule, self.half_life)
        return StreamSettings(schedule, bool(self.targets), self.bounds, self.percentiles, self.pairs_per_row)

    def _initial_state(self, data: StreamBatch) -> StreamState:
        """Return the state before the first pair: the space, and empty samples."""
        settings, rng = self._batch_learner().fit_settings(), as_generator(self.random_state)
        codes = None if data.labels is None else codes_by_appearance(data.labels)
        similar = None
        if data.constraints is not None:
            pairs = data.constraints.pairs
            codes, similar = none_if_unlabelled(codes), pairs.index[pairs.sign > 0]
        start = start_metric(settings, data.X, Supervision(codes, similar), rng, quiet=False)
        coordinates = start.linear_coordinates
        stream = Stream.start(np.eye(coordinates.rank))
        return StreamState(
            coordinates,
            bool(self.normalize),
            int(rng.integers(2**62)),
            stream,
            StoredPairs.empty(self.n_pairs_kept, len(stream.F)),
            StoredRows(None, np.empty(0, dtype=np.intp)),
            self.n_rows_kept,
        )

    # -- certificate ---------------------------------------------------------------------------------------------

    def consolidate(self) -> Certificate:
        """Replace the metric by the optimum of the batch problem, and return its certificate.

        The problem is that of the regret: minimise the LogDet divergence of U from the prior plus Σ η ℓ(U) over the
        stored pairs. The search starts from the stream's metric, whose certificate is `stream_certificate_`. The stream
        continues from the optimum; its loss and regret bound start again at zero, relative to the optimum.
        """
        check_is_fitted(self)
        state = self._state
        if not len(state.pairs):
            raise ValueError("no pair has been seen yet, so there is nothing to consolidate; call partial_fit first.")
        n_pairs = state.stream.stats.n_pairs
        problem = batch_problem(state.pairs, state.coordinates.rank, n_pairs, self._settings.schedule)
        solution, own = solve_from(problem, state.F, self.tol)
        if not solution.certificate.converged:
            warn(
                f"stopped with relative duality gap {solution.certificate.relative_gap:.2e} (tol is "
                f"{self.tol:.0e}). Raise tol, or lower eta.",
                ConvergenceWarning,
            )
        certificates = (solution.certificate, own)
        self._state = dataclasses.replace(state, stream=Stream.start(solution.F, n_pairs), certificates=certificates)
        return solution.certificate

    # -- the learned metric --------------------------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return "_state" in self.__dict__

    def _fitted(self, name: str) -> StreamState:
        state = self.__dict__.get("_state")
        if state is None:
            raise AttributeError(f"{name} is available after fit or partial_fit.")
        return state

    @property
    def metric_(self) -> Metric:
        return self._fitted("metric_").metric

    @property
    def history_(self) -> tuple[StreamStats, ...]:
        return self._fitted("history_").history

    @property
    def n_pairs_(self) -> int:
        return self._fitted("n_pairs_").stream.stats.n_pairs

    @property
    def n_dropped_(self) -> int:
        return self._fitted("n_dropped_").n_dropped

    @property
    def bounds_(self) -> tuple[float, float] | None:
        return self._fitted("bounds_").bounds

    @property
    def classes_(self) -> tuple[object, ...]:
        return self._fitted("classes_").classes

    @property
    def certificate_(self) -> Certificate:
        return self._certificates("certificate_")[0]

    @property
    def stream_certificate_(self) -> Certificate:
        return self._certificates("stream_certificate_")[1]

    def _certificates(self, name: str) -> tuple[Certificate, Certificate]:
        certificates = self._fitted(name).certificates
        if certificates is None:
            raise AttributeError(f"{name} belongs to a consolidated metric; call consolidate() first.")
        return certificates

    @property
    def _n_features_out(self) -> int:
        return self.metric_.n_outputs

    def transform(self, X: RowsLike) -> np.ndarray:
        """Map rows to the space in which the learned distance is the Euclidean distance."""
        check_is_fitted(self)
        return self.metric_.transform(self._validate_rows(X))

    def score(
        self,
        X: RowsLike,
        y: ArrayLike | None = None,
        *,
        constraints: Constraints | None = None,
        rows: ArrayLike | None = None,
    ) -> float:
        """Return the area under the ROC curve over pairs of rows of X, as `MetricLearner.score` does."""
        check_is_fitted(self)
        checked, metric = self._validate_rows(X), self.metric_

        def sq_distances(index: np.ndarray) -> np.ndarray:
            return metric.pair_distances(checked[index[:, 0]], checked[index[:, 1]], squared=True)

        return pair_auc(sq_distances, len_of(checked), y, as_constraints(constraints), rows)

    def save(self, path: str | PathLike) -> None:
        """Write the stream atomically to a safetensors file, from which `load` continues it.

        The metric alone is ``metric_.save(path)``.
        """
        check_is_fitted(self)
        names = [str(name) for name in self.feature_names_in_] if hasattr(self, "feature_names_in_") else None
        save_stream(SavedStream(self.get_params(deep=False), self._state, names), path)

    @classmethod
    def load(cls, path: str | PathLike) -> Self:
        """Return a learner that continues the saved stream bit for bit. Nothing in the file is executed."""
        saved = load_stream(path, cls().get_params(deep=False))
        learner = cls(**saved.params)
        learner._state, learner.n_features_in_ = saved.state, saved.state.coordinates.n_features
        if saved.feature_names is not None:
            learner.feature_names_in_ = np.array(saved.feature_names, dtype=object)
        return learner

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
