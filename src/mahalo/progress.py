"""What `verbose` shows on standard error while a solver works."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from .parts import watched_by
from .solvers import Step

__all__ = ["Parts", "parts_of", "progress", "say", "shown_by", "stages", "telling"]

_INTERVAL = 1.0  # seconds between lines, where not every step has one
_WIDTH = 80  # columns of a line that others take the place of
_shown_by: ContextVar[Callable[[str], None] | None] = ContextVar("shown_by", default=None)


class Parts:
    """How far some work is: which part of how many, and the time left if the others take as long."""

    def __init__(self, n: int) -> None:
        self.n, self.done, self._began = n, 0, time.perf_counter()

    def advance(self) -> None:
        self.done += 1

    def __str__(self) -> str:
        spent = time.perf_counter() - self._began
        left = f", {_duration(spent * (self.n - self.done) / self.done)} left" if self.done else ""
        return f"{min(self.done + 1, self.n)} of {self.n}{left}"


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


@contextmanager
def progress(
    verbose: int, tol: float, gamma: float, title: str = "learning", parts: Parts | None = None
) -> Iterator[Callable[[Step], None] | None]:
    """Gives what to call after every step; None where nothing is shown, so that solvers need not call.

    verbose = 1: a live line with γ, the gap and the time, in notebooks too; without a terminal or without rich, a
    plain line now and then. verbose > 1: a line for every step. The last line has the number of steps and the seconds
    they took. `parts`, where the work has some, is shown in front; whoever does it advances them.
    """
    if not verbose:
        yield None
        return
    began, n_steps = time.perf_counter(), 0
    with _line(verbose) as show:

        def on_step(step: Step) -> None:
            nonlocal n_steps
            n_steps += 1
            gap = f"{step.relative_gap:.1e}" if math.isfinite(step.relative_gap) else "∞"
            part = "" if parts is None else f"{parts}, "
            show(
                f"{title}: {part}step {n_steps}, γ {step.gamma:.3g} → {gamma:.3g}, relative gap {gap} → {tol:.0e}, "
                f"largest violation {step.max_violation:.2g}, {time.perf_counter() - began:.1f} s"
            )

        yield on_step
    say(f"{title}: {n_steps} steps, {time.perf_counter() - began:.2f} s")


def parts_of(work: Sequence, verbose: int, title: str, name: Callable[[Any], str]) -> Iterator[Any]:
    """The work, item by item, with a line on which it is and the time left."""
    if not verbose:
        yield from work
        return
    parts = Parts(len(work))
    with _line(verbose, first=True) as show:
        for item in work:
            # What a line is too short for is the end of the name.
            count, _, left = str(parts).partition(", ")
            show(f"{title}: {count}, {name(item)}{', ' * bool(left)}{left}")
            yield item
            parts.advance()


@contextmanager
def stages(verbose: int, title: str, n: int) -> Iterator[Callable[[str], None] | None]:
    """Gives what to call with a word on each of n stages; None if nobody asks.

    No stage says how long it will take; where its work goes by parts, these are told of with the time left.
    """
    if not verbose:
        yield None
        return
    began, stage, parts = time.perf_counter(), "", Parts(0)
    count = 0

    def begin(what: str) -> None:
        nonlocal stage, count
        count += 1
        stage = f"{title}: {count} of {n}, {what}"
        if verbose > 1 or time.perf_counter() - began >= _INTERVAL:
            say(_cut(f"{stage}, {time.perf_counter() - began:.1f} s so far"))

    with _line(verbose) as show:

        def on_part(done: int, of: int) -> None:
            nonlocal parts
            if not done:
                parts = Parts(of)
            parts.done = done
            show(f"{stage}: part {parts}")

        with watched_by(on_part):
            yield begin


@contextmanager
def telling(verbose: int) -> Iterator[Callable[[str], None] | None]:
    """What shows how far work on many rows is; None where nothing is shown."""
    if not verbose:
        yield None
        return
    with _line(verbose) as show:
        yield show


@contextmanager
def _line(verbose: int, first: bool = False) -> Iterator[Callable[[str], None]]:
    """What shows a line of text; `first` says that the first is shown at once where not all are.

    The handler is looked up here, once: threads that work for the caller show their lines where the caller's go.
    """
    handler = _shown_by.get()
    if handler is not None:
        yield lambda text: handler(_cut(text))
        return
    console = _terminal() if verbose == 1 else None
    if console is not None:
        with console.status("…") as status:
            yield lambda text: status.update(_cut(text, _WIDTH - 2))  # beside what spins
    elif verbose == 1 and _in_notebook():
        yield lambda text: print(f"\r{_cut(text):<{_WIDTH}}", end="", file=sys.stderr, flush=True)
        print(f"\r{'':<{_WIDTH}}\r", end="", file=sys.stderr, flush=True)
    else:
        yield say if verbose > 1 else _now_and_then(first)


def _in_notebook() -> bool:
    return "ipykernel" in sys.modules


def _cut(text: str, width: int = _WIDTH) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def _terminal() -> Any:
    """rich's console, or None where nobody watches or rich is not installed."""
    if not sys.stderr.isatty():
        return None
    try:
        from rich.console import Console
    except ImportError:
        return None
    return Console(stderr=True)


def _now_and_then(first: bool = False) -> Callable[[str], None]:
    last = -math.inf if first else time.perf_counter()

    def show(text: str) -> None:
        nonlocal last
        if time.perf_counter() - last >= _INTERVAL:
            last = time.perf_counter()
            say(_cut(text))

    return show


def say(text: str) -> None:
    """A line on standard error, or wherever `shown_by` said."""
    handler = _shown_by.get()
    if handler is not None:
        handler(text)
    else:
        print(text, file=sys.stderr, flush=True)


@contextmanager
def shown_by(show: Callable[[str], None]) -> Iterator[None]:
    """Send every line of progress inside to `show`, which decides what of it is seen.

    Other threads have handlers of their own, or none.
    """
    token = _shown_by.set(show)
    try:
        yield
    finally:
        _shown_by.reset(token)
