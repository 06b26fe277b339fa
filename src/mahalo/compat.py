"""Estimators with the interface of metric-learn: `ITML` and `ITML_Supervised`.

Pairs are 3-D arrays of rows, or 2-D arrays of row numbers with a `preprocessor`; y is +1 for similar, −1 for
dissimilar pairs. The metric is that of `MetricLearner`: the certified optimum, with squared bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.datasets import make_spd_matrix
from sklearn.metrics import roc_auc_score
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from .constraints import Constraints
from .learner import MetricLearner
from .types import RowsLike
from .validation import Seed, as_generator, at_least_single, warn

__all__ = ["ITML", "ITML_Supervised"]

Preprocessor = Callable[[np.ndarray], np.ndarray]  # row numbers → rows

_STRATEGIES = ("accuracy", "f_beta", "max_tpr", "max_tnr")


class _MahalanobisEstimator(ClassNamePrefixFeaturesOutMixin, BaseEstimator):
    """Base of both estimators: the learned metric under metric-learn's method names."""

    gamma: float
    max_iter: int | None
    tol: float
    prior: str | ArrayLike
    verbose: bool
    preprocessor: Preprocessor | ArrayLike | None
    random_state: Seed

    def _learn(self, X: np.ndarray, constraints: Constraints, bounds: ArrayLike | None) -> None:
        """Fit a `MetricLearner` and set the attributes that metric-learn has."""
        prior = self.prior
        if isinstance(prior, str) and prior == "random":
            prior = make_spd_matrix(X.shape[1], random_state=check_random_state(self.random_state))
        self.learner_ = MetricLearner(
            gamma=self.gamma,
            prior=prior,
            bounds=None if bounds is None else _as_bounds(bounds),
            tol=self.tol,
            max_iter=self.max_iter,
            random_state=self.random_state,
            verbose=int(self.verbose),
        ).fit(X, constraints=constraints)
        self.metric_ = self.learner_.metric_
        pairs = self.learner_.constraints_.pairs
        by_sign = [pairs.bound[pairs.sign == sign] for sign in (1.0, -1.0)]
        self.bounds_ = np.array([bound[0] if len(bound) else np.nan for bound in by_sign])
        self.n_iter_ = self.learner_.n_iter_
        self.components_ = self.metric_.linear_map().T

    def _set_preprocessor(self) -> None:
        rows = self.preprocessor
        self.preprocessor_ = rows if rows is None or callable(rows) else _RowsByNumber(rows)

    def _look_up_rows(self, X: RowsLike) -> RowsLike:
        """Return X, or the rows that the preprocessor returns if X is a 1-D array of row numbers."""
        if self.preprocessor_ is None or np.asarray(X).ndim != 1:
            return at_least_single(X)
        return at_least_single(self.preprocessor_(np.asarray(X)))

    def _as_pairs(self, pairs: ArrayLike) -> np.ndarray:
        """Return checked pairs as an n × 2 × d array, from rows or from row numbers by the preprocessor."""
        array = np.asarray(pairs)
        if array.ndim == 2 and self.preprocessor_ is not None:
            points = np.asarray(self.preprocessor_(array.ravel()), dtype=np.float64)
            array = points.reshape(*array.shape, -1)
        if array.ndim != 3 or array.shape[1] != 2:
            what = "n × 2 row numbers" if self.preprocessor_ is not None else "an array of shape (n, 2, n_features)"
            raise ValueError(f"pairs must be {what}; got shape {array.shape}.")
        check_array(array.reshape(len(array) * 2, -1) if array.size else np.empty((0, 0)), dtype="numeric")
        array = array.astype(np.float64)
        if hasattr(self, "metric_") and array.shape[2] != self.metric_.n_features:
            raise ValueError(
                f"pairs have {array.shape[2]} features, the metric was learned on {self.metric_.n_features}."
            )
        return array

    def pair_distance(self, pairs: ArrayLike) -> np.ndarray:
        """Return the learned distance of each pair."""
        check_is_fitted(self, "metric_")
        tuples = self._as_pairs(pairs)
        return self.metric_.pair_distances(tuples[:, 0], tuples[:, 1])

    def pair_score(self, pairs: ArrayLike) -> np.ndarray:
        """Return minus the learned distance of each pair: larger is more similar."""
        return -self.pair_distance(pairs)

    def score_pairs(self, pairs: ArrayLike) -> np.ndarray:
        """Return `pair_distance(pairs)`; the older name of metric-learn."""
        warn("score_pairs is metric-learn's old name; use pair_distance, or pair_score.", FutureWarning)
        return self.pair_distance(pairs)

    def get_metric(self) -> Callable[..., float]:
        """Return a function of two rows, `distance(u, v, squared=False)`."""
        check_is_fitted(self, "metric_")
        L = np.atleast_2d(self.components_).copy()

        def distance(u: ArrayLike, v: ArrayLike, squared: bool = False) -> float:
            u, v = _as_row(u, "u"), _as_row(v, "v")
            difference = L @ (u - v)
            value = float(difference @ difference)
            return value if squared else float(np.sqrt(value))

        return distance

    def get_mahalanobis_matrix(self) -> np.ndarray:
        """Return the matrix W of the squared distance (u − v)ᵀ W (u − v)."""
        check_is_fitted(self, "metric_")
        return self.components_.T @ self.components_

    def transform(self, X: RowsLike) -> np.ndarray:
        """Map rows to the space in which the learned distance is the Euclidean distance."""
        check_is_fitted(self, "metric_")
        rows = validate_data(self, self._look_up_rows(X), reset=False, dtype=[np.float64, np.float32])
        return rows @ self.components_.T.astype(rows.dtype, copy=False)

    @property
    def _n_features_out(self) -> int:
        return self.components_.shape[0]


