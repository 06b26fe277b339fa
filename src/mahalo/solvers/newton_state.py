"""State of Newton's method for LogDet with slack at one core matrix: its gap, and the next step.

Write F = A Aᵀ and let y = Aᵀx̂. In these coordinates, for a step F⁺ = A (I + tΔ) Aᵀ,

    gradient        G = AᵀA − I + Σ s_k Yᵀ C_k Y                                 with s = slope(v)
    gap of (F, s)   P(F) − D(s) = tr G − log det(I + G),   finite where I + G ≻ 0

The first term of the Hessian Δ ↦ Δ + Σ curvature_k tr(Δ Yᵀ C_k Y) Yᵀ C_k Y comes from F⁻¹; where F is nearly singular,
steps are then short, because small directions must turn. So multipliers θs are used too, θ ≤ 1 the share of the slopes
that maximises the dual objective, with Z = I + θ Σ s_k R_k ≻ 0 (Z = F⁻¹ at the optimum), and the geometric mean of F
and Z⁻¹ replaces F in the first term. That mean is A M Mᵀ Aᵀ with M = (AᵀZA)^{-1/4} (its eigenvalues clipped). In its
coordinates the Hessian is again identity plus a positive semidefinite sum, the direction is still one of descent, and
(F, θs) approach the optimum from both sides with a finite gap throughout.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
from scipy.optimize import brentq

from .._core.small_newton import (
    CLOSE_GAP,
    LEAST_SCALE,
    LONGEST_STEP,
    MOST_SCALE,
    NEARLY_ALL,
    SHARE_WIDTH,
    TINY_GRADIENT,
    SmallProblem,
    SmallState,
)
from ..constraints.forms import EdgeForms
from ..linalg import (
    cholesky_or_none,
    inverse_factor,
    log_det,
    log_det_or_minus_infinity,
    symmetric_product,
    times_lower,
)
from .problem import Problem
from .system import Preconditioner, solve_system, weighted_part

# Shared with the compiled state: CLOSE_GAP, below which slopes are the multipliers and F alone scales; NEARLY_ALL, a
# share of the slopes; SHARE_WIDTH, to which the best share is found; TINY_GRADIENT, squared norm below which the gap is
# half of it; LEAST_SCALE and MOST_SCALE, limits of the eigenvalues of Z in primal-dual scaling; LONGEST_STEP.
_GOLDEN = 0.5 * (5**0.5 - 1.0)
_LARGE_SIZE = 30_000  # entries of Y from which restricting to violated constraints, and single precision, pay
_LARGEST_SINGLE = 1e4  # eigenvalue of the Hessian below which products in single precision leave directions as good
_SINGLE_RANGE = 1e-6, 1e6  # of the largest entry of Y, in which single precision neither underflows nor overflows
_FAR, _NEAR = 0.05, 1e-2  # relative gaps beyond which the next state is in single precision, and below which none is
_SHORTEST = 1e-3  # length of a pair, relative to the largest entry of Y, that single precision leaves four digits
_SMALL_RANK, _SMALL_SIZE = 16, 1_000_000  # largest rank, and pairs × rank², of problems whose steps are compiled


class State(Protocol):
    """Protocol of the solver's state at F = A Aᵀ, with multipliers s = θ slope; small ones are compiled."""

    @property
    def gamma(self) -> float: ...
    @property
    def A(self) -> np.ndarray: ...
    @property
    def s(self) -> np.ndarray: ...
    @property
    def primal(self) -> float: ...

    @property
    def gap(self) -> float:
        """P(F) − D(s)."""

    @property
    def relative_gap(self) -> float:
        """Gap by the larger of 1 and the size of the primal objective."""

    @property
    def gradient_over_gamma(self) -> float:
        """Norm of the gradient G / γ; G itself may be too large to be squared."""

    @property
    def max_violation(self) -> float:
        """Largest violation of a constraint, relative to its scale."""

    def at_gamma(self, gamma: float) -> State:
        """Return the state at the same F under another γ, to which the slopes of all penalties are proportional."""

    def step(self, primal_dual: bool, inexact: float, most: int) -> tuple[State | None, float, int]:
        """Return the state after a Newton step, its length (None and 0 if there is none), and the number of products.

        `primal_dual` selects primal-dual scaling. The relative residual of the system is at most `inexact`, unless
        that takes more than `most` products.
        """


