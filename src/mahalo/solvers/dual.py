"""Any spectral loss: Newton's method on the dual, under a barrier where one is needed.

With S = −R_0 − Σ s_k R_k (s = sign λ) and F = ∇f*(S), the dual objective and its derivatives are

    D(λ)            = −Σ f*(eig S) + Σ s_k c_k + Σ dual_k(s_k)  (+ c_0)
    gradient        sign_k (v_k + dual_k′(s_k)),      v_k = c_k + tr(F R_k)
    −Hessian        dλ ↦ A (Ω ∘ (A* dλ)) + h dλ,      h = −dual″, Ω the divided differences of ∇f*

(in the eigenbasis of S). Where γ < ∞ the condition of the optimum, λ = penalty′(v(λ)), is solved by Newton steps as it
stands (plain_steps.py). Where that fails, and for γ = ∞, λ > 0 is kept by a barrier that goes to 0 (barrier_steps.py).
Either way Newton systems are over r × r matrices, whatever the number of constraints.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np

from ..losses import VonNeumann
from .certificate import certify
from .dual_start import LOOSE_GAP, MAX_STEPS, inside, plain_start
from .dual_state import DualState
from .farkas import equalised, farkas
from .problem import Problem
from .result import Solution, Step
from .walk import Walk

__all__ = ["dual"]


def dual(
    problem: Problem,
    *,
    tol: float = 1e-4,
    max_iter: int | None = None,
    start: Solution | None = None,
    on_step: Callable[[Step], None] | None = None,
) -> Solution:
    """Solve to relative gap `tol`, or raise InfeasibleError with the proof where hard constraints contradict.

    `start` is the solution of the same problem at a smaller γ.
    """
    if on_step is not None:
        on_step = np.errstate(**np.geterr())(on_step)  # as if called from outside
    walk = Walk(problem, 0.9 * tol, MAX_STEPS if max_iter is None else max_iter, on_step)
    with np.errstate(all="ignore"):  # what overflows is found out and gone back from
        state = _optimum(problem, walk, start)
    certificate = certify(problem, state.F, state.lam, tol)
    if problem.hard and not certificate.converged:
        # Weight moved to upper bounds gives up some of the contradiction for more definiteness.
        weighted = (np.where(problem.sign > 0, factor, 1.0) * state.lam for factor in (1.0, 2.0, 5.0, 10.0, 30.0))
        proof = walk.proof or next(filter(None, (farkas(problem, lam) for lam in weighted)), None)
        if proof is not None:
            raise proof
    return Solution(state.F, state.lam, certificate, tuple(walk.history), len(walk.history))


def _optimum(problem: Problem, walk: Walk, start: Solution | None) -> DualState:
    origin = DualState.at(problem, np.zeros(problem.n_constraints))
    if origin is not None and not origin.violation > 0:
        return origin
    if problem.hard:
        _refute(problem, walk)
        return _without_idle(walk.under_barrier(*inside(problem, start)), walk)
    near, shift = plain_start(origin) if start is None else (DualState.at(problem, start.lam), 0.0)
    return walk.plainly(near, shift) or _without_idle(walk.under_barrier(*inside(problem, start), walk.plainly), walk)


def _without_idle(state: DualState, walk: Walk) -> DualState:
    """The same with λ = 0 where only the barrier holds it up, if that is as good an answer."""
    relative = state.lam * state.problem.scale
    exact = DualState.at(state.problem, np.where(relative > 1e-6 * relative.max(initial=0.0), state.lam, 0.0))
    return state if exact is None or not walk.arrived(exact) else exact


def _refute(problem: Problem, walk: Walk) -> None:
    """Raise if the hard constraints contradict each other.

    Whether they do depends neither on the loss nor on the units of the coordinates, so it is asked where the answer is
    easiest: under a smooth loss, with edges that point all ways alike.
    """
    alike = dataclasses.replace(problem, points=problem.points @ equalised(problem), loss=VonNeumann(), tilt=None)
    trial = Walk(alike, LOOSE_GAP, walk.budget, walk.on_step)
    trial.under_barrier(*inside(alike, None))
