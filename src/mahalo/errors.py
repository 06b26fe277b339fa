"""Exceptions that callers may want to catch."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

__all__ = ["InfeasibleError", "NotPositiveDefiniteError", "NothingToLearnError"]


class NotPositiveDefiniteError(ValueError):
    """Raised for a prior or kernel matrix that is not positive (semi)definite."""


class NothingToLearnError(ValueError):
    """Raised where no constraint between different points is left, or the basis of a space has no direction."""


class InfeasibleError(ValueError):
    """Raised for hard constraints (γ = ∞) that no metric satisfies, with the multipliers that prove it.

    Row numbers in the message, such as "pair (0, 1): squared distance ≤ 0.5", are those of X, or those in `rows` if
    that was passed; `constraints` are positions in the order of the constraints passed.

    Attributes
    ----------
    outcome : {"infeasible", "singular", "bounded"}
        "infeasible": no W ⪰ 0 satisfies them all. "singular": only singular W do, where LogDet is infinite.
        "bounded": the proof is not exact; every W that satisfies them has trace at least `trace_bound`.
    multipliers : ndarray of shape (n_constraints,)
        λ ≥ 0 with sum 1, zero for constraints outside the contradiction. One for each constraint passed to `fit` (or
        drawn from labels), in their order.
    constraints : ndarray of int
        Positions of the constraints with λ > 0, which contradict each other.
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

    def __reduce__(self) -> tuple[Callable[..., InfeasibleError], tuple]:
        # Exceptions with keyword arguments need this to be pickled (joblib, multiprocessing).
        return _rebuild, (str(self), self.outcome, self.multipliers, self.trace_bound)


def _rebuild(message: str, outcome: str, multipliers: np.ndarray, trace_bound: float) -> InfeasibleError:
    return InfeasibleError(message, outcome=outcome, multipliers=multipliers, trace_bound=trace_bound)
