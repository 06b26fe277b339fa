"""Judgement of a session: held-out AUC before and after learning, and whether further answers change the ranking."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..evaluation import intervals, nearest_rows
from ..metric import Metric
from .answers import Answers
from .learning import Learning
from .starts import auc_of_answers

_N_PROBES, _N_REFERENCE, _K = 200, 2_000, 10
_FEWEST_ANSWERS = 60  # before which nothing is enough
SPAN = 30  # answers whose effect on the ranking is looked at
SMALL_CHANGE = 0.1  # share of nearest rows that change: one in ten


@dataclass(frozen=True)
class HeldOut:
    """AUC of held-out answers by the ordinary and by the learned distance; margins are half 95 % intervals.

    `margin` belongs to `after`, `gain_margin` to the difference; None where there are too few answers to tell.
    """

    n_answers: int
    n_pairs: int
    before: float
    after: float
    margin: float | None
    gain_margin: float | None


@dataclass(frozen=True)
class Enough:
    """Verdict on whether further answers would still change the ranking.

    Attributes
    ----------
    reached : bool
    change : float or None
        Share of the ten nearest rows that the last 30 answers have changed; None before there are 60 answers.
    sentence : str
    """

    reached: bool
    change: float | None
    sentence: str


class Judge:
    """Measures of metrics on held-out answers and on a fixed sample of rows."""

    def __init__(self, learning: Learning, seed: int) -> None:
        self._learning = learning
        n = len(learning.X)
        rows = np.random.default_rng([seed, 4]).choice(n, min(n, _N_PROBES + _N_REFERENCE), replace=False)
        n_probes = min(_N_PROBES, max(1, len(rows) // 4))
        self._probes, self._reference = rows[:n_probes], rows[n_probes:]

    def held_out(self, metric: Metric, answers: Answers) -> HeldOut | None:
        """Return the AUC of held-out answers; None with fewer than three "same" or three "different" among them.

        A triplet counts as a pair of either kind.
        """
        index, same = held_out_pairs(answers)
        measured = []
        for which in (self._learning.ordinary, metric):
            found = auc_of_answers(self._learning.distances(which, index), same)
            if found is None:
                return None
            measured.append(found)
        (before, before_influence), (after, after_influence) = measured
        margin = intervals.over_rows(after_influence) if after_influence.any() else _margin_of_none(same)
        change = after_influence - before_influence
        gain_margin = intervals.over_rows(change) if change.any() else None
        return HeldOut(answers.n_answers, len(same), before, after, margin, gain_margin)

    def gain(self, earlier: Metric, later: Metric, answers: Answers) -> tuple[float, float | None] | None:
        """Return the rise in held-out AUC from one metric to another, and half its interval; None if unknown."""
        index, same = held_out_pairs(answers)
        found = [auc_of_answers(self._learning.distances(metric, index), same) for metric in (earlier, later)]
        if found[0] is None or found[1] is None:
            return None
        return found[1][0] - found[0][0], intervals.over_rows(found[1][1] - found[0][1])

    def change(self, earlier: Metric, later: Metric) -> float:
        """Return the share of the ten nearest rows of probe rows that differ between two metrics."""
        near = []
        for metric in (earlier, later):
            probes, reference = (self._learning.transform(metric, rows) for rows in (self._probes, self._reference))
            near.append(nearest_rows(probes, reference, _K))
        kept = [len(np.intersect1d(a, b)) / len(a) for a, b in zip(*near, strict=True)]
        return 1.0 - float(np.mean(kept))

    def enough(self, earlier: Metric | None, later: Metric, answers: Answers) -> Enough:
        """Return whether the answers since `earlier` have changed the ranking beyond noise; None: too few answers."""
        if earlier is None or answers.n_answers < _FEWEST_ANSWERS:
            return too_early(answers.n_answers)
        change = self.change(earlier, later)
        gain = self.gain(earlier, later, answers)
        rises = gain is not None and gain[1] is not None and gain[0] > gain[1]
        share = f"the last {SPAN} answers changed {100 * change:.0f} % of the nearest rows"
        if rises:
            assert gain is not None
            return Enough(False, change, f"Go on: {share} and raised the held-out AUC by {gain[0]:.3f}.")
        if change > SMALL_CHANGE:
            return Enough(False, change, f"Go on: {share}.")
        return Enough(True, change, f"Enough: {share}, and the held-out AUC no longer rises beyond its interval.")


def too_early(n_answers: int) -> Enough:
    """Return the verdict before anything can be said, with the number of answers that are missing."""
    missing = _FEWEST_ANSWERS - n_answers
    wanted = f"{missing} more answer{'s' * (missing > 1)} first" if missing > 0 else "after the next few answers"
    return Enough(False, None, f"Too early to say whether it is enough: {wanted}.")


def _margin_of_none(same: np.ndarray) -> float:
    """Return the margin where no pair is out of order: 1 − 0.05^(1/n), n the pairs of the rarer kind."""
    return 1.0 - 0.05 ** (1.0 / min(int(same.sum()), int((~same).sum())))


def held_out_pairs(answers: Answers) -> tuple[np.ndarray, np.ndarray]:
    """Return the held-out pairs and whether they are the same; a triplet is two pairs."""
    pairs = [(a.rows, a.same) for a in answers.pairs if a.held_out and a.same is not None]
    for a in answers.triplets:
        if a.held_out and a.same:
            pairs += [((a.rows[0], a.rows[1]), True), ((a.rows[0], a.rows[2]), False)]
    index = np.array([rows for rows, _ in pairs], dtype=np.intp).reshape(-1, 2)
    return index, np.array([same for _, same in pairs], dtype=bool)
