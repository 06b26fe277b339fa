"""Worker: a thread that learns, draws the map and looks for doubtful labels while people answer."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .layout import MapLayout
from .session import Session

_POLL_SECONDS = 1.0  # after which answers of other processes are looked for
_MAP_EVERY = 10  # answers between maps


@dataclass(frozen=True, eq=False)
class MapPositions:
    """Positions of all rows by the ordinary and by the learned distance, and the number of answers learned from."""

    before: np.ndarray
    after: np.ndarray
    n_answers: int


class Worker:
    """Thread that keeps a session's metric and map up to date.

    Parameters
    ----------
    session : Session
    notify : callable
        Called with the name of what is new: "answers", "metric", "map" or "failure".
    """

    def __init__(self, session: Session, notify: Callable[[str], None]) -> None:
        self._session, self._notify = session, notify
        self._layout = MapLayout(len(session.X), session.random_state)
        self._wake, self._stopped = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="mahalo-studio", daemon=True)
        self.positions: MapPositions | None = None
        self.busy = False
        self.error: str | None = None

    def start(self) -> None:
        """Begin; `question` does not wait for this thread."""
        self._session.learn_in_background()
        self._thread.start()

    def wake(self) -> None:
        """Look for new answers now."""
        self._wake.set()

    def stop(self) -> None:
        """Stop after what is being done."""
        self._stopped.set()
        self._wake.set()
        self._thread.join(timeout=30)

    def _run(self) -> None:
        n_seen = -1
        while not self._stopped.is_set():
            n = -1
            try:
                n = self._session.log.refresh()
                if n != n_seen:
                    self._notify("answers")
                    self._learn()
                    self.error = None
                    self._notify("metric")
            except Exception as error:  # shown on the page until answers are learned from again
                traceback.print_exc()
                self.error = f"{type(error).__name__}: {error}"
                self._notify("failure")  # a page's EventSource has an "error" of its own
                self._stopped.wait(_POLL_SECONDS)
            n_seen = n
            self._wake.wait(_POLL_SECONDS)
            self._wake.clear()

    def _learn(self) -> None:
        self.busy = True
        try:
            if self._session.learn():
                self._notify("metric")
            self._draw()
            if self._session.learn_curve():
                self._notify("metric")
        finally:
            self.busy = False

    def _draw(self) -> None:
        session = self._session
        n = session.n_consolidated
        if self.positions is not None and (n == self.positions.n_answers or n % _MAP_EVERY):
            return
        metric = session.latest_consolidation().metric
        if self.positions is None:
            before = self._layout.place(session.index.embedded(session.learning.ordinary))
            self.positions = MapPositions(before, before, 0)
            self._notify("map")
        if metric is not session.learning.ordinary:
            after = self._layout.place(session.index.embedded(metric))
            self.positions = MapPositions(self.positions.before, after, n)
            self._notify("map")