def state_at(problem: Problem, A: np.ndarray) -> State:
    """Return the state at F = A Aᵀ, compiled if the problem is small and of pairs only."""
    forms, size = problem.forms, problem.rank
    only_pairs = forms.combine is None and problem.n_log == problem.n_constraints
    if not (only_pairs and 0 < size <= _SMALL_RANK and 0 < len(forms.tail) * size**2 <= _SMALL_SIZE):
        return ArrayState.at(problem, A)
    arrays = problem.sign, problem.bound, problem.scale, problem.weight, problem.offset
    return SmallState(SmallProblem(problem.points, forms.tail, forms.head, *arrays), A, problem.gamma)


@dataclass(frozen=True)
class _Violated:
    """Violated constraints (`which`), on which gradient and Hessian depend: their forms, over rows Y of y.

    Where most are violated these are all constraints.
    """

    which: np.ndarray | slice
    forms: EdgeForms
    Y: np.ndarray

    @classmethod
    def of(cls, problem: Problem, Y: np.ndarray, slope: np.ndarray) -> _Violated:
        if Y.size < _LARGE_SIZE:
            return cls(slice(None), problem.forms, Y)
        return cls(*weighted_part(problem.forms, slope, Y))

    @cached_property
    def rows(self) -> np.ndarray:
        """Y in the precision that will do for a direction."""
        return _for_directions(self.Y)


def _for_directions(Y: np.ndarray) -> np.ndarray:
    """Return a large Y in single precision, unless that would lose its numbers."""
    return Y.astype(np.float32, copy=False) if Y.size >= _LARGE_SIZE and _fits_single(_largest(Y)) else Y


def _largest(Y: np.ndarray) -> float:
    return float(max(Y.max(initial=0.0), -Y.min(initial=0.0)))


def _fits_single(largest: float) -> bool:
    """Return whether single precision holds numbers of this size and their products."""
    return _SINGLE_RANGE[0] <= largest <= _SINGLE_RANGE[1]


