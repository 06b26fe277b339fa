"""Hard constraints (γ = ∞): the method of multipliers over the Newton solver, or a proof that nothing satisfies them.

Round by round the constraints pay the squared hinge of their violation beyond what the multipliers λ pay already,

    minimise tr f(F) + Σ ρ/2 max(0, sign (v − b)/scale + scale λ/ρ)²,      λ ← the slope at its minimum,

which is the ordinary slack problem with bounds moved to b − sign scale² λ/ρ. Violation shrinks by about 1/ρ a round.
Where no F satisfies all constraints λ grows without end, and its direction is the proof (Farkas).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np

from ..errors import InfeasibleError
from ..linalg import symmetrize
from .certificate import certify, form_matrix
from .newton import follow_path
from .problem import Problem
from .result import Solution, Step

__all__ = ["farkas", "newton_hard"]

_FIRST_RHO = 1e3
_LAST_RHO = 1e8
_MAX_ROUNDS = 20
_STEPS_A_ROUND = 200
_FEASIBLE = 0.5e-8  # half of what the certificate asks for


def newton_hard(
    problem: Problem,
    *,
    tol: float = 1e-4,
    max_iter: int | None = None,
    start: Solution | None = None,
    on_step: Callable[[Step], None] | None = None,
) -> Solution:
    """Solve with every constraint satisfied to 1e-8, or raise InfeasibleError with the proof."""
    at_prior = problem.offset + problem.forms.apply(problem.points, problem.points)
    if start is None and max_iter is None and problem.relative_violation(at_prior).any():
        # Whether anything satisfies the constraints does not depend on the prior. Settle it first where it is
        # easiest, in coordinates in which the constraints' vectors point all ways alike; what is found there is a
        # start here.
        root = _rounding(problem)
        found = _multiplier_rounds(dataclasses.replace(problem, points=problem.points @ root), tol, None, None, on_step)
        F = symmetrize(root @ found.F @ root.T)
        start = dataclasses.replace(found, F=F, lam=np.zeros(problem.n_constraints))
    return _multiplier_rounds(problem, tol, max_iter, start, on_step)


def _rounding(problem: Problem) -> np.ndarray:
    """A symmetric root of the inverse covariance of the edges; 1 where they have none."""
    edges = problem.points[problem.forms.tail] - problem.points[problem.forms.head]
    values, vectors = np.linalg.eigh(symmetrize(edges.T @ edges / max(1, len(edges))))
    spread = np.where(values > 1e-12 * max(values[-1], 1e-300), values, 1.0)
    return (vectors / np.sqrt(spread)) @ vectors.T


def _multiplier_rounds(
    problem: Problem,
    tol: float,
    max_iter: int | None,
    start: Solution | None,
    on_step: Callable[[Step], None] | None,
) -> Solution:
    history: list[Step] = []
    lam = np.zeros(problem.n_constraints) if start is None else start.lam.copy()
    rho, violation, solution = _FIRST_RHO, np.inf, start
    for _ in range(_MAX_ROUNDS):
        charged = _charged(problem, lam, rho)
        budget = len(history) + _STEPS_A_ROUND if max_iter is None else max_iter
        state = follow_path(charged, 1e-18, budget, solution, history, on_step)
        before, lam = lam, np.maximum(problem.sign * state.slope, 0.0)
        F = symmetrize(state.A @ state.A.T)
        solution = Solution(F, lam, certify(problem, F, lam, tol), tuple(history), len(history))
        if solution.certificate.max_violation <= _FEASIBLE and solution.certificate.converged:
            return solution
        if max_iter is not None and len(history) >= max_iter:
            return solution
        # Growing multipliers point at the contradiction; their last increment points more exactly than their sum.
        for direction in (lam - before, lam):
            proof = farkas(problem, np.maximum(direction, 0.0))
            if proof is not None and (proof.outcome == "infeasible" or rho == _LAST_RHO):
                raise proof
        if solution.certificate.max_violation > 0.1 * violation:
            rho = min(10 * rho, _LAST_RHO)
        violation = solution.certificate.max_violation
    assert solution is not None
    return solution


def _charged(problem: Problem, lam: np.ndarray, rho: float) -> Problem:
    return dataclasses.replace(
        problem,
        bound=problem.bound - problem.sign * problem.scale**2 * lam / rho,
        weight=np.ones(problem.n_constraints),
        gamma=rho,
        n_log=0,
    )


def farkas(problem: Problem, lam: np.ndarray) -> InfeasibleError | None:
    """What λ ≥ 0 proves about the hard constraints, as the error to raise; None if nothing.

    For F ⪰ 0 that satisfies all:  tr(F Σ s_k R_k) ≤ Σ s_k (b_k − c_k) =: β.  So
    Σ s_k R_k ⪰ 0 and β < 0 is impossible; Σ s_k R_k ⪰ 0, ≠ 0 and β = 0 (to 1e-7 and 1e-6, relatively) makes F singular;
    smallest eigenvalue −ε < 0 and β < 0 leaves only tr F ≥ −β/ε, worth reporting where that is huge.
    """
    total = float((lam * problem.scale).sum())
    if not np.isfinite(total) or total <= 0:
        return None
    lam = np.where(lam * problem.scale > 1e-7 * total, lam, 0.0)
    lam = _repaired(problem, lam / lam.sum())
    s = problem.sign * lam
    R = symmetrize(form_matrix(problem, s))
    size_R = float(np.trace(form_matrix(problem, lam)))
    beta = float(s @ (problem.bound - problem.offset))
    size_b = float(lam @ (np.abs(problem.bound) + np.abs(problem.offset)))
    values = np.linalg.eigvalsh(R) if problem.rank else np.zeros(1)
    epsilon = -values[0]
    if epsilon <= 1e-11 * size_R and beta < -1e-9 * size_b:
        return _error(problem, lam, "infeasible")
    if epsilon <= 1e-7 * size_R and abs(beta) <= 1e-6 * size_b and values[-1] > 1e-4 * size_R:
        return _error(problem, lam, "singular")
    if beta < -1e-9 * size_b and -beta > 1e6 * problem.rank * epsilon:
        return _error(problem, lam, "bounded", trace_bound=-beta / epsilon)
    return None


def _repaired(problem: Problem, lam: np.ndarray) -> np.ndarray:
    """λ nudged so that Σ s_k R_k is exactly positive semidefinite, where more weight on upper bounds can do it."""
    upper = np.where(problem.sign > 0, 1.0, 0.0)
    if not problem.rank or not upper.any():
        return lam
    R = symmetrize(form_matrix(problem, problem.sign * lam))
    smallest = float(np.linalg.eigvalsh(R)[0])
    if smallest >= 0:
        return lam
    R_upper = symmetrize(form_matrix(problem, upper * lam))
    for factor in (1.0, 4.0, 16.0, 256.0):
        nudge = factor * -smallest / max(float(np.linalg.eigvalsh(R_upper)[-1]), 1e-300)
        if nudge > 1e-3:
            break
        if np.linalg.eigvalsh(R + nudge * R_upper)[0] >= 0:
            repaired = lam * (1.0 + nudge * upper)
            return repaired / repaired.sum()
    return lam


def _error(problem: Problem, lam: np.ndarray, outcome: str, trace_bound: float = np.inf) -> InfeasibleError:
    carriers = np.argsort(-lam * problem.scale, kind="stable")[: np.count_nonzero(lam)]
    listed = ", ".join(map(str, sorted(carriers[:10])))
    more = f" and {len(carriers) - 10} more" if len(carriers) > 10 else ""
    what = {
        "infeasible": "no metric satisfies all hard constraints",
        "singular": "only singular metrics satisfy all hard constraints, where the LogDet loss is infinite",
        "bounded": f"no metric of trace below {trace_bound:.3g} satisfies all hard constraints",
    }[outcome]
    return InfeasibleError(
        f"{what}; the contradiction lies in constraints {listed}{more} (attributes `constraints` and `multipliers` "
        "hold the proof). Drop or loosen one of them, or use a finite gamma.",
        outcome=outcome,
        multipliers=lam,
        trace_bound=trace_bound,
    )
