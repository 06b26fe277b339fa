"""Steps of the dual solver without a barrier, for γ < ∞.

At the optimum the multipliers are the slopes of the penalties at their own values: λ = penalty′(v(λ)). A step solves
this with F linearised in S and with the exact penalties, including their kinks. In the eigenbasis of S, with
X = √Ω ∘ dS the model of the primal objective is convex,

    ½‖X‖² − ⟨√Ω ∘ A*s, X⟩ + Σ penalty_k(v_k + q_k),      q = A (√Ω ∘ X), so that ⟨√Ω ∘ A*s, X⟩ = s·q

(with √Ω ∘ (A*s − τI) where the step removes a shift τI of S). Its minimum gives the new multipliers,
λ = penalty′(v + q) ≥ 0. It is found by Newton's method: the system for a correction of X is that of system.py with
E = penalty″(v + q), and the best length of a correction costs O(m).

Stiff constraints that become violated are thus handled inside a step, without a decomposition of S for each. The only
error is that F is not linear in S. Steps are nevertheless full wherever they stay inside the domain, and need not
improve the objective each: where F is singular it must turn, and turning along a straight line costs at first. If steps
oscillate, D has to rise with each; near the optimum it does, since D is concave and a step leads to the maximum, over
λ ≥ 0, of its parabola. If too many steps are needed, a barrier is tried.
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
from .system import Preconditioner, SystemSolution, solve_system

_FEW_NUMBERS = 40_000  # entries of all matrices R_k, up to which they are formed
_SMALL_RANK = 10  # rank up to which systems over r × r matrices are formed
_KINK_TOLERANCE, _KINK_TOLERANCE_SMALL = 0.5, 0.1  # residual that kinks may leave, relative to X
_FEW, _MANY_NUMBERS = 400, 4_000_000  # most constraints and entries of their matrices for a system over constraints
_PATIENCE = 50  # products after which that system is formed
_MAX_CORRECTIONS = 20
_MAX_CG = 500
_FLAT = 0.05  # slope of the model where a correction ends, relative to where it began
_MIN_LENGTH, _FAIR = 1e-3, 0.1


class NewtonMultipliers(NamedTuple):
    """Multipliers after a step if F were linear in S, and the number of products it took."""

    lam: np.ndarray
    n_products: int


def newton_multipliers(state: DualState, problem: Problem, inexact: float, shift: float = 0.0) -> NewtonMultipliers:
    """Minimise the model of the primal objective; `inexact` is the residual of its systems relative to X.

    `state` may be one of `problem` with −`shift` I added to R_0; the step then removes the shift.
    """
    slack, v, s = problem.slack, state.v, problem.sign * state.lam
    model = _DenseModel(state) if _is_small(state) else _ImplicitModel(state)
    tilt = -shift * model.rooted_identity if shift else np.zeros(model.shape)
    X, slope, n_products = np.zeros(model.shape), slack.slope(v), 0
    for k in range(_MAX_CORRECTIONS):
        residual = model.adjoint(s - slope)
        residual -= X - tilt
        sq_X, sq_residual = np.vdot(X, X), np.vdot(residual, residual)
        if not sq_residual or (k and sq_residual <= model.kink_tolerance**2 * sq_X):
            break
        # The tolerance is relative to X, not to its correction.
        tolerance = inexact * max(1.0, math.sqrt(sq_X / sq_residual))
        dX, q, n = model.solve(slack.curvature(v, slope if k else s), residual, tolerance)
        constant = float(np.vdot(X - tilt, dX) - s @ q)
        t = _best_length(problem, v, slope, q, constant, float(np.vdot(dX, dX)))
        X, v, n_products = X + t * dX, v + t * q, n_products + n
        slope = slack.slope(v)
        if not t:
            break
    return NewtonMultipliers(problem.sign * slope, n_products)


def _best_length(
    problem: Problem, v: np.ndarray, slope: np.ndarray, dq: np.ndarray, constant: float, curvature: float
) -> float:
    """Return t ≤ 1 where constant + t curvature + penalty′(v + t dq) · dq, the model's derivative, is zero.

    `slope` is penalty′(v).
    """

    def derivative(t: float) -> float:
        return constant + t * curvature + float(problem.slack.slope(v + t * dq) @ dq)

    longest = 1.0
    if problem.n_log:  # the paper's slack is infinite where a dissimilar pair's distance is 0
        log = slice(problem.n_log)
        ending = (problem.sign[log] < 0) & (dq[log] < 0)
        longest = min(1.0, 0.99 * float(np.min(-v[log][ending] / dq[log][ending], initial=np.inf)))
    ends = {0.0: constant + float(slope @ dq), longest: derivative(longest)}
    if not math.isfinite(ends[longest]):
        return 0.0
    if ends[longest] <= _FLAT * max(-ends[0.0], curvature * longest):
        return longest
    if not ends[0.0] < 0:
        return 0.0
    return float(brentq(lambda t: ends[t] if t in ends else derivative(t), 0.0, longest, rtol=_FLAT))


def full_step(state: DualState, problem: Problem, lam: np.ndarray) -> tuple[float, DualState | None]:
    """Return t, the first of 1, ¼, … with a finite objective, and the state at λ + t dλ; (0, None) if none."""
    t = 1.0
    while t > _MIN_LENGTH:
        trial = DualState.at(problem, state.lam + t * (lam - state.lam))
        if trial is not None and math.isfinite(trial.primal):
            return t, trial
        t *= 0.25
    return 0.0, None


def ascent_step(state: DualState, lam: np.ndarray) -> tuple[float, DualState | None]:
    """Return t and the state at λ + t dλ where D has risen enough for its slope, or (0, None)."""
    change = lam - state.lam
    rise, t = float(state.gradient @ change), 1.0
    while rise > 0.0 and t > _MIN_LENGTH:
        trial = DualState.at(state.problem, state.lam + t * change)
        if trial is None or not math.isfinite(trial.primal):
            t *= 0.25
            continue
        if trial.dual - state.dual >= _FAIR * t * rise - ROUNDING * abs(state.dual):
            return t, trial
        t *= float(np.clip(rise / (rise - trial.gradient @ change), 0.1, 0.7))
    return 0.0, None


def _is_small(state: DualState) -> bool:
    return len(state.w) <= _SMALL_RANK and len(state.problem.forms.tail) * state.Y.shape[1] ** 2 <= _FEW_NUMBERS


class _DenseModel:
    """Model of a small problem: rows hold the upper half of √Ω ∘ R_k, with off-diagonal entries times √2."""

    kink_tolerance = _KINK_TOLERANCE_SMALL

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

    def solve(self, E: np.ndarray, residual: np.ndarray, inexact: float) -> SystemSolution:
        kink_tolerance = E > 0
        B = np.sqrt(E[kink_tolerance])[:, None] * self.B[kink_tolerance]
        system = B.T @ B
        system.flat[:: len(system) + 1] += 1.0
        X = _solve(system, residual)
        return SystemSolution(X, self.B @ X, 1)


class _ImplicitModel:
    """Model of a large problem, in terms of edges, solved by conjugate gradients.

    Where they are slow and constraints few, it uses the matrix A Ω A* over the constraints and (I + √E A Ω A* √E)⁻¹
    (Woodbury).
    """

    kink_tolerance = _KINK_TOLERANCE

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

    def solve(self, E: np.ndarray, residual: np.ndarray, inexact: float) -> SystemSolution:
        if self.gram is not None:
            return self._solve_by_gram(self.gram, E, residual, 1)
        if self.precondition is None:  # shared by all corrections, which change few entries of E
            self.precondition = Preconditioner(system_diagonal(self.forms, self.Y, E, self.omega))
        max_products = _PATIENCE if self.few else _MAX_CG
        system = self.forms, self.Y, E, residual, self.precondition
        solution = solve_system(*system, root=self.root, inexact=inexact, max_products=max_products)
        if not self.few or solution.n_products < max_products:
            return solution
        B = _DenseModel(self.state).B
        self.gram = B @ B.T
        return self._solve_by_gram(self.gram, E, residual, max_products)

    def _solve_by_gram(self, gram: np.ndarray, E: np.ndarray, residual: np.ndarray, n_products: int) -> SystemSolution:
        kink_tolerance = E > 0
        root_E, s = np.sqrt(E[kink_tolerance]), np.zeros_like(E)
        system = root_E[:, None] * gram[np.ix_(kink_tolerance, kink_tolerance)] * root_E
        system.flat[:: len(system) + 1] += 1.0
        s[kink_tolerance] = root_E * _solve(system, root_E * self._apply(residual)[kink_tolerance])
        X = residual - self.adjoint(s)
        return SystemSolution(X, self._apply(X), n_products)

    def _apply(self, X: np.ndarray) -> np.ndarray:
        return self.forms.apply(self.Y @ (self.root * X), self.Y)


def _solve(system: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Solve by Cholesky factorisation, which overwrites the system."""
    return dposv(system, right, overwrite_a=1)[1] if len(right) else right


def system_diagonal(forms: EdgeForms, Y: np.ndarray, E: np.ndarray, omega: np.ndarray) -> np.ndarray:
    """Return the diagonal of the system over symmetric X: 1 + Ω_ij Σ_k E_k (R_k)_ij², twice the sum for i ≠ j.

    For pairs (R_k)_ij = y_i y_j, y = Yᵀ(e_a − e_b); products of different edges of one form are omitted.
    """
    off_diagonal, on_diagonal = forms.second_moments(Y, E)
    diagonal = 1.0 + 2.0 * omega * off_diagonal
    diagonal.flat[:: len(diagonal) + 1] = 1.0 + np.diagonal(omega) * on_diagonal
    return diagonal
