"""Where the dual engine begins: with a barrier or without, and where λ = 0 is outside the domain of the dual."""

from __future__ import annotations

import dataclasses

import numpy as np

from .dual_state import DualState
from .problem import Problem
from .result import Solution
from .walk import WIDTH, Walk, barrier_for

__all__ = ["LOOSE_GAP", "MAX_STEPS", "inside", "plain_start"]

LOOSE_GAP = 0.05  # for problems on the way
MAX_STEPS = 500
_WARM_WIDTH = 0.03  # of the first barrier after a start at a smaller γ
_MODERATE = 3.0  # norm of Σ s_k R_k at the γ the walk begins with
_MAX_SHIFTS = 60
_MAX_TRIALS = 12


def plain_start(origin: DualState | None) -> tuple[DualState | None, float]:
    """A state to begin at without a barrier, where F answers to multipliers, and what is added to its S; nothing if
    there is none.

    Where F is singular at λ = 0, as it is where the loss rests at 0, that is τI: F is ∇f*(τI − R_0).
    """
    if origin is None:
        return None, 0.0
    if (origin.w > 0).all():
        return (origin if origin.problem.tilt is None else _along_ray(origin)), 0.0
    return _shifted(origin)


def _along_ray(origin: DualState) -> DualState | None:
    """On the ray of multipliers γ, in units of the constraints, on those that the origin violates: a point where D is
    still rising, by going back from the far end; nothing if there is none."""
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


def _shifted(origin: DualState) -> tuple[DualState | None, float]:
    """The state at λ = 0 with τI added to S, and τ: what makes forms as large as their bounds, and F regular."""
    problem = origin.problem
    lengths = np.abs(problem.forms.apply(problem.points, problem.points))
    unit = float(problem.loss.conjugate_slope(np.ones(1))[0])  # of F, for one of S
    shift = float(np.abs(problem.bound - problem.offset).sum() / max(unit * lengths.sum(), 1e-300))
    for _ in range(_MAX_TRIALS):
        if problem.loss.conjugate_slope(origin.sigma[:1] + shift) > 0:
            break
        shift *= 4.0
    return origin.shifted(shift), shift


def inside(problem: Problem, start: Solution | None) -> tuple[DualState, float]:
    """A state with λ > 0 and the μ that suits it."""
    if start is not None and not problem.hard:
        # Constraints that were satisfied by a wide margin have λ ≈ μ/scale.
        mu = barrier_for(problem.gamma, _WARM_WIDTH)
        state = DualState.at(problem, np.maximum(start.lam, mu * problem.weight / problem.scale))
        if state is not None:
            return state, mu
    origin = DualState.at(problem, np.zeros(problem.n_constraints))
    if origin is None:
        return _from_outside(problem)
    # λ in proportion to γ: slopes at the prior, and no less than a barrier's width where constraints hold.
    slope = problem.sign * problem.with_gamma(1.0).slack.slope(origin.v)
    per_gamma = np.maximum(slope, WIDTH * problem.weight / problem.scale)
    size = float(np.linalg.norm(problem.forms.adjoint(problem.points, problem.sign * per_gamma)))
    gamma = min(problem.gamma, _MODERATE / max(size, 1e-300))
    while gamma > 1e-300:
        here = problem if gamma == problem.gamma else problem.with_gamma(gamma)
        state = DualState.at(here, gamma * per_gamma)
        if state is not None:
            return state, barrier_for(gamma)
        gamma *= 0.25
    raise ValueError(
        f"under the prior constraints are violated by up to {origin.violation:.3g} of their "
        "bounds or margins, further than this solver can go. These are squared distances in the units of X: check "
        "them, or drop the constraint."
    )


def _inside_at(problem: Problem, lam: np.ndarray) -> tuple[DualState, float] | None:
    """From λ > 0, with a barrier no wider than its multipliers are long; nothing if λ is outside the domain."""
    state = DualState.at(problem, lam)
    return None if state is None else (state, min(barrier_for(problem.gamma), float(np.mean(lam * problem.scale))))


def _from_outside(problem: Problem) -> tuple[DualState, float]:
    """λ > 0 with S(λ) inside the domain of f*, where λ = 0 is not.

    With τI added to R_0 for τ large enough λ = 0 is inside. Solve that problem, roughly; its S lets τ come down; go on
    from there. Where τ will not come down to 0 no λ holds every direction, and the objective falls without end.
    """
    tilt = np.zeros((problem.rank, problem.rank)) if problem.tilt is None else problem.tilt
    unit = float(problem.loss.conjugate_slope(np.array([-1.0]))[0]) or 1.0  # under −c ln w, c
    largest = tau = max(unit, 2.0 * float(np.abs(np.linalg.eigvalsh(tilt)).max(initial=0.0)))
    if problem.gamma > unit and not problem.n_log:  # γ has no part in whether λ is inside, but under the paper's slack
        problem = problem.with_gamma(unit)
    lam = None
    for _ in range(_MAX_SHIFTS):
        shifted = dataclasses.replace(problem, tilt=tilt + tau * np.eye(problem.rank))
        if lam is None:
            entry = None if DualState.at(shifted, np.zeros(problem.n_constraints)) is None else inside(shifted, None)
        else:
            entry = _inside_at(shifted, lam)
        if entry is None:
            break
        state = Walk(shifted, LOOSE_GAP, MAX_STEPS, None).under_barrier(*entry)
        lam = state.lam
        if (entry := _inside_at(problem, lam)) is not None:
            return entry
        to_the_border = _to_the_border(problem, state.sigma, tau)
        tau -= 0.9 * to_the_border
        if to_the_border < 1e-6 * tau or tau < 1e-10 * largest:
            break
    raise ValueError(
        f"{type(problem.loss).__name__} is unbounded on these constraints, or too nearly so to be told apart: some "
        "direction is held neither by the linear objective nor by an upper bound, so its learned length can grow "
        "without end. Add similar pairs or other upper bounds, or a linear objective that is positive on every "
        "direction."
    )


def _to_the_border(problem: Problem, sigma: np.ndarray, most: float) -> float:
    """How far the eigenvalues of S may all grow, up to `most`, before they leave the domain of f*; by bisection."""
    within, beyond = 0.0, most
    for _ in range(50):
        middle = 0.5 * (within + beyond)
        if np.isfinite(problem.loss.conjugate(sigma + middle)).all():
            within = middle
        else:
            beyond = middle
    return within
