"""Doubtful labels of a table, found in a thread of their own, and the table with corrected labels."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...constraints import as_labels
from ...explain.suspects import can_be_judged
from ...learner import MetricLearner
from ...persistence import write_bytes
from ...priors import Within
from ..answer_log import Entry
from ..export import csv_text
from ..items import Items

CORRECTED = "corrected.csv"
_MOST_ROWS, _MOST_SHOWN = 5_000, 50


@dataclass(frozen=True)
class DoubtfulLabel:
    """A row whose label looks wrong, how doubtful it is from 0 to 1, and the label of its neighbours."""

    row: int
    score: float
    given: str
    suggested: str


class DoubtfulLabels:
    """Rows whose labels look wrong, by a metric learned from the other labels.

    Parameters
    ----------
    X : ndarray
    labels : sequence of str
        "" for none.
    notify : callable
        Called with "doubtful" when they are found.
    """

    def __init__(self, X: np.ndarray, labels: Sequence[str], notify: Callable[[str], None]) -> None:
        self._X, self._labels, self._notify = X, labels, notify
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self.found: tuple[DoubtfulLabel, ...] = ()
        self.status = "not started"

    def start(self) -> None:
        """Begin to look for them, unless it has begun."""
        with self._lock:
            if self._thread is None:
                self.status = "looking"
                self._thread = threading.Thread(target=self._run, name="mahalo-doubtful", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        try:
            self.found, self.status = self._find(), "done"
        except Exception as error:  # shown on the page
            traceback.print_exc()
            self.status = f"failed: {error}"
        self._notify("doubtful")

    def _find(self) -> tuple[DoubtfulLabel, ...]:
        rows = np.flatnonzero([bool(label) for label in self._labels])
        if len(rows) > _MOST_ROWS:
            rows = np.sort(np.random.default_rng(0).choice(rows, _MOST_ROWS, replace=False))
        y = np.array([self._labels[int(row)] for row in rows])
        if not can_be_judged(as_labels(y).codes):
            return ()
        learner = MetricLearner(prior=Within(extra=1.0), random_state=0).fit(self._X[rows], y)
        found = learner.suspects(self._X[rows], y, n=_MOST_SHOWN)
        found = found[found["score"] > 0.5]
        values = zip(found.index, found["score"], found["given"], found["suggested"], strict=True)
        return tuple(DoubtfulLabel(int(rows[k]), float(score), str(g), str(s)) for k, score, g, s in values)


def write_corrected(folder: Path, items: Items, decisions: Mapping[int, Entry]) -> str:
    """Write the table with its labels as decided, without dropped rows; return the name of the file."""
    assert items.labels is not None
    folder.mkdir(parents=True, exist_ok=True)
    id_names = [] if items.ids is None else [items.id_name]
    header = [*id_names, *items.columns, items.label_name]
    lines = []
    for row in range(items.n_rows):
        decision = decisions.get(row)
        if decision is not None and decision.answer == "drop":
            continue
        label = decision.label if decision is not None and decision.answer == "change" else items.labels[row]
        values = ["" if column[row] is None else column[row] for column in items.columns.values()]
        ids = [] if items.ids is None else [items.id_of(row)]
        lines.append([*ids, *values, label])
    write_bytes(folder / CORRECTED, csv_text(header, lines))
    return CORRECTED
