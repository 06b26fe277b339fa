"""What `verbose` shows while a solver works."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

from .solvers import Step

__all__ = ["Progress"]


class Progress:
    """A live line with γ, the gap and the time, on standard error; every step on its own line if verbose > 1.

    Use as a context manager; calling it reports a step.
    """

    def __init__(self, verbose: int, tol: float, gamma: float, title: str = "learning"):
        self._verbose, self._tol, self._gamma, self._title = int(verbose), tol, gamma, title
        self._began, self._n = 0.0, 0
        self._status: Any = None
        self._print: Callable[[str], None] = lambda _: None

    def __enter__(self) -> Progress:
        self._began = time.perf_counter()
        if self._verbose:
            from rich.console import Console

            console = Console(stderr=True)
            self._print = console.print
            self._status = console.status(f"{self._title} …")
            self._status.start()
        return self

    def __exit__(self, *_) -> None:
        if self._status is not None:
            self._status.stop()
            self._print(f"{self._title}: {self._n} steps, {time.perf_counter() - self._began:.2f} s")

    def __call__(self, step: Step) -> None:
        self._n += 1
        if self._status is None:
            return
        gap = f"{step.relative_gap:.1e}" if math.isfinite(step.relative_gap) else "∞"
        line = (
            f"{self._title}: step {self._n}, γ {step.gamma:.3g} → {self._gamma:.3g}, "
            f"relative gap {gap} → {self._tol:.0e}, largest violation {step.max_violation:.2g}, "
            f"{time.perf_counter() - self._began:.1f} s"
        )
        self._status.update(line)
        if self._verbose > 1:
            self._print(line)

    @property
    def callback(self) -> Progress | None:
        """Itself, or None where nothing is shown, so that solvers need not call."""
        return self if self._verbose else None