class ITML(_MahalanobisEstimator):
    """Information-theoretic metric learning from pairs, with the interface of metric-learn's ITML.

    Parameters
    ----------
    gamma, prior, random_state
        As in `MetricLearner`; prior may also be "random".
    max_iter, tol
        Maximum number of solver steps, and the relative duality gap to reach.
    verbose : bool
    preprocessor : array of rows, or callable, optional
        The rows, or a function from row numbers to rows.

    Attributes
    ----------
    bounds_ : ndarray of shape (2,)
        Squared bounds (upper, lower).
    components_, n_iter_, threshold_
        As in metric-learn; `learner_`, the `MetricLearner`, has the certificate.
    """

    classes_ = np.array([-1, 1])

    def __init__(
        self,
        gamma: float = 1.0,
        max_iter: int | None = 1000,
        tol: float = 1e-3,
        prior: str | ArrayLike = "identity",
        verbose: bool = False,
        preprocessor: Preprocessor | ArrayLike | None = None,
        random_state: Seed = None,
    ) -> None:
        self.gamma = gamma
        self.max_iter = max_iter
        self.tol = tol
        self.prior = prior
        self.verbose = verbose
        self.preprocessor = preprocessor
        self.random_state = random_state

    def fit(
        self, pairs: ArrayLike, y: ArrayLike, bounds: ArrayLike | None = None, calibration_params: dict | None = None
    ) -> Self:
        """Learn from pairs (n × 2 × d) and y (±1), then choose the threshold on the same pairs.

        `bounds` are (upper, lower), squared; by default the 5th and 95th percentile of squared distances.
        """
        calibration_params = dict(calibration_params or {})
        self._validate_calibration_params(**calibration_params)
        self._set_preprocessor()
        self.__dict__.pop("metric_", None)
        tuples, y = self._as_pairs(pairs), _as_signs(y)
        if len(tuples) != len(y):
            raise ValueError(f"pairs and y must have the same length; got {len(tuples)} and {len(y)}.")
        X, index = np.unique(tuples.reshape(-1, tuples.shape[2]), axis=0, return_inverse=True)
        constraints = Constraints.from_pairs(index.reshape(-1, 2), same=y == 1, n_rows=len(X))
        self._learn(X, constraints, bounds)
        self.n_features_in_ = X.shape[1]
        return self.calibrate_threshold(pairs, y, **calibration_params)

    def decision_function(self, pairs: ArrayLike) -> np.ndarray:
        """Return `pair_score(pairs)`, minus the learned distance."""
        return self.pair_score(pairs)

    def predict(self, pairs: ArrayLike) -> np.ndarray:
        """Return +1 for pairs up to the threshold distance, −1 beyond."""
        check_is_fitted(self, ["metric_", "threshold_"])
        return np.where(self.pair_distance(pairs) <= self.threshold_, 1, -1)

    def score(self, pairs: ArrayLike, y: ArrayLike) -> float:
        """Return the area under the ROC curve."""
        return float(roc_auc_score(_as_signs(y), self.decision_function(pairs)))

    def set_threshold(self, threshold: float) -> Self:
        """Set the largest distance at which `predict` returns +1."""
        check_is_fitted(self, "metric_")
        try:
            self.threshold_ = float(threshold)
        except (TypeError, ValueError):
            raise ValueError(f"threshold must be a number, a distance; got {type(threshold).__name__}.") from None
        return self

    def calibrate_threshold(
        self,
        pairs_valid: ArrayLike,
        y_valid: ArrayLike,
        strategy: str = "accuracy",
        min_rate: float | None = None,
        beta: float = 1.0,
    ) -> Self:
        """Set the threshold that is best on these pairs.

        `strategy` maximises "accuracy", "f_beta", the true-positive rate with a true-negative rate of at least
        `min_rate` ("max_tpr"), or the true-negative rate with such a true-positive rate ("max_tnr").
        """
        check_is_fitted(self, "metric_")
        self._validate_calibration_params(strategy, min_rate, beta)
        d, similar = self.pair_distance(pairs_valid), _as_signs(y_valid) == 1
        order = np.argsort(d, kind="stable")
        d, similar = d[order], similar[order]
        true_positives, false_positives = (np.concatenate([[0], np.cumsum(kind)]) for kind in (similar, ~similar))
        # Cut k predicts the first k pairs similar; equal distances are not divided.
        cuts = np.flatnonzero(np.concatenate([[True], d[1:] > d[:-1], [True]]))
        tpr = true_positives / max(true_positives[-1], 1)
        tnr = 1.0 - false_positives / max(false_positives[-1], 1)
        if strategy == "accuracy":
            value = (true_positives - false_positives).astype(float)
        elif strategy == "f_beta":
            predicted = true_positives + false_positives
            value = (1 + beta**2) * true_positives / np.maximum(predicted + beta**2 * true_positives[-1], 1e-300)
        else:
            value, other = (tpr, tnr) if strategy == "max_tpr" else (tnr, tpr)
            value = np.where(other >= min_rate, value, -1.0)
        k = cuts[np.argmax(value[cuts])]
        if k == 0:
            self.threshold_ = float(np.nextafter(d[0], -np.inf))
        else:
            self.threshold_ = float(d[k - 1] if k == len(d) else 0.5 * (d[k - 1] + d[k]))
        return self

    @staticmethod
    def _validate_calibration_params(
        strategy: str = "accuracy", min_rate: float | None = None, beta: float = 1.0
    ) -> None:
        if strategy not in _STRATEGIES:
            raise ValueError(f"strategy must be one of {', '.join(map(repr, _STRATEGIES))}; got {strategy!r}.")
        is_rate = isinstance(min_rate, (int, float)) and not isinstance(min_rate, bool) and 0 <= min_rate <= 1
        if strategy.startswith("max_") and not is_rate:
            raise ValueError(f"strategy={strategy!r} needs min_rate, a number from 0 to 1; got {min_rate!r}.")
        if strategy == "f_beta" and not isinstance(beta, (int, float)):
            raise ValueError(f"beta must be a number; got {beta!r}.")


