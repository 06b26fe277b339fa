"""Session: questions and answers about the rows of a table, and the metric learned from them."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Sequence
from os import PathLike

import numpy as np
from numpy.typing import ArrayLike

from ..explain.fingerprint import fingerprint
from ..learner import MetricLearner
from ..metric import Metric
from ..validation import check_count, warn_of_scales
from .answer_log import AnswerLog, DataIdentity, Entry
from .answers import Answers, contradictions
from .consolidator import Consolidator, Learned
from .export import Export, RowNames, export_answers
from .input_checks import checked_kinds, checked_rows, checked_seed
from .judging import held_out_pairs, too_early
from .learning import Consolidation, Learning
from .neighbors import Neighbors, RowIndex
from .questions import Chooser, Key, Question
from .state import State

_PENDING_SECONDS = 120.0  # for which a question shown to one person is not asked of another


class Session:
    """Learn a distance by asking a person whether two rows are the same.

    Every answer is on disk before `answer` returns. The metric is a function of the log and the seed alone: it is
    learned anew after every fifth answer from all answers that hold and from what they imply, so that a session that is
    opened again has the same metric, to the last bit. Every tenth answer is held out to judge by.

    Several sessions, in threads or in processes, may share a log.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Rows to ask about; finite numbers.
    log : str or path-like, optional
        File of answers, appended to, or created. None: answers are kept in memory and are lost in the end.
    kinds : tuple of {"pair", "triplet"}, default=("pair",)
        "pair": are these two the same? "triplet": which of two is more like a third?
    random_state : int, default=0
        Seed of all draws.
    annotator : str, default=""
        Name of the person who answers; people who disagree are shown as a contradiction.
    prior : array-like of shape (n_features, n_features), optional
        Metric matrix to start from, such as ``metric.matrix`` of an earlier one. By default the fourth root of the
        covariance of X, or the identity if answers contradict it; before the first five answers the identity.
    gamma : float, default=1.0
        Price of violating an answer, as in `MetricLearner`.

    Attributes
    ----------
    metric_ : Metric
        The metric of the last consolidation; it is learned now if it has not been.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import StandardScaler
    >>> from mahalo.studio import Session
    >>> X, y = load_wine(return_X_y=True)
    >>> session = Session(StandardScaler().fit_transform(X))
    >>> for _ in range(40):
    ...     question = session.question()
    ...     i, j = question.rows
    ...     entry = session.answer(question, "same" if y[i] == y[j] else "different")
    >>> session.state().certificate.converged
    True
    """

    def __init__(
        self,
        X: ArrayLike,
        log: str | PathLike | None = None,
        kinds: Sequence[str] = ("pair",),
        random_state: int = 0,
        *,
        annotator: str = "",
        prior: ArrayLike | None = None,
        gamma: float = 1.0,
    ) -> None:
        self.X = checked_rows(X)
        self.kinds = checked_kinds(kinds)
        if prior is None:
            warn_of_scales(self.X, "identity")
        self.random_state, self.annotator = checked_seed(random_state), annotator
        learner = MetricLearner(gamma=gamma, prior="identity" if prior is None else np.asarray(prior))
        self.learning = Learning(self.X, self.random_state, learner)
        digest = fingerprint(self.X).rows
        assert digest is not None
        self.log = AnswerLog(log, DataIdentity(len(self.X), self.X.shape[1], digest))
        self._chooser = Chooser(self.learning, self.random_state, self.kinds)
        self.index = RowIndex(self.X, self.learning.ordinary)
        self._consolidator = Consolidator(self.learning, self.random_state)
        self._lock = threading.RLock()
        self._answers = (0, Answers())
        self._pending: dict[Key, tuple[str, float]] = {}
        self._background = False

    # -- questions and answers -------------------------------------------------------------------------------------

    def question(self, annotator: str | None = None) -> Question:
        """Return the next question.

        Raises LookupError if every question has been answered or follows from answers.

        Parameters
        ----------
        annotator : str, optional
            Who is asked; default: the annotator of the session. Two people are not shown the same pair at a time.
        """
        annotator = self.annotator if annotator is None else annotator
        answers = self.answers()
        learned = self._learned(answers)
        metric = (self._consolidator.newest_metric if self._background else self._consolidator.stream)(answers)
        with self._lock:
            now = time.monotonic()
            self._pending = {key: (who, end) for key, (who, end) in self._pending.items() if end > now}

            def avoid(key: Key) -> bool:
                return self._pending.get(key, (annotator, 0.0))[0] != annotator or annotator in answers.skipped.get(
                    key, ()
                )

            kind, rows, why = self._chooser.choose(answers, metric, learned.doubtful, avoid)
            self._pending[kind, rows] = (annotator, now + _PENDING_SECONDS)
        return Question(secrets.token_hex(8), kind, rows, why)

    def answer(self, question: Question, answer: str, annotator: str | None = None) -> Entry:
        """Write an answer to the log and return its entry, once it is on disk.

        The same answer to the same question again changes nothing.

        Parameters
        ----------
        question : Question
        answer : {"same", "different", "skip"}
            For a triplet "first", "second" or "skip".
        annotator : str, optional
            Who answers; default: the annotator of the session.
        """
        annotator = self.annotator if annotator is None else annotator
        if question.kind not in ("pair", "triplet"):
            raise ValueError(f"kind must be 'pair' or 'triplet'; got {question.kind!r}.")
        entry = Entry(question.id, question.kind, tuple(question.rows), answer, annotator, question.why)
        return self.log.append(entry)

    def undo(self, annotator: str | None = None, *, id: str | None = None) -> Entry | None:
        """Take back the annotator's latest answer that holds; return it, or None if there is none.

        Parameters
        ----------
        annotator : str, optional
            Whose answer; default: the annotator of the session.
        id : str, optional
            Identifies this call: a repetition with the same id changes nothing.
        """
        annotator = self.annotator if annotator is None else annotator
        id = secrets.token_hex(8) if id is None else id
        with self.log.transaction() as write:
            entries = self.log.entries
            if any(entry.id == id for entry in entries):
                return None
            last = Answers.of(entries).by_last.get(annotator, ())
            if not last:
                return None
            write(Entry(id, "undo", (), last[-1].id, annotator))
            return last[-1]

    def decide_label(
        self, row: int, decision: str, label: str = "", annotator: str | None = None, *, id: str | None = None
    ) -> Entry:
        """Write what is to become of the label of a row: "keep", "change" (to `label`) or "drop"."""
        annotator = self.annotator if annotator is None else annotator
        entry = Entry(id or secrets.token_hex(8), "label", (row,), decision, annotator, label=label)
        return self.log.append(entry)

    def judge_neighbor(
        self, row: int, neighbor: int, belongs: bool, annotator: str | None = None, *, id: str | None = None
    ) -> Entry:
        """Write that a row belongs, or does not, among the nearest of another, as a triplet.

        A row that belongs is nearer than the last of the ten nearest, or than one that does not belong. A row that does
        not belong is farther than the nearest other row, or than one that does.
        """
        annotator = self.annotator if annotator is None else annotator
        near = [int(k) for k in self.neighbors(row).after if k not in (row, neighbor)]
        if not near:
            raise ValueError(f"row {row} has no other neighbours to compare row {neighbor} with.")
        other = near[-1] if belongs else near[0]
        rows = (row, neighbor, other) if belongs else (row, other, neighbor)
        entry = Entry(id or secrets.token_hex(8), "triplet", rows, "first", annotator, "neighbours")
        return self.log.append(entry)

    def answers(self) -> Answers:
        """Return all answers that hold, those of other processes included."""
        n = self.log.refresh()
        with self._lock:
            if self._answers[0] != n:
                entries = self.log.entries
                self._answers = (len(entries), Answers.of(entries))
            return self._answers[1]

    # -- learning --------------------------------------------------------------------------------------------------

    @property
    def metric_(self) -> Metric:
        return self._consolidator.up_to_date(self.answers()).consolidation.metric

    @property
    def latest_metric_(self) -> Metric:
        """The newest metric there is, streaming ones included, without waiting for one that is being learned."""
        return self._consolidator.newest_metric(self.answers())

    def latest_consolidation(self) -> Consolidation:
        """Return the newest consolidation, with the groups of rows that answers have connected."""
        return self._consolidator.newest(self.answers()).consolidation

    @property
    def n_consolidated(self) -> int:
        """Number of answers in the log at the last consolidation."""
        return self._consolidator.newest(self.answers()).n_entries

    def learn_in_background(self) -> None:
        """Let `question` use the newest metric there is; another thread calls `learn`."""
        self._background = True

    def learn(self) -> bool:
        """Consolidate if there are answers for it, or follow the latest answers; return whether the metric changed."""
        answers = self.answers()
        before = self._consolidator.newest_metric(answers)
        self._consolidator.up_to_date(answers)
        return self._consolidator.stream(answers) is not before

    def learn_curve(self) -> bool:
        """Judge earlier consolidations, for the curve of held-out AUC; return whether it is another now."""
        return self._consolidator.judge_earlier(self.answers())

    def final(self) -> Consolidation:
        """Return the metric learned from all answers, held-out ones included."""
        return self._consolidator.final(self.answers())

    def neighbors(self, row: int, k: int = 10) -> Neighbors:
        """Return the k nearest rows of a row by the ordinary and by the learned distance.

        Parameters
        ----------
        row : int
        k : int, default=10
        """
        if not 0 <= row < len(self.X):
            raise ValueError(f"row must be a number from 0 to {len(self.X) - 1}; got {row}.")
        check_count(k, "k")
        return self.index.nearest(self.latest_metric_, self.X[row], k, row)

    def state(self) -> State:
        """Return what is known: counts, contradictions, doubtful answers, held-out AUC, certificate, enough."""
        if not self._background:
            self.learn_curve()
        answers = self.answers()
        learned = self._learned(answers)
        same = [a.same for a in answers.pairs]
        c = learned.consolidation
        names = {name for a in (*answers.pairs, *answers.triplets) for name in a.by}
        return State(
            n_answers=answers.n_answers,
            n_same=same.count(True),
            n_different=same.count(False),
            n_triplets=len(answers.triplets),
            n_skipped=len(answers.skipped),
            n_implied=max(0, c.n_similar + c.n_dissimilar - c.n_answers),
            n_consolidated=learned.n_entries,
            certificate=c.certificate,
            n_held_out=len(held_out_pairs(answers)[0]),
            held_out=learned.held_out,
            curve=self._consolidator.curve,
            enough=too_early(answers.n_answers) if learned.enough.change is None else learned.enough,
            contradictions=contradictions(answers),
            doubtful=learned.doubtful,
            annotators=tuple(sorted(names)),
        )

    def export(
        self,
        folder: str | PathLike,
        *,
        ids: Sequence[str] | None = None,
        names: Sequence[str] | None = None,
        y: ArrayLike | None = None,
    ) -> Export:
        """Write the metric of all answers, the answers as CSV, a report, and how to use them.

        The report needs the extra ``mahalo[report]``; without it the rest is written, and `notes` says so.

        Parameters
        ----------
        folder : str or path-like
            Created if it does not exist.
        ids : sequence of str, optional
            Names of the rows; default: their numbers.
        names : sequence of str, optional
            Names of the columns, for the report.
        y : array-like, optional
            Labels, for the report.
        """
        return export_answers(folder, self.X, self.answers(), self.final(), RowNames(ids, names, y))

    def _learned(self, answers: Answers) -> Learned:
        """Return what was learned last; in the foreground, from all answers up to the last multiple of five."""
        return (self._consolidator.newest if self._background else self._consolidator.up_to_date)(answers)
