"""Newton solver for LogDet with slack: semismooth Newton-CG with primal-dual scaling on a path of growing γ."""

from __future__ import annotations

import math

import numpy as np

from ..linalg import cholesky_or_none
from .newton_state import CLOSE_GAP, State, state_at
from .problem import Problem
from .result import OnStep, Solution, Step, StepLog

_LOOSE_GAP = 0.05  # relative gap at which the path moves on to the next γ
_FIRST_GRADIENT = 10.0
_LONGEST_STRIDE, _SHORTEST_STRIDE = 10**0.5, 1.05  # factors between one γ and the next
_PATIENCE = 12  # steps at one γ before a shorter stride is tried
_INEXACT = 0.1  # relative residual of a Newton step; less as the gradient shrinks, and for tiny matrices
_TINY_RANK = 8
_LEAST_INEXACT = 0.04
_MAX_CG = 200
_MAX_STEPS = 1000


def newton(
    problem: Problem,
    *,
    tol: float = 1e-4,
    max_iter: int | None = None,
    start: Solution | None = None,
    on_step: OnStep | None = None,
) -> Solution:
    """Solve to relative gap `tol`; `start` is the solution of the same problem at a smaller γ."""
    log = StepLog(_MAX_STEPS if max_iter is None else max_iter, on_step)
    state = follow_path(problem, 0.5 * tol, start, log)
    A = state.A
    F, lam = A @ A.T, np.maximum(problem.sign * state.s, 0.0)
    return Solution(F, lam, problem, tol, tuple(log.steps), len(log))


def follow_path(problem: Problem, goal: float, start: Solution | None, log: StepLog) -> State:
    """Follow the optimum as γ grows to the problem's own, and there reach relative gap `goal`."""
    factor = None if start is None else cholesky_or_none(start.F)
    A, begin = np.eye(problem.rank), 0.0
    if start is not None and factor is not None:
        A, begin = factor, min(start.problem.gamma, problem.gamma)
    state = state_at(problem, A)
    # At F = I the gradient is linear in γ: begin where its norm is moderate, or else at the start's own γ.
    moderate = _FIRST_GRADIENT * (10.0 if problem.rank <= _TINY_RANK else 1.0)
    slope = state.gradient_over_gamma
    first = max(begin, problem.gamma / max(1.0, problem.gamma * (slope / moderate)))
    return _minimise(_follow_gamma(state.at_gamma(first), problem.gamma, log), goal, log)


def _follow_gamma(state: State, gamma: float, log: StepLog) -> State:
    """Follow the optimum up to `gamma`, with long strides while they converge quickly, else shorter ones."""
    stride = _LONGEST_STRIDE
    state = _minimise(state, _LOOSE_GAP, log)
    while state.gamma < gamma:
        n_before = len(log)
        # Avoid a last stride shorter than half the usual.
        left = gamma / state.gamma
        trial = state.at_gamma(gamma if left <= stride**1.5 else state.gamma * stride)
        trial = _minimise(trial, _LOOSE_GAP, log, math.inf if stride < _SHORTEST_STRIDE else _PATIENCE)
        if trial.relative_gap <= _LOOSE_GAP or stride < _SHORTEST_STRIDE:
            state = trial
            if len(log) - n_before <= _PATIENCE // 3:
                stride = min(stride**1.5, _LONGEST_STRIDE)
        else:
            stride = stride**0.5
        if log.is_full:
            return state.at_gamma(gamma)
    return state


def _minimise(state: State, goal: float, log: StepLog, patience: float = math.inf) -> State:
    """Make at most `patience` Newton steps at one γ, until the relative gap is within `goal` or the log is full."""
    stalled, t, last = 0, 1.0, len(log) + patience
    while state.relative_gap > goal and not log.is_full and len(log) < last and stalled < 3:
        primal_dual = t < 1.0 or state.gap > CLOSE_GAP
        # Solving the systems of tiny matrices more exactly is cheap, and saves steps unless they are short.
        inexact = 0.1 * _INEXACT if t == 1.0 and len(state.A) <= _TINY_RANK else _INEXACT
        # A residual of η leaves about η² of the gap: with a product or two more the step may be the last one.
        inexact = min(inexact, max(_LEAST_INEXACT, math.sqrt(0.5 * goal / state.relative_gap))) if t == 1.0 else inexact
        following, t, n_products = state.step(primal_dual, inexact, _MAX_CG)
        if following is None:
            break
        previous, state = state, following
        if not state.gap < np.inf:
            return previous
        # Rounding dominates where neither objective nor gap falls any more.
        falling = state.primal < previous.primal or state.gap < 0.9 * previous.gap
        stalled = 0 if falling else stalled + 1
        step = Step(
            gamma=state.gamma,
            primal=state.primal,
            relative_gap=state.relative_gap,
            max_violation=state.max_violation,
            step_length=t,
            inner_iterations=n_products,
        )
        log.append(step)
    return state
