"""Before and after on rows that were not learned from: one number a measure, each with its interval.

Every measure is a mean over rows, or a U-statistic of them, and comes with the influence of each row on it. Rows are
what was drawn at random, so the variance is the sum of squared influences; that of a difference is the same of
differences, because both distances are judged on the same rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..constraints import Constraints
from ..learner import MetricLearner
from ..metric import Metric
from ..scoring import average_precision, nearest_of, precision_at, ranked, vote
from ..selection import MetricLearnerCV
from ..selection.choosing import Choosing
from ..selection.folds import Fold
from ..validation import len_of
from .distance import Distance, among, before_learning

__all__ = ["Judged", "Measure", "as_noted", "auc_of_pairs", "on_held_out", "on_new_rows"]

_NEIGHBOURS = 10
_SURE = 1.96  # standard errors on either side of a 95 % interval
_MOST_PAIRS = 20_000  # distances of either kind that a histogram is made of
_MEASURES = {
    "10-NN accuracy": "Share of rows whose class the vote of their ten nearest neighbours gets right.",
    "P@1": "Share of rows whose nearest other row is of their class.",
    "P@10": "Share of their own class among the ten nearest rows.",
    "MAP": "Mean average precision: how early in the ranking all rows of the class come.",
    "pair AUC": "Chance that two rows that are alike are closer than two that are not; 0.5 is guessing.",
}
_AUC_OF_ROWS = "Chance that a row of the same class is closer than another."


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


@dataclass(frozen=True)
class Judged:
    """Measures on rows not learned from, and distances of alike and unalike pairs in units of the median; `whose` says
    of which rows these are."""

    brief: str
    how: str
    n_rows: int
    measures: tuple[Measure, ...]
    alike: tuple[np.ndarray, np.ndarray]
    unalike: tuple[np.ndarray, np.ndarray]
    whose: str = "rows held out from learning"


def on_new_rows(before: Distance, metric: Metric, X: Any, codes: np.ndarray, how: str) -> Judged:
    """Rows that the metric was not learned from, each in turn asking the others."""
    tally = _Tally(len(codes))
    rows = np.flatnonzero(codes >= 0)
    for side, distance in enumerate((before, metric)):
        D = among(distance, X[rows])
        tally.add(side, rows, _of_labels(D, codes[rows], D, codes[rows]))
        tally.add_pairs(side, rows, *_labelled_pairs(D, codes[rows]))
    return replace(tally.judged("Judged on the rows given.", how), whose="the rows given")


def as_noted(judged: Judged, noted: dict[str, Any]) -> Judged:
    """The same rows, by the measures that were noted down when the metric was learned, on rows held out then."""
    measures = []
    for name, before in noted["before"].items():
        full = "10-NN accuracy" if name == "10-NN" else name
        margin = noted["interval"][name]  # None: too few rows to tell
        what = _MEASURES.get(full, "") if name != "AUC" else _AUC_OF_ROWS
        measures.append(Measure(full, what, before, noted["after"][name], None, None, margin))
    how = (
        "As noted down when the metric was learned: in folds, learned anew from the other rows with settings that had "
        "no say in the choice, and judged on those left out."
    )
    brief = "Judged on rows held out from learning."
    whose = "rows that were learned from, which flatters the right side a little"
    return replace(judged, brief=brief, how=how, measures=tuple(measures), whose=whose)


def on_held_out(
    learner: MetricLearner, X: Any, y: Any, codes: np.ndarray | None, constraints: Constraints | None
) -> Judged:
    """The learner's settings learned anew on the rest of the rows, fold by fold, and judged on those left out."""
    choosing, nested = _choosing(learner, X, y, codes, constraints)
    tally = _Tally(len_of(X))
    for fold, learned in _refits(choosing, nested):
        for side, distance in enumerate((before_learning(learned)[0], learned)):
            _judge_fold(tally, side, distance, fold, constraints)
    how = _how_held_out(len(choosing.folds), nested, isinstance(learner, MetricLearnerCV))
    return tally.judged("Judged on rows held out from learning.", how)


def _how_held_out(n_folds: int, nested: bool, chooses: bool) -> str:
    text = (
        f"On rows held out: in each of {n_folds} folds the metric was learned anew, with the same settings, from the "
        "other rows, and judged on those left out."
    )
    if nested:
        return text + " What a fold was learned with (γ and the rest) was chosen by the other folds."
    return text + (" γ and the rest were chosen on all rows, which flatters a little." if chooses else "")


