"""Any spectral loss: Newton-CG on the dual, under a barrier where one is needed.

With S = −R_0 − Σ s_k R_k (s = sign λ) and F = ∇f*(S), the dual objective and its derivatives are

    D(λ)            = −Σ f*(eig S) + Σ s_k c_k + Σ dual_k(s_k)  (+ c_0)
    gradient        sign_k (v_k + dual_k′(s_k)),      v_k = c_k + tr(F R_k)
    −Hessian        dλ ↦ A (Ω ∘ (A* dλ)) + h dλ,      h = −dual″, Ω the divided differences of ∇f*

(in the eigenbasis of S).

Where γ is moderate no barrier is needed: the condition of the optimum, λ = penalty′(v(λ)), is solved by Newton steps as
it stands. On the way λ may be negative; at the end constraints that hold have λ = 0. That is tried first.

Otherwise λ > 0 is kept by a barrier, D_μ = D + μ Σ ln λ_k, with μ → 0. As in primal-dual interior-point methods the
barrier's curvature μ/λ² is replaced by τ/λ, where τ > 0 estimates how far each constraint is from its bound and λτ = μ
holds along the way. γ = ∞ needs nothing special: h = 0.

Either Newton system is solved for X = √Ω ∘ (A* dλ), r × r whatever the number of constraints, where it reads
identity plus positive semidefinite:

    X + √Ω ∘ A* E A (√Ω ∘ X) = √Ω ∘ A* p,    dλ = p − E A (√Ω ∘ X)

    without a barrier   E = penalty″(v),      p = penalty′(v) − λ
    with one            E = 1/(h + τ/λ),      p = E ∇D_μ
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..constraints.forms import EdgeForms
from ..errors import InfeasibleError
from ..linalg import symmetrize
from ..losses import VonNeumann
from ..losses.spectral import divided_differences
from .certificate import certify
from .farkas import farkas, rounding
from .problem import Problem
from .result import Solution, Step
from .system import Preconditioner, solve_system

__all__ = ["dual"]

_LOOSE_GAP = 0.05  # for problems on the way
_FEASIBLE = 0.5e-8  # half of what the certificate asks for of hard constraints
_WIDTH = 0.3  # of the first barrier, in units of a constraint's scale
_WARM_WIDTH = 0.03  # of the first barrier after a start at a smaller γ
_MODERATE = 3.0  # norm of Σ s_k R_k at the γ the walk begins with
_STRIDE, _LONG_STRIDE = 3.0, 10.0  # from one γ to the next
_NEARLY_HARD = 10.0  # the γ after which comes the last, and beyond which barriers do not grow
_CENTRED = 3.0  # slope of D_μ along a step, in units of mμ, below which μ moves on
_SLOW, _FAST = 0.1, 0.02  # factors for μ
_TO_THE_EDGE = 0.99  # share of the way to λ = 0 that a step may go
_SHORTEST_STEP, _SHORTEST_PLAIN_STEP = 1e-9, 1e-3
_STEEPEST = 0.5  # descent where a step ends, beyond the peak, in units of the ascent where it began; γ < ∞
_FARTHEST = 5.0  # under a barrier, largest eigenvalue of F in units of what was promised
_INEXACT, _INEXACT_HARD = 0.3, 0.03  # under a barrier, residual of a Newton system relative to its solution
_INEXACT_FAR, _INEXACT_NEAR = 0.1, 0.05  # the same without one
_PLAIN_PROGRESS, _PLAIN_SLACK = 0.7, 1.4  # without a barrier, k steps must leave 1.4 · 0.7^k of the mismatch
_HANDFUL, _EXACT = 20, 1e-3  # so few violated constraints cost few products: their system is solved to this residual
_NEAR = 0.02  # mismatch from which steps without a barrier are taken with more care
_WITHIN_REACH = 0.1  # gap from which the barrier may not be needed any more
_FEW, _FEW_NUMBERS = 400, 4_000_000  # constraints, and entries of all their matrices, for a direct solution
_ROUNDING = 1e-13  # of D_μ
_MAX_CG = 500
_MAX_STEPS = 500
_MAX_SHIFTS = 60
_MAX_TRIALS = 12


@dataclass(frozen=True)
class _State:
    """Everything the solver knows at multipliers λ."""

    problem: Problem
    lam: np.ndarray
    sigma: np.ndarray  # eigenvalues of S
    V: np.ndarray  # eigenvectors of S
    Y: np.ndarray  # points in the eigenbasis of S
    w: np.ndarray  # eigenvalues of F
    v: np.ndarray
    slack_dual: np.ndarray  # every constraint's share of the dual
    dual: float

    @classmethod
    def at(cls, problem: Problem, lam: np.ndarray) -> _State | None:
        """None outside the domain of the dual."""
        s = problem.sign * lam
        S = -problem.forms.adjoint(problem.points, s)
        if problem.tilt is not None:
            S -= problem.tilt
        if not math.isfinite(float(S.sum())):
            return None
        sigma, V = np.linalg.eigh(S)  # reads one half of S
        a_little = 1e-13 * np.abs(sigma).max(initial=0.0)
        conjugate, beyond = problem.loss.conjugate(np.concatenate([sigma, sigma + a_little])).reshape(2, -1)
        slack_dual = problem.slack.dual(s)
        dual = float(-conjugate.sum() + s @ problem.offset + slack_dual.sum()) + problem.constant
        # Eigenvalues that are inside by rounding alone are not.
        if not math.isfinite(dual + float(beyond.sum())):
            return None
        w = problem.loss.conjugate_slope(sigma)
        Y = problem.points @ V
        v = problem.offset + problem.forms.apply(Y * w, Y)
        if not math.isfinite(float(v.sum())):  # as it is not where w is not
            return None
        return cls(problem, lam, sigma, V, Y, w, v, slack_dual, dual)

    @cached_property
    def gradient(self) -> np.ndarray:
        sign = self.problem.sign
        return sign * (self.v + self.problem.slack.dual_slope(sign * self.lam))

    @cached_property
    def omega(self) -> np.ndarray:
        return np.maximum(divided_differences(self.problem.loss, self.sigma), 0.0)

    def growth(self, change: np.ndarray) -> float:
        """Norm of the change of F that dλ promises."""
        return float(np.linalg.norm(self.omega * self.problem.forms.adjoint(self.Y, self.problem.sign * change)))

    @cached_property
    def pull(self) -> np.ndarray:
        """To the multipliers that the values v of the constraints call for."""
        return self.problem.sign * self.problem.slack.slope(self.v) - self.lam

    @cached_property
    def mismatch(self) -> float:
        """Of λ and v, in units of the objective: under the squared hinge, the gap itself where λ ≥ 0 is nonzero on
        violated constraints alone. λ on others counts by its square only."""
        return 0.5 * float(self.problem.slack.dual_curvature(self.problem.sign * self.lam) @ self.pull**2)

    @property
    def relative_mismatch(self) -> float:
        known = math.isfinite(self.mismatch) and math.isfinite(self.primal)
        return self.mismatch / max(1.0, abs(self.primal)) if known else np.inf

    def closer_than(self, other: _State, share: float) -> bool:
        """Whether the mismatch is at most this share of the other's: as it is, or relative to the objective."""
        return self.mismatch <= share * other.mismatch or self.relative_mismatch <= share * other.relative_mismatch

    def admissible(self) -> _State | None:
        """With λ < 0 set to 0."""
        return self if (self.lam >= 0).all() else _State.at(self.problem, np.maximum(self.lam, 0.0))

    def ascent(self, mu: float) -> np.ndarray:
        """Gradient of D_μ."""
        return self.gradient + mu / self.lam

    @cached_property
    def F(self) -> np.ndarray:
        return symmetrize((self.V * self.w) @ self.V.T)

    @cached_property
    def penalty(self) -> np.ndarray:
        return self.problem.slack.value(self.v)

    @cached_property
    def gap(self) -> float:
        """P(F) − D(λ): Σ f(w) + Σ f*(σ) = tr(F S) here, so what is left is what penalties and their duals are apart."""
        return float((self.penalty - self.problem.sign * self.lam * self.v - self.slack_dual).sum())

    @property
    def primal(self) -> float:
        return self.dual + self.gap

    @cached_property
    def relative_gap(self) -> float:
        """What λ ≥ 0 proves. Elsewhere an estimate: with λ < 0 set to 0, did F not change by it."""
        gap = self.gap
        if (self.lam < 0).any():
            s = self.problem.sign * np.maximum(self.lam, 0.0)
            gap = float((self.penalty - s * self.v - self.problem.slack.dual(s)).sum())
        return gap / max(1.0, abs(self.primal)) if math.isfinite(self.primal) else np.inf

    def barrier(self, mu: float) -> float:
        return self.dual + mu * float(np.log(self.lam).sum())


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
    walk = _Walk(problem, 0.9 * tol, _MAX_STEPS if max_iter is None else max_iter, on_step)
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


