"""Choice of the solver for a problem."""

from __future__ import annotations

from collections.abc import Callable

from ..losses import LogDet
from .bregman import bregman
from .dual import dual
from .newton import newton
from .problem import Problem
from .result import OnStep, Solution

METHODS: dict[str, Callable[..., Solution]] = {"newton": newton, "dual": dual, "bregman": bregman}


def solve(
    problem: Problem,
    method: str = "auto",
    *,
    tol: float = 1e-4,
    max_iter: int | None = None,
    start: Solution | None = None,
    on_step: OnStep | None = None,
) -> Solution:
    """Solve a problem to relative gap `tol` with the named method, or with the one that suits it.

    Parameters
    ----------
    problem : Problem
        The problem to solve.
    method : {"auto", "newton", "dual", "bregman"}, default="auto"
        "newton" is for LogDet with finite γ, "dual" for every loss and for γ = ∞, and "auto" chooses between them.
        "bregman" is the paper's Algorithm 1, for LogDet.
    tol : float, default=1e-4
        Relative duality gap to reach.
    max_iter : int, optional
        Limit on steps or sweeps; by default the method's own.
    start : Solution, optional
        The solution of the same problem at a smaller γ.
    on_step : callable, optional
        Called with every `Step`; the solver stops where it returns True.

    Returns
    -------
    Solution
        Its certificate says whether `tol` was reached.
    """
    chosen = METHODS[_suitable(method, problem)]
    return chosen(problem, tol=tol, max_iter=max_iter, start=start, on_step=on_step)


def _suitable(method: str, problem: Problem) -> str:
    """Return the name of the method to use; raise ValueError if the requested one cannot solve the problem."""
    if method not in ("auto", *METHODS):
        raise ValueError(f"solver must be 'auto', 'newton', 'dual' or 'bregman'; got {method!r}.")
    logdet = type(problem.loss) is LogDet and problem.tilt is None
    if method == "auto":
        return "newton" if logdet and not problem.hard else "dual"
    if method != "dual" and not logdet:
        what = "a linear objective" if type(problem.loss) is LogDet else f"the loss {type(problem.loss).__name__}"
        raise ValueError(f"solver={method!r} cannot do {what}; use solver='dual' or 'auto'.")
    if method == "newton" and problem.hard:
        raise ValueError("solver='newton' needs a finite gamma; for hard constraints use solver='dual' or 'auto'.")
    return method
