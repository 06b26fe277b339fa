from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .certificate import Certificate

__all__ = ["Solution", "Step"]


@dataclass(frozen=True)
class Step:
    """One step of a solver: what it was solving, how far from the optimum it was, what it cost.

    Attributes
    ----------
    gamma : float
        γ of the problem the step was made on: on the way it may be smaller than the one asked for.
    primal : float
        Objective where the step ended.
    relative_gap : float
        ``(primal − dual) / max(1, |primal|)`` there.
    max_violation : float
        Largest violation of a constraint, relative to its scale.
    step_length : float
        1 for a whole step, less where it was cut short; for "bregman" the largest relative change in a sweep.
    inner_iterations : int
        Products with the constraints it took, or systems solved where they were written out, or projections.
    """

    gamma: float
    primal: float
    relative_gap: float
    max_violation: float
    step_length: float
    inner_iterations: int


@dataclass(frozen=True)
class Solution:
    """What every solver returns: the core matrix, its multipliers, the proof, and how it got there.

    Attributes
    ----------
    F : ndarray of shape (rank, rank)
        The core matrix, symmetric positive semidefinite.
    lam : ndarray of shape (n_constraints,)
        Multipliers λ ≥ 0.
    certificate : Certificate
        What F and λ prove.
    history : tuple of Step
        The steps that were made; for "bregman" the sweeps after which the gap was measured.
    n_iter : int
        Number of steps or sweeps.
    """

    F: np.ndarray
    lam: np.ndarray
    certificate: Certificate
    history: tuple[Step, ...]
    n_iter: int
