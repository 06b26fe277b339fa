"""Results of solvers: the solution and its steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from .certificate import Certificate, certify
from .problem import Problem


@dataclass(frozen=True)
class Step:
    """Record of a solver step: its problem, its distance from the optimum, its cost.

    Attributes
    ----------
    gamma : float
        γ of the step; solvers that follow a path begin at a smaller γ than the problem's.
    primal : float
        Objective after the step.
    relative_gap : float
        ``(primal − dual) / max(1, |primal|)`` after the step.
    max_violation : float
        Largest violation of a constraint, relative to its scale.
    step_length : float
        1 for a full step, less if it was shortened; for "bregman" the largest relative change in a sweep.
    inner_iterations : int
        Products with the constraints, dense systems solved, or projections.
    """

    gamma: float
    primal: float
    relative_gap: float
    max_violation: float
    step_length: float
    inner_iterations: int


OnStep = Callable[[Step], bool | None]  # called after each step; True asks the solver to stop


@dataclass
class StepLog:
    """Steps of a solver, at most `limit` of them: fewer if `on_step` asks to stop."""

    limit: int
    on_step: OnStep | None = None
    steps: list[Step] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.steps)

    @property
    def is_full(self) -> bool:
        """True if no step may follow."""
        return len(self.steps) >= self.limit

    def append(self, step: Step) -> None:
        """Add a step; from then on the log is full if the callback asks to stop."""
        self.steps.append(step)
        if self.on_step is not None and self.on_step(step):
            self.limit = len(self.steps)


@dataclass(frozen=True)
class Solution:
    """Result of every solver: core matrix, multipliers and history; its certificate is computed when it is read.

    Attributes
    ----------
    F : ndarray of shape (rank, rank)
        The core matrix, symmetric positive semidefinite.
    lam : ndarray of shape (n_constraints,)
        Multipliers λ ≥ 0.
    problem : Problem
        The problem that was solved.
    tol : float
        Relative gap that was to be reached.
    history : tuple of Step
        All steps; for "bregman" the sweeps after which the gap was measured.
    n_iter : int
        Number of steps or sweeps.
    """

    F: np.ndarray
    lam: np.ndarray
    problem: Problem = field(repr=False)
    tol: float
    history: tuple[Step, ...]
    n_iter: int

    @cached_property
    def certificate(self) -> Certificate:
        """Primal and dual objective of F and λ, and their gap."""
        return certify(self.problem, self.F, self.lam, self.tol)
