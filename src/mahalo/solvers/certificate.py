"""Certificate of a solution: primal objective, dual objective, and the gap between them.

P(F) ≥ P* ≥ D(s) for every F ≻ 0 and every admissible s, so a small gap proves F near-optimal whichever
solver found it. All is recomputed in float64 from the problem and the solution: values, penalties and dual terms by
code that no solver uses, the loss by its own formulas f and f*.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from .problem import Problem

FEASIBLE = 1e-8  # largest relative violation at which hard constraints count as satisfied
_CHUNK = 1 << 16  # numbers at once while edges are expanded, few enough to stay in the cache


@dataclass(frozen=True)
class Certificate:
    """Proved quality of a solution.

    Attributes
    ----------
    primal, dual : float
        Objective of the returned metric, and a lower bound on the objective of any metric.
    gap : float
        primal − dual; at least 0 up to rounding.
    relative_gap : float
        ``gap / max(1, |primal|)``.
    max_violation : float
        Largest violation of a constraint, relative to its bound (pairs), margin (triplets) or scale (linear forms).
    n_violated : int
        Number of constraints violated by more than 1e-9, relatively.
    converged : bool
        True if relative_gap is within the tolerance (and, for hard constraints, max_violation within 1e-8).
    """

    primal: float
    dual: float
    gap: float
    relative_gap: float
    max_violation: float
    n_violated: int
    converged: bool


def certify(problem: Problem, F: np.ndarray, lam: np.ndarray, tol: float) -> Certificate:
    """Return the certificate of the core matrix F and the multipliers lam ≥ 0."""
    F = np.asarray(F, dtype=np.float64)
    s = problem.sign * np.asarray(lam, dtype=np.float64)
    values, R = _values_and_matrix(problem, F, s)
    v = problem.offset + values
    #  P = Σ f(eig F) + tr(R_0 F) + Σ penalty(v)
    primal = float(problem.loss.value(_eigenvalues(F)).sum()) + _penalty(problem, v)
    #  D = −Σ f*(eig S) + Σ s c + Σ dual(s),   S = −R_0 − Σ s R
    S = -R
    if problem.tilt is not None:
        primal += float(np.vdot(problem.tilt, F)) + problem.constant
        S -= problem.tilt
    dual = float(-problem.loss.conjugate(np.linalg.eigvalsh(S)).sum() + s @ problem.offset) + _dual_terms(problem, s)
    dual += problem.constant
    gap = primal - dual
    relative_gap = gap / max(1.0, abs(primal)) if np.isfinite(gap) else np.inf
    violation = np.maximum(problem.sign * (v - problem.bound), 0.0) / problem.scale
    max_violation = float(violation.max(initial=0.0))
    # NaN counts as not converged: no comparison with it is true, and it is no violation, so values must be finite too.
    converged = bool(relative_gap <= tol) and bool(relative_gap >= -tol) and bool(np.isfinite(v).all())
    if problem.hard:
        converged = converged and max_violation <= FEASIBLE
    return Certificate(
        primal=primal,
        dual=dual,
        gap=gap,
        relative_gap=float(relative_gap),
        max_violation=max_violation,
        n_violated=int((violation > 1e-9).sum()),
        converged=converged,
    )


def _penalty(problem: Problem, v: np.ndarray) -> float:
    """Return Σ γ_k h(v_k/b_k), h(t) = t − ln t − 1, or Σ (γ_k/2) ((v_k − b_k)/scale_k)², over violated constraints."""
    if problem.hard:
        return 0.0
    gamma, excess = problem.gamma * problem.weight, problem.sign * (v - problem.bound)
    is_log = np.arange(problem.n_constraints) < problem.n_log
    log, hinge = (excess > 0.0) & is_log, (excess > 0.0) & ~is_log
    b, t = problem.bound[log], (v[log] - problem.bound[log]) / problem.bound[log]
    with np.errstate(divide="ignore", invalid="ignore"):
        # ln(v/b) from (v − b)/b where v is near b, from v/b where it is far below.
        logarithm = np.where(t >= -0.5, np.log1p(np.maximum(t, -0.5)), np.log(v[log] / b))
    squares = (np.sqrt(gamma[hinge]) * (excess[hinge] / problem.scale[hinge])) ** 2
    return float((gamma[log] * (t - logarithm)).sum()) + 0.5 * float(squares.sum())


def _dual_terms(problem: Problem, s: np.ndarray) -> float:
    """Return Σ γ_k ln(1 − s_k b_k/γ_k), or Σ −s_k b_k − scale_k² s_k²/(2γ_k); −s_k b_k for hard constraints."""
    linear = -s * problem.bound
    if problem.hard:
        return float(linear.sum())
    gamma, k = problem.gamma * problem.weight, problem.n_log
    share = linear[:k] / gamma[:k]
    if (share <= -1.0).any():
        return -np.inf
    squares = (problem.scale[k:] * (s[k:] / np.sqrt(gamma[k:]))) ** 2
    return float((gamma[:k] * np.log1p(share)).sum() + linear[k:].sum()) - 0.5 * float(squares.sum())


def _eigenvalues(F: np.ndarray) -> np.ndarray:
    """Return the eigenvalues of F; negative ones within rounding error become zero."""
    w = np.linalg.eigvalsh(F)
    rounding = 1e-14 * len(w) * np.abs(w).max(initial=0.0)
    return np.where((w < 0) & (w >= -rounding), 0.0, w)


def _edge_chunks(problem: Problem) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield slices of edges and their differences x̂_i − x̂_j."""
    forms, X = problem.forms, problem.points
    step = max(1, _CHUNK // max(1, problem.rank))
    for a in range(0, len(forms.tail), step):
        part = slice(a, a + step)
        yield part, X[forms.tail[part]] - X[forms.head[part]]


def _values_and_matrix(problem: Problem, F: np.ndarray, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return tr(F X̂ᵀ C_k X̂) for every k, and Σ_k s_k X̂ᵀ C_k X̂, by expanding every edge once."""
    w, length = _edge_weights(problem, s), np.empty(len(problem.forms.tail))
    R = np.zeros((problem.rank, problem.rank))
    for part, Z in _edge_chunks(problem):
        length[part] = np.einsum("er,er->e", Z @ F, Z)
        _add_weighted(R, Z, w[part])
    return length if problem.forms.combine is None else problem.forms.combine @ length, R


def form_matrix(problem: Problem, s: np.ndarray) -> np.ndarray:
    """Return Σ_k s_k X̂ᵀ C_k X̂, by expanding every edge."""
    w, R = _edge_weights(problem, s), np.zeros((problem.rank, problem.rank))
    for part, Z in _edge_chunks(problem):
        _add_weighted(R, Z, w[part])
    return R


def _add_weighted(R: np.ndarray, Z: np.ndarray, w: np.ndarray) -> None:
    """Add Zᵀ diag(w) Z to R; a product AᵀA takes half the operations of AᵀB."""
    for sign in (1.0, -1.0):
        some = sign * w > 0.0
        A = Z[some] * np.sqrt(np.abs(w[some]))[:, None]
        R += sign * (A.T @ A)


def _edge_weights(problem: Problem, s: np.ndarray) -> np.ndarray:
    """Return Σ_k s_k combine[k, e] for every edge e."""
    return s if problem.forms.combine is None else sp.csr_array(problem.forms.combine).T @ s
