"""Before and after on rows that were not learned from, and the distances of pairs among them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from ..constraints import Constraints, as_given
from ..learner import MetricLearner
from ..metric import Metric
from ..scoring import known_pairs
from ..selection import MetricLearnerCV
from ..selection.before_after import (
    BeforeAfter,
    Tally,
    choosing_again,
    measure_of_pairs,
    measures,
    measures_among,
    refits,
)
from ..selection.folds import Fold
from .distance import Distance, among

__all__ = ["Judged", "Lengths", "Measure", "as_noted", "on_held_out", "on_new_rows", "on_pairs"]

_MOST_PAIRS = 20_000  # distances of either kind that a histogram is made of
_MEASURES = {
    "10-NN": ("10-NN accuracy", "Share of rows whose class the vote of their ten nearest neighbours gets right."),
    "P@1": ("P@1", "Share of rows whose nearest other row is of their class."),
    "P@10": ("P@10", "Share of their own class among the ten nearest rows."),
    "MAP": ("MAP", "Mean average precision: how early in the ranking all rows of the class come."),
    "AUC": ("AUC", "Chance that a row of the same class is closer than another."),
    "pair AUC": ("pair AUC", "Chance that two rows that are alike are closer than two that are not; 0.5 is guessing."),
}


@dataclass(frozen=True)
class Measure:
    """One number before and after, with half the width of its 95 % interval, where known, and that of the change."""

    name: str
    what: str
    before: float
    after: float
    before_margin: float | None
    after_margin: float | None
    change_margin: float | None

    @property
    def change(self) -> float:
        return self.after - self.before

    @property
    def verdict(self) -> str:
        if self.change_margin is None or abs(self.change) <= self.change_margin:
            return "no clear difference"
        return "better" if self.change > 0 else "worse"


@dataclass
class Lengths:
    """Distances of pairs under one of the two distances, in units of the median of their fold, and which are alike."""

    parts: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)

    def add(self, distance: np.ndarray, alike: np.ndarray) -> None:
        self.parts.append((distance / (np.median(distance) or 1.0) if len(distance) else distance, alike))

    def of(self, kind: bool) -> np.ndarray:
        """Of alike or unalike pairs, at most 20,000."""
        values = np.concatenate([distance[alike == kind] for distance, alike in self.parts] or [np.empty(0)])
        if len(values) > _MOST_PAIRS:
            values = np.random.default_rng(0).choice(values, _MOST_PAIRS, replace=False)
        return values

    @property
    def auc(self) -> float | None:
        """Chance that an alike pair is closer than an unalike one of its fold: the mean over folds, by their pairs."""
        both = [(distance, alike) for distance, alike in self.parts if 0 < alike.sum() < len(alike)]
        if not both:
            return None
        aucs = [roc_auc_score(alike, -distance) for distance, alike in both]
        return float(np.average(aucs, weights=[len(alike) for _, alike in both]))


@dataclass(frozen=True)
class Judged:
    """Measures on rows not learned from, and distances of alike and unalike pairs before and after; `whose` says of
    which rows these are."""

    brief: str
    how: str
    n_rows: int
    measures: tuple[Measure, ...]
    lengths: tuple[Lengths, Lengths]
    whose: str = "rows held out from learning"


def on_new_rows(before: Distance, metric: Metric, X: Any, codes: np.ndarray, how: str) -> Judged:
    """Rows that the metric was not learned from, each in turn asking the others."""
    labelled = np.flatnonzero(codes >= 0)
    codes, lengths = codes[labelled], (Lengths(), Lengths())
    tables = [among(distance, X[labelled]) for distance in (before, metric)]
    for D, side in zip(tables, lengths, strict=True):
        side.add(*_labelled_pairs(D, codes))
    tally = Tally()
    tally.add(*(measures_among(D, codes) for D in tables))
    told = tally.told()
    return Judged("Judged on the rows given.", how, told.n_questions, _measures_of(told), lengths, "the rows given")


def on_pairs(before: Distance, metric: Metric, X: Any, constraints: Constraints, how: str) -> Judged:
    """Pairs that are known to be alike or not, of rows without labels."""
    ends, alike = known_pairs(constraints)
    tally, lengths, found = Tally(), (Lengths(), Lengths()), []
    for distance, side in zip((before, metric), lengths, strict=True):
        d = np.asarray(distance.pair_distances(X[ends[:, 0]], X[ends[:, 1]]), dtype=np.float64)
        side.add(d, alike)
        found.append(measure_of_pairs(d, ends, alike, np.arange(X.shape[0])))
    tally.add(*found)
    told = tally.told()
    return Judged("Judged on the pairs given.", how, told.n_questions, _measures_of(told), lengths, "the rows given")


def as_noted(judged: Judged, noted: dict[str, Any]) -> Judged:
    """The same rows, by the measures that were noted down when the metric was learned, on rows held out then."""
    told = BeforeAfter(
        before=noted["before"],
        after=noted["after"],
        interval=noted["interval"],
        n_questions=noted.get("questions") or judged.n_rows,
        before_interval=noted.get("before_interval") or {},
        after_interval=noted.get("after_interval") or {},
    )
    how = (
        "As noted down when the metric was learned: in folds, learned anew from the other rows with settings that had "
        "no say in the choice, and judged on those left out."
    )
    brief = "Judged on rows held out from learning."
    whose = "rows that were learned from, which flatters the right side a little"
    return replace(judged, brief=brief, how=how, n_rows=told.n_questions, measures=_measures_of(told), whose=whose)


def on_held_out(
    learner: MetricLearner, X: Any, y: Any, codes: np.ndarray | None, constraints: Constraints | None
) -> Judged:
    """The learner's settings learned anew on the rest of the rows, fold by fold, and judged on those left out."""
    choosing, settled = choosing_again(learner, X, codes, None if y is None else as_given(y), constraints)
    chooses = isinstance(learner, MetricLearnerCV)
    measured = measures(constraints, unseen=chooses and learner.holdout == "classes")
    tally, lengths = Tally(), (Lengths(), Lengths())
    for fold, *distances in refits(choosing, settled):
        tally.add(*(measured(metric, fold) for metric in distances))
        for metric, side in zip(distances, lengths, strict=True):
            side.add(*_held_out_pairs(metric, fold, constraints))
    told = tally.told()
    how = _how_held_out(len(choosing.folds), settled is None, chooses)
    return Judged("Judged on rows held out from learning.", how, told.n_questions, _measures_of(told), lengths)


