"""PairClassifier: a learned distance, and the probability that two rows at that distance are the same."""

from __future__ import annotations

from numbers import Real
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from ..constraints import Constraints, as_constraints, codes_by_appearance
from ..selection import MetricLearnerCV
from ..validation import Seed, as_indices, as_objects, len_of
from .calibration import Calibration, cut
from .held_out import fit_and_hold_out, pairs_of_labels
from .judging import SCORES

__all__ = ["PairClassifier"]


class PairClassifier(BaseEstimator):
    """Tell pairs of rows that are the same from pairs that are not, with a probability that means what it says.

    A metric is learned on part of the rows and measures pairs of the others; probabilities and threshold come from
    those distances, so no row is both learned from and judged on. The metric is not learned again on all rows: its
    distances would be others, and the probabilities not theirs.

    Parameters
    ----------
    learner : MetricLearner, MetricLearnerCV or EmbeddingAdapter, optional
        Default: ``MetricLearnerCV(normalize=[False, True], scoring="auc")``.
    threshold : {"accuracy", "f1", "fpr"}, default="accuracy"
        What `predict` is to be good at on held-out pairs: most right; best F1 of "same"; or calling at most the share
        `fpr` of pairs that are not the same "same".
    fpr : float, default=0.01
        For threshold="fpr".
    calibration : {"auto", "isotonic", "sigmoid"}, default="auto"
        From distance to probability: steps, or a curve of two numbers; "auto" takes steps where a thousand pairs of
        either kind were held out.
    base_rate : float, optional
        Share of pairs that are the same where probabilities will be used. Default: that of the pairs learned from,
        which is a half when they are drawn from labels.
    test_size : float, optional
        Share of rows to calibrate on. Default: 0.25; with constraints, where `PairSplit` loses pairs that the split
        divides, 0.4.
    holdout : {"rows", "classes"}, default="rows"
        With labels: hold out rows of all classes, or whole classes, if pairs of classes never seen are to be told
        apart.
    random_state : int, RandomState, Generator or None

    Attributes
    ----------
    learner_, metric_
        Learned on the rows that were not held out.
    calibration_ : Calibration
        A callable: distances to probabilities.
    distance_threshold_, threshold_ : float
        `predict` says "same" up to this distance; the probability there.
    held_out_ : HeldOut
        The pairs it was calibrated on: `index`, `distances`, `same`.
    rows_learned_, rows_held_out_ : ndarray
        Rows of X on either side.

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
        learner: Any = None,
        *,
        threshold: str = "accuracy",
        fpr: float = 0.01,
        calibration: str = "auto",
        base_rate: float | None = None,
        test_size: float | None = None,
        holdout: str = "rows",
        random_state: Seed = None,
    ) -> None:
        self.learner = learner
        self.threshold = threshold
        self.fpr = fpr
        self.calibration = calibration
        self.base_rate = base_rate
        self.test_size = test_size
        self.holdout = holdout
        self.random_state = random_state

    classes_ = np.array([False, True])

    # Under metadata routing, meta-estimators hand both on without being asked: `rows` cut like y, `constraints` whole.
    __metadata_request__fit = {"constraints": True, "rows": True}  # noqa: RUF012
    __metadata_request__score = {"constraints": True, "rows": True}  # noqa: RUF012

    def fit(
        self, X: Any, y: Any = None, *, constraints: Constraints | None = None, rows: ArrayLike | None = None
    ) -> Self:
        """Learn from labels, or from pairs that are the same and pairs that are not.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or a sequence of objects
        y : array-like of shape (n_samples,), optional
            Classes; −1, None or NaN for unlabelled rows. Pairs are drawn from them, unless constraints are given.
        constraints : Constraints, optional
            Pairs of both kinds.
        rows : array-like of shape (n_samples,), optional
            Index of each row of X in the numbering of the constraints.
        """
        self._check_parameters()
        X = _indexable(X)
        codes, constraints = self._known(X, y, constraints, rows)
        self.learner_ = clone(self._learner())
        share = self.test_size if self.test_size is not None else 0.25 if constraints is None else 0.4
        self.held_out_, self.rows_learned_, self.rows_held_out_ = fit_and_hold_out(
            self.learner_, X, codes, constraints, share, self.holdout, self.random_state
        )
        self.metric_ = self.learner_.metric_
        self._calibrate()
        return self

    def _learner(self) -> Any:
        if self.learner is not None:
            return self.learner
        return MetricLearnerCV(
            normalize=[False, True], scoring="auc", holdout=self.holdout, random_state=self.random_state
        )

    def _check_parameters(self) -> None:
        options = {
            "threshold": ("accuracy", "f1", "fpr"),
            "calibration": ("auto", "isotonic", "sigmoid"),
            "holdout": ("rows", "classes"),
        }
        for name, known in options.items():
            if getattr(self, name) not in known:
                raise ValueError(f"{name} must be one of {', '.join(map(repr, known))}; got {getattr(self, name)!r}.")
        for name in ("fpr", "base_rate", "test_size"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, Real) and 0 < float(value) < 1):
                raise ValueError(f"{name} must be a share between 0 and 1; got {value!r}.")

    def _known(self, X: Any, y: Any, constraints: Any, rows: Any) -> tuple[np.ndarray | None, Constraints | None]:
        """Class codes and constraints by row of X."""
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
                    f"same or not takes pairs of both kinds; the constraints have no {lacking} ones. Add some: "
                    f"Constraints.from_pairs({lacking}=...)."
                )
        codes = None
        if y is not None:
            codes = codes_by_appearance(y)
            check_consistent_length(X, codes)
        if constraints is None and codes is not None:
            few = int(np.bincount(codes[codes >= 0]).max(initial=0))
            n_classes = len(np.unique(codes[codes >= 0]))
            if n_classes < 2 or few < 2:
                raise ValueError(
                    f"y must have at least two classes, and one of them two rows; got {n_classes} classes, the largest "
                    f"of {few} rows."
                )
        return codes, constraints

    def _calibrate(self) -> None:
        held = self.held_out_
        weight = np.ones(len(held.same))
        if self.base_rate is not None:
            share = held.same.mean()
            weight = np.where(held.same, self.base_rate / share, (1.0 - self.base_rate) / (1.0 - share))
        self.calibration_ = Calibration.fitted(held.distances, held.same, weight, self.calibration)
        self.distance_threshold_ = cut(held.distances, held.same, weight, self.threshold, self.fpr)
        self.threshold_ = float(self.calibration_(self.distance_threshold_))

    def distances(self, X: Any, pairs: ArrayLike) -> np.ndarray:
        """The learned distance of each pair."""
        check_is_fitted(self, "metric_")
        X, index = _indexable(X), as_indices(pairs, 2, "pairs")
        if index.max(initial=-1) >= len_of(X):
            raise ValueError(f"pairs refer to row {index.max()}, but X has {len_of(X)} rows (0 to {len_of(X) - 1}).")
        if not len(index):
            return np.empty(0)
        return self.metric_.pair_distances(X[index[:, 0]], X[index[:, 1]])

    def predict_proba(self, X: Any, pairs: ArrayLike) -> np.ndarray:
        """Probabilities (not the same, the same) of each pair of rows of X, as scikit-learn has them: n_pairs × 2."""
        p = self.calibration_(self.distances(X, pairs))
        return np.column_stack([1.0 - p, p])

    def predict(self, X: Any, pairs: ArrayLike) -> np.ndarray:
        """Whether the rows of each pair are the same."""
        return self.distances(X, pairs) <= self.distance_threshold_

    def score(
        self,
        X: Any,
        y: Any = None,
        *,
        constraints: Constraints | None = None,
        rows: ArrayLike | None = None,
        scoring: str = "accuracy",
    ) -> float:
        """Over the pairs of `constraints` among `rows`, or pairs drawn from labels; `scoring` as in `pair_scorer`."""
        check_is_fitted(self, "metric_")
        if scoring not in SCORES:
            raise ValueError(f"scoring must be one of {', '.join(map(repr, SCORES))}; got {scoring!r}.")
        codes, constraints = self._known(X, y, constraints, rows)
        if constraints is not None:
            index, same = constraints.pairs.index, constraints.pairs.sign > 0
        else:
            assert codes is not None
            index, same = pairs_of_labels(codes, 0)
        distances = self.distances(X, index)
        return SCORES[scoring](same, distances <= self.distance_threshold_, self.calibration_(distances))

    def save(self, path: str | PathLike) -> None:
        """Write metric, calibration and threshold to a safetensors file; what was learned from is not in it."""
        from .files import save

        check_is_fitted(self, "metric_")
        save(self, path)

    @classmethod
    def load(cls, path: str | PathLike, *, kernel: Any = None, points: Any = None) -> PairClassifier:
        """A classifier that predicts as the one that was saved; `kernel` and `points` as in `mahalo.load`."""
        from .files import load

        return load(cls, path, kernel, points)


def _indexable(X: Any) -> Any:
    """Rows that can be taken by number."""
    import scipy.sparse as sp

    if sp.issparse(X):
        return sp.csr_array(X)
    if hasattr(X, "iloc"):
        return np.asarray(X)
    if hasattr(X, "shape"):
        return X
    array = as_objects(X)
    return np.asarray(X, dtype=np.float64) if len(array) and np.ndim(array[0]) == 1 else array