def _optimum(problem: Problem, walk: _Walk, start: Solution | None) -> _State:
    state = _State.at(problem, np.zeros(problem.n_constraints))
    if state is None or problem.relative_violation(state.v).any():
        if problem.hard:
            _refute(problem, walk)
        if start is not None:
            state = _State.at(problem, start.lam)
        elif not problem.hard and state is not None and not _rests(state):
            state = _along_ray(state)
        state = walk.plainly(state) or _without_idle(walk.run(*_entry(problem, start), walk.plainly), walk)
    return state


def _without_idle(state: _State, walk: _Walk) -> _State:
    """The same with λ = 0 where only the barrier holds it up, if that is as good an answer."""
    share = state.lam * state.problem.scale
    exact = _State.at(state.problem, np.where(share > 1e-6 * share.max(initial=0.0), state.lam, 0.0))
    return state if exact is None or not walk.arrived(exact) else exact


def _refute(problem: Problem, walk: _Walk) -> None:
    """Raise if the hard constraints contradict each other.

    Whether they do depends neither on the loss nor on the units of the coordinates, so it is asked where the answer is
    easiest: under a smooth loss, with edges that point all ways alike.
    """
    rounded = dataclasses.replace(problem, points=problem.points @ rounding(problem), loss=VonNeumann(), tilt=None)
    trial = _Walk(rounded, _LOOSE_GAP, walk.budget, walk.on_step)
    trial.run(*_entry(rounded, None))


