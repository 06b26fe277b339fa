"""The two errors a caller may want to catch by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["InfeasibleError", "NotPositiveDefiniteError"]


class NotPositiveDefiniteError(ValueError):
    """A prior or kernel matrix that must be positive (semi)definite is not."""


class InfeasibleError(ValueError):
    """Hard constraints (γ = ∞) that no metric satisfies, with the combination that proves it.

    Where the message says constraints in words, such as "pair (0, 1): squared distance ≤ 0.5", the indices
    are those of the rows of X, or where `rows` gave them other numbers, those; `constraints` counts in the order given.

    Attributes
    ----------
    outcome : {"infeasible", "singular", "bounded"}
        "infeasible": no W ⪰ 0 satisfies them all. "singular": only singular W do, where LogDet is infinite.
        "bounded": the proof is not exact; every W that satisfies them has trace at least `trace_bound`.
    multipliers : ndarray of shape (n_constraints,)
        λ ≥ 0, summing to 1, zero for constraints that play no part. One for each constraint given to `fit` (or, from
        labels, drawn by it), in their order.
    constraints : ndarray of int
        Those with λ > 0: together they are the contradiction.
    trace_bound : float
        Smallest trace, in the coordinates where the prior is the identity; ∞ unless `outcome` is "bounded".
    """

    def __init__(
        self,
        message: str,
        *,
        outcome: str = "infeasible",
        multipliers: np.ndarray | None = None,
        trace_bound: float = np.inf,
    ):
        super().__init__(message)
        self.outcome = outcome
        self.multipliers = np.zeros(0) if multipliers is None else multipliers
        self.constraints = np.flatnonzero(self.multipliers > 0)
        self.trace_bound = trace_bound

    def __reduce__(self) -> tuple[Callable[..., InfeasibleError], tuple[Any, ...]]:
        # Exceptions with keyword arguments need help to cross process borders (joblib, multiprocessing).
        return _rebuild, (str(self), self.outcome, self.multipliers, self.trace_bound)


def _rebuild(message: str, outcome: str, multipliers: np.ndarray, trace_bound: float) -> InfeasibleError:
    return InfeasibleError(message, outcome=outcome, multipliers=multipliers, trace_bound=trace_bound)
