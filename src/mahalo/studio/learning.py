"""Consolidation: the metric learned from a set of answers, as a function of the answers and the seed alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..active import AnswerClosure
from ..constraints import Constraints, sq_distances
from ..learner import MetricLearner
from ..metric import Metric
from ..online import OnlineMetricLearner
from ..solvers import Certificate
from ..task import FitData, pose
from ..validation import in_double
from .answers import Answer, Answers, consistent
from .starts import Starts, pair_sq_distances, transform_rows

_MAX_IMPLIED = 4_000  # similar, and dissimilar, pairs that are learned from
_MOST_STREAMED = 2_000  # columns beyond which no online steps are made
_DISSIMILAR_WEIGHT = 0.3  # of a dissimilar pair, where that of a similar one is 1


@dataclass(frozen=True, eq=False)
class Consolidation:
    """A metric, and what it was learned from.

    Attributes
    ----------
    metric : Metric
        The ordinary distance if there was nothing to learn from.
    certificate : Certificate or None
        Proof of optimality; None for the ordinary distance.
    n_answers : int
        Pairs and triplets with an answer that were learned from.
    n_similar, n_dissimilar : int
        Pairs that these answers imply, themselves included.
    left_out : tuple of Answer
        "Same" answers that contradict others, which were not learned from.
    rows : ndarray of int
        Rows that the answers are about.
    group : ndarray of int
        Number of the group of each of these rows: rows connected by "same".
    bounds : (upper, lower) or None
        Squared bounds of the pairs; None for the ordinary distance.
    """

    metric: Metric
    certificate: Certificate | None
    n_answers: int
    n_similar: int
    n_dissimilar: int
    left_out: tuple[Answer, ...]
    rows: np.ndarray
    group: np.ndarray
    bounds: tuple[float, float] | None = None

    @property
    def is_learned(self) -> bool:
        """True if the metric is another than the ordinary distance."""
        return self.certificate is not None


class Learning:
    """Learner of metrics from answers about the rows of X.

    Answers imply others: rows connected by "same" are a group, and "different" between two groups holds for all their
    rows. All implied pairs are learned from, up to 4,000 of either kind.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
    seed : int
    learner : MetricLearner
        Its settings are those of every fit; its bounds, unless set, are percentiles of the distances of rows of X.
    """

    def __init__(self, X: np.ndarray, seed: int, learner: MetricLearner) -> None:
        self.X, self.seed = X, seed
        self.starts = Starts(X, seed, learner)

    @property
    def ordinary(self) -> Metric:
        """The metric before learning."""
        return self.starts.ordinary.metric

    def transform(self, metric: Metric, rows: np.ndarray) -> np.ndarray:
        """Return some rows in the space in which the metric is the ordinary distance, in double precision."""
        return transform_rows(self.X, metric, rows)

    def distances(self, metric: Metric, pairs: np.ndarray) -> np.ndarray:
        """Return the squared distances of pairs of rows under a metric."""
        return pair_sq_distances(self.X, metric, pairs)

    def consolidate(self, answers: Answers, held_out: Answers | None = None) -> Consolidation:
        """Return the metric learned from answers and all that they imply, but not from held-out pairs."""
        sq = self.distances(self.ordinary, np.array([a.rows for a in answers.pairs]))
        pairs, left_out = consistent(answers.pairs, sq)
        triplets = np.array([a.rows for a in answers.triplets if a.same], dtype=np.intp).reshape(-1, 3)
        index = np.array([a.rows for a in pairs], dtype=np.intp).reshape(-1, 2)
        rows = np.unique(np.concatenate([index.ravel(), triplets.ravel()]))
        if not len(rows):
            return Consolidation(self.ordinary, None, 0, 0, 0, left_out, rows, rows)
        known = Constraints.from_pairs(
            np.searchsorted(rows, index), same=np.array([a.same for a in pairs], dtype=bool), n_rows=len(rows)
        )
        closure = AnswerClosure.of(known, len(rows))
        implied = closure.constraints(_MAX_IMPLIED, random_state=self.seed)
        if held_out is not None:
            implied = _without(implied, rows, np.array([a.rows for a in held_out.pairs]).reshape(-1, 2))
        constraints = _weighted(implied)
        if len(triplets):
            constraints = constraints + Constraints.from_triplets(np.searchsorted(rows, triplets), n_rows=len(rows))
        n_similar = int((implied.pairs.sign > 0).sum())
        n_dissimilar = implied.n_constraints - n_similar
        counts = (len(pairs) + len(triplets), n_similar, n_dissimilar, left_out, rows, closure.group)
        X = in_double(self.X[rows])
        if not constraints.n_constraints or not _says_something(X, constraints):
            return Consolidation(self.ordinary, None, *counts)
        start = self.starts.choose(index, np.array([a.same for a in pairs], dtype=bool))
        if start.bounds[0] <= 0:
            raise ValueError("all rows are identical, so there is nothing to tell apart; check the data.")
        parameters = {**start.learner.get_params(), "bounds": start.bounds, "random_state": self.seed}
        task = pose(MetricLearner(**parameters).fit_settings(), FitData(X, None, constraints, None), quiet=True)
        solution = task.solve(float(start.learner.gamma))
        return Consolidation(task.metric(solution), solution.certificate, *counts, start.bounds)

    def follow(self, consolidation: Consolidation, answers: Sequence[Answer]) -> Metric:
        """Return the metric of a consolidation after one online step for each of some later pairs, in their order."""
        index = np.array([a.rows for a in answers], dtype=np.intp).reshape(-1, 2)
        same = np.array([a.same for a in answers], dtype=bool)
        apart = self.distances(self.ordinary, index) > 0
        if consolidation.bounds is None or not apart.any() or self.X.shape[1] > _MOST_STREAMED:
            return consolidation.metric
        rows, ends = np.unique(index[apart], return_inverse=True)
        constraints = Constraints.from_pairs(ends.reshape(-1, 2), same=same[apart], n_rows=len(rows))
        stream = OnlineMetricLearner(prior=consolidation.metric.matrix, bounds=consolidation.bounds, n_pairs_kept=1)
        metric = stream.partial_fit(in_double(self.X[rows]), constraints=constraints).metric_
        self.transform(metric, rows[:1])  # factors the metric here, not while a person waits for the next question
        return metric


def _says_something(X: np.ndarray, constraints: Constraints) -> bool:
    """Return whether a pair or triplet is of rows that differ."""
    pairs, triplets = constraints.pairs.index, constraints.triplets.index
    edges = np.concatenate([pairs, triplets[:, :2], triplets[:, ::2]])
    return bool((sq_distances(X, edges) > 0).any())


def _weighted(implied: Constraints) -> Constraints:
    """Return the pairs with less weight for the dissimilar ones, which few answers imply in great number."""
    pairs = implied.pairs
    weight = np.where(pairs.sign > 0, 1.0, _DISSIMILAR_WEIGHT)
    return Constraints.from_pairs(pairs.index, same=pairs.sign > 0, weight=weight, n_rows=implied.n_rows)


def _without(constraints: Constraints, rows: np.ndarray, pairs: np.ndarray) -> Constraints:
    """Return the constraints without some pairs, given by the numbers in `rows`."""
    if not len(pairs) or not len(rows):
        return constraints
    ends = np.sort(rows[constraints.pairs.index], axis=1).astype(np.int64)
    n = int(max(rows.max(), pairs.max())) + 1
    excluded = np.sort(pairs, axis=1).astype(np.int64) @ np.array([n, 1])
    return constraints.take(~np.isin(ends @ np.array([n, 1]), excluded))
