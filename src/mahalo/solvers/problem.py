"""The convex problem over the core matrix F that every solver takes."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ..constraints.forms import EdgeForms
from ..losses import HardSlack, HingeSlack, LogDet, LogSlack, Loss, Slack, SlackStack


@dataclass(frozen=True)
class Problem:
    """Minimise tr f(F) + tr(R_0 F) + Σ penalty_k(v_k) over F ⪰ 0, with v_k = offset_k + tr(F X̂ᵀ C_k X̂).

    Parameters
    ----------
    points : ndarray of shape (n, rank)
        Coordinates x̂ of the constrained rows.
    forms : EdgeForms
        The C_k.
    sign : ndarray of shape (n_constraints,)
        +1 for v ≤ bound, −1 for v ≥ bound.
    bound, scale, weight, offset : ndarray of shape (n_constraints,)
        Bound on v, unit of a violation, factor of γ, and c_k.
    gamma : float
        γ_k = gamma · weight_k is the price of a violation; ∞: constraints must hold.
    n_log : int
        Number of leading constraints with the paper's slack; the others pay the squared hinge of relative violation.
    loss : Loss, default=LogDet()
        f.
    tilt : ndarray of shape (rank, rank), optional
        R_0; None without a linear objective.
    constant : float, default=0.0
        Part of the linear objective that does not depend on F.

    Attributes
    ----------
    rank, n_constraints : int
        Order of F, and number of constraints.
    hard : bool
        True if gamma is ∞.
    """

    points: np.ndarray
    forms: EdgeForms
    sign: np.ndarray
    bound: np.ndarray
    scale: np.ndarray
    weight: np.ndarray
    offset: np.ndarray
    gamma: float
    n_log: int
    loss: Loss = field(default_factory=LogDet)
    tilt: np.ndarray | None = None
    constant: float = 0.0
    rank: int = field(init=False)
    n_constraints: int = field(init=False)
    hard: bool = field(init=False)

    def __post_init__(self) -> None:
        derived = {"rank": self.points.shape[1], "n_constraints": len(self.sign), "hard": math.isinf(self.gamma)}
        self.__dict__.update(derived)  # frozen

    def with_gamma(self, gamma: float) -> Problem:
        """Return the problem at another γ."""
        return dataclasses.replace(self, gamma=gamma)

    def with_tilt(self, tilt: np.ndarray) -> Problem:
        """Return the problem with another linear objective; the slack is shared."""
        problem = dataclasses.replace(self, tilt=tilt)
        problem.__dict__["slack"] = self.slack
        return problem

    def compact(self) -> Problem:
        """Return the problem over as few points as possible.

        Steps cost O(n r²) for n points. Where edges are fewer (pairs that share no rows), their differences become the
        points, each joined to the origin.
        """
        forms, points = self.forms.compact(self.points)
        return dataclasses.replace(self, points=points, forms=forms)

    @cached_property
    def slack(self) -> Slack:
        if self.hard:
            return HardSlack(self.sign, self.bound)  # type: ignore[return-value]  # certified, never stepped on
        k, gamma = self.n_log, self.gamma * self.weight
        log = LogSlack(self.sign[:k], self.bound[:k], gamma[:k])
        if k == self.n_constraints:
            return log
        hinge = HingeSlack(self.sign[k:], self.bound[k:], self.scale[k:], gamma[k:])
        return SlackStack(log, hinge, k) if k else hinge

    def relative_violation(self, v: np.ndarray) -> np.ndarray:
        """Return max(0, sign (v − bound)) / scale."""
        return np.maximum(self.sign * (v - self.bound), 0.0) / self.scale
