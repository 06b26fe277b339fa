"""OnlineMetricLearner: pairs or labels as they come → steps → a metric at any time."""

from __future__ import annotations

import dataclasses
from os import PathLike
from typing import Any, Self

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
    as_labels,
    class_codes,
    codes_by_appearance,
    none_if_unlabelled,
)
from ..coordinates import LinearSpace
from ..evaluation import pair_auc
from ..learner import MetricLearner
from ..metric import Metric
from ..priors import Known
from ..rows import InMemoryRows
from ..solvers import Certificate
from ..task.space import make_space
from ..validation import Seed, as_generator, at_least_single, check_parameters, len_of, warn
from .arriving import arrivals, bounded, check_own, check_pairs_alone
from .batch import batch_problem, solved_from
from .kept import KeptPairs, KeptRows, Slots, draws, paired
from .state import State
from .stream import Pace, Passed, Stream

__all__ = ["OnlineMetricLearner"]

_MOST_PASSED = 2000  # entries of history_, of which every second goes when there are more


class OnlineMetricLearner(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Learn a Mahalanobis distance from a stream of pairs or labels.

    After each pair the metric is the one that minimises the LogDet divergence to the metric before it plus η times the
    loss of the pair, half the square of its relative violation: a rank-one step in closed form that keeps the metric
    positive definite (Jain, Kulis, Dhillon and Grauman). `history_` bounds the regret, `consolidate` solves the batch
    problem over the pairs that were kept and proves it.

    The first call settles the space: prior and basis, and, from percentiles, the bounds. Give it some hundred rows, or
    bounds and a prior of your own. One thread may learn while others read: they see a whole metric at any time.

    Parameters
    ----------
    eta : float, default=0.1
        Step size, in units in which bounds are 1. A pair's weight multiplies it.
    schedule : {"safe", "fixed", "decaying"}, default="safe"
        "safe": η / max(1, d²/bound)², so that no pair, however wrong, shrinks distances by more than a factor of about
        1 + η. "fixed": η. "decaying": η / √(1 + t / 1000) for pair t.
    targets : bool, default=False
        Bounds are what squared distances should be, not limits.
    half_life : float, optional
        Pairs after which what was learned counts half, for streams that drift; what fades goes back to the prior.
    prior, basis, residual, normalize, bounds, percentiles
        As in `MetricLearner`, with a linear kernel. Over a basis of k directions a pair costs O(k²).
    pairs_per_row : int, default=1
        From labels: each row is joined with so many rows seen before of its class, and as many of others.
    n_pairs_kept : int, default=10000
        Pairs kept for `consolidate`: a random sample of all, or with `half_life` the latest.
    n_rows_kept : int, default=1000
        Labelled rows kept, likewise, to join new ones with.
    tol : float, default=1e-4
        Relative duality gap that `consolidate` reaches.
    random_state : int, RandomState, Generator or None, default=None
        Draws what is kept and joined. None is a fixed sequence: streams repeat exactly.

    Attributes
    ----------
    metric_ : Metric
        What has been learned so far.
    history_ : tuple of Passed
        After each call: pairs seen and violated, cumulative loss, and the bound on regret. Of thousands, every second
        goes.
    n_pairs_, n_dropped_ : int
        Pairs learned from, and those of identical points, left out.
    bounds_ : (upper, lower) or None
        Of pairs that come without.
    certificate_, stream_certificate_ : Certificate
        After `consolidate`: of the metric it found, and of the stream's own before it, whose gap is the most that it
        was away from the optimum.
    classes_ : tuple
        Labels seen.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

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
        self, X: Any, y: Any = None, *, constraints: Constraints | None = None, rows: ArrayLike | None = None
    ) -> Self:
        """Go on learning. A call that fails changes nothing.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), optional
            Class labels; −1, None or NaN for unlabelled rows. Rows are joined with rows of earlier calls and of this
            one. Not used to make pairs if `constraints` are given.
        constraints : Constraints, optional
            Pairs of rows of X, learned from in their order; ``from_pairs(pairs, same=...)`` keeps the one they came in.
        rows : array-like of shape (n_samples,), optional
            Index of each row of X in the numbering of the constraints.
        """
        with _all_or_nothing(self):
            state = self.__dict__.get("_state")
            X, y, constraints = self._validated(X, y, constraints, rows, first=state is None)
            if state is None:
                state = self._opened(X, y, constraints)
            self._state = self._advanced(state, X, y, constraints)
        return self

    def fit(
        self, X: Any, y: Any = None, *, constraints: Constraints | None = None, rows: ArrayLike | None = None
    ) -> Self:
        """Forget what was learned and pass once over the rows, or the pairs, in random order."""
        with _all_or_nothing(self):
            X, y, constraints = self._validated(X, y, constraints, rows, first=True)
            if constraints is None:
                class_codes(y)
            state = self._opened(X, y, constraints)
            rng = np.random.default_rng([state.seed, 2])
            if constraints is None:
                order = rng.permutation(len_of(X))
                X, y = X[order], y[order]
            else:
                constraints = constraints.take(rng.permutation(constraints.n_constraints))
            self._state = self._advanced(state, X, y, constraints)
        return self

    def _validated(
        self, X: Any, y: Any, constraints: Constraints | None, rows: Any, *, first: bool
    ) -> tuple[Any, Any, Constraints | None]:
        """Rows, labels and pairs that can be learned from; after a look at the parameters."""
        check_parameters(self._batch())
        check_own(self)
        constraints = as_constraints(constraints)
        if y is None and constraints is None:
            raise ValueError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y is None. "
                "Pass labels y, or constraints=."
            )
        X = validate_data(self, at_least_single(X), reset=first, **_FORM)
        if y is not None:
            y = as_label_array(y)
            y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
            check_consistent_length(X, y)
        if constraints is not None:
            check_pairs_alone(constraints)
            constraints, kept = constraints.for_data(rows, len_of(X))
            if not kept.any():
                raise ValueError(f"none of the {len(kept)} constraints has both its rows in X; check rows=.")
        return X, y, constraints

    def _batch(self) -> MetricLearner:
        """A learner with the parameters that both have."""
        names = ("prior", "basis", "residual", "normalize", "bounds", "percentiles", "tol", "random_state")
        return MetricLearner(**{name: getattr(self, name) for name in names})

    @property
    def _pace(self) -> Pace:
        return Pace(float(self.eta), self.schedule, self.half_life)

    def _opened(self, X: Any, y: Any, constraints: Constraints | None) -> State:
        """Before the first pair."""
        settings, rng = self._batch(), as_generator(self.random_state)
        codes = None if y is None else codes_by_appearance(y)
        similar = None
        if constraints is not None:
            codes, similar = none_if_unlabelled(codes), constraints.pairs.index[constraints.pairs.sign > 0]
        space = make_space(settings, X, Known(codes, similar), None, rng)
        assert isinstance(space, LinearSpace)
        coordinates = space.coordinates
        stream = Stream.at(np.eye(coordinates.rank))
        return State(
            coordinates,
            bool(self.normalize),
            int(rng.integers(2**62)),
            stream,
            KeptPairs.empty(self.n_pairs_kept, len(stream.F)),
            KeptRows(None, np.empty(0, dtype=np.intp)),
            self.n_rows_kept,
        )

    def _advanced(self, state: State, X: Any, y: Any, constraints: Constraints | None) -> State:
        """After these rows; what is kept is written over last, when nothing can fail any more."""
        rows, classes = state.rows, state.classes
        if constraints is None:
            X, constraints, rows, classes = self._from_labels(state, X, y)
        bounds = self._bounds(state, X)
        pairs = arrivals(state.coordinates, X, bounded(constraints, bounds), bool(self.targets))
        stream, eta = state.stream.follow(pairs, self._pace)
        if not np.isfinite(stream.F).all():
            raise ValueError("steps this large leave float64; lower eta, or use schedule='safe'.")
        first = state.stream.passed.n_pairs
        slots = Slots(len(state.pairs.bound), self.half_life is not None)
        slot = slots.of(first, draws(state.seed, 0, first, (len(pairs), 1))[:, 0])
        history = (*state.history, stream.passed)
        return dataclasses.replace(
            state,
            stream=stream,
            bounds=bounds,
            rows=rows,
            classes=classes,
            history=history[::2] if len(history) > _MOST_PASSED else history,
            n_dropped=state.n_dropped + constraints.n_constraints - len(pairs),
            certificates=None,
            pairs=state.pairs.take_in(pairs, eta, first, slot),
        )

    def _from_labels(self, state: State, X: Any, y: Any) -> tuple[Any, Constraints, KeptRows, tuple[Any, ...]]:
        """(rows, pairs of them, rows to keep, labels so far): those kept first, then the new ones."""
        labels = as_labels(y)
        number = {label: k for k, label in enumerate(state.classes)}
        known = [number.setdefault(label, len(number)) for label in labels.classes.tolist()]
        codes = np.array([*known, -1], dtype=np.intp)[labels.codes]
        slots = Slots(state.n_rows_kept, self.half_life is not None)
        index, sign, held = paired(state.rows, codes, slots, state.seed, self.pairs_per_row)
        X = state.rows.joined(X)
        every = np.concatenate([state.rows.codes, codes])
        rows = KeptRows(X[held], every[held], state.rows.n_seen + int((codes >= 0).sum()))
        return X, Constraints.from_pairs(index, same=sign > 0, n_rows=len_of(X)), rows, tuple(number)

    def _bounds(self, state: State, X: Any) -> tuple[float, float] | None:
        """(upper, lower) of pairs that have none of their own: given, or from the first rows that tell."""
        if self.bounds is not None:
            return float(self.bounds[0]), float(self.bounds[1])
        if state.bounds is not None:
            return state.bounds
        c = state.coordinates
        geometry = LinearSpace(c.prior, InMemoryRows(X), c.basis, c.residual).geometry
        distances = geometry.sample_sq_distances(np.random.default_rng([state.seed, 3]))
        if not len(distances):
            return None
        upper, lower = np.percentile(distances, (5, 95) if self.percentiles is None else self.percentiles)
        return float(upper), float(lower)

    # -- proof ---------------------------------------------------------------------------------------------------

    def consolidate(self) -> Certificate:
        """Put the optimum of the batch problem in the metric's place, and return its certificate.

        The problem is the one that the stream's regret is measured by: of all metrics U the one with the smallest
        LogDet divergence from the prior plus Σ η ℓ(U), over the pairs kept. The stream's own metric is where the search
        begins; how far from the optimum it was is in `stream_certificate_`. The stream goes on from the optimum, and
        its loss and regret are counted anew, against divergence from there.
        """
        check_is_fitted(self)
        state = self._state
        if not len(state.pairs):
            raise ValueError("no pair has been seen yet, so there is nothing to consolidate; call partial_fit first.")
        n_pairs = state.stream.passed.n_pairs
        problem = batch_problem(state.pairs, state.coordinates.rank, n_pairs, self._pace)
        solution, own = solved_from(problem, state.F, self.tol)
        if not solution.certificate.converged:
            warn(
                f"stopped with relative duality gap {solution.certificate.relative_gap:.2e} (asked for "
                f"{self.tol:.0e}). Raise tol, or lower eta.",
                ConvergenceWarning,
            )
        certificates = (solution.certificate, own)
        self._state = dataclasses.replace(state, stream=Stream.at(solution.F, n_pairs), certificates=certificates)
        return solution.certificate

    # -- what has been learned -----------------------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return "_state" in self.__dict__

    def _fitted(self, name: str) -> State:
        state = self.__dict__.get("_state")
        if state is None:
            raise AttributeError(f"{name} is there after fit or partial_fit.")
        return state

    @property
    def metric_(self) -> Metric:
        return self._fitted("metric_").metric

    @property
    def history_(self) -> tuple[Passed, ...]:
        return self._fitted("history_").history

    @property
    def n_pairs_(self) -> int:
        return self._fitted("n_pairs_").stream.passed.n_pairs

    @property
    def n_dropped_(self) -> int:
        return self._fitted("n_dropped_").n_dropped

    @property
    def bounds_(self) -> tuple[float, float] | None:
        return self._fitted("bounds_").bounds

    @property
    def classes_(self) -> tuple[Any, ...]:
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

    def transform(self, X: Any) -> np.ndarray:
        """Rows in the space where the learned distance is the Euclidean one."""
        check_is_fitted(self)
        return self.metric_.transform(validate_data(self, at_least_single(X), reset=False, **_FORM))

    def score(
        self, X: Any, y: Any = None, *, constraints: Constraints | None = None, rows: ArrayLike | None = None
    ) -> float:
        """Area under the ROC curve over pairs of rows of X, as `MetricLearner.score`."""
        check_is_fitted(self)
        X, metric = validate_data(self, at_least_single(X), reset=False, **_FORM), self.metric_

        def measured(index: np.ndarray) -> np.ndarray:
            return metric.pair_distances(X[index[:, 0]], X[index[:, 1]], squared=True)

        return pair_auc(measured, len_of(X), y, as_constraints(constraints), rows)

    def save(self, path: str | PathLike) -> None:
        """Write the stream to a safetensors file, whole or not at all, to go on from it with `load`.

        The metric alone is ``metric_.save(path)``.
        """
        from .files import save

        check_is_fitted(self)
        save(self, path)

    @classmethod
    def load(cls, path: str | PathLike) -> OnlineMetricLearner:
        """A learner that goes on, bit for bit, where the one that was saved stood. Nothing in the file is executed."""
        from .files import load

        return load(cls, path)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


_FORM: dict[str, Any] = {"accept_sparse": "csr", "dtype": [np.float64, np.float32]}


class _all_or_nothing:
    """What is inside happens to an object whole, or its attributes are those from before."""

    def __init__(self, owner: Any) -> None:
        self.owner = owner

    def __enter__(self) -> None:
        self.before = dict(vars(self.owner))

    def __exit__(self, kind: type | None, *_: Any) -> None:
        if kind is not None:
            self.owner.__dict__ = self.before
