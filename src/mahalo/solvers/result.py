from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .certificate import Certificate

__all__ = ["Solution", "Step"]


@dataclass(frozen=True)
class Step:
    """One step of a solver: what it was solving, how far from the optimum it was, what it cost.

    `relative_gap` is proved where the step ended at multipliers ≥ 0, as the last one does, and an estimate elsewhere.
    """

    gamma: float
    primal: float
    relative_gap: float
    max_violation: float
    step_length: float
    inner_iterations: int


@dataclass(frozen=True)
class Solution:
    """What every solver returns: the core matrix, its multipliers, the proof, and how it got there."""

    F: np.ndarray
    lam: np.ndarray
    certificate: Certificate
    history: tuple[Step, ...]
    n_iter: int