class ITML_Supervised(TransformerMixin, _MahalanobisEstimator):
    """Information-theoretic metric learning from labels, with the interface of metric-learn's ITML_Supervised.

    `n_constraints` similar and as many dissimilar pairs are drawn from the labels, by default 20 times the square of
    the number of classes. The other parameters are those of `ITML`.
    """

    def __init__(
        self,
        gamma: float = 1.0,
        max_iter: int | None = 1000,
        tol: float = 1e-3,
        n_constraints: int | None = None,
        prior: str | ArrayLike = "identity",
        verbose: bool = False,
        preprocessor: Preprocessor | ArrayLike | None = None,
        random_state: Seed = None,
    ) -> None:
        self.gamma = gamma
        self.max_iter = max_iter
        self.tol = tol
        self.n_constraints = n_constraints
        self.prior = prior
        self.verbose = verbose
        self.preprocessor = preprocessor
        self.random_state = random_state

    def fit(self, X: RowsLike, y: ArrayLike, bounds: ArrayLike | None = None) -> Self:
        """Draw pairs from labels and learn from them."""
        self._set_preprocessor()
        rows, y = validate_data(self, self._look_up_rows(X), y, dtype=[np.float64, np.float32], ensure_min_samples=2)
        n_classes = len(np.unique(y))
        n = 20 * n_classes**2 if self.n_constraints is None else self.n_constraints
        rng = as_generator(self.random_state)
        per_class = max(1, -(-n // n_classes))
        constraints = Constraints.from_labels(y, pairs_per_class=per_class, random_state=rng)
        self._learn(rows, constraints, bounds)
        return self

    def transform(self, X: RowsLike) -> np.ndarray:
        """Map rows to the space in which the learned distance is the Euclidean distance."""
        return super().transform(X)  # scikit-learn's set_output wraps the methods of this class alone


class _RowsByNumber:
    """Preprocessor that returns the rows of an array by their numbers; a class, so that it can be pickled."""

    def __init__(self, rows: ArrayLike) -> None:
        self.rows = np.asarray(rows)

    def __call__(self, numbers: np.ndarray) -> np.ndarray:
        return self.rows[numbers]


def _as_bounds(bounds: ArrayLike) -> tuple[float, float]:
    """Return (upper, lower), made positive; raise ValueError unless there are two."""
    values = np.asarray(bounds, dtype=np.float64).ravel()
    if len(values) != 2:
        raise ValueError("`bounds` should be an array-like of two elements.")
    return float(max(values[0], 1e-9)), float(max(values[1], 1e-9))


def _as_signs(y: ArrayLike) -> np.ndarray:
    """Return y as a 1-D array; raise ValueError unless all values are ±1."""
    y = np.asarray(y)
    if not np.isin(y, (-1, 1)).all():
        raise ValueError(f"y must hold 1 for similar and -1 for dissimilar pairs; got {np.unique(y).tolist()}.")
    return y.ravel()


def _as_row(values: ArrayLike, name: str) -> np.ndarray:
    """Return one row as a 1-D array; raise ValueError if there are more."""
    row = np.atleast_1d(np.asarray(values, dtype=np.float64))
    row = row[0] if row.ndim == 2 and len(row) == 1 else row
    if row.ndim != 1:
        raise ValueError(f"{name} must be one row, a 1-D array; got shape {row.shape}.")
    return row
