"""Starting points of the dual solver: with a barrier, without one, and where λ = 0 is outside the dual's domain."""

from __future__ import annotations

import dataclasses

import numpy as np

from .dual_path import WIDTH, DualPath, barrier_for
from .dual_state import DualState
from .problem import Problem
from .result import Solution, StepLog

LOOSE_GAP = 0.05  # relative gap of intermediate problems
MAX_STEPS = 500
_WARM_WIDTH = 0.03  # width of the first barrier after a start at a smaller γ
_MODERATE = 3.0  # norm of Σ s_k R_k at the first γ of the path
_MAX_SHIFTS = 60
_MAX_TRIALS = 12


def start_without_barrier(origin: DualState | None) -> tuple[DualState | None, float]:
    """Return a state to start from without a barrier and the shift τ of its S, or (None, 0) if there is none.

    The shift is 0 unless F is singular at λ = 0, as it is if the loss is least at 0; then F = ∇f*(τI − R_0).
    """
    if origin is None:
        return None, 0.0
    if (origin.w > 0).all():
        return (origin if origin.problem.tilt is None else _ray_start(origin)), 0.0
    return _shifted_start(origin)


def _ray_start(origin: DualState) -> DualState | None:
    """Return a state where D still rises on a ray of multipliers, searched from its far end; None if there is none.

    The ray has multipliers proportional to γ, in units of the constraints, on those violated at λ = 0.
    """
    problem = origin.problem
    ray = np.where(problem.relative_violation(origin.v) > 0, problem.gamma * problem.weight / problem.scale, 0.0)
    t, rise = 1.0, float(origin.gradient @ ray)
    for _ in range(_MAX_TRIALS):
        state = DualState.at(problem, t * ray)
        slope = -np.inf if state is None else float(state.gradient @ ray)
        if slope > 0:
            return state
        t *= float(np.clip(rise / (rise - slope), 0.1, 0.25))
    return None


def _shifted_start(origin: DualState) -> tuple[DualState | None, float]:
    """Return the state at λ = 0 with τI added to S, and τ, chosen to make F regular and forms as large as bounds."""
    problem = origin.problem
    lengths = np.abs(problem.forms.apply(problem.points, problem.points))
    unit = float(problem.loss.conjugate_slope(np.ones(1))[0])  # change of F for a unit change of S
    shift = float(np.abs(problem.bound - problem.offset).sum() / max(unit * lengths.sum(), 1e-300))
    for _ in range(_MAX_TRIALS):
        if problem.loss.conjugate_slope(origin.sigma[:1] + shift) > 0:
            break
        shift *= 4.0
    return origin.shifted(shift), shift


def barrier_start(problem: Problem, start: Solution | None) -> tuple[DualState, float]:
    """Return a state with λ > 0 and a suitable μ."""
    if start is not None and not problem.hard:
        # Constraints satisfied by a wide margin have λ ≈ μ/scale.
        mu = barrier_for(problem.gamma, _WARM_WIDTH)
        state = DualState.at(problem, np.maximum(start.lam, mu * problem.weight / problem.scale))
        if state is not None:
            return state, mu
    origin = DualState.at(problem, np.zeros(problem.n_constraints))
    if origin is None:
        return _start_outside_domain(problem)
    # λ proportional to γ: slopes at the prior, at least a barrier's width where constraints hold.
    slope = problem.sign * problem.with_gamma(1.0).slack.slope(origin.v)
    per_gamma = np.maximum(slope, WIDTH * problem.weight / problem.scale)
    size = float(np.linalg.norm(problem.forms.adjoint(problem.points, problem.sign * per_gamma)))
    gamma = min(problem.gamma, _MODERATE / max(size, 1e-300))
    while gamma > 1e-300:
        scaled = problem if gamma == problem.gamma else problem.with_gamma(gamma)
        state = DualState.at(scaled, gamma * per_gamma)
        if state is not None:
            return state, barrier_for(gamma)
        gamma *= 0.25
    raise ValueError(
        f"under the prior constraints are violated by up to {origin.violation:.3g} of their "
        "bounds or margins, more than this solver can handle. These are squared distances in the units of X: check "
        "them, or drop the constraint."
    )


def _barrier_start_at(problem: Problem, lam: np.ndarray) -> tuple[DualState, float] | None:
    """Return the state at λ > 0 and μ, at most the mean of λ · scale; None if λ is outside the domain."""
    state = DualState.at(problem, lam)
    return None if state is None else (state, min(barrier_for(problem.gamma), float(np.mean(lam * problem.scale))))


def _start_outside_domain(problem: Problem) -> tuple[DualState, float]:
    """Return a state with λ > 0 and S(λ) inside the domain of f*, where S(0) is not, and its μ.

    With τI added to R_0 for τ large enough, λ = 0 is inside. Solve that problem roughly, lower τ as far as its S
    allows, and repeat. If τ cannot reach 0, no λ bounds every direction, and the objective is unbounded below.
    """
    tilt = np.zeros((problem.rank, problem.rank)) if problem.tilt is None else problem.tilt
    unit = float(problem.loss.conjugate_slope(np.array([-1.0]))[0]) or 1.0  # c for f = −c ln w
    largest = tau = max(unit, 2.0 * float(np.abs(np.linalg.eigvalsh(tilt)).max(initial=0.0)))
    if problem.gamma > unit and not problem.n_log:  # only the paper's slack makes the domain depend on γ
        problem = problem.with_gamma(unit)
    lam = None
    for _ in range(_MAX_SHIFTS):
        shifted = dataclasses.replace(problem, tilt=tilt + tau * np.eye(problem.rank))
        if lam is None:
            zero = DualState.at(shifted, np.zeros(problem.n_constraints))
            entry = None if zero is None else barrier_start(shifted, None)
        else:
            entry = _barrier_start_at(shifted, lam)
        if entry is None:
            break
        state = DualPath(shifted, LOOSE_GAP, StepLog(MAX_STEPS)).solve_with_barrier(*entry)
        lam = state.lam
        if (entry := _barrier_start_at(problem, lam)) is not None:
            return entry
        distance = _distance_to_boundary(problem, state.sigma, tau)
        tau -= 0.9 * distance
        if distance < 1e-6 * tau or tau < 1e-10 * largest:
            break
    raise ValueError(
        f"{type(problem.loss).__name__} is unbounded on these constraints, or nearly so: some direction is limited "
        "neither by the linear objective nor by an upper bound, so its learned length can grow without end. Add "
        "similar pairs or other upper bounds, or a linear objective that is positive on every direction."
    )


def _distance_to_boundary(problem: Problem, sigma: np.ndarray, most: float) -> float:
    """Return the largest t ≤ `most` with all eigenvalues of S + tI in the domain of f*, by bisection."""
    within, beyond = 0.0, most
    for _ in range(50):
        middle = 0.5 * (within + beyond)
        if np.isfinite(problem.loss.conjugate(sigma + middle)).all():
            within = middle
        else:
            beyond = middle
    return within
