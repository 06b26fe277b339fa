"""PairClassifier: a learned distance with calibrated probabilities that two rows are the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Real
from os import PathLike
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from ..callbacks import CallbackMixin, with_callbacks
from ..constraints import Constraints, as_constraints, codes_by_appearance
from ..evaluation.pair_scores import PAIR_SCORES
from ..learner import MetricLearner
from ..linalg import Matrix
from ..selection import MetricLearnerCV
from ..types import RowsLike
from ..validation import Seed, as_indices, as_objects, len_of
from .calibration import Calibration, best_threshold
from .held_out_pairs import draw_pairs, fit_and_hold_out


class PairClassifier(CallbackMixin, BaseEstimator):
    """Classify pairs of rows as the same or not, with calibrated probabilities.

    A metric is learned on part of the rows; probabilities and threshold are fitted to its distances between pairs of
    the other rows, so no row is used for both. The metric is not learned again on all rows: its distances would
    change, and the probabilities would no longer fit them.

    Parameters
    ----------
    learner : MetricLearner, MetricLearnerCV or EmbeddingAdapter, optional
        Default: ``MetricLearnerCV(normalize=[False, True], scoring="auc")``.
    threshold : {"accuracy", "f1", "fpr"}, default="accuracy"
        Criterion of `predict` on held-out pairs: largest accuracy; largest F1 of "same"; or a false-positive rate of at
        most `fpr`.
    fpr : float, default=0.01
        Largest false-positive rate for threshold="fpr".
    calibration : {"auto", "isotonic", "sigmoid"}, default="auto"
        Method from distance to probability: isotonic regression, or a sigmoid of two parameters; "auto" is isotonic if
        a thousand pairs of either kind are held out.
    base_rate : float, optional
        Share of pairs that are the same in use. Default: that of the held-out pairs, which is a half if they are drawn
        from labels.
    test_size : float, optional
        Share of rows to calibrate on. Default: 0.25; with constraints 0.4, because `PairSplit` drops pairs that the
        split divides.
    holdout : {"rows", "classes"}, default="rows"
        With labels: hold out rows of all classes, or whole classes, if the pairs in use are of unseen classes.
    random_state : int, RandomState, Generator or None
    verbose : int or callable, default=0
        Progress of the learner, as its own parameter `verbose` says; 0 leaves that of a learner given.

    Attributes
    ----------
    learner_, metric_
        The learner and its metric, fitted on the rows that were not held out.
    calibration_ : Calibration
        A callable: distances to probabilities.
    distance_threshold_, threshold_ : float
        Largest distance at which `predict` is True, and the probability there.
    held_out_ : HeldOutPairs
        The pairs that the calibration was fitted to: `index`, `distances`, `same`.
    rows_learned_, rows_held_out_ : ndarray
        Rows of X that the metric and the calibration were fitted to.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import StandardScaler
    >>> from mahalo.pairs import PairClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> X = StandardScaler().fit_transform(X)
    >>> classifier = PairClassifier().fit(X[::2], y[::2])
    >>> probability = classifier.predict_proba(X[1::2], [[0, 1], [0, 80]])[:, 1]
    >>> bool(probability[0] > 0.8 > 0.2 > probability[1])
    True
    """

    def __init__(
        self,
        learner: MetricLearner | None = None,
        *,
        threshold: str = "accuracy",
        fpr: float = 0.01,
        calibration: str = "auto",
        base_rate: float | None = None,
        test_size: float | None = None,
        holdout: str = "rows",
        random_state: Seed = None,
        verbose: int | Callable[[str], None] = 0,
    ) -> None:
        self.learner = learner
        self.threshold = threshold
        self.fpr = fpr
        self.calibration = calibration
        self.base_rate = base_rate
        self.test_size = test_size
        self.holdout = holdout
        self.random_state = random_state
        self.verbose = verbose

    classes_ = np.array([False, True])

    # Under metadata routing, meta-estimators pass both on by default: `rows` sliced like y, `constraints` whole.
    __metadata_request__fit = {"constraints": True, "rows": True}  # noqa: RUF012
    __metadata_request__score = {"constraints": True, "rows": True}  # noqa: RUF012

    @with_callbacks
    def fit(
        self,
        X: RowsLike,
        y: ArrayLike | None = None,
        *,
        constraints: Constraints | None = None,
        rows: ArrayLike | None = None,
    ) -> Self:
        """Learn from labels, or from pairs that are the same and pairs that are not.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or a sequence of objects
        y : array-like of shape (n_samples,), optional
            Classes; −1, None or NaN for unlabelled rows. Pairs are drawn from them, unless constraints are passed.
        constraints : Constraints, optional
            Pairs of both kinds.
        rows : array-like of shape (n_samples,), optional
            Index of each row of X in the numbering of the constraints.
        """
        self.check_parameters()
        X = _indexable(X)
        codes, constraints = self._check_labels_and_pairs(X, y, constraints, rows)
        self.learner_ = clone(self.learner if self.learner is not None else self._default_learner())
        if self.verbose and "verbose" in self.learner_.get_params():
            self.learner_.set_params(verbose=self.verbose)
        share = self.test_size if self.test_size is not None else 0.25 if constraints is None else 0.4
        with self._fit_task(X, y, constraints=constraints) as task:
            with task.nested_fit(self.learner_, "learning"):
                self.held_out_, self.rows_learned_, self.rows_held_out_ = fit_and_hold_out(
                    self.learner_, X, codes, constraints, share, self.holdout, self.random_state
                )
            self.metric_ = self.learner_.metric_
            self._calibrate()
        return self

    def _default_learner(self) -> MetricLearner:
        return MetricLearnerCV(
            normalize=[False, True], scoring="auc", holdout=self.holdout, random_state=self.random_state
        )

    def check_parameters(self) -> None:
        """Raise ValueError if a parameter is invalid."""
        options = {
            "threshold": ("accuracy", "f1", "fpr"),
            "calibration": ("auto", "isotonic", "sigmoid"),
            "holdout": ("rows", "classes"),
        }
        for name, allowed in options.items():
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}; got {getattr(self, name)!r}.")
        for name in ("fpr", "base_rate", "test_size"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, Real) and 0 < float(value) < 1):
                raise ValueError(f"{name} must be a share between 0 and 1; got {value!r}.")

    def _check_labels_and_pairs(
        self, X: Matrix, y: ArrayLike | None, constraints: Constraints | None, rows: ArrayLike | None
    ) -> tuple[np.ndarray | None, Constraints | None]:
        """Return class codes and constraints by row of X; raise ValueError if they are not enough to learn from."""
        constraints = as_constraints(constraints)
        if y is None and constraints is None:
            raise ValueError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y is None. "
                "Pass labels y, or constraints=."
            )
        if constraints is not None:
            constraints, _ = constraints.for_data(rows, len_of(X))
            kinds = {float(sign) for sign in constraints.pairs.sign}
            if len(kinds) < 2:
                lacking = "dissimilar" if 1.0 in kinds else "similar"
                raise ValueError(
                    f"pairs must be similar and dissimilar; the constraints have no {lacking} ones. Add some: "
                    f"Constraints.from_pairs({lacking}=...)."
                )
        codes = None
        if y is not None:
            codes = codes_by_appearance(y)
            check_consistent_length(X, codes)
        if constraints is None and codes is not None:
            largest = int(np.bincount(codes[codes >= 0]).max(initial=0))
            n_classes = len(np.unique(codes[codes >= 0]))
            if n_classes < 2 or largest < 2:
                raise ValueError(
                    f"y must have at least two classes, and one of them two rows; got {n_classes} classes, the largest "
                    f"of {largest} rows."
                )
        return codes, constraints

    def _calibrate(self) -> None:
        """Fit probabilities and threshold to the held-out pairs."""
        pairs = self.held_out_
        weight = np.ones(len(pairs.same))
        if self.base_rate is not None:
            share = pairs.same.mean()
            weight = np.where(pairs.same, self.base_rate / share, (1.0 - self.base_rate) / (1.0 - share))
        self.calibration_ = Calibration.fit(pairs.distances, pairs.same, weight, self.calibration)
        self.distance_threshold_ = best_threshold(pairs.distances, pairs.same, weight, self.threshold, self.fpr)
        self.threshold_ = float(self.calibration_(self.distance_threshold_))

    def distances(self, X: RowsLike, pairs: ArrayLike) -> np.ndarray:
        """Return the learned distance of each pair of rows of X."""
        check_is_fitted(self, "metric_")
        X, index = _indexable(X), as_indices(pairs, 2, "pairs")
        if index.max(initial=-1) >= len_of(X):
            raise ValueError(f"pairs refer to row {index.max()}, but X has {len_of(X)} rows (0 to {len_of(X) - 1}).")
        if not len(index):
            return np.empty(0)
        return self.metric_.pair_distances(X[index[:, 0]], X[index[:, 1]])

    def predict_proba(self, X: RowsLike, pairs: ArrayLike) -> np.ndarray:
        """Return the probabilities (not the same, the same) of each pair of rows of X, n_pairs × 2."""
        p = self.calibration_(self.distances(X, pairs))
        return np.column_stack([1.0 - p, p])

    def predict(self, X: RowsLike, pairs: ArrayLike) -> np.ndarray:
        """Return True for each pair of rows of X predicted to be the same."""
        return self.distances(X, pairs) <= self.distance_threshold_

    def score(
        self,
        X: RowsLike,
        y: ArrayLike | None = None,
        *,
        constraints: Constraints | None = None,
        rows: ArrayLike | None = None,
        scoring: str = "accuracy",
    ) -> float:
        """Return a score over the pairs of constraints, or pairs drawn from labels; `scoring` as in `pair_scorer`."""
        check_is_fitted(self, "metric_")
        if scoring not in PAIR_SCORES:
            raise ValueError(f"scoring must be one of {', '.join(map(repr, PAIR_SCORES))}; got {scoring!r}.")
        codes, constraints = self._check_labels_and_pairs(X, y, constraints, rows)
        if constraints is not None:
            index, same = constraints.pairs.index, constraints.pairs.sign > 0
        else:
            assert codes is not None
            index, same = draw_pairs(codes, 0)
        distances = self.distances(X, index)
        return PAIR_SCORES[scoring](same, distances <= self.distance_threshold_, self.calibration_(distances))

    def save(self, path: str | PathLike) -> None:
        """Write metric, calibration and threshold, but no training data, to a safetensors file."""
        from .files import save

        check_is_fitted(self, "metric_")
        save(self, path)

    @classmethod
    def load(
        cls, path: str | PathLike, *, kernel: Callable | None = None, points: Sequence[object] | None = None
    ) -> PairClassifier:
        """Return the saved classifier; `kernel` and `points` as in `mahalo.load`."""
        from .files import load

        return load(cls, path, kernel, points)


def pair_scorer(name: str) -> Callable[..., float]:
    """Return a scorer for scikit-learn, ``scorer(classifier, X, y)``, over pairs from labels or of constraints.

    `name` is one of "accuracy", "f1", "auc", "neg_brier", "neg_log_loss", "neg_calibration_error".
    """
    if name not in PAIR_SCORES:
        raise ValueError(f"a pair scorer is one of {', '.join(map(repr, PAIR_SCORES))}; got {name!r}.")

    def score(
        classifier: PairClassifier,
        X: RowsLike,
        y: ArrayLike | None = None,
        constraints: Constraints | None = None,
        rows: ArrayLike | None = None,
    ) -> float:
        return classifier.score(X, y, constraints=constraints, rows=rows, scoring=name)

    return score


def _indexable(X: RowsLike) -> Matrix:
    """Return rows as an array or CSR array that can be indexed by row number."""
    import scipy.sparse as sp

    if sp.issparse(X):
        return sp.csr_array(X)
    if hasattr(X, "iloc"):
        return np.asarray(X)
    if hasattr(X, "shape"):
        return X
    array = as_objects(X)
    return np.asarray(X, dtype=np.float64) if len(array) and np.ndim(array[0]) == 1 else array
