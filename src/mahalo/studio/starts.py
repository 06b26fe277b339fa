"""Starts: the metrics that learning may start from, and the choice between them by the answers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..constraints import sq_distances
from ..evaluation import auc_of_pairs, intervals
from ..learner import MetricLearner
from ..metric import Metric
from ..task import start_metric
from ..validation import in_double

_POWER, _RIDGE = 0.25, 0.05  # of the covariance; the ridge is in units of its mean eigenvalue
_MOST_COLUMNS, _MOST_ROWS = 2_000, 10_000  # beyond which there is no such start; of which the covariance is computed
_FEWEST_OF_A_KIND = 3  # pairs, "same" or "different", below which their AUC says nothing
_N_SAMPLED_PAIRS = 50_000  # for the percentiles of distances


@dataclass(frozen=True, eq=False)
class Start:
    """A metric to start from, and the squared bounds (upper, lower) of similar and dissimilar pairs under it."""

    learner: MetricLearner
    metric: Metric
    bounds: tuple[float, float]


class Starts:
    """The ordinary metric, and the one that stresses the directions in which rows differ.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
    seed : int
    learner : MetricLearner
        Its prior is the ordinary metric.
    """

    def __init__(self, X: np.ndarray, seed: int, learner: MetricLearner) -> None:
        self._X, self._seed, self._learner = X, seed, learner

    @cached_property
    def ordinary(self) -> Start:
        """The metric before learning."""
        return self._start(self._learner)

    @cached_property
    def stressed(self) -> Start | None:
        """Directions weighted by the fourth root of the variance of rows along them; None if the prior is given."""
        if not isinstance(self._learner.prior, str) or self._X.shape[1] > _MOST_COLUMNS:
            return None
        n = len(self._X)
        rows = np.sort(np.random.default_rng([self._seed, 7]).choice(n, min(n, _MOST_ROWS), replace=False))
        values, vectors = np.linalg.eigh(np.cov(in_double(self._X[rows]), rowvar=False).reshape(self._X.shape[1], -1))
        if not values[-1] > 0:
            return None
        # W₀ ∝ (S / mean(S) + ridge I)^¼, scaled to trace n_features
        weight = (np.maximum(values / values.mean(), 0.0) + _RIDGE) ** _POWER
        prior = (vectors * (weight / weight.mean())) @ vectors.T
        return self._start(MetricLearner(**{**self._learner.get_params(), "prior": prior}))

    def choose(self, index: np.ndarray, same: np.ndarray) -> Start:
        """Return the start for answered pairs: the stressed one, unless the ordinary one's AUC is beyond its interval.

        Parameters
        ----------
        index : ndarray of int, shape (n_pairs, 2)
        same : ndarray of bool
        """
        if self.stressed is None:
            return self.ordinary
        ordinary, stressed = (
            auc_of_answers(pair_sq_distances(self._X, start.metric, index), same)
            for start in (self.ordinary, self.stressed)
        )
        if ordinary is None or stressed is None:
            return self.stressed
        margin = intervals.over_rows(stressed[1] - ordinary[1])
        assert margin is not None
        return self.ordinary if ordinary[0] - stressed[0] > margin else self.stressed

    def _start(self, learner: MetricLearner) -> Start:
        rng = np.random.default_rng(self._seed)
        metric = start_metric(learner.fit_settings(), in_double(self._X[:2]), rng=rng, quiet=False)
        return Start(learner, metric, learner.bounds or self._percentiles(metric, learner.percentiles or (5, 95)))

    def _percentiles(self, metric: Metric, percentiles: tuple[float, float]) -> tuple[float, float]:
        """Return percentiles of the squared distances of random pairs of rows."""
        rng, n = np.random.default_rng(self._seed), len(self._X)
        rows = np.sort(rng.choice(n, min(n, 2_000), replace=False))
        i = rng.integers(0, len(rows), _N_SAMPLED_PAIRS)
        j = (i + rng.integers(1, len(rows), len(i))) % len(rows)
        sq = sq_distances(transform_rows(self._X, metric, rows), np.column_stack([i, j]))
        upper, lower = np.percentile(sq[sq > 0], percentiles) if (sq > 0).any() else (0.0, 0.0)
        return float(upper), float(lower)


def transform_rows(X: np.ndarray, metric: Metric, rows: np.ndarray) -> np.ndarray:
    """Return some rows in the space in which the metric is the ordinary distance, in double precision."""
    return np.asarray(metric.transform(in_double(X[rows])), dtype=np.float64)


def pair_sq_distances(X: np.ndarray, metric: Metric, pairs: np.ndarray) -> np.ndarray:
    """Return the squared distances of pairs of rows under a metric."""
    pairs = np.asarray(pairs, dtype=np.intp).reshape(-1, 2)
    if not len(pairs):
        return np.empty(0)
    rows, index = np.unique(pairs, return_inverse=True)
    return sq_distances(transform_rows(X, metric, rows), index.reshape(pairs.shape))


def auc_of_answers(sq: np.ndarray, same: np.ndarray) -> tuple[float, np.ndarray] | None:
    """Return the AUC and the influence of every pair on it; None with fewer than three pairs of either kind."""
    n = len(same)
    if min(same.sum(), n - same.sum()) < _FEWEST_OF_A_KIND:
        return None
    found = auc_of_pairs(sq, np.column_stack([np.arange(n), np.arange(n, 2 * n)]), same, 2 * n)
    return None if found is None else (found[0], found[1][:n])
