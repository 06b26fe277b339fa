"""One step of the dual engine under a barrier: the Newton direction of D_μ = D + μ Σ ln λ_k, and its length.

As in primal-dual interior-point methods the barrier's curvature μ/λ² is replaced by τ/λ, where τ > 0 estimates how far
each constraint is from its bound and λτ = μ holds along the way. The system is that of system.py for X = √Ω ∘ (A* dλ):

    X + √Ω ∘ A* E A (√Ω ∘ X) = √Ω ∘ A* p,    dλ = p − E A (√Ω ∘ X),    E = 1/(h + τ/λ),  p = E ∇D_μ,  h = −dual″

γ = ∞ needs nothing special: h = 0.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .dual_state import ROUNDING, DualState
from .plain_steps import diagonal_of
from .problem import Problem
from .system import Preconditioner, solve_system

__all__ = ["Direction", "ascent", "barrier_value", "direction_under", "go_along"]

_INEXACT, _INEXACT_HARD = 0.3, 0.03  # residual of a Newton system relative to its solution
_FEW, _MANY_NUMBERS = 400, 4_000_000  # constraints, and entries of all their matrices, for a direct solution
_TO_THE_EDGE = 0.99  # of the way to λ = 0, which a step may go
_STEEPEST = 0.5  # descent where a step ends, beyond the peak, in units of the ascent where it began; γ < ∞
_FARTHEST = 5.0  # largest eigenvalue of F in units of what was promised
_SHORTEST = 1e-9
_MAX_CG = 500


class Direction(NamedTuple):
    """dλ, and how many products it took to find."""

    change: np.ndarray
    n_products: int


def barrier_value(state: DualState, mu: float) -> float:
    """D_μ."""
    return state.dual + mu * float(np.log(state.lam).sum())


def ascent(state: DualState, mu: float) -> np.ndarray:
    """Gradient of D_μ."""
    return state.gradient + mu / state.lam


def direction_under(state: DualState, mu: float, tau: np.ndarray) -> Direction:
    problem = state.problem
    E = 1.0 / (problem.slack.dual_curvature(problem.sign * state.lam) + tau / state.lam)
    p = E * ascent(state, mu)
    if problem.hard and _few(problem):
        return _direct(state, E, p)
    return _by_products(state, E, p, _INEXACT_HARD if problem.hard else _INEXACT)


def _by_products(state: DualState, E: np.ndarray, p: np.ndarray, inexact: float) -> Direction:
    """By preconditioned conjugate gradients. Where they overflow no line search finds anything."""
    problem, forms, omega = state.problem, state.problem.forms, state.omega
    root = np.sqrt(omega)
    R = root * forms.adjoint(state.Y, problem.sign * p)
    precondition = Preconditioner(diagonal_of(forms, state.Y, E, omega))
    # The error of dλ is E times that of q: relative to X, not to the right-hand side, which E has made large.
    answer = solve_system(forms, state.Y, E, R, precondition, root=root, inexact=inexact, max_products=_MAX_CG)
    return Direction(p - problem.sign * (E * answer.q), answer.n_products)


def _few(problem: Problem) -> bool:
    """Whether the system for dλ itself is small enough to be written out."""
    n_edges = len(problem.forms.tail)
    return problem.n_constraints <= _FEW and n_edges * problem.rank**2 <= _MANY_NUMBERS


def _direct(state: DualState, E: np.ndarray, p: np.ndarray) -> Direction:
    """(1/E + A Ω A*) dλ = p/E, written out: hard constraints that nearly contradict are too much for CG."""
    problem, forms, omega = state.problem, state.problem.forms, state.omega
    Z = state.Y[forms.tail] - state.Y[forms.head]
    B = (np.sqrt(omega) * (Z[:, :, None] * Z[:, None, :])).reshape(len(Z), -1)
    B = B if forms.combine is None else forms.combine @ B
    root = np.sqrt(E)
    B *= (problem.sign * root)[:, None]
    system = B @ B.T
    unit = 1.0 / np.sqrt(1.0 + np.diagonal(system))
    system = unit[:, None] * system * unit
    np.einsum("ii->i", system)[:] = 1.0 + 1e-15  # of I + B Bᵀ in these units
    return Direction(root * unit * np.linalg.solve(system, unit * (p / root)), 1)


def go_along(state: DualState, change: np.ndarray, rise: float, mu: float) -> tuple[float, DualState | None]:
    """t and the state at λ + t dλ > 0 where D_μ has risen by a fair part of what its slope promised; or nothing."""
    if not 0.0 < rise < np.inf:
        return 0.0, None
    shrinking = change < 0
    t = min(1.0, _TO_THE_EDGE * float(np.min(-state.lam[shrinking] / change[shrinking], initial=np.inf)))
    here, growth = barrier_value(state, mu), _growth(state, change)
    while t > _SHORTEST:
        trial = DualState.at(state.problem, state.lam + t * change)
        # Beyond the domain, or so near its border that Newton's model of F says nothing about F there.
        promised = state.w.max() + t * growth
        if trial is None or 0.0 < _FARTHEST * promised < trial.w.max():
            t *= 0.25
            continue
        gain = barrier_value(trial, mu) - here
        if gain >= 1e-4 * t * rise - ROUNDING * abs(here):
            slope = 0.0 if state.problem.hard else float(ascent(trial, mu) @ change)
            if slope >= -_STEEPEST * rise:
                return t, trial
            t *= rise / (rise - slope)
            continue
        # The peak of the parabola through what is known, within bounds.
        t *= float(np.clip(0.5 / (1.0 - gain / (t * rise)), 0.1, 0.5))
    return 0.0, None


def _growth(state: DualState, change: np.ndarray) -> float:
    """Norm of the change of F that dλ promises."""
    return float(np.linalg.norm(state.omega * state.problem.forms.adjoint(state.Y, state.problem.sign * change)))
