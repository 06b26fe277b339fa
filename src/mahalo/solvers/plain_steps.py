"""Steps of the dual engine without a barrier, for γ < ∞.

At the optimum the multipliers are the slopes of the penalties at the values they lead to: λ = penalty′(v(λ)). A step
solves this with F taken as linear in S, but with the penalties as they are, kinks and all. In the eigenbasis of S, with
X = √Ω ∘ dS the model of the primal objective is convex,

    ½‖X‖² − ⟨√Ω ∘ A*s, X⟩ + Σ penalty_k(v_k + q_k),      q = A (√Ω ∘ X), so that ⟨√Ω ∘ A*s, X⟩ = s·q

(less τ √Ω ∘ I beside √Ω ∘ A*s, where the step takes back a shift τI of S). Its minimum gives the new multipliers,
λ = penalty′(v + q) ≥ 0. It is found by Newton's method: the system for a correction of X is that of system.py with
E = penalty″(v + q), and the best length of a correction costs O(m).

Stiff constraints that turn from held to violated are so dealt with inside a step, without one decomposition of S for
each. What is left to go wrong is that F is not linear in S. Steps are nevertheless whole wherever they stay inside the
domain, and not made to better the objective one by one: where F is singular it must turn, and turning along a straight
line costs at first. Where they go to and fro instead, D has to rise with each. Near enough it does: D is concave, and a
step leads to the maximum, over λ ≥ 0, of its parabola. Where that takes too many of them, a barrier is tried.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dposv
from scipy.optimize import brentq

from ..constraints.forms import EdgeForms
from .dual_state import ROUNDING, DualState
from .problem import Problem
from .system import Answer, Preconditioner, solve_system

__all__ = ["Foreseen", "climb_to", "diagonal_of", "foresee", "go_to"]

_FEW_NUMBERS = 40_000  # entries of all matrices R_k, up to which they are written out
_SMALL_RANK = 10  # the same for systems over r × r matrices
_BENT, _BENT_SMALL = 0.5, 0.1  # residual of the model that its kinks may leave, relative to X; where solving is cheap
_FEW, _MANY_NUMBERS = 400, 4_000_000  # constraints and entries of their matrices for a system over the constraints
_PATIENCE = 50  # products, after which it is written out
_MAX_CORRECTIONS = 20
_MAX_CG = 500
_FLAT = 0.05  # slope of the model where a correction ends, relative to where it began
_SHORTEST, _FAIR = 1e-3, 0.1


class Foreseen(NamedTuple):
    """The multipliers a step leads to if F is linear in S, and how many products it took to find them."""

    lam: np.ndarray
    n_products: int


def foresee(state: DualState, problem: Problem, inexact: float, shift: float = 0.0) -> Foreseen:
    """Minimise the model: systems to a residual of `inexact` relative to X, its kinks as far as the model asks.

    `state` may be one of `problem` with −`shift` I added to R_0; the step then takes that away.
    """
    slack, v, s = problem.slack, state.v, problem.sign * state.lam
    model = _WrittenOut(state) if _few(state) else _Implicit(state)
    tilt = -shift * model.rooted_identity if shift else np.zeros(model.shape)
    X, slope, n_products = np.zeros(model.shape), slack.slope(v), 0
    for k in range(_MAX_CORRECTIONS):
        residual = model.adjoint(s - slope)
        residual -= X - tilt
        sq_X, sq_left = np.vdot(X, X), np.vdot(residual, residual)
        if not sq_left or (k and sq_left <= model.bent**2 * sq_X):
            break
        # X, not its correction, has to be as exact as that.
        enough = inexact * max(1.0, math.sqrt(sq_X / sq_left))
        dX, q, n = model.solve(slack.curvature(v, slope if k else s), residual, enough)
        fixed = float(np.vdot(X - tilt, dX) - s @ q)
        t = _best_length(problem, v, slope, q, fixed, float(np.vdot(dX, dX)))
        X, v, n_products = X + t * dX, v + t * q, n_products + n
        slope = slack.slope(v)
        if not t:
            break
    return Foreseen(problem.sign * slope, n_products)


def _best_length(
    problem: Problem, v: np.ndarray, slope: np.ndarray, dq: np.ndarray, fixed: float, curvature: float
) -> float:
    """t ≤ 1 where fixed + t curvature + penalty′(v + t dq) · dq, the model's derivative along a correction, is zero.

    `slope` is penalty′(v).
    """

    def derivative(t: float) -> float:
        return fixed + t * curvature + float(problem.slack.slope(v + t * dq) @ dq)

    longest = 1.0
    if problem.n_log:  # the paper's slack ends where distances that should be long come down to 0
        log = slice(problem.n_log)
        ending = (problem.sign[log] < 0) & (dq[log] < 0)
        longest = min(1.0, 0.99 * float(np.min(-v[log][ending] / dq[log][ending], initial=np.inf)))
    ends = {0.0: fixed + float(slope @ dq), longest: derivative(longest)}
    if not math.isfinite(ends[longest]):
        return 0.0
    if ends[longest] <= _FLAT * max(-ends[0.0], curvature * longest):
        return longest
    if not ends[0.0] < 0:
        return 0.0
    return float(brentq(lambda t: ends[t] if t in ends else derivative(t), 0.0, longest, rtol=_FLAT))


def go_to(state: DualState, problem: Problem, lam: np.ndarray) -> tuple[float, DualState | None]:
    """t and the state that far on the way to λ, the first of 1, ¼, … inside the domain with a finite objective."""
    t = 1.0
    while t > _SHORTEST:
        trial = DualState.at(problem, state.lam + t * (lam - state.lam))
        if trial is not None and math.isfinite(trial.primal):
            return t, trial
        t *= 0.25
    return 0.0, None


def climb_to(state: DualState, lam: np.ndarray) -> tuple[float, DualState | None]:
    """The same, at the first t where D has risen by a fair part of what its slope promises."""
    change = lam - state.lam
    rise, t = float(state.gradient @ change), 1.0
    while rise > 0.0 and t > _SHORTEST:
        trial = DualState.at(state.problem, state.lam + t * change)
        if trial is None or not math.isfinite(trial.primal):
            t *= 0.25
            continue
        if trial.dual - state.dual >= _FAIR * t * rise - ROUNDING * abs(state.dual):
            return t, trial
        t *= float(np.clip(rise / (rise - trial.gradient @ change), 0.1, 0.7))
    return 0.0, None


# -- the model's operators ---------------------------------------------------------------------------------------


def _few(state: DualState) -> bool:
    return len(state.w) <= _SMALL_RANK and len(state.problem.forms.tail) * state.Y.shape[1] ** 2 <= _FEW_NUMBERS


class _WrittenOut:
    """√Ω ∘ R_k as rows of numbers, one half of each, for small problems; entries off the diagonal count √2 times."""

    bent = _BENT_SMALL

    def __init__(self, state: DualState):
        forms, rank = state.problem.forms, len(state.w)
        self.upper = np.triu_indices(rank)
        i, j = self.upper
        Z = state.Y[forms.tail] - state.Y[forms.head]
        B = Z[:, i] * Z[:, j]
        B *= np.sqrt(np.where(i == j, 1.0, 2.0) * state.omega[self.upper])
        self.B = B if forms.combine is None else forms.combine @ B
        self.rooted_identity = np.where(i == j, np.sqrt(state.omega[self.upper]), 0.0)
        self.shape = self.rooted_identity.shape

    def adjoint(self, s: np.ndarray) -> np.ndarray:
        return s @ self.B

    def solve(self, E: np.ndarray, residual: np.ndarray, inexact: float) -> Answer:
        bent = E > 0
        B = np.sqrt(E[bent])[:, None] * self.B[bent]
        system = B.T @ B
        system.flat[:: len(system) + 1] += 1.0
        X = _solve(system, residual)
        return Answer(X, self.B @ X, 1)


class _Implicit:
    """The same through edges, solved by conjugate gradients; or, where they are slow and constraints few, through the
    matrix A Ω A* over the constraints: (I + √E A Ω A* √E)⁻¹ is all that it takes (Woodbury)."""

    bent = _BENT

    def __init__(self, state: DualState):
        self.state = state
        self.forms, self.Y, self.omega = state.problem.forms, state.Y, state.omega
        self.root = np.sqrt(state.omega)
        self.shape = self.root.shape
        self.precondition: Preconditioner | None = None
        n_constraints, rank = state.problem.n_constraints, len(state.w)
        self.few = n_constraints <= _FEW and len(self.forms.tail) * rank**2 <= _MANY_NUMBERS
        self.gram: np.ndarray | None = None

    @property
    def rooted_identity(self) -> np.ndarray:
        """√Ω ∘ I."""
        return np.diag(np.diagonal(self.root))

    def adjoint(self, s: np.ndarray) -> np.ndarray:
        return self.root * self.forms.adjoint(self.Y, s)

    def solve(self, E: np.ndarray, residual: np.ndarray, inexact: float) -> Answer:
        if self.gram is not None:
            return self._solve_by_gram(self.gram, E, residual, 1)
        if self.precondition is None:  # one for all corrections, which change E here and there
            self.precondition = Preconditioner(diagonal_of(self.forms, self.Y, E, self.omega))
        most = _PATIENCE if self.few else _MAX_CG
        answer = solve_system(
            self.forms, self.Y, E, residual, self.precondition, root=self.root, inexact=inexact, max_products=most
        )
        if not self.few or answer.n_products < most:
            return answer
        B = _WrittenOut(self.state).B
        self.gram = B @ B.T
        return self._solve_by_gram(self.gram, E, residual, most)

    def _solve_by_gram(self, gram: np.ndarray, E: np.ndarray, residual: np.ndarray, n_products: int) -> Answer:
        bent = E > 0
        root_E, s = np.sqrt(E[bent]), np.zeros_like(E)
        system = root_E[:, None] * gram[np.ix_(bent, bent)] * root_E
        system.flat[:: len(system) + 1] += 1.0
        s[bent] = root_E * _solve(system, root_E * self._apply(residual)[bent])
        X = residual - self.adjoint(s)
        return Answer(X, self._apply(X), n_products)

    def _apply(self, X: np.ndarray) -> np.ndarray:
        return self.forms.apply(self.Y @ (self.root * X), self.Y)


def _solve(system: np.ndarray, right: np.ndarray) -> np.ndarray:
    """By Cholesky's factors, which overwrite the system."""
    return dposv(system, right, overwrite_a=1)[1] if len(right) else right


def diagonal_of(forms: EdgeForms, Y: np.ndarray, E: np.ndarray, omega: np.ndarray) -> np.ndarray:
    """Of the system's operator, over symmetric X: 1 + Ω_ij Σ_k E_k (R_k)_ij², twice the sum where i ≠ j.

    For pairs (R_k)_ij = y_i y_j, y = Yᵀ(e_a − e_b); products of different edges of one form are left out.
    """
    off_diagonal, on_diagonal = forms.second_moments(Y, E)
    diagonal = 1.0 + 2.0 * omega * off_diagonal
    diagonal.flat[:: len(diagonal) + 1] = 1.0 + np.diagonal(omega) * on_diagonal
    return diagonal