@dataclass(frozen=True)
class ArrayState:
    """State of any size, in NumPy."""

    problem: Problem
    A: np.ndarray  # lower triangular
    log_det_F: float
    Y: np.ndarray
    v: np.ndarray
    slope: np.ndarray
    violated: _Violated
    AtA: np.ndarray
    pull: np.ndarray  # Σ slope_k Yᵀ C_k Y

    single: np.ndarray | None  # the points in single precision, where states far from the optimum may use it

    @classmethod
    def at(cls, problem: Problem, A: np.ndarray) -> ArrayState:
        """Return the state in double precision."""
        use_single = problem.forms.combine is None and problem.points.size >= _LARGE_SIZE
        single = problem.points.astype(np.float32) if use_single else None
        return cls._of(problem, A, times_lower(problem.points, A), None, single)

    @classmethod
    def _of(
        cls, problem: Problem, A: np.ndarray, Y: np.ndarray, values: np.ndarray | None, single: np.ndarray | None
    ) -> ArrayState:
        v = problem.offset + (problem.forms.apply(Y, Y) if values is None else values)
        slope = problem.slack.slope(v)
        violated = _Violated.of(problem, Y, slope)
        pull = violated.forms.adjoint(violated.Y, slope[violated.which])
        return cls(problem, A, log_det(A), Y, v, slope, violated, A.T @ A, pull, single)

    def _moved(self, A: np.ndarray, is_stiff: bool) -> ArrayState:
        """Return the state at another A, in single precision if it is far from the optimum and the numbers allow it."""
        if self.single is not None and not is_stiff and self.relative_gap > _FAR:
            Y = times_lower(self.single, A.astype(np.float32))
            largest, values = _largest(Y), self.problem.forms.apply(Y, Y)
            # Differences of rows lose digits where they are short beside the rows.
            if _fits_single(largest) and values.min() > (_SHORTEST * largest) ** 2:
                state = self._of(self.problem, A, Y, values, self.single)
                if state.relative_gap > _NEAR:
                    return state
        return self._of(self.problem, A, times_lower(self.problem.points, A), None, self.single)

    def at_gamma(self, gamma: float) -> ArrayState:
        factor = gamma / self.problem.gamma
        return replace(self, problem=self.problem.with_gamma(gamma), slope=factor * self.slope, pull=factor * self.pull)

    @cached_property
    def G(self) -> np.ndarray:
        return self.Z_at(1.0) - np.eye(len(self.A))

    @cached_property
    def primal(self) -> float:
        penalty = float(self.problem.slack.value(self.v).sum())
        return float(self.AtA.trace()) - len(self.A) - self.log_det_F + penalty

    @cached_property
    def _share_and_gap(self) -> tuple[float, float]:
        gap = self._gap_of_slopes()
        if gap <= CLOSE_GAP:
            return 1.0, gap
        # D is concave: where it rises from 0.9 to 1, it rises up to 0.9, and no share below 1 is better.
        if gap < np.inf and self.dual_at(NEARLY_ALL) <= self.primal - gap:
            return 1.0, gap
        share, dual = _best_share(self)
        return (share, self.primal - dual) if self.primal - dual < gap else (1.0, gap)

    @property
    def gamma(self) -> float:
        return self.problem.gamma

    @property
    def gradient_over_gamma(self) -> float:
        return float(np.linalg.norm(self.G / self.gamma))

    @property
    def max_violation(self) -> float:
        return float(self.problem.relative_violation(self.v).max(initial=0.0))

    @property
    def share(self) -> float:
        """Share θ of the slopes."""
        return self._share_and_gap[0]

    @property
    def s(self) -> np.ndarray:
        return self.share * self.slope

    @property
    def gap(self) -> float:
        return self._share_and_gap[1]

    @property
    def relative_gap(self) -> float:
        return self.gap / max(1.0, abs(self.primal))

    def step(self, primal_dual: bool, inexact: float, most: int) -> tuple[ArrayState | None, float, int]:
        delta, q, n_products, is_stiff = _newton_direction(self, primal_dual, inexact, most)
        t, factor = _line_search(self, delta, q)
        return None if t == 0.0 else self._moved(times_lower(self.A, factor), is_stiff), t, n_products

    def Z_at(self, share: float) -> np.ndarray:
        """Return Aᵀ (I + θ Σ slope_k R_k) A."""
        return self.AtA + share * self.pull

    def dual_at(self, share: float) -> float:
        """Return D(θ slope), using log det(I + θ Σ slope_k R_k) = log det Z − log det F."""
        s, problem = share * self.slope, self.problem
        linear = float(s @ problem.offset) + float(problem.slack.dual(s).sum())
        return self.log_det_Z_at(share) - self.log_det_F + linear

    def log_det_Z_at(self, share: float) -> float:
        """Return log det Z, or −∞ unless Z ≻ 0."""
        return log_det_or_minus_infinity(self.Z_at(share))

    def _gap_of_slopes(self) -> float:
        """Return P(F) − D(slope) = tr G − log det(I + G), or ∞ unless I + G ≻ 0."""
        sq_norm = float(np.vdot(self.G, self.G))
        if sq_norm < TINY_GRADIENT:
            return 0.5 * sq_norm  # to relative 1e-4, where the difference would be rounding
        return float(self.G.trace()) - self.log_det_Z_at(1.0)