# -- learning anew -----------------------------------------------------------------------------------------------


def _choosing(learner: MetricLearner, X: Any, y: Any, codes: Any, constraints: Any) -> tuple[Choosing, bool]:
    """The folds that the learner chooses by, or would; and whether its scores on them are known."""
    cv = learner if isinstance(learner, MetricLearnerCV) else _with_one_candidate(learner)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The least populated class")
        choosing = Choosing(cv, X, codes, y if y is None else np.asarray(y), constraints, np.arange(len_of(X)))
        choosing.folds = list(choosing.folds)
    known = getattr(learner, "cv_results_", {"scores": np.empty((0, 0))})["scores"]
    fixed = learner.random_state is None or isinstance(learner.random_state, (int, np.integer))
    nested = fixed and known.shape == (len(choosing.table), len(choosing.folds)) and len(choosing.folds) > 1
    if nested:
        choosing.__dict__["scores"] = known
    return choosing, nested


def _with_one_candidate(learner: MetricLearner) -> MetricLearnerCV:
    shared = set(MetricLearnerCV().get_params()) & set(learner.get_params())
    values = {name: getattr(learner, name) for name in shared if name != "verbose"}
    cv = MetricLearnerCV(**values, gammas=[learner.gamma])
    cv.gamma_ = learner.gamma
    for name in ("prior", "strategy", "n_components", "residual", "normalize"):
        setattr(cv, f"{name}_", getattr(learner, name))
    return cv


def _refits(choosing: Choosing, nested: bool) -> Iterator[tuple[Fold, Metric]]:
    for k, fold in enumerate(choosing.folds):
        chosen = choosing.table[choosing.best(without=k)] if nested else _settled(choosing.cv)
        task = choosing.task(chosen["prior"], chosen["strategy"], fold)
        metric = task.metric(task.solve(chosen["gamma"]))
        yield fold, fold.variant(metric, chosen["n_components"], chosen["residual"], chosen["normalize"])


def _settled(cv: MetricLearnerCV) -> dict[str, Any]:
    return cv._chosen | {"gamma": cv.gamma_}


def _judge_fold(tally: _Tally, side: int, distance: Distance, fold: Fold, constraints: Constraints | None) -> None:
    if fold.y is None:
        assert constraints is not None
        tally.add_pairs(side, fold.test, *_known_pairs(distance, fold, constraints))
        return
    voters, judged = np.flatnonzero(fold.y_train >= 0), np.flatnonzero(fold.y_test >= 0)  # type: ignore[operator]
    rows, X_test = fold.test[judged], fold.X_test[judged]
    D = among(distance, X_test)
    codes = fold.y[rows]
    votes = distance.distances(X_test, fold.X_train[voters])
    seen = np.isin(codes, fold.y[fold.train])
    tally.add(side, rows, _of_labels(votes, fold.y[fold.train[voters]], D, codes, vote_on=bool(seen.any())))
    tally.add_pairs(side, rows, *_labelled_pairs(D, codes))


