"""Farkas proofs that hard constraints (γ = ∞) contradict each other."""

from __future__ import annotations

import numpy as np

from ..errors import InfeasibleError
from ..linalg import symmetrize
from .certificate import form_matrix
from .problem import Problem


def farkas(problem: Problem, lam: np.ndarray) -> InfeasibleError | None:
    """Return the error that λ ≥ 0 proves about the hard constraints, or None if it proves nothing.

    For F ⪰ 0 that satisfies all:  tr(F Σ s_k R_k) ≤ Σ s_k (b_k − c_k) =: β.  So
    Σ s_k R_k ⪰ 0 and β < 0 is impossible; Σ s_k R_k ⪰ 0, ≠ 0 and β = 0 (to 1e-7 and 1e-6, relatively) makes F singular;
    smallest eigenvalue −ε < 0 and β < 0 leaves only tr F ≥ −β/ε, worth reporting where that is huge.
    """
    relative = lam * problem.scale
    total = float(relative.sum())
    if not np.isfinite(total) or total <= 0:
        return None
    proof = _proof(problem, np.where(relative > 1e-7 * total, lam, 0.0))
    if proof is None:
        return None
    # Reduce the proof to the fewest constraints with the same outcome.
    for least in (0.1, 0.03, 0.01, 1e-3, 1e-4, 1e-5):
        large = relative > least * total
        shorter = _proof(problem, np.where(large, lam, 0.0)) if large.any() else None
        if shorter is not None and shorter.outcome == proof.outcome:
            return shorter
    return proof


def _proof(problem: Problem, lam: np.ndarray) -> InfeasibleError | None:
    lam = _repair(problem, lam / lam.sum())
    s = problem.sign * lam
    R = symmetrize(form_matrix(problem, s))
    size_R = _size(problem, lam)
    beta = float(s @ (problem.bound - problem.offset))
    size_b = float(lam @ (np.abs(problem.bound) + np.abs(problem.offset)))
    values = np.linalg.eigvalsh(R) if problem.rank else np.zeros(1)
    epsilon = -values[0]
    if epsilon <= 1e-11 * size_R and beta < -1e-9 * size_b and -beta >= 1e10 * problem.rank * epsilon:
        return contradiction_error(lam, problem.scale, "infeasible")
    if epsilon <= 1e-7 * size_R and abs(beta) <= 1e-6 * size_b and values[-1] > 1e-4 * size_R:
        return contradiction_error(lam, problem.scale, "singular")
    if beta < -1e-9 * size_b and -beta > 1e6 * problem.rank * epsilon:
        return contradiction_error(lam, problem.scale, "bounded", trace_bound=-beta / epsilon)
    return None


def _size(problem: Problem, lam: np.ndarray) -> float:
    """Return Σ_k λ_k tr|R_k|, the unit of Σ s_k R_k; edges do not cancel within a form."""
    forms = problem.forms
    edges = problem.points[forms.tail] - problem.points[forms.head]
    weight = lam if forms.combine is None else abs(forms.combine).T @ lam
    return float(weight @ np.einsum("er,er->e", edges, edges))


def _repair(problem: Problem, lam: np.ndarray) -> np.ndarray:
    """Return λ with more weight on upper bounds, if that makes Σ s_k R_k exactly positive semidefinite."""
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


def contradiction_error(
    lam: np.ndarray, scale: np.ndarray, outcome: str, trace_bound: float = np.inf
) -> InfeasibleError:
    """Return the error that names the constraints with λ > 0, by their position in `lam`."""
    carriers = np.argsort(-lam * scale, kind="stable")[: np.count_nonzero(lam)]
    listed = ", ".join(map(str, sorted(carriers[:10])))
    more = f" and {len(carriers) - 10} more" if len(carriers) > 10 else ""
    what = {
        "infeasible": "no metric satisfies all hard constraints",
        "singular": "only singular metrics satisfy all hard constraints, where the loss is infinite",
        "bounded": f"no metric of trace below {trace_bound:.3g} satisfies all hard constraints",
    }[outcome]
    return InfeasibleError(
        f"{what}; the contradiction lies in constraints {listed}{more} (attributes `constraints` and `multipliers` "
        "hold the proof). Drop or loosen one of them, or use a finite gamma.",
        outcome=outcome,
        multipliers=lam,
        trace_bound=trace_bound,
    )


def equalising_map(problem: Problem) -> np.ndarray:
    """Return a map that makes edges isotropic: a symmetric root of their inverse covariance, 1 where that is zero."""
    edges = problem.points[problem.forms.tail] - problem.points[problem.forms.head]
    values, vectors = np.linalg.eigh(symmetrize(edges.T @ edges / max(1, len(edges))))
    spread = np.where(values > 1e-12 * max(values[-1], 1e-300), values, 1.0)
    return (vectors / np.sqrt(spread)) @ vectors.T
