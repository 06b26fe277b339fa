"""Before and after: what was chosen beside distances with nothing learned, on folds that had no say in the choice."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .. import intervals
from ..constraints import Constraints
from ..coordinates import LinearCoordinates
from ..learner import MetricLearner
from ..metric import Metric
from ..priors import Prior
from ..progress import parts_of
from ..scoring import (
    auc_of_pairs,
    average_precision,
    known_pairs,
    nearest_of,
    precision_at,
    ranked,
    ranked_auc,
    vote,
)
from ..validation import len_of
from .choosing import Choosing
from .cv import MetricLearnerCV
from .folds import Fold
from .judging import knn_hits, questions, retrieval

__all__ = [
    "BeforeAfter",
    "Estimate",
    "Measured",
    "Tally",
    "before_after",
    "choosing_again",
    "choosing_of",
    "measure_of_pairs",
    "measures",
    "measures_among",
    "refits",
    "unlearned",
]

_NEIGHBOURS = 10


@dataclass(frozen=True, eq=False)
class Estimate:
    """What was measured on some rows, and the influence of each of them on it."""

    value: float
    rows: np.ndarray
    influence: np.ndarray

    @classmethod
    def mean(cls, rows: np.ndarray, values: np.ndarray) -> Estimate | None:
        """Over the rows that have a value."""
        known = np.isfinite(values)
        if not known.any():
            return None
        mean = float(values[known].mean())
        return cls(mean, rows[known], (values[known] - mean) / known.sum())


Measured = dict[str, Estimate | None]  # by name; None where there was nothing to measure


@dataclass(frozen=True)
class BeforeAfter:
    """Measures on held-out rows, with the rows compared as they came and by what was learned.

    Each fold is judged with the settings that the other folds chose, so that no figure was chosen by what it says.

    Attributes
    ----------
    before, after : dict of str to float
    interval : dict of str to float or None
        Half the width of the 95 % interval of the difference, over rows; None where one row was all there was.
    n_questions : int
        Rows that were judged.
    names : (str, str)
        What the two are called.
    asking : str
        What a question is.
    before_interval, after_interval : dict of str to float or None
        The same of each by itself.
    """

    before: dict[str, float]
    after: dict[str, float]
    interval: dict[str, float | None]
    n_questions: int
    names: tuple[str, str] = ("before", "after")
    asking: str = "held-out rows, each asking for its own class"
    before_interval: dict[str, float | None] = field(default_factory=dict)
    after_interval: dict[str, float | None] = field(default_factory=dict)

    def change(self, name: str) -> str:
        """The difference with its interval, in print."""
        half = self.interval[name]
        return f"{self.after[name] - self.before[name]:+.3f}" + ("" if half is None else f" ± {half:.3f}")

    def __str__(self) -> str:
        width = max(len(name) for name in self.before) + 2
        first, second = self.names
        lines = [f"{'':{width}}{first:>9}{second:>9}   difference"]
        for name in self.before:
            lines.append(f"{name:{width}}{self.before[name]:9.3f}{self.after[name]:9.3f}   {self.change(name)}")
        return "\n".join([*lines, f"{self.n_questions:,} {self.asking}"])


def before_after(
    choosing: Choosing,
    measured: Callable[[Metric, Fold], Measured],
    *,
    settled: dict[str, Any] | None = None,
    names: tuple[str, str] = ("before", "after"),
) -> BeforeAfter:
    """Every fold by what the other folds chose, or by the candidate that was `settled` on beforehand."""
    tally = Tally()
    for fold, before, after in refits(choosing, settled):
        tally.add(measured(before, fold), measured(after, fold))
    labelled = choosing.folds[0].y is not None
    return tally.told(names, BeforeAfter.asking if labelled else "held-out rows of pairs that are known")


def refits(choosing: Choosing, settled: dict[str, Any] | None = None) -> Iterator[tuple[Fold, Metric, Metric]]:
    """Of every fold the distance with nothing learned and the one learned from its training rows."""
    folds = list(enumerate(choosing.folds))
    for k, fold in parts_of(folds, choosing.cv.verbose, "judging", lambda item: f"fold {item[0] + 1}"):
        candidate = choosing.table[choosing.best(without=k)] if settled is None else settled
        task = choosing.task(candidate["prior"], candidate["strategy"], fold)
        gamma = candidate["gamma"] * choosing.weight_of_pairs(candidate["strategy"])
        metric = task.metric(task.solve(gamma), float(candidate["residual"]))
        learned = fold.variant(metric, candidate["n_components"], candidate["normalize"])
        yield fold, unlearned(metric), learned


def unlearned(metric: Metric) -> Metric:
    """The distance with nothing learned: Euclidean between rows as they come, or that of the kernel."""
    c = metric.coordinates
    if isinstance(c, LinearCoordinates):
        # κ = κ0 where no direction is learned in, and nothing is left out
        assert metric.n_features is not None
        nowhere = np.zeros((metric.n_features, 0))
        return Metric(LinearCoordinates(Prior(), metric.n_features, nowhere), np.zeros((0, 0)))
    # κ = κ0 where F is the identity, and nothing is left out
    plain = dataclasses.replace(c, residual=1.0)
    return dataclasses.replace(
        metric, coordinates=plain, F=np.eye(len(metric.F)), eta=1.0, normalize=False, rotation=None
    )


class Tally:
    """Estimates before and after, fold by fold, of the same rows."""

    def __init__(self) -> None:
        self._parts: dict[str, list[tuple[Estimate, Estimate]]] = {}

    def add(self, before: Measured, after: Measured) -> None:
        for name, first in before.items():
            second = after[name]
            if first is not None and second is not None:
                self._parts.setdefault(name, []).append((first, second))

    def told(self, names: tuple[str, str] = ("before", "after"), asking: str = BeforeAfter.asking) -> BeforeAfter:
        """Means over folds, weighed by their rows; a row that several held out has one influence, the sum of its."""
        if not self._parts:
            raise ValueError("no two rows that are alike and two that are not were held out together")
        joined = {name: [_joined(side) for side in zip(*parts, strict=True)] for name, parts in self._parts.items()}
        return BeforeAfter(
            before={name: first.value for name, (first, _) in joined.items()},
            after={name: second.value for name, (_, second) in joined.items()},
            interval={name: intervals.over_rows(b.influence - a.influence) for name, (a, b) in joined.items()},
            n_questions=max(len(first.rows) for first, _ in joined.values()),
            names=names,
            asking=asking,
            before_interval={name: intervals.over_rows(first.influence) for name, (first, _) in joined.items()},
            after_interval={name: intervals.over_rows(second.influence) for name, (_, second) in joined.items()},
        )


def _joined(parts: tuple[Estimate, ...]) -> Estimate:
    """The mean over folds, weighed by their rows; where a fold is above it, so is every one of its rows."""
    n_rows = sum(len(part.rows) for part in parts)
    value = sum(len(part.rows) * part.value for part in parts) / n_rows
    rows, row = np.unique(np.concatenate([part.rows for part in parts]), return_inverse=True)
    influence = np.concatenate([(len(part.rows) * part.influence + (part.value - value)) / n_rows for part in parts])
    return Estimate(float(value), rows, np.bincount(row, influence))


# -- what is measured ----------------------------------------------------------------------------------------------


def measures(constraints: Constraints | None, *, unseen: bool = False) -> Callable[[Metric, Fold], Measured]:
    """From labels the vote of ten neighbours (not of classes unseen) and retrieval by each row; else AUC of pairs."""

    def measured(metric: Metric, fold: Fold) -> Measured:
        if fold.y is None:
            assert constraints is not None
            return {"pair AUC": _auc_of_known_pairs(metric, fold, constraints)}
        vote = {} if unseen else {"10-NN": _of_rows(fold, *knn_hits(metric, fold))}
        return vote | _of_ranking(fold.test[questions(fold)], retrieval(metric, fold)[:, :-1])  # the last is itself

    return measured


def measures_among(distances: np.ndarray, codes: np.ndarray) -> Measured:
    """The same where all rows ask each other; of each with itself the distance is infinite."""
    rows = np.arange(len(codes))
    right = vote(codes[nearest_of(distances, min(_NEIGHBOURS, len(codes) - 1))]) == codes
    found = ranked(distances, codes[:, None] == codes)[:, :-1]
    return {"10-NN": Estimate.mean(rows, right.astype(np.float64))} | _of_ranking(rows, found)


def measure_of_pairs(distance: np.ndarray, ends: np.ndarray, alike: np.ndarray, rows: np.ndarray) -> Measured:
    """Of pairs that are known to be alike or not, whose ends are positions among `rows`."""
    found = auc_of_pairs(distance, ends, alike, len(rows))
    if found is None:
        return {"pair AUC": None}
    auc, influence = found
    has_say = np.unique(ends)
    return {"pair AUC": Estimate(auc, rows[has_say], influence[has_say])}


def _of_ranking(rows: np.ndarray, found: np.ndarray) -> Measured:
    """Of rows that ask for what is alike, `found` nearest first; those to which nothing is have no say."""
    some = np.where(found.any(axis=1), 0.0, np.nan)
    values = {
        "P@1": precision_at(found, 1) + some,
        "P@10": precision_at(found, _NEIGHBOURS) + some,
        "MAP": average_precision(found),
        "AUC": ranked_auc(found),
    }
    return {name: Estimate.mean(rows, value) for name, value in values.items()}


def _of_rows(fold: Fold, asked: np.ndarray, values: np.ndarray) -> Estimate | None:
    return Estimate.mean(fold.test[asked], values.astype(np.float64))


def _auc_of_known_pairs(metric: Metric, fold: Fold, constraints: Constraints) -> Estimate | None:
    ends, alike = known_pairs(constraints.on_rows(fold.rows[fold.test])[0])
    return measure_of_pairs(fold.sq_pair_distances(metric, ends), ends, alike, fold.test)["pair AUC"]


# -- folds and candidates ------------------------------------------------------------------------------------------


def choosing_of(
    cv: MetricLearnerCV, X: Any, y: Any = None, constraints: Constraints | None = None
) -> tuple[Choosing, Any]:
    """Folds and candidates of a `MetricLearnerCV`, without a fit to all rows after; and rows that will do for one: on
    Dask a sample of them."""
    choosing, X, *_ = cv._choosing(X, y, constraints, None)
    return choosing, X


def choosing_again(
    learner: MetricLearner, X: Any, codes: np.ndarray | None, labels: Any, constraints: Constraints | None
) -> tuple[Choosing, dict[str, Any] | None]:
    """The folds that a fitted learner chose by, or would, and what it settled on.

    None in place of that where the scores of all its candidates are known on these folds, so that for each the choice
    of the others can be told.
    """
    cv = learner if isinstance(learner, MetricLearnerCV) else _with_one_candidate(learner)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The least populated class")
        choosing = Choosing(cv, X, codes, labels, constraints, np.arange(len_of(X)))
    if cv is not learner:
        return choosing, choosing.table[-1]
    known = np.asarray(cv.cv_results_["scores"])
    same_folds = learner.random_state is None or isinstance(learner.random_state, (int, np.integer))
    if same_folds and known.shape == (len(choosing.table), len(choosing.folds)) and len(choosing.folds) > 1:
        choosing.scores = known
        return choosing, None
    return choosing, cv._chosen | {"gamma": cv.gamma_}


def _with_one_candidate(learner: MetricLearner) -> MetricLearnerCV:
    shared = set(MetricLearnerCV().get_params()) & set(learner.get_params()) - {"verbose"}
    return MetricLearnerCV(**{name: getattr(learner, name) for name in shared}, gammas=[learner.gamma])