def _how_held_out(n_folds: int, nested: bool, chooses: bool) -> str:
    text = (
        f"On rows held out: in each of {n_folds} folds the metric was learned anew, with the same settings, from the "
        "other rows, and judged on those left out."
    )
    if nested:
        return text + " What a fold was learned with (γ and the rest) was chosen by the other folds."
    return text + (" γ and the rest were chosen on all rows, which flatters a little." if chooses else "")


def _measures_of(told: BeforeAfter) -> tuple[Measure, ...]:
    return tuple(
        Measure(
            *_MEASURES.get(name, (name, "")),
            before,
            told.after[name],
            told.before_interval.get(name),
            told.after_interval.get(name),
            told.interval[name],
        )
        for name, before in told.before.items()
    )


def _held_out_pairs(metric: Metric, fold: Fold, constraints: Constraints | None) -> tuple[np.ndarray, np.ndarray]:
    """Distances of pairs of held-out rows, and which are alike: by label, or those that are known."""
    if fold.y is None:
        assert constraints is not None
        ends, alike = known_pairs(constraints.on_rows(fold.rows[fold.test])[0])
        return np.sqrt(np.maximum(fold.sq_pair_distances(metric, ends), 0.0)), alike
    codes = fold.y[fold.test]
    labelled = np.flatnonzero(codes >= 0)
    sq = fold.sq_distances(metric, among=True)[np.ix_(labelled, labelled)]
    return _labelled_pairs(np.sqrt(np.maximum(sq, 0.0)), codes[labelled])


def _labelled_pairs(D: np.ndarray, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    i, j = np.triu_indices(len(codes), 1)
    return D[i, j], codes[i] == codes[j]
