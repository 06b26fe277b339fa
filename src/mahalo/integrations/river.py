"""river: a learned distance in a pipeline that learns one row at a time."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import numpy as np
from sklearn.base import clone

from ..online import OnlineMetricLearner
from ..validation import check_count

try:
    from river.base import SupervisedTransformer, Transformer
except ImportError:
    raise ImportError('a transformer of river needs it: pip install "mahalo[river]"') from None

__all__ = ["MetricTransformer"]


class MetricTransformer(SupervisedTransformer, Transformer):  # pipelines pass on rows of the latter only
    """Transform rows into a space where a distance learned from the stream so far is the Euclidean one.

    The first `n_start` rows are collected: from them the learner takes its prior, its bounds and the features, and
    until then rows pass as they are. Afterwards every labelled row updates the metric, and rows come out as "metric0",
    "metric1" and so on. As in linear models of river, a feature that a row lacks counts as 0, and one that none of the
    first rows had is left out; scale features first, with river.preprocessing.StandardScaler.

    Parameters
    ----------
    learner : OnlineMetricLearner, optional
        Its parameters are those of the learner; it is copied, and not changed. Default: OnlineMetricLearner().
    n_start : int, default=200
        Number of rows to start with.

    Examples
    --------
    >>> from river import datasets, neighbors, preprocessing
    >>> from mahalo.integrations.river import MetricTransformer
    >>> model = preprocessing.StandardScaler() | MetricTransformer() | neighbors.KNNClassifier()
    >>> for x, y in datasets.ImageSegments().take(300):
    ...     model.learn_one(x, y)
    >>> model["MetricTransformer"].online_learner.n_pairs_ > 100
    True
    """

    def __init__(self, learner: OnlineMetricLearner | None = None, n_start: int = 200) -> None:
        check_count(n_start, "n_start")
        self.learner = learner
        self.n_start = n_start
        self._started: OnlineMetricLearner | None = None
        self._names: list[Hashable] = []
        self._first: list[tuple[dict[Hashable, float], object]] = []

    @property
    def online_learner(self) -> OnlineMetricLearner:
        """The learner of the stream so far: its metric_, history_ and consolidate()."""
        if self._started is None:
            raise ValueError(f"{len(self._first)} of {self.n_start} rows to start with have been seen; learn more.")
        return self._started

    def learn_one(self, x: Mapping[Hashable, float], y: object) -> None:
        """Learn from a row and its label, None if it has none."""
        if self._started is not None:
            self._started.partial_fit(self._row(x), np.array([y]))
            return
        self._first.append((dict(x), y))
        if len(self._first) >= self.n_start:
            self._start()

    def transform_one(self, x: Mapping[Hashable, float]) -> dict[Hashable, float]:
        """Return a row in the learned space; as it is until learning has started."""
        if self._started is None:
            return dict(x)
        (values,) = self._started.transform(self._row(x))
        return {f"metric{k}": float(value) for k, value in enumerate(values)}

    def _start(self) -> None:
        """Fix the features and learn from the rows that were collected."""
        self._names = sorted({name for x, _ in self._first for name in x}, key=str)
        learner = OnlineMetricLearner() if self.learner is None else clone(self.learner)
        rows = np.concatenate([self._row(x) for x, _ in self._first])
        self._started = learner.partial_fit(rows, np.array([y for _, y in self._first]))
        self._first = []

    def _row(self, x: Mapping[Hashable, float]) -> np.ndarray:
        return np.array([[x.get(name, 0.0) for name in self._names]], dtype=np.float64)