class _Walk:
    """The way to one problem's optimum: γ up to the problem's own, then μ down until the gap is within `goal`."""

    def __init__(self, problem: Problem, goal: float, budget: int, on_step: Callable[[Step], None] | None):
        self.problem, self.goal, self.budget, self.on_step = problem, goal, budget, on_step
        self.history: list[Step] = []
        self.proof: InfeasibleError | None = None  # the last thing the multipliers proved about hard constraints

    def run(self, state: _State, mu: float, shortcut: Callable[[_State], _State | None] = lambda state: None) -> _State:
        """From a state inside λ > 0, under a barrier all the way unless there is a shortcut near the end."""
        tau, within_reach = mu / state.lam, _WITHIN_REACH
        while len(self.history) < self.budget and not self.arrived(state):
            E = 1.0 / (state.problem.slack.dual_curvature(state.problem.sign * state.lam) + tau / state.lam)
            ascent = state.ascent(mu)
            if self.problem.hard and _few(self.problem):
                direction = _exact_direction(state, E, E * ascent)
            else:
                direction = _newton_direction(state, E, E * ascent, _INEXACT_HARD if state.problem.hard else _INEXACT)
            change, rise = direction.change, float(ascent @ direction.change)
            t, trial = _line_search(state, change, rise, mu)
            if trial is None:  # rounding has the last word on this barrier
                if state.problem is self.problem:
                    break
                state, mu, tau = self._onward(state, mu, tau, easy=False)
                continue
            # λτ = μ to first order along the step, and never far from it.
            tau = np.clip((mu - t * tau * change) / state.lam, 0.01 * mu / trial.lam, 100.0 * mu / trial.lam)
            state = trial
            self._record(state, t, direction.n_products)
            if state.problem is self.problem and state.relative_gap < within_reach:
                within_reach = 0.01 * state.relative_gap
                if (optimum := shortcut(state)) is not None:
                    return optimum
            centred = rise / (state.problem.n_constraints * mu)
            if centred <= _CENTRED and (t > 0.3 or rise <= _ROUNDING * abs(state.barrier(mu))):
                state, mu, tau = self._onward(state, mu, tau, easy=t > 0.9 and centred <= 0.1 * _CENTRED)
        return state

    def plainly(self, state: _State | None) -> _State | None:
        """The optimum by steps without a barrier, as far as the budget goes; nothing if they are slow to.

        Multipliers are free to be negative on the way: held at 0 they would leave F far from what a step foresaw.
        """
        problem = self.problem
        if state is None or problem.hard:
            return None
        start, allowed = state, _PLAIN_SLACK
        while len(self.history) < self.budget:
            if state.relative_gap <= self.goal:
                optimum = state.admissible()
                if optimum is not None and self.arrived(optimum):
                    return self._ending(optimum)
            curvature = problem.slack.curvature(state.v, problem.sign * state.lam)
            inexact = self._inexact(state.relative_mismatch) if np.count_nonzero(curvature) > _HANDFUL else _EXACT
            direction = _newton_direction(state, curvature, state.pull, inexact)
            t, trial = _approach(state, direction.change)
            allowed *= _PLAIN_PROGRESS
            if trial is None or not trial.closer_than(start, allowed):
                return None
            state = trial
            self._record(state, t, direction.n_products)
        # The budget is spent. Steps that looked ahead need not have come closer yet.
        ends = [end for end in (start.admissible(), state.admissible()) if end is not None]
        return self._ending(min(ends, key=lambda end: end.relative_gap)) if ends else None

    def _inexact(self, mismatch: float) -> float:
        """Residual of a Newton system without a barrier: the mismatch falls to its square at best, and need not fall
        below the goal."""
        if mismatch > _NEAR:
            return _INEXACT_FAR
        enough = 0.5 * (self.goal / mismatch) ** 0.5 if mismatch > self.goal else 0.0
        return min(max(enough, _INEXACT_NEAR), _INEXACT_FAR)

    def arrived(self, state: _State) -> bool:
        if state.problem is not self.problem or not abs(state.relative_gap) <= self.goal:
            return False
        return not self.problem.hard or _violation(state) <= _FEASIBLE

    def _onward(self, state: _State, mu: float, tau: np.ndarray, easy: bool) -> tuple[_State, float, np.ndarray]:
        """The next barrier: of the same width at a larger γ, or narrower at the last."""
        gamma = state.problem.gamma
        if state.problem is self.problem:
            return state, mu * (_FAST if easy else _SLOW), tau
        stride = _LONG_STRIDE if easy else _STRIDE
        if self.problem.gamma <= stride * gamma or (self.problem.hard and gamma >= _NEARLY_HARD):
            problem = self.problem
        else:
            problem = self.problem.with_gamma(stride * gamma)
        # Where multipliers are short of γ already, most constraints hold and will not need larger ones.
        warranted = max(mu, _WIDTH * float(np.mean(state.lam * problem.scale)))
        mu = min(mu * _barrier(problem.gamma) / _barrier(gamma), warranted)
        onward = _State.at(problem, state.lam)
        assert onward is not None  # a larger γ widens the domain
        return onward, mu, mu / state.lam

    def _ending(self, state: _State) -> _State:
        """This state, as the end of the last step."""
        if self.history:
            last = self.history[-1]
            self.history[-1] = _step(state, last.step_length, last.inner_iterations)
        return state

    def _record(self, state: _State, t: float, n_products: int) -> None:
        step = _step(state, t, n_products)
        self.history.append(step)
        if self.on_step is not None:
            self.on_step(step)
        if state.problem.hard:
            self.proof = farkas(state.problem, state.lam) or self.proof
            if self.proof is not None and self.proof.outcome == "infeasible":
                raise self.proof


