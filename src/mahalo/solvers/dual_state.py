"""State of the dual solver at multipliers λ: S, F = ∇f*(S) in the eigenbasis of S, form values, gap."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..losses.spectral import divided_differences
from .problem import Problem
from .result import Step

ROUNDING = 1e-13  # relative rounding error of D


@dataclass(frozen=True)
class DualState:
    """Multipliers λ inside the domain of the dual, with S, F and the values of all forms."""

    problem: Problem
    lam: np.ndarray
    sigma: np.ndarray  # eigenvalues of S
    V: np.ndarray  # eigenvectors of S
    Y: np.ndarray  # points in the eigenbasis of S
    w: np.ndarray  # eigenvalues of F
    v: np.ndarray
    slack_dual: np.ndarray  # term of every constraint in the dual
    dual: float

    @classmethod
    def at(cls, problem: Problem, lam: np.ndarray) -> DualState | None:
        """Return the state at λ, or None outside the domain of the dual."""
        S = -problem.forms.adjoint(problem.points, problem.sign * lam)
        if problem.tilt is not None:
            S -= problem.tilt
        if not math.isfinite(float(S.sum())):
            return None
        sigma, V = np.linalg.eigh(S)  # reads one half of S
        return cls._with(problem, lam, sigma, V, problem.points @ V)

    def shifted(self, shift: float) -> DualState | None:
        """Return the state with τI added to S, which is −τI added to R_0."""
        tilt = -shift * np.eye(len(self.sigma))
        if self.problem.tilt is not None:
            tilt += self.problem.tilt
        problem = self.problem.with_tilt(tilt)
        return self._with(problem, self.lam, self.sigma + shift, self.V, self.Y)

    @classmethod
    def _with(
        cls, problem: Problem, lam: np.ndarray, sigma: np.ndarray, V: np.ndarray, Y: np.ndarray
    ) -> DualState | None:
        """Return the state from the eigendecomposition of S."""
        s = problem.sign * lam
        slack_dual = problem.slack.dual(s)
        conjugate = float(problem.loss.conjugate(sigma).sum())
        dual = float(s @ problem.offset + slack_dual.sum()) - conjugate + problem.constant
        # Eigenvalues inside the domain by rounding alone count as outside. They ascend, as f* does.
        beyond = sigma[-1:] + 1e-13 * np.maximum(sigma[-1:], -sigma[:1])
        if not math.isfinite(dual + float(problem.loss.conjugate(beyond).sum())):
            return None
        w = problem.loss.conjugate_slope(sigma)
        v = problem.offset + problem.forms.apply(Y * w, Y)
        if not math.isfinite(float(v.sum())):  # v is not finite where w is not
            return None
        return cls(problem, lam, sigma, V, Y, w, v, slack_dual, dual)

    @cached_property
    def gradient(self) -> np.ndarray:
        sign = self.problem.sign
        return sign * (self.v + self.problem.slack.dual_slope(sign * self.lam))

    @cached_property
    def omega(self) -> np.ndarray:
        return np.maximum(divided_differences(self.problem.loss, self.sigma), 0.0)

    @cached_property
    def F(self) -> np.ndarray:
        F = (self.V * self.w) @ self.V.T
        return 0.5 * (F + F.T)

    @cached_property
    def gap(self) -> float:
        """P(F) − D(λ): Σ f(w) + Σ f*(σ) = tr(F S) here, so only penalties and their duals remain."""
        penalty = self.problem.slack.value(self.v)
        return float((penalty - self.problem.sign * self.lam * self.v - self.slack_dual).sum())

    @property
    def primal(self) -> float:
        return self.dual + self.gap

    @property
    def relative_gap(self) -> float:
        return self.gap / max(1.0, abs(self.primal)) if math.isfinite(self.primal) else np.inf

    @cached_property
    def violation(self) -> float:
        """Largest violation, relative to the constraint's scale."""
        return float(self.problem.relative_violation(self.v).max(initial=0.0))

    def as_step(self, step_length: float, n_products: int) -> Step:
        """Return the record of the step that led to this state."""
        return Step(
            gamma=self.problem.gamma,
            primal=self.primal,
            relative_gap=self.relative_gap,
            max_violation=self.violation,
            step_length=step_length,
            inner_iterations=n_products,
        )
