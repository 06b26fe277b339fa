"""Path to the optimum of the dual: without a barrier if possible, else with growing γ and then falling μ."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ..errors import InfeasibleError
from .barrier_free_steps import ascent_step, full_step, newton_multipliers
from .barrier_steps import barrier_direction, barrier_gradient, barrier_line_search, barrier_value
from .certificate import FEASIBLE
from .dual_state import ROUNDING, DualState
from .farkas import farkas
from .problem import Problem
from .result import StepLog

WIDTH = 0.3  # width of the first barrier, in units of a constraint's scale
_STRIDE = 3.0  # factor from one γ to the next
_NEARLY_HARD = 10.0  # the γ before γ = ∞, and beyond which barriers do not grow
_CENTRED = 3.0  # slope of D_μ along a step, in units of mμ, below which μ moves on
_SLOW, _FAST = 0.1, 0.02  # factors for μ
_SHORTCUT_GAP = 0.1  # gap below which steps without a barrier are tried
_INEXACT = 0.4  # residual of a step without a barrier relative to its solution, except the last
_LAST_STEP_FACTOR = 0.7  # makes the last step more exact than the goal needs, which costs less than another step
_MAX_NOT_HIGHER = 4  # full steps in a row that do not raise D
_MAX_WITHOUT_BARRIER, _MAX_SHORT = 40, 4  # steps, and shortened steps, before a barrier is tried


def barrier_for(gamma: float, width: float = WIDTH) -> float:
    """Return μ that keeps constraints `width` from their bounds: λ ≈ γ · width there, and λ · width = μ.

    It stops growing at a large γ, where it would keep λ far too large for the loss.
    """
    return min(gamma, _NEARLY_HARD) * width**2


class DualPath:
    """Steps to the optimum of a problem, until the relative gap is within `goal` or the log is full."""

    def __init__(self, problem: Problem, goal: float, log: StepLog) -> None:
        self.problem, self.goal, self.log = problem, goal, log
        self.proof: InfeasibleError | None = None  # the last contradiction that multipliers proved

    def solve_without_barrier(self, state: DualState | None, shift: float = 0.0) -> DualState | None:
        """Return the optimum by steps without a barrier (while the log allows), or None if they converge slowly.

        Steps are full until several in a row have not raised D; then the path returns to its highest state and every
        step has to raise D. The first step is made from R_0 − `shift` I, see dual_start.py.
        """
        if state is None or self.problem.hard:
            return None
        best, highest, n_short, n_not_higher, climbing = state, state, 0, 0, False
        last = len(self.log) + _MAX_WITHOUT_BARRIER
        while not self.is_optimal(state):
            if self.log.is_full or len(self.log) >= last:
                return best if self.log.is_full and best.problem is self.problem else None
            lam, n_products = newton_multipliers(state, self.problem, self._inexact(state), shift)
            t, trial = ascent_step(state, lam) if climbing else full_step(state, self.problem, lam)
            n_short += t < 1.0
            if trial is None or (n_short > _MAX_SHORT and not climbing):
                return None
            state, shift = trial, 0.0
            self._record(state, t, n_products)
            if best.problem is not self.problem or state.relative_gap < best.relative_gap:
                best = state
            if highest.problem is not self.problem or state.dual > highest.dual:
                highest, n_not_higher = state, 0
            else:
                n_not_higher += 1
            if n_not_higher == _MAX_NOT_HIGHER and not climbing and not self.is_optimal(state):
                state, climbing = highest, True
        return state

    def _inexact(self, state: DualState) -> float:
        """Return the tolerance of the next system.

        A step takes the gap to its square at best, or by the square of the tolerance, so only the last one has to be
        as exact as the goal needs.
        """
        gap = max(state.relative_gap, self.goal)
        return _INEXACT if gap > math.sqrt(self.goal) else min(_LAST_STEP_FACTOR * math.sqrt(self.goal / gap), _INEXACT)

    def solve_with_barrier(
        self, state: DualState, mu: float, shortcut: Callable[[DualState], DualState | None] = lambda state: None
    ) -> DualState:
        """Return the optimum by steps with a barrier, from a state with λ > 0; try `shortcut` near the end."""
        tau, shortcut_gap = mu / state.lam, _SHORTCUT_GAP
        while not self.log.is_full and not self.is_optimal(state):
            change, n_products = barrier_direction(state, mu, tau)
            rise = float(barrier_gradient(state, mu) @ change)
            t, trial = barrier_line_search(state, change, rise, mu)
            if trial is None:  # no progress beyond rounding with this barrier
                if state.problem is self.problem:
                    break
                state, mu, tau = self._next_barrier(state, mu, tau, easy=False)
                continue
            # λτ = μ to first order along the step, and never far from it.
            tau = np.clip((mu - t * tau * change) / state.lam, 0.01 * mu / trial.lam, 100.0 * mu / trial.lam)
            state = trial
            self._record(state, t, n_products)
            if state.problem is self.problem and state.relative_gap < shortcut_gap:
                shortcut_gap = 0.01 * state.relative_gap
                if (optimum := shortcut(state)) is not None:
                    return optimum
            centred = rise / (state.problem.n_constraints * mu)
            if centred <= _CENTRED and (t > 0.3 or rise <= ROUNDING * abs(barrier_value(state, mu))):
                state, mu, tau = self._next_barrier(state, mu, tau, easy=t > 0.9 and centred <= 0.1 * _CENTRED)
        return state

    def is_optimal(self, state: DualState) -> bool:
        """Return True if the state solves the problem to the goal."""
        if state.problem is not self.problem or not abs(state.relative_gap) <= self.goal:
            return False
        return not self.problem.hard or state.violation <= 0.5 * FEASIBLE  # with room for rounding

    def _next_barrier(
        self, state: DualState, mu: float, tau: np.ndarray, easy: bool
    ) -> tuple[DualState, float, np.ndarray]:
        """Return state, μ and τ of the next barrier: equally wide at a larger γ, or narrower at the last γ."""
        gamma = state.problem.gamma
        if state.problem is self.problem:
            return state, mu * (_FAST if easy else _SLOW), tau
        if self.problem.gamma <= _STRIDE * gamma or (self.problem.hard and gamma >= _NEARLY_HARD):
            problem = self.problem
        else:
            problem = self.problem.with_gamma(_STRIDE * gamma)
        # Where multipliers are already far below γ, most constraints hold and will not need larger ones.
        sufficient = max(mu, WIDTH * float(np.mean(state.lam * problem.scale)))
        mu = min(mu * barrier_for(problem.gamma) / barrier_for(gamma), sufficient)
        onward = DualState.at(problem, state.lam)
        assert onward is not None  # a larger γ widens the domain
        return onward, mu, mu / state.lam

    def _record(self, state: DualState, t: float, n_products: int) -> None:
        self.log.append(state.as_step(t, n_products))
        if state.problem.hard:
            self.proof = farkas(state.problem, state.lam) or self.proof
            if self.proof is not None and self.proof.outcome == "infeasible":
                raise self.proof