def _best_share(state: ArrayState) -> tuple[float, float]:
    """Return the share θ of the slopes that maximises D, to within a quarter, and D(θ slope).

    D is concave and D(0) = 0, so golden-section search finds its maximum.
    """
    low, high = 0.0, 1.0
    left, right = 1.0 - _GOLDEN, _GOLDEN
    at_left, at_right = state.dual_at(left), state.dual_at(right)
    while high - low > SHARE_WIDTH:
        if at_left >= at_right:  # or both are outside the domain, where D = −∞
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = state.dual_at(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = state.dual_at(right)
    return max((0.0, 0.0), (left, at_left), (right, at_right), key=lambda found: found[1])


def _newton_direction(
    state: ArrayState, primal_dual: bool, inexact: float, most: int
) -> tuple[np.ndarray, np.ndarray, int, bool]:
    """Return Δ with H Δ ≈ −G, q_k = tr(Δ Yᵀ C_k Y), the number of products with H, and whether it is stiff."""
    weight = state.problem.slack.curvature(state.v, state.s)[state.violated.which]
    B, precondition = _scaling(state, weight, primal_dual)
    residual = -_congruence(B, state.G).astype(np.float64, copy=False)
    rz = float(np.vdot(residual, precondition(residual)))
    is_stiff = not precondition.largest < _LARGEST_SINGLE
    rows = state.violated.Y if is_stiff else state.violated.rows
    delta, q, n_products = solve_system(
        state.violated.forms,
        rows @ B.astype(rows.dtype, copy=False),
        weight,
        residual,
        precondition,
        small=rz * min(inexact, rz**0.25) ** 2,
        max_products=most,
    )
    delta = _congruence(B.T, delta).astype(np.float64, copy=False)
    return delta, _form_values_along(state, delta, q), n_products, is_stiff


def _congruence(B: np.ndarray, S: np.ndarray) -> np.ndarray:
    """Return Bᵀ S B, exactly symmetric, in the precision of B."""
    return symmetric_product(B, S.astype(B.dtype, copy=False) @ B)


def _form_values_along(state: ArrayState, delta: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Return tr(Δ Yᵀ C_k Y) for every k, given those of the violated constraints in q."""
    violated = state.violated.which
    if isinstance(violated, slice):
        return q
    everywhere = np.empty(len(violated))
    everywhere[violated] = q
    forms, Y = state.problem.forms.part(~violated, state.Y)
    Y = _for_directions(Y)
    everywhere[~violated] = forms.apply(Y @ delta.astype(Y.dtype, copy=False), Y)
    return everywhere


def _scaling(state: ArrayState, weight: np.ndarray, primal_dual: bool) -> tuple[np.ndarray, Preconditioner]:
    """Return B = Z^{-1/4} Q (or Q alone) and a preconditioner that is nearly diagonal in B's coordinates.

    The preconditioner is the Hessian as if the violated constraints' vectors were Gaussian. For y ~ N(0, S),
    E (yᵀΔy) yyᵀ = 2 SΔS + tr(SΔ) S; with S the mean of √weight yyᵀ and ω of the order of their number,
    H ≈ I + ω (2 SΔS + tr(SΔ) S): diagonal plus rank one in the eigenbasis Q of S. B is in the precision that will do.
    """
    n_violated = max(1, int(np.count_nonzero(weight)))
    omega = 0.5 * n_violated
    S = state.violated.forms.adjoint(state.violated.rows, np.sqrt(weight)) / n_violated
    Z = state.Z_at(state.share)
    if state.violated.rows.dtype == np.float32 and _largest(Z) <= _SINGLE_RANGE[1]:
        S, Z = S.astype(np.float32), Z.astype(np.float32)
    M = None
    if primal_dual:
        values, vectors = np.linalg.eigh(Z)
        M = vectors * np.clip(values, LEAST_SCALE, MOST_SCALE) ** -0.25
        S = _congruence(M, S)
    sigma, Q = np.linalg.eigh(S)
    sigma = np.abs(sigma).astype(np.float64, copy=False)
    divisor = 1.0 + 2.0 * omega * np.outer(sigma, sigma)
    a = sigma / divisor.diagonal()
    c = omega / (1.0 + omega * float(a @ sigma))
    block = np.diag(1.0 / divisor.diagonal()) - c * np.outer(a, a)
    return Q if M is None else M @ Q, Preconditioner(divisor, block)


def _line_search(state: ArrayState, delta: np.ndarray, q: np.ndarray) -> tuple[float, np.ndarray]:
    """Return t > 0 where the objective along Δ stops falling, and the Cholesky factor of I + tΔ; t = 0 if none.

    The objective is convex along the line and its derivative costs O(r + m):
    φ'(t) = tr(AᵀA Δ) − Σ μ/(1 + tμ) + Σ slope(v + tq) q,   μ the eigenvalues of Δ, q_k = tr(Δ Yᵀ C_k Y).
    """
    slack, identity = state.problem.slack, np.eye(len(delta))
    falling = float(np.vdot(state.G, delta))
    if not falling < 0.0:
        return 0.0, identity
    linear = falling + float(delta.trace()) - float(state.slope @ q)
    factor = cholesky_or_none(identity + delta)
    if factor is not None:
        # Σ μ/(1+μ) = r − tr (I+Δ)⁻¹; the full step is accepted if it removes most of the slope.
        inverse = inverse_factor(factor)
        at_one = linear - (len(delta) - float(np.vdot(inverse, inverse))) + float(slack.slope(state.v + q) @ q)
        if abs(at_one) <= -0.5 * falling:
            return 1.0, factor
    mu = np.linalg.eigvalsh(delta)

    def derivative(t: float) -> float:
        return linear - float((mu / (1.0 + t * mu)).sum()) + float(slack.slope(state.v + t * q) @ q)

    longest = 0.99 / -mu[0] if mu[0] < 0 else LONGEST_STEP
    if derivative(0.0) >= 0.0:
        return 0.0, identity
    t = longest if derivative(longest) <= 0.0 else brentq(derivative, 0.0, longest, rtol=0.02, xtol=1e-14)
    factor = cholesky_or_none(identity + t * delta)
    return (0.0, identity) if factor is None else (t, factor)
