"""Steps of the dual solver with a barrier: the Newton direction of D_μ = D + μ Σ ln λ_k, and its length.

As in primal-dual interior-point methods the barrier's curvature μ/λ² is replaced by τ/λ, where τ > 0 estimates the
distance of each constraint from its bound and λτ = μ holds along the path. With X = √Ω ∘ (A* dλ) the system is that of
system.py:

    X + √Ω ∘ A* E A (√Ω ∘ X) = √Ω ∘ A* p,    dλ = p − E A (√Ω ∘ X),    E = 1/(h + τ/λ),  p = E ∇D_μ,  h = −dual″

γ = ∞ needs nothing special: h = 0.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .barrier_free_steps import system_diagonal
from .dual_state import ROUNDING, DualState
from .problem import Problem
from .system import Preconditioner, solve_system

_INEXACT, _INEXACT_HARD = 0.3, 0.03  # residual of a Newton system relative to its solution
_FEW, _MANY_NUMBERS = 400, 4_000_000  # most constraints, and entries of all their matrices, for a direct solution
_BOUNDARY_FRACTION = 0.99  # largest part of the way to λ = 0 for a step
_MAX_DESCENT = 0.5  # largest descent at the end of a step, in units of the ascent at its start; γ < ∞
_MAX_GROWTH = 5.0  # largest eigenvalue of F in units of the predicted one
_MIN_LENGTH = 1e-9
_MAX_CG = 500


class Direction(NamedTuple):
    """Direction dλ, and the number of products it took."""

    change: np.ndarray
    n_products: int


def barrier_value(state: DualState, mu: float) -> float:
    """Return D_μ."""
    return state.dual + mu * float(np.log(state.lam).sum())


def barrier_gradient(state: DualState, mu: float) -> np.ndarray:
    """Return the gradient of D_μ."""
    return state.gradient + mu / state.lam


def barrier_direction(state: DualState, mu: float, tau: np.ndarray) -> Direction:
    """Return the Newton direction of D_μ."""
    problem = state.problem
    E = 1.0 / (problem.slack.dual_curvature(problem.sign * state.lam) + tau / state.lam)
    p = E * barrier_gradient(state, mu)
    if problem.hard and _is_small(problem):
        return _direct_direction(state, E, p)
    return _iterative_direction(state, E, p, _INEXACT_HARD if problem.hard else _INEXACT)


def _iterative_direction(state: DualState, E: np.ndarray, p: np.ndarray, inexact: float) -> Direction:
    """Return the direction by preconditioned conjugate gradients; if they overflow, the line search fails."""
    problem, forms, omega = state.problem, state.problem.forms, state.omega
    root = np.sqrt(omega)
    R = root * forms.adjoint(state.Y, problem.sign * p)
    precondition = Preconditioner(system_diagonal(forms, state.Y, E, omega))
    # The error of dλ is E times that of q: relative to X, not to the right-hand side, which E makes large.
    solution = solve_system(forms, state.Y, E, R, precondition, root=root, inexact=inexact, max_products=_MAX_CG)
    return Direction(p - problem.sign * (E * solution.q), solution.n_products)


def _is_small(problem: Problem) -> bool:
    """Return True if the system for dλ is small enough to be formed."""
    n_edges = len(problem.forms.tail)
    return problem.n_constraints <= _FEW and n_edges * problem.rank**2 <= _MANY_NUMBERS


def _direct_direction(state: DualState, E: np.ndarray, p: np.ndarray) -> Direction:
    """Return the direction from (1/E + A Ω A*) dλ = p/E, formed: CG fails on nearly contradictory hard constraints."""
    problem, forms, omega = state.problem, state.problem.forms, state.omega
    Z = state.Y[forms.tail] - state.Y[forms.head]
    B = (np.sqrt(omega) * (Z[:, :, None] * Z[:, None, :])).reshape(len(Z), -1)
    B = B if forms.combine is None else forms.combine @ B
    root = np.sqrt(E)
    B *= (problem.sign * root)[:, None]
    system = B @ B.T
    unit = 1.0 / np.sqrt(1.0 + np.diagonal(system))
    system = unit[:, None] * system * unit
    np.einsum("ii->i", system)[:] = 1.0 + 1e-15  # diagonal of I + B Bᵀ in these units
    return Direction(root * unit * np.linalg.solve(system, unit * (p / root)), 1)


def barrier_line_search(state: DualState, change: np.ndarray, rise: float, mu: float) -> tuple[float, DualState | None]:
    """Return t and the state at λ + t dλ > 0 where D_μ has risen enough for its slope, or (0, None)."""
    if not 0.0 < rise < np.inf:
        return 0.0, None
    decreasing = change < 0
    t = min(1.0, _BOUNDARY_FRACTION * float(np.min(-state.lam[decreasing] / change[decreasing], initial=np.inf)))
    value, core_change = barrier_value(state, mu), _core_change_norm(state, change)
    while t > _MIN_LENGTH:
        trial = DualState.at(state.problem, state.lam + t * change)
        # Outside the domain, or so near its boundary that Newton's model of F is worthless there.
        predicted = state.w.max() + t * core_change
        if trial is None or 0.0 < _MAX_GROWTH * predicted < trial.w.max():
            t *= 0.25
            continue
        gain = barrier_value(trial, mu) - value
        if gain >= 1e-4 * t * rise - ROUNDING * abs(value):
            slope = 0.0 if state.problem.hard else float(barrier_gradient(trial, mu) @ change)
            if slope >= -_MAX_DESCENT * rise:
                return t, trial
            t *= rise / (rise - slope)
            continue
        # The peak of the parabola through both values and the slope, within limits.
        t *= float(np.clip(0.5 / (1.0 - gain / (t * rise)), 0.1, 0.5))
    return 0.0, None


def _core_change_norm(state: DualState, change: np.ndarray) -> float:
    """Return the norm of the change of F that dλ predicts."""
    return float(np.linalg.norm(state.omega * state.problem.forms.adjoint(state.Y, state.problem.sign * change)))
