"""Certificate of a query-side map: a bound on how far its objective is from the optimum.

P is λ-strongly convex, so P(B) − P* ≤ ‖∇P(B)‖²_F / (2λ) for every B, whichever solver found it. All is computed in
float64 from the problem and the matrix alone, by code that the solver does not use.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from .problem import Basis, FeedbackProblem

_CHUNK = 1 << 21  # numbers in memory at once


@dataclass(frozen=True)
class FeedbackCertificate:
    """Proved quality of a query-side map.

    Attributes
    ----------
    objective : float
        P(B): mean log-loss plus λ/2 ‖B − I‖²_F.
    bound : float
        ‖∇P(B)‖²_F / (2λ): P(B) exceeds the least objective of any matrix by at most this.
    relative_bound : float
        ``bound / max(1, objective)``.
    converged : bool
        True if relative_bound is within the tolerance.
    restricted : bool
        True if the least objective is that over the matrices I + U M Vᵀ of `n_components` directions, not over all.
    """

    objective: float
    bound: float
    relative_bound: float
    converged: bool
    restricted: bool


def certify(problem: FeedbackProblem, B: np.ndarray, tol: float, basis: Basis | None = None) -> FeedbackCertificate:
    """Return the certificate of B; of the problem restricted to a basis, if it is given and does not span."""
    B = np.asarray(B, dtype=np.float64)
    distance = B - np.eye(len(B))
    loss, gradient = _loss_and_gradient(problem, B)
    objective = loss + 0.5 * problem.lam * float(np.sum(distance**2))
    gradient += problem.lam * distance
    restricted = basis is not None and not basis.spans
    if basis is not None and restricted:
        gradient = gradient if basis.U is None else basis.U.T @ gradient
        gradient = gradient if basis.V is None else gradient @ basis.V
    bound = float(np.sum(gradient**2)) / (2.0 * problem.lam)
    relative_bound = bound / max(1.0, objective)
    # Written so that NaN counts as not converged.
    return FeedbackCertificate(objective, bound, relative_bound, bool(relative_bound <= tol), restricted)


def _loss_and_gradient(problem: FeedbackProblem, B: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the weighted mean of the log-losses and its gradient, each pair beside its own negatives."""
    Q, D, T = problem.queries, problem.documents, problem.temperature
    width = problem.negatives.shape[1] + 1
    step = max(1, _CHUNK // (width * Q.shape[1]))
    loss, gradient = 0.0, np.zeros_like(B)
    for a in range(0, len(problem.pairs), step):
        query, relevant = problem.pairs[a : a + step].T
        weight = problem.weight[a : a + step]
        listed = np.column_stack([relevant, problem.negatives[query]])
        rows = D[listed]
        q = Q[query]
        score = np.where(listed >= 0, np.einsum("pd,pkd->pk", q @ B, rows) / T, -np.inf)
        normaliser = logsumexp(score, axis=1)
        loss += float(weight @ (normaliser - score[:, 0]))
        # ∂/∂score = softmax − 1 for the relevant document, softmax for the others
        slope = np.exp(score - normaliser[:, None])
        slope[:, 0] -= 1.0
        gradient += q.T @ np.einsum("pk,pkd->pd", slope * (weight / T)[:, None], rows)
    return loss, gradient
