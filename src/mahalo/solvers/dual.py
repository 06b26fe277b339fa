"""Dual solver for any spectral loss: Newton's method, with a barrier where one is needed.

With S = −R_0 − Σ s_k R_k (s = sign λ) and F = ∇f*(S), the dual objective and its derivatives are

    D(λ)            = −Σ f*(eig S) + Σ s_k c_k + Σ dual_k(s_k)  (+ c_0)
    gradient        sign_k (v_k + dual_k′(s_k)),      v_k = c_k + tr(F R_k)
    −Hessian        dλ ↦ A (Ω ∘ (A* dλ)) + h dλ,      h = −dual″, Ω the divided differences of ∇f*

(in the eigenbasis of S). Where γ < ∞ the condition of the optimum, λ = penalty′(v(λ)), is solved by Newton steps
(barrier_free_steps.py). Where that fails, and for γ = ∞, a barrier that goes to 0 keeps λ > 0 (barrier_steps.py). In
both cases Newton systems are over r × r matrices, whatever the number of constraints.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from ..losses import VonNeumann
from .dual_path import DualPath
from .dual_start import LOOSE_GAP, MAX_STEPS, barrier_start, start_without_barrier
from .dual_state import DualState
from .farkas import equalising_map, farkas
from .problem import Problem
from .result import OnStep, Solution, StepLog


def dual(
    problem: Problem,
    *,
    tol: float = 1e-4,
    max_iter: int | None = None,
    start: Solution | None = None,
    on_step: OnStep | None = None,
) -> Solution:
    """Solve to relative gap `tol`, or raise InfeasibleError with the proof if hard constraints contradict.

    `start` is the solution of the same problem at a smaller γ.
    """
    if on_step is not None:
        on_step = np.errstate(**np.geterr())(on_step)  # the caller's settings
    log = StepLog(MAX_STEPS if max_iter is None else max_iter, on_step)
    path = DualPath(problem, 0.9 * tol, log)
    with np.errstate(all="ignore"):  # steps that overflow are detected and undone
        state = _optimum(problem, path, start)
    solution = Solution(state.F, state.lam, problem, tol, tuple(log.steps), len(log))
    if problem.hard and not solution.certificate.converged:
        # More weight on upper bounds makes Σ s_k R_k more definite.
        weighted = (np.where(problem.sign > 0, factor, 1.0) * state.lam for factor in (1.0, 2.0, 5.0, 10.0, 30.0))
        proof = path.proof or next(filter(None, (farkas(problem, lam) for lam in weighted)), None)
        if proof is not None:
            raise proof
    return solution


def _optimum(problem: Problem, path: DualPath, start: Solution | None) -> DualState:
    origin = DualState.at(problem, np.zeros(problem.n_constraints))
    if origin is not None and not origin.violation > 0:
        return origin
    if problem.hard:
        _raise_if_contradictory(problem, path)
        return _drop_idle(path.solve_with_barrier(*barrier_start(problem, start)), path)
    near, shift = start_without_barrier(origin) if start is None else (DualState.at(problem, start.lam), 0.0)
    optimum = path.solve_without_barrier(near, shift)
    if optimum is not None:
        return optimum
    return _drop_idle(path.solve_with_barrier(*barrier_start(problem, start), path.solve_without_barrier), path)


def _drop_idle(state: DualState, path: DualPath) -> DualState:
    """Return the state with λ = 0 where only the barrier keeps it positive, if that is still optimal."""
    relative = state.lam * state.problem.scale
    exact = DualState.at(state.problem, np.where(relative > 1e-6 * relative.max(initial=0.0), state.lam, 0.0))
    return state if exact is None or not path.is_optimal(exact) else exact


def _raise_if_contradictory(problem: Problem, path: DualPath) -> None:
    """Raise InfeasibleError if the hard constraints contradict each other.

    A contradiction depends neither on the loss nor on the units of the coordinates, so it is sought under a smooth loss
    with isotropic edges, where it is easiest to find.
    """
    points = problem.points @ equalising_map(problem)
    isotropic = dataclasses.replace(problem, points=points, loss=VonNeumann(), tilt=None)
    trial = DualPath(isotropic, LOOSE_GAP, StepLog(path.log.limit, path.log.on_step))
    trial.solve_with_barrier(*barrier_start(isotropic, None))