def _step(state: _State, t: float, n_products: int) -> Step:
    return Step(
        gamma=state.problem.gamma,
        primal=state.primal,
        relative_gap=state.relative_gap,
        max_violation=_violation(state),
        step_length=t,
        inner_iterations=n_products,
    )


def _violation(state: _State) -> float:
    return float(state.problem.relative_violation(state.v).max(initial=0.0))


# -- where to begin ------------------------------------------------------------------------------------------


def _barrier(gamma: float, width: float = _WIDTH) -> float:
    """μ that leaves constraints `width` from their bounds: λ ≈ γ · width there, and λ · width = μ.

    Large γ need no more: such a barrier would hold λ far above what the loss can answer to.
    """
    return min(gamma, _NEARLY_HARD) * width**2


def _entry(problem: Problem, start: Solution | None) -> tuple[_State, float]:
    """A state and the μ that suits it."""
    if start is not None and not problem.hard:
        # Constraints that were satisfied with room to spare have λ ≈ μ/scale.
        mu = _barrier(problem.gamma, _WARM_WIDTH)
        state = _State.at(problem, np.maximum(start.lam, mu * problem.weight / problem.scale))
        if state is not None:
            return state, mu
    origin = _State.at(problem, np.zeros(problem.n_constraints))
    if origin is None:
        return _from_outside(problem)
    # λ in proportion to γ: slopes at the prior, and no less than a barrier's width where constraints hold.
    slope = problem.sign * problem.with_gamma(1.0).slack.slope(origin.v)
    per_gamma = np.maximum(slope, _WIDTH * problem.weight / problem.scale)
    size = float(np.linalg.norm(problem.forms.adjoint(problem.points, problem.sign * per_gamma)))
    gamma = min(problem.gamma, _MODERATE / max(size, 1e-300))
    while gamma > 1e-300:
        here = problem if gamma == problem.gamma else problem.with_gamma(gamma)
        state = _State.at(here, gamma * per_gamma)
        if state is not None:
            return state, _barrier(gamma)
        gamma *= 0.25
    raise ValueError(
        f"under the prior constraints are violated by up to {problem.relative_violation(origin.v).max():.3g} of their "
        "bounds or margins, further than this solver can go. These are squared distances in the units of X: check "
        "them, or drop the constraint."
    )


