"""Studio: a session, the table it is about, and the thread that learns; everything that the server answers from."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import numpy as np

from ..export import Export, RowNames, export_answers
from ..session import Session
from ..studio_table import StudioTable
from ..worker import Worker
from .corrections import DoubtfulLabels, write_corrected


class Broadcast:
    """Events for every open page."""

    def __init__(self) -> None:
        self._queues: dict[asyncio.Queue[str], asyncio.AbstractEventLoop] = {}
        self._lock = threading.Lock()

    def subscribe(self) -> asyncio.Queue[str]:
        """Return a queue that receives the names of events."""
        queue: asyncio.Queue[str] = asyncio.Queue(maxsize=100)
        with self._lock:
            self._queues[queue] = asyncio.get_running_loop()
        return queue

    def unsubscribe(self, queue: asyncio.Queue[str]) -> None:
        """Forget a queue."""
        with self._lock:
            self._queues.pop(queue, None)

    def send(self, event: str) -> None:
        """Send an event from any thread; a page that does not read any more misses it."""
        with self._lock:
            queues = list(self._queues.items())
        for queue, loop in queues:
            if not loop.is_closed():
                loop.call_soon_threadsafe(_put, queue, event)


def _put(queue: asyncio.Queue[str], event: str) -> None:
    if not queue.full():
        queue.put_nowait(event)


class Studio:
    """A session with its table, its thread and its open pages.

    Parameters
    ----------
    session : Session
    table : StudioTable
    out : Path
        Folder of exports.
    """

    def __init__(self, session: Session, table: StudioTable, out: Path) -> None:
        self.session, self.table, self.out = session, table, out
        self.events = Broadcast()
        self.worker = Worker(session, self.events.send)
        self._export_lock = threading.Lock()
        labels = table.items.labels
        self.doubtful = None if labels is None else DoubtfulLabels(session.X, labels, self.events.send)

    def export(self) -> Export:
        """Write the export of all answers so far."""
        items = self.table.items
        y = None if items.labels is None else np.array([label or None for label in items.labels], dtype=object)
        rows = RowNames(items.ids, self.table.names, y, self.table.source)
        with self._export_lock:
            answers = self.session.answers()
            return export_answers(self.out, self.session.X, answers, self.session.final(), rows, self.table.finish)

    def correct(self) -> str:
        """Write the table with the labels that were decided on; return the name of the file."""
        if self.table.items.labels is None:
            raise ValueError("these rows have no labels to correct; start the studio with --label COLUMN.")
        with self._export_lock:
            return write_corrected(self.out, self.table.items, self.session.answers().labels)

    def groups(self) -> np.ndarray:
        """Return the group of each row, from 0, in the order of size; −1 for rows without an answer."""
        found = self.session.latest_consolidation()
        code = np.full(len(self.session.X), -1, dtype=np.int32)
        if len(found.rows):
            size = np.bincount(found.group)
            rank = np.empty(len(size), dtype=np.int32)
            rank[np.argsort(-size, kind="stable")] = np.arange(len(size))
            code[found.rows] = rank[found.group]
        return code

    def doubts(self) -> np.ndarray:
        """Return 1 for rows of doubtful or contradictory answers, 2 for rows with a doubtful label, else 0."""
        code = np.zeros(len(self.session.X), dtype=np.int32)
        if self.doubtful is not None:
            code[[entry.row for entry in self.doubtful.found]] = 2
        state = self.session.state()
        for doubt in state.doubtful:
            code[list(doubt.answer.rows)] = 1
        for contradiction in state.contradictions:
            for answer in contradiction.answers:
                code[list(answer.rows)] = 1
        return code
