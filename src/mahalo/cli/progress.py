"""Progress and warnings of a command: a live line on a terminal, plain lines elsewhere, all of it in a log."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING

from ..progress import Progress
from ..tables.output_files import refuse_input
from .runner import print_error_line

if TYPE_CHECKING:
    from rich.status import Status

_PATIENCE = 2.0  # seconds before a plain line is printed
_LOG_INTERVAL = 1.0  # seconds between lines of one stage in the log


class ProgressDisplay:
    """Lines of progress, `stage: …`, on standard error; none of a stage of less than two seconds."""

    def __init__(self, log: IO[str] | None) -> None:
        self._log = log
        self.live: Status | None = None
        self._printed = time.perf_counter()
        self._waiting, self._lock = "", threading.Lock()
        self._logged, self._stage = -_LOG_INTERVAL, ""

    def show(self, text: str) -> None:
        """Show a line that the next one may replace: live on a terminal, elsewhere now and then."""
        self._write_log(text)
        if self.live is not None:
            self.live.update(text)
        elif not sys.stderr.isatty():
            self._waiting = text
            self._print_if_due(time.perf_counter())

    def _print_if_due(self, now: float) -> None:
        with self._lock:
            if self._waiting and now - self._printed >= _PATIENCE:
                self._printed, text, self._waiting = now, self._waiting, ""
                print_error_line(text)

    @contextlib.contextmanager
    def timer(self) -> Iterator[None]:
        """Print the last line of progress after two seconds inside the context, even if no other follows it."""
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

    def print_line(self, text: str) -> None:
        """Print a line that stays."""
        self._logged = -_LOG_INTERVAL
        self._write_log(text)
        print_error_line(text)

    @property
    def progress(self) -> Progress:
        """Reporter for functions of the library."""
        return Progress(self.show)

    def __deepcopy__(self, memo: dict) -> ProgressDisplay:
        """Return the display itself: cloned estimators report to the same terminal."""
        return self

    def _write_log(self, text: str) -> None:
        if self._log is None:
            return
        now, stage = time.perf_counter(), text.partition(":")[0]
        if stage != self._stage or now - self._logged >= _LOG_INTERVAL:
            self._stage, self._logged = stage, now
            print(time.strftime("%Y-%m-%d %H:%M:%S"), text, file=self._log, flush=True)


@contextlib.contextmanager
def progress_display(log: Path | None, inputs: Sequence[str | Path | None] = ()) -> Iterator[ProgressDisplay]:
    """Yield a display; inside, warnings of the library are lines of it, each printed once.

    Raise ValueError if the log is one of the command's `inputs`.
    """
    if log is not None:
        refuse_input(log, inputs, "--log")
    with contextlib.ExitStack() as stack:
        display = ProgressDisplay(None if log is None else stack.enter_context(open(log, "a", encoding="utf-8")))
        if sys.stderr.isatty():
            from rich.console import Console

            display.live = stack.enter_context(Console(stderr=True).status("…"))
        else:
            stack.enter_context(display.timer())
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")  # warnings for programmers
        warnings.simplefilter("default", UserWarning)

        printed: set[str] = set()

        def show_warning(message: Warning | str, *location: object, **more: object) -> None:
            text = f"mahalo: warning: {' '.join(str(message).split())}"
            if text not in printed:
                printed.add(text)
                display.print_line(text)

        warnings.showwarning = show_warning
        yield display
