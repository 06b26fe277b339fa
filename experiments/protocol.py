"""The paper's protocol: two-fold splits, votes of k neighbours, γ chosen inside the training half, intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.model_selection import RepeatedStratifiedKFold

from mahalo import Metric, MetricLearnerCV
from mahalo.evaluation import intervals, knn_predict, nearest_of, vote

from .outcome import Measurement, Verdict

__all__ = [
    "GAMMAS",
    "N_NEIGHBORS",
    "Tally",
    "above",
    "halves",
    "knn_error",
    "mean_interval",
    "metric_error",
    "paper_learner",
    "vote_error",
]

GAMMAS = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
N_NEIGHBORS = 10
_BLOCK = 20_000_000  # distances held at once


def halves(y, n_repeats: int, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """(train, test) of repeated two-fold cross-validation: each half is learned from once, and judged on once."""
    splitter = RepeatedStratifiedKFold(n_splits=2, n_repeats=n_repeats, random_state=seed)
    return list(splitter.split(np.zeros(len(y)), y))


def paper_learner(seed: int, **changes: Any) -> MetricLearnerCV:
    """A learner with the paper's constraints: 100 + 100 random pairs a class, 1st and 99th percentile, γ by
    cross-validation on one warm path a fold, in the linear space, from the identity. `changes` are parameters of
    `MetricLearnerCV`."""
    paper: dict[str, Any] = {
        "kernel": "linear",
        "features": None,
        "prior": "identity",
        "strategy": "random",
        "pairs_per_class": 100,
        "percentiles": (1, 99),
        "gammas": GAMMAS,
        "random_state": seed,
    }
    return MetricLearnerCV(**(paper | changes))


def knn_error(train, y_train, test, y_test, k: int = N_NEIGHBORS) -> float:
    """Share of test rows that the vote of their k nearest training rows gets wrong; Euclidean, dense or sparse."""
    return float(np.mean(knn_predict(train, y_train, test, k) != y_test))


def metric_error(metric: Metric, train, y_train, test, y_test, k: int = N_NEIGHBORS) -> float:
    """The same under a learned metric, without transforming: for kernels, and rows too wide to be made dense."""
    return vote_error(lambda part: metric.distances(test[part], train, squared=True), y_train, y_test, k)


def vote_error(distances_of: Callable[[np.ndarray], np.ndarray], y_train, y_test, k: int = N_NEIGHBORS) -> float:
    """The same from distances, or anything that grows with them: distances_of(part) has a row for each test row in
    `part`, a column for each training row."""
    y_test = np.asarray(y_test)
    classes, codes = np.unique(y_train, return_inverse=True)
    n_wrong = 0
    for part in np.array_split(np.arange(len(y_test)), 1 + len(y_test) * len(codes) // _BLOCK):
        nearest = nearest_of(distances_of(part), k)
        n_wrong += int((classes[vote(codes[nearest])] != y_test[part]).sum())
    return n_wrong / len(y_test)


def mean_interval(values: Sequence[float] | np.ndarray) -> tuple[float, float | None]:
    """Mean and half-width of its 95 % interval, t · s/√n; None for a single value.

    Values from repeated two-fold splits are not independent, so the interval is the customary one rather than exact.
    """
    return float(np.mean(values)), intervals.of_mean(np.asarray(values))


def above(claim: str, one: Sequence[float] | np.ndarray, other: Sequence[float] | np.ndarray) -> Verdict:
    """Whether values of one method are above those of another on the same splits, or above a single value: the 95 %
    interval of the mean difference is above zero (where there is no interval, the difference itself)."""
    difference = np.asarray(one) - np.asarray(other)
    mean, half_width = mean_interval(difference)
    interval = "" if half_width is None else f" ± {half_width:.3f}"
    detail = f"{np.mean(one):.3f} against {np.mean(other):.3f}, difference {mean:+.3f}{interval}"
    return Verdict(claim, mean - (half_width or 0.0) > 0, detail)


class Tally:
    """Values as they come in, and the measurements they make: one for each (dataset, method, measure, x)."""

    def __init__(self) -> None:
        self._values: dict[tuple[str, str, str, float | None], list[float]] = {}

    def add(self, dataset: str, method: str, measure: str, value: float, x: float | None = None) -> None:
        self._values.setdefault((dataset, method, measure, x), []).append(float(value))

    def values(self, dataset: str, method: str, measure: str, x: float | None = None) -> list[float]:
        """In the order they were added, so that those of two methods on the same splits can be paired."""
        return list(self._values[dataset, method, measure, x])

    def measurements(self, published: Mapping[tuple, float] | None = None) -> tuple[Measurement, ...]:
        """In order of first appearance; `published` has figures by (dataset, method, measure) or with x as a fourth."""
        published = published or {}
        out = []
        for (dataset, method, measure, x), values in self._values.items():
            mean, half_width = mean_interval(values)
            stated = published.get((dataset, method, measure, x), published.get((dataset, method, measure)))
            out.append(Measurement(dataset, method, measure, mean, half_width, len(values), x, stated))
        return tuple(out)
