"""What a command shows while it works: a live line on a terminal, plain lines elsewhere, all of it in a log."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, TypeVar

from rich.console import Console

from ..progress import Progress
from .pipes import print_error_line
from .tables import refuse_input

__all__ = ["Watch", "watching"]

_PATIENCE = 2.0  # seconds without a word
_LOGGED = 1.0  # seconds between lines of one stage in the log

T = TypeVar("T")


class Watch:
    """Lines of progress, `stage: …`, on standard error; nothing of what takes less than two seconds."""

    def __init__(self, log: IO[str] | None) -> None:
        self._log = log
        self.live: Any = None
        self._shown = time.perf_counter()
        self._waiting, self._lock = "", threading.Lock()
        self._logged, self._stage = -_LOGGED, ""

    def show(self, text: str) -> None:
        """Progress: seen on a terminal, elsewhere now and then."""
        self._write_log(text)
        now = time.perf_counter()
        if self.live is not None:
            self.live.update(text)
        elif not sys.stderr.isatty():
            self._waiting = text
            self._print_if_due(now)

    def _print_if_due(self, now: float) -> None:
        with self._lock:
            if self._waiting and now - self._shown >= _PATIENCE:
                self._shown, text, self._waiting = now, self._waiting, ""
                print_error_line(text)

    @contextlib.contextmanager
    def patient(self) -> Iterator[None]:
        """Inside, the last line of progress is printed after two seconds even if no other follows it."""
        ended = threading.Event()

        def wait() -> None:
            while not ended.wait(_PATIENCE / 4):
                self._print_if_due(time.perf_counter())

        thread = threading.Thread(target=wait, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def say(self, text: str) -> None:
        """Something to be read: seen in any case."""
        self._logged = -_LOGGED
        self._write_log(text)
        print_error_line(text)

    def parts(self, title: str, items: Sequence[T]) -> Iterator[T]:
        """The items one by one, with how many are done and the time left."""
        return Progress(self.show).track(items, len(items), title)

    def __deepcopy__(self, memo: dict) -> Watch:
        """Return the watch itself: estimators that are cloned report to the same terminal."""
        return self

    def _write_log(self, text: str) -> None:
        if self._log is None:
            return
        now, stage = time.perf_counter(), text.partition(":")[0]
        if stage != self._stage or now - self._logged >= _LOGGED:
            self._stage, self._logged = stage, now
            print(time.strftime("%Y-%m-%d %H:%M:%S"), text, file=self._log, flush=True)


@contextlib.contextmanager
def watching(log: Path | None, inputs: Sequence[str | Path | None] = ()) -> Iterator[Watch]:
    """Inside, progress and warnings of the library are shown as those of the command.

    A log that is one of the command's `inputs` is refused.
    """
    if log is not None:
        refuse_input(log, inputs, "--log")
    with contextlib.ExitStack() as stack:
        watch = Watch(None if log is None else stack.enter_context(open(log, "a", encoding="utf-8")))
        if sys.stderr.isatty():
            watch.live = stack.enter_context(Console(stderr=True).status("…"))
        else:
            stack.enter_context(watch.patient())
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")  # those for who writes code
        warnings.simplefilter("default", UserWarning)

        said: set[str] = set()

        def show_warning(message: Any, *where: Any, **more: Any) -> None:
            text = f"mahalo: warning: {' '.join(str(message).split())}"
            if text not in said:
                said.add(text)
                watch.say(text)

        warnings.showwarning = show_warning
        yield watch
