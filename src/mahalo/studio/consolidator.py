"""Consolidator: metrics learned from the answers of a log, and what was found with them."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass

from ..metric import Metric
from .answers import HELD_OUT_EVERY, Answers
from .judging import SPAN, Enough, HeldOut, Judge
from .learning import Consolidation, Learning
from .questions import Doubt, doubts

EVERY = 5  # answers between consolidations
_N_CACHED = 24  # consolidations that are kept
_MAX_CURVE = 30  # points of the curve of held-out AUC


@dataclass(frozen=True, eq=False)
class Learned:
    """A consolidation, the answers in the log at that time, and what was found with it."""

    consolidation: Consolidation
    n_entries: int
    held_out: HeldOut | None
    enough: Enough
    doubtful: tuple[Doubt, ...]


@dataclass(frozen=True, eq=False)
class _Streaming:
    """A metric after online steps from a consolidation, one for each answer since."""

    base: Learned
    content: tuple[tuple[object, ...], ...]
    metric: Metric


class Consolidator:
    """Learner of metrics from all answers up to the last multiple of five, with a streaming metric in between.

    What is learned is a function of the answers and the seed alone. Several threads may call it.

    Parameters
    ----------
    learning : Learning
    seed : int
    """

    def __init__(self, learning: Learning, seed: int) -> None:
        self._learning, self._seed = learning, seed
        self._judge = Judge(learning, seed)
        self._lock = threading.Lock()
        self._consolidations: OrderedDict[object, Consolidation] = OrderedDict()
        self._learned: tuple[object, Learned] | None = None
        self._streaming: _Streaming | None = None
        self._judged: dict[object, HeldOut | None] = {}
        self.curve: tuple[HeldOut, ...] = ()

    def up_to_date(self, answers: Answers) -> Learned:
        """Return what was learned from all answers up to the last multiple of five; learn it if need be."""
        n = answers.n_entries - answers.n_entries % EVERY
        known = answers.before(n)
        key = (n, _content(known))
        with self._lock:
            if self._learned is not None and self._learned[0] == key:
                return self._learned[1]
        consolidation = self._consolidated(known.training(), known)
        earlier = None
        if n > SPAN:
            earlier_known = known.before(n - SPAN)
            earlier = self._consolidated(earlier_known.training(), earlier_known).metric
        learned = Learned(
            consolidation,
            n,
            self._judge.held_out(consolidation.metric, known),
            self._judge.enough(earlier, consolidation.metric, known),
            doubts(self._learning, known, self._seed),
        )
        with self._lock:
            self._learned = (key, learned)
        return learned

    def newest(self, answers: Answers) -> Learned:
        """Return what was learned last; learn if nothing has been."""
        with self._lock:
            if self._learned is not None:
                return self._learned[1]
        return self.up_to_date(answers)

    def stream(self, answers: Answers) -> Metric:
        """Return the newest consolidated metric after one online step for each later answer that is not held out."""
        learned = self.newest(answers)
        later = tuple(a for a in answers.training().pairs if a.ordinal >= learned.n_entries and a.same is not None)
        content = _content(Answers(later))
        with self._lock:
            known = self._streaming
        if known is not None and known.base is learned and known.content == content:
            return known.metric
        metric = self._learning.follow(learned.consolidation, later)
        with self._lock:
            self._streaming = _Streaming(learned, content, metric)
        return metric

    def newest_metric(self, answers: Answers) -> Metric:
        """Return the streaming metric if it goes on from the newest consolidation, else that of the consolidation."""
        learned = self.newest(answers)
        with self._lock:
            known = self._streaming
        return known.metric if known is not None and known.base is learned else learned.consolidation.metric

    def final(self, answers: Answers) -> Consolidation:
        """Return the metric learned from all answers, held-out ones included."""
        return self._consolidated(answers, None)

    def judge_earlier(self, answers: Answers) -> bool:
        """Judge earlier consolidations, for the curve of held-out AUC; return whether it is another now."""
        n_last = answers.n_entries - answers.n_entries % EVERY
        step = HELD_OUT_EVERY * max(1, -(-n_last // (HELD_OUT_EVERY * _MAX_CURVE)))
        points = []
        for n in range(step, n_last + 1, step):
            known = answers.before(n)
            key = _content(known)
            if key not in self._judged:
                metric = self._consolidated(known.training(), known).metric
                self._judged[key] = self._judge.held_out(metric, known)
            points.append(self._judged[key])
        curve = tuple(point for point in points if point is not None)
        with self._lock:
            changed, self.curve = curve != self.curve, curve
        return changed

    def _consolidated(self, training: Answers, known: Answers | None) -> Consolidation:
        held_out = None if known is None else Answers(tuple(a for a in known.pairs if a.held_out))
        key = (_content(training), None if held_out is None else _content(held_out))
        with self._lock:
            if key in self._consolidations:
                self._consolidations.move_to_end(key)
                return self._consolidations[key]
        consolidation = self._learning.consolidate(training, held_out)
        with self._lock:
            self._consolidations[key] = consolidation
            while len(self._consolidations) > _N_CACHED:
                self._consolidations.popitem(last=False)
        return consolidation


def _content(answers: Answers) -> tuple[tuple[object, ...], ...]:
    """Return what a metric depends on: every pair and triplet, its answer, and how often it was given."""
    return tuple((a.kind, a.rows, a.same, a.n_times, a.ordinal) for a in (*answers.pairs, *answers.triplets))
