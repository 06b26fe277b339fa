"""What `verbose` shows on standard error while a solver works."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .solvers import Step

__all__ = ["progress", "say", "telling"]

_INTERVAL = 1.0  # seconds between lines, where not every step has one


@contextmanager
def progress(
    verbose: int, tol: float, gamma: float, title: str = "learning"
) -> Iterator[Callable[[Step], None] | None]:
    """Gives what to call after every step; None where nothing is shown, so that solvers need not call.

    verbose = 1: a live line with γ, the gap and the time; without a terminal or without rich, a plain line now and
    then. verbose > 1: a line for every step. The last line has the number of steps and the seconds they took.
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
            show(
                f"{title}: step {n_steps}, γ {step.gamma:.3g} → {gamma:.3g}, relative gap {gap} → {tol:.0e}, "
                f"largest violation {step.max_violation:.2g}, {time.perf_counter() - began:.1f} s"
            )

        yield on_step
    say(f"{title}: {n_steps} steps, {time.perf_counter() - began:.2f} s")


@contextmanager
def telling(verbose: int) -> Iterator[Callable[[str], None] | None]:
    """What shows how far work on many rows is; None where nothing is shown."""
    if not verbose:
        yield None
        return
    with _line(verbose) as show:
        yield show


@contextmanager
def _line(verbose: int) -> Iterator[Callable[[str], None]]:
    """What shows a line of text."""
    console = _terminal() if verbose == 1 else None
    if console is None:
        yield say if verbose > 1 else _now_and_then()
    else:
        with console.status("…") as status:
            yield status.update


def _terminal() -> Any:
    """rich's console, or None where nobody watches or rich is not installed."""
    if not sys.stderr.isatty():
        return None
    try:
        from rich.console import Console
    except ImportError:
        return None
    return Console(stderr=True)


def _now_and_then() -> Callable[[str], None]:
    last = time.perf_counter()

    def show(text: str) -> None:
        nonlocal last
        if time.perf_counter() - last >= _INTERVAL:
            last = time.perf_counter()
            say(text)

    return show


def say(text: str) -> None:
    """A line on standard error."""
    print(text, file=sys.stderr, flush=True)
