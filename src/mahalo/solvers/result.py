"""Results of solvers: the solution and its steps."""

from __future__ import annotations

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