def _known_pairs(distance: Distance, fold: Fold, constraints: Constraints) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Distances, ends and likeness of the pairs among held-out rows; triplets count as two pairs."""
    known = constraints.on_rows(fold.rows[fold.test])[0]
    triplets = known.triplets.index
    ends = np.concatenate([known.pairs.index, triplets[:, :2], triplets[:, ::2]])
    alike = np.concatenate([known.pairs.sign > 0, np.arange(2 * len(triplets)) < len(triplets)])
    return distance.pair_distances(fold.X_test[ends[:, 0]], fold.X_test[ends[:, 1]]), ends, alike


def _labelled_pairs(D: np.ndarray, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    i, j = np.triu_indices(len(codes), 1)
    return D[i, j], np.column_stack([i, j]), codes[i] == codes[j]


# -- measures of rows and of pairs -------------------------------------------------------------------------------


def _of_labels(
    votes: np.ndarray, voters: np.ndarray, D: np.ndarray, codes: np.ndarray, *, vote_on: bool = True
) -> dict[str, np.ndarray]:
    """One number a row and measure, NaN where there is nothing to find."""
    right = vote(voters[nearest_of(votes, _NEIGHBOURS)]) == codes if vote_on else np.full(len(codes), np.nan)
    found = ranked(D, codes[:, None] == codes)[:, :-1]  # the last is the row itself
    some = np.where(found.any(axis=1), 0.0, np.nan)
    return {
        "10-NN accuracy": right.astype(np.float64),
        "P@1": precision_at(found, 1) + some,
        "P@10": precision_at(found, _NEIGHBOURS) + some,
        "MAP": average_precision(found),
    }


def auc_of_pairs(
    distance: np.ndarray, ends: np.ndarray, alike: np.ndarray, n_rows: int
) -> tuple[float, np.ndarray] | None:
    """P(an alike pair is closer than an unalike one), and the influence of every row on it; None without both kinds."""
    near, far = np.sort(distance[alike]), np.sort(distance[~alike])
    if not len(near) or not len(far):
        return None
    # of every pair, the share of the other kind on the right side of it, ties counting half
    placed = np.empty(len(distance))
    placed[alike] = 1.0 - _share_below(far, distance[alike])
    placed[~alike] = _share_below(near, distance[~alike])
    auc = float(placed[alike].mean())
    pull = (placed - auc) / np.where(alike, len(near), len(far))
    return auc, np.bincount(ends[:, 0], pull, n_rows) + np.bincount(ends[:, 1], pull, n_rows)


def _share_below(ordered: np.ndarray, values: np.ndarray) -> np.ndarray:
    both = np.searchsorted(ordered, values, "left") + np.searchsorted(ordered, values, "right")
    return both / (2.0 * len(ordered))


@dataclass
class _Tally:
    """Estimates and influences, fold by fold, of both distances."""

    n_rows: int
    parts: dict[str, tuple[list, list]] = field(default_factory=dict)
    pairs: tuple[list, list] = field(default_factory=lambda: ([], []))
    judged_rows: set[int] = field(default_factory=set)

    def add(self, side: int, rows: np.ndarray, values: dict[str, np.ndarray]) -> None:
        for name, value in values.items():
            known = np.isfinite(value)
            if known.any():
                mean, n = float(value[known].mean()), int(known.sum())
                self._put(name, side, mean, n, rows[known], (value[known] - mean) / n)

    def add_pairs(self, side: int, rows: np.ndarray, distance: np.ndarray, ends: np.ndarray, alike: np.ndarray) -> None:
        found = auc_of_pairs(distance, ends, alike, len(rows))
        if found is not None:
            self._put("pair AUC", side, found[0], len(rows), rows, found[1])
            self.pairs[side].append((distance / (np.median(distance) or 1.0), alike))

    def _put(self, name: str, side: int, estimate: float, weight: int, rows: np.ndarray, pull: np.ndarray) -> None:
        spread = np.zeros(self.n_rows)
        np.add.at(spread, rows, pull)
        self.parts.setdefault(name, ([], []))[side].append((estimate, weight, spread))
        self.judged_rows.update(rows.tolist())

    def judged(self, brief: str, how: str) -> Judged:
        measures = tuple(self._measure(name) for name in _MEASURES if name in self.parts)
        if not measures:
            raise ValueError("no two rows that are alike and two that are not were held out together")
        alike, unalike = ([self._distances(side, kind) for side in (0, 1)] for kind in (True, False))
        return Judged(brief, how, len(self.judged_rows), measures, tuple(alike), tuple(unalike))  # type: ignore[arg-type]

    def _measure(self, name: str) -> Measure:
        (before, pull), (after, push) = (self._mean(side) for side in self.parts[name])
        margins = (_SURE * float(np.sqrt((p**2).sum())) for p in (pull, push, push - pull))
        return Measure(name, _MEASURES[name], before, after, *margins)

    @staticmethod
    def _mean(parts: list) -> tuple[float, np.ndarray]:
        weight = np.array([part[1] for part in parts], dtype=np.float64)
        weight /= weight.sum()
        mean = float(sum(w * part[0] for w, part in zip(weight, parts, strict=True)))
        return mean, np.sum([w * part[2] for w, part in zip(weight, parts, strict=True)], axis=0)

    def _distances(self, side: int, kind: bool) -> np.ndarray:
        values = np.concatenate([d[alike == kind] for d, alike in self.pairs[side]] or [np.empty(0)])
        if len(values) > _MOST_PAIRS:
            values = np.random.default_rng(0).choice(values, _MOST_PAIRS, replace=False)
        return values