def _rests(origin: _State) -> bool:
    """Whether F at λ = 0 is where the loss rests, and answers to multipliers there: a place to begin at."""
    return origin.problem.tilt is None and bool(origin.omega.any())


def _along_ray(origin: _State) -> _State | None:
    """On the ray of multipliers γ, in units of the constraints, on those that the origin violates: a point where D is
    still rising, by going back from the far end; nothing if there is none."""
    problem = origin.problem
    ray = np.where(problem.relative_violation(origin.v) > 0, problem.gamma * problem.weight / problem.scale, 0.0)
    t, rise = 1.0, float(origin.gradient @ ray)
    for _ in range(_MAX_TRIALS):
        state = _State.at(problem, t * ray)
        slope = -np.inf if state is None else float(state.gradient @ ray)
        if slope > 0:
            return state
        t *= float(np.clip(rise / (rise - slope), 0.1, 0.25))
    return None


def _entry_at(problem: Problem, lam: np.ndarray) -> tuple[_State, float] | None:
    """From λ > 0, with a barrier no wider than its multipliers are long; nothing if λ is outside the domain."""
    state = _State.at(problem, lam)
    return None if state is None else (state, min(_barrier(problem.gamma), float(np.mean(lam * problem.scale))))


def _from_outside(problem: Problem) -> tuple[_State, float]:
    """λ > 0 with S(λ) inside the domain of f*, where λ = 0 is not.

    With τI added to R_0 for τ large enough λ = 0 is inside. Solve that problem, roughly; its S leaves room to lower τ;
    go on from there. Where τ will not come down to 0 no λ holds every direction, and the objective falls without end.
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
            entry = None if _State.at(shifted, np.zeros(problem.n_constraints)) is None else _entry(shifted, None)
        else:
            entry = _entry_at(shifted, lam)
        if entry is None:
            break
        state = _Walk(shifted, _LOOSE_GAP, _MAX_STEPS, None).run(*entry)
        lam = state.lam
        if (entry := _entry_at(problem, lam)) is not None:
            return entry
        room = _room(problem, state.sigma, tau)
        tau -= 0.9 * room
        if room < 1e-6 * tau or tau < 1e-10 * largest:
            break
    raise ValueError(
        f"{type(problem.loss).__name__} is unbounded on these constraints, or too nearly so to be told apart: some "
        "direction is held neither by the linear objective nor by an upper bound, so its learned length can grow "
        "without end. Add similar pairs or other upper bounds, or a linear objective that is positive on every "
        "direction."
    )


def _room(problem: Problem, sigma: np.ndarray, most: float) -> float:
    """How far the eigenvalues of S may all grow, up to `most`, before they leave the domain of f*; by bisection."""
    inside, outside = 0.0, most
    for _ in range(50):
        middle = 0.5 * (inside + outside)
        if np.isfinite(problem.loss.conjugate(sigma + middle)).all():
            inside = middle
        else:
            outside = middle
    return inside


# -- one step --------------------------------------------------------------------------------------------------


class _Direction(NamedTuple):
    """dλ, and how many products it took to find."""

    change: np.ndarray
    n_products: int


def _newton_direction(state: _State, E: np.ndarray, pull: np.ndarray, inexact: float) -> _Direction:
    """By preconditioned conjugate gradients. Where they overflow no line search finds anything."""
    problem, omega = state.problem, state.omega
    root = np.sqrt(omega)
    R = root * problem.forms.adjoint(state.Y, problem.sign * pull)
    kept = E > 0
    forms, E = problem.forms.restricted(kept), E[kept]
    precondition = Preconditioner(_diagonal(forms, state.Y, E, omega))
    # The error of dλ is E times that of q: relative to X, not to the right-hand side, which E has made large.
    answer = solve_system(forms, state.Y, E, R, precondition, root=root, inexact=inexact, max_products=_MAX_CG)
    change = pull.copy()
    change[kept] -= problem.sign[kept] * (E * answer.q)
    return _Direction(change, answer.n_products)


def _few(problem: Problem) -> bool:
    """Whether the system for dλ itself is small enough to be written out."""
    n_edges = len(problem.forms.tail)
    return problem.n_constraints <= _FEW and n_edges * problem.rank**2 <= _FEW_NUMBERS


def _exact_direction(state: _State, E: np.ndarray, pull: np.ndarray) -> _Direction:
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
    change = root * unit * np.linalg.solve(system, unit * (pull / root))
    return _Direction(change, 1)


def _diagonal(forms: EdgeForms, Y: np.ndarray, E: np.ndarray, omega: np.ndarray) -> np.ndarray:
    """Of the operator, over symmetric X: 1 + Ω_ij Σ_k E_k (R_k)_ij², twice the sum where i ≠ j.

    For pairs (R_k)_ij = y_i y_j, y = Yᵀ(e_a − e_b); products of different edges of one form are left out.
    """
    off_diagonal, on_diagonal = forms.second_moments(Y, E)
    diagonal = 1.0 + 2.0 * omega * off_diagonal
    np.einsum("ii->i", diagonal)[:] = 1.0 + np.diagonal(omega) * on_diagonal
    return diagonal


def _approach(state: _State, change: np.ndarray) -> tuple[float, _State | None]:
    """t and the state at λ + t dλ whose mismatch is a fair share smaller, or nothing."""
    t = 1.0
    while t > _SHORTEST_PLAIN_STEP:
        trial = _State.at(state.problem, state.lam + t * change)
        if trial is not None and trial.closer_than(state, 1.0 - 1e-4 * t):
            return t, trial
        # The mismatch begins to fall as (1 − t)²; where the parabola through what is known is lowest, within bounds.
        beyond = np.inf if trial is None else trial.mismatch - (1.0 - 2.0 * t) * state.mismatch
        t *= float(np.clip(t * state.mismatch / beyond, 0.1, 0.5)) if np.isfinite(beyond) else 0.25
    return 0.0, None


def _line_search(state: _State, change: np.ndarray, rise: float, mu: float) -> tuple[float, _State | None]:
    """t and the state at λ + t dλ > 0 where D_μ has risen by a fair share of what its slope promised; or nothing."""
    if not 0.0 < rise < np.inf:
        return 0.0, None
    shrinking = change < 0
    t = min(1.0, _TO_THE_EDGE * float(np.min(-state.lam[shrinking] / change[shrinking], initial=np.inf)))
    here, growth = state.barrier(mu), state.growth(change)
    while t > _SHORTEST_STEP:
        trial = _State.at(state.problem, state.lam + t * change)
        # Beyond the domain, or so near its border that Newton's model of F says nothing about F there.
        promised = state.w.max() + t * growth
        if trial is None or 0.0 < _FARTHEST * promised < trial.w.max():
            t *= 0.25
            continue
        gain = trial.barrier(mu) - here
        if gain >= 1e-4 * t * rise - _ROUNDING * abs(here):
            slope = 0.0 if state.problem.hard else float(trial.ascent(mu) @ change)
            if slope >= -_STEEPEST * rise:
                return t, trial
            t *= rise / (rise - slope)
            continue
        # The peak of the parabola through what is known, within bounds.
        t *= float(np.clip(0.5 / (1.0 - gain / (t * rise)), 0.1, 0.5))
    return 0.0, None
