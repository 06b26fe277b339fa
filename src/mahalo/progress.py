"""Progress of long work, reported as lines of text."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from rich.console import Console
    from sklearn.base import BaseEstimator

_INTERVAL = 1.0  # seconds between plain lines
_WIDTH = 80  # columns of a line

T = TypeVar("T")
Show = Callable[[str], None]


class SolverStep(Protocol):
    """Numbers that a solver reports after each step."""

    @property
    def gamma(self) -> float: ...
    @property
    def relative_gap(self) -> float: ...
    @property
    def max_violation(self) -> float: ...


class Task(Protocol):
    """Task of a fit, with subtasks that follow each other; see `callbacks.FitTask`."""

    def begin(self, name: str, n_subtasks: int | None = 0) -> Task: ...
    def end(self) -> bool: ...
    def nested_fit(self, estimator: BaseEstimator, name: str) -> AbstractContextManager[None]: ...


class NoTask:
    """Task that nobody follows."""

    def begin(self, name: str, n_subtasks: int | None = 0) -> NoTask:
        """Return the task itself."""
        return self

    def end(self) -> bool:
        """Return False: nobody asks to stop."""
        return False

    def nested_fit(self, estimator: BaseEstimator, name: str) -> AbstractContextManager[None]:
        """Return a context that does nothing."""
        return nullcontext()


NO_TASK = NoTask()


class Countdown:
    """Number of items done of `n`, and the time left if the others take as long."""

    def __init__(self, n: int) -> None:
        self.n, self.done, self._start = n, 0, time.perf_counter()

    def advance(self) -> None:
        """Count one more item as done."""
        self.done += 1

    @property
    def position(self) -> str:
        """Text "2 of 5"."""
        return f"{min(self.done + 1, self.n)} of {self.n}"

    @property
    def time_left(self) -> str:
        """Text ", 30 s left"; empty before the first item is done."""
        if not self.done:
            return ""
        spent = time.perf_counter() - self._start
        return f", {_duration(spent * (self.n - self.done) / self.done)} left"


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


class Progress:
    """Reporter that is handed down to functions that may take long.

    Parameters
    ----------
    show : callable(str), optional
        Shows a line that the next one may replace. None: nothing is reported.
    print_line : callable(str), optional
        Shows a line that stays. Default: `show`.
    show_first : callable(str), optional
        Shows the first line of tracked work. Default: `show`.
    prefix : str
        Text before every line.
    task : Task
        Task that stages, tracked items and solver steps are subtasks of.
    """

    def __init__(
        self,
        show: Show | None = None,
        print_line: Show | None = None,
        show_first: Show | None = None,
        prefix: str = "",
        task: Task = NO_TASK,
    ) -> None:
        self._show, self._print_line, self._prefix, self._task = show, print_line or show, prefix, task
        self._show_first = show_first or show

    def __bool__(self) -> bool:
        return self._show is not None

    @property
    def _is_idle(self) -> bool:
        """True if neither lines nor tasks are reported."""
        return self._show is None and self._task is NO_TASK

    def show(self, text: str) -> None:
        """Show a line that the next one may replace."""
        if self._show is not None:
            self._show(_cut(self._prefix + text))

    def print_line(self, text: str) -> None:
        """Show a line that stays."""
        if self._print_line is not None:
            self._print_line(_cut(self._prefix + text))

    def stage(self, title: str) -> Progress:
        """Show the title of a stage, and return a reporter that puts it before every line."""
        self.show(title)
        task = self._task.begin(title, None)
        return Progress(self._show, self._print_line, prefix=f"{self._prefix}{title}: ", task=task)

    def track(self, work: Iterable[T], n: int, title: str, name: Callable[[T], str] | None = None) -> Iterator[T]:
        """Yield the n items of `work`; before each, show "title 2 of 5, name, 30 s left"."""
        if self._is_idle:
            yield from work
            return
        task, countdown = self._task.begin(title.rstrip(":"), n), Countdown(n)
        for item in work:
            named = "" if name is None else f", {name(item)}"
            task.begin(named.removeprefix(", ") or "item")
            show = self._show if countdown.done else self._show_first
            if show is not None:
                show(_cut(f"{self._prefix}{title} {countdown.position}{named}{countdown.time_left}"))
            yield item
            countdown.advance()
        task.end()

    @contextmanager
    def solver_steps(
        self, title: str, tol: float, gamma: float, countdown: Countdown | None = None
    ) -> Iterator[Callable[[SolverStep], bool] | None]:
        """Yield a callback for a solver to call after each step, or None where nothing is reported.

        It returns True if the solver should stop.

        The line shows γ, the relative gap and the largest violation; `countdown`, where several problems are solved,
        comes first. A last line has the number of steps and the seconds they took.
        """
        if self._is_idle:
            yield None
            return
        task, start, n_steps = self._task.begin(title, None), time.perf_counter(), 0

        def on_step(step: SolverStep) -> bool:
            nonlocal n_steps
            n_steps += 1
            if self:
                gap = f"{step.relative_gap:.1e}" if math.isfinite(step.relative_gap) else "∞"
                item = "" if countdown is None else f"{countdown.position}{countdown.time_left}, "
                self.show(
                    f"{title}: {item}step {n_steps}, γ {step.gamma:.3g} → {gamma:.3g}, relative gap {gap} → {tol:.0e}, "
                    f"largest violation {step.max_violation:.2g}, {time.perf_counter() - start:.1f} s"
                )
            return task.begin("step").end()

        yield on_step
        task.end()
        self.print_line(f"{title}: {n_steps} steps, {time.perf_counter() - start:.2f} s")


SILENT = Progress()


@contextmanager
def progress_for(verbose: int | Show, task: Task = NO_TASK) -> Iterator[Progress]:
    """Yield the reporter that a `verbose` parameter asks for, whose stages and items are subtasks of `task`.

    0: silent. 1: a live line, in notebooks too; without a terminal or without rich, a plain line on standard error at
    most once a second. Above 1: every line. A callable receives every line.
    """
    if callable(verbose):
        yield Progress(verbose, task=task)
    elif not verbose:
        yield Progress(task=task)
    elif verbose > 1:
        yield Progress(_write, task=task)
    elif (console := _terminal()) is not None:
        with console.status("…") as status:
            yield Progress(
                lambda text: status.update(_cut(text, _WIDTH - 2)),  # beside the spinner
                lambda text: console.print(text, highlight=False, markup=False),
                task=task,
            )
    elif "ipykernel" in sys.modules:
        yield Progress(_overwrite, _overwrite_and_keep, task=task)
    else:
        yield Progress(_throttled(), _write, show_first=_write, task=task)


def _write(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _overwrite(text: str) -> None:
    print(f"\r{text:<{_WIDTH}}", end="", file=sys.stderr, flush=True)


def _overwrite_and_keep(text: str) -> None:
    _overwrite(text)
    print(file=sys.stderr, flush=True)


def _terminal() -> Console | None:
    """Return rich's console, or None without a terminal or without rich."""
    if not sys.stderr.isatty():
        return None
    try:
        from rich.console import Console
    except ImportError:
        return None
    return Console(stderr=True)


def _throttled() -> Show:
    last = time.perf_counter()

    def show(text: str) -> None:
        nonlocal last
        if time.perf_counter() - last >= _INTERVAL:
            last = time.perf_counter()
            _write(text)

    return show


def _cut(text: str, width: int = _WIDTH) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
