"""The way to the optimum of the dual: without a barrier where that will do, otherwise γ up and then μ down."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ..errors import InfeasibleError
from .barrier_steps import ascent, barrier_value, direction_under, go_along
from .certificate import FEASIBLE
from .dual_state import ROUNDING, DualState
from .farkas import farkas
from .plain_steps import climb_to, foresee, go_to
from .problem import Problem
from .result import Step

__all__ = ["WIDTH", "Walk", "barrier_for"]

WIDTH = 0.3  # of the first barrier, in units of a constraint's scale
_STRIDE = 3.0  # from one γ to the next
_NEARLY_HARD = 10.0  # the γ after which comes the last, and beyond which barriers do not grow
_CENTRED = 3.0  # slope of D_μ along a step, in units of mμ, below which μ moves on
_SLOW, _FAST = 0.1, 0.02  # factors for μ
_WITHIN_REACH = 0.1  # gap from which the barrier may not be needed any more
_INEXACT = 0.4  # residual of a step without a barrier relative to its solution, but for the last
_SURELY = 0.7  # of what the goal asks of the last: a little more exact costs less than another step
_MAX_LOWER = 4  # whole steps in a row that do not raise D
_MAX_PLAIN, _MAX_SHORT = 40, 4  # steps without a barrier, and those of them cut short, after which one is tried


def barrier_for(gamma: float, width: float = WIDTH) -> float:
    """μ that leaves constraints `width` from their bounds: λ ≈ γ · width there, and λ · width = μ.

    Large γ need no more: such a barrier would hold λ far above what the loss can answer to.
    """
    return min(gamma, _NEARLY_HARD) * width**2


class Walk:
    """The steps to one problem's optimum, until the relative gap is within `goal` or `budget` steps are made."""

    def __init__(self, problem: Problem, goal: float, budget: int, on_step: Callable[[Step], None] | None):
        self.problem, self.goal, self.budget, self.on_step = problem, goal, budget, on_step
        self.history: list[Step] = []
        self.proof: InfeasibleError | None = None  # the last thing the multipliers proved about hard constraints

    def plainly(self, state: DualState | None, shift: float = 0.0) -> DualState | None:
        """The optimum by steps without a barrier, as far as the budget goes; nothing if they do not lead there soon.

        They are whole until several of them have not raised D; from the highest state on each has to. The first is made
        from R_0 − `shift` I, see dual_start.py.
        """
        if state is None or self.problem.hard:
            return None
        best, highest, n_short, n_lower, climbing = state, state, 0, 0, False
        last = min(self.budget, len(self.history) + _MAX_PLAIN)
        while not self.arrived(state):
            if len(self.history) >= last:
                return best if last == self.budget and best.problem is self.problem else None
            lam, n_products = foresee(state, self.problem, self._inexact(state), shift)
            t, trial = climb_to(state, lam) if climbing else go_to(state, self.problem, lam)
            n_short += t < 1.0
            if trial is None or (n_short > _MAX_SHORT and not climbing):
                return None
            state, shift = trial, 0.0
            self._record(state, t, n_products)
            if best.problem is not self.problem or state.relative_gap < best.relative_gap:
                best = state
            if highest.problem is not self.problem or state.dual > highest.dual:
                highest, n_lower = state, 0
            else:
                n_lower += 1
            if n_lower == _MAX_LOWER and not climbing and not self.arrived(state):
                state, climbing = highest, True
        return state

    def _inexact(self, state: DualState) -> float:
        """The gap falls to its square at best, or by this squared: the last step alone is as exact as the goal asks."""
        gap = max(state.relative_gap, self.goal)
        return _INEXACT if gap > math.sqrt(self.goal) else min(_SURELY * math.sqrt(self.goal / gap), _INEXACT)

    def under_barrier(
        self, state: DualState, mu: float, shortcut: Callable[[DualState], DualState | None] = lambda state: None
    ) -> DualState:
        """From a state inside λ > 0, under a barrier all the way unless there is a shortcut near the end."""
        tau, within_reach = mu / state.lam, _WITHIN_REACH
        while len(self.history) < self.budget and not self.arrived(state):
            change, n_products = direction_under(state, mu, tau)
            rise = float(ascent(state, mu) @ change)
            t, trial = go_along(state, change, rise, mu)
            if trial is None:  # rounding has the last word on this barrier
                if state.problem is self.problem:
                    break
                state, mu, tau = self._onward(state, mu, tau, easy=False)
                continue
            # λτ = μ to first order along the step, and never far from it.
            tau = np.clip((mu - t * tau * change) / state.lam, 0.01 * mu / trial.lam, 100.0 * mu / trial.lam)
            state = trial
            self._record(state, t, n_products)
            if state.problem is self.problem and state.relative_gap < within_reach:
                within_reach = 0.01 * state.relative_gap
                if (optimum := shortcut(state)) is not None:
                    return optimum
            centred = rise / (state.problem.n_constraints * mu)
            if centred <= _CENTRED and (t > 0.3 or rise <= ROUNDING * abs(barrier_value(state, mu))):
                state, mu, tau = self._onward(state, mu, tau, easy=t > 0.9 and centred <= 0.1 * _CENTRED)
        return state

    def arrived(self, state: DualState) -> bool:
        if state.problem is not self.problem or not abs(state.relative_gap) <= self.goal:
            return False
        return not self.problem.hard or state.violation <= 0.5 * FEASIBLE  # with room for rounding

    def _onward(self, state: DualState, mu: float, tau: np.ndarray, easy: bool) -> tuple[DualState, float, np.ndarray]:
        """The next barrier: of the same width at a larger γ, or narrower at the last."""
        gamma = state.problem.gamma
        if state.problem is self.problem:
            return state, mu * (_FAST if easy else _SLOW), tau
        if self.problem.gamma <= _STRIDE * gamma or (self.problem.hard and gamma >= _NEARLY_HARD):
            problem = self.problem
        else:
            problem = self.problem.with_gamma(_STRIDE * gamma)
        # Where multipliers are short of γ already, most constraints hold and will not need larger ones.
        warranted = max(mu, WIDTH * float(np.mean(state.lam * problem.scale)))
        mu = min(mu * barrier_for(problem.gamma) / barrier_for(gamma), warranted)
        onward = DualState.at(problem, state.lam)
        assert onward is not None  # a larger γ widens the domain
        return onward, mu, mu / state.lam

    def _record(self, state: DualState, t: float, n_products: int) -> None:
        step = state.as_step(t, n_products)
        self.history.append(step)
        if self.on_step is not None:
            self.on_step(step)
        if state.problem.hard:
            self.proof = farkas(state.problem, state.lam) or self.proof
            if self.proof is not None and self.proof.outcome == "infeasible":
                raise self.proof
