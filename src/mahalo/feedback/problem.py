"""The convex problem of a query-side map: relevant documents against fixed negatives, near the identity.

    P(B) = Σ_p w_p [ log Σ_{d ∈ {d_p} ∪ N(q_p)} exp(qᵀB d / T) − qᵀB d_p / T ]  +  λ/2 ‖B − I‖²_F,   Σ_p w_p = 1

over relevant pairs p = (q_p, d_p). With B = I + U M Vᵀ, U and V orthonormal, it is the same problem in M over the
coordinates Uᵀq and Vᵀd. The optimum has B − I in the span of q dᵀ, so nothing is lost if U spans the queries and V
the documents.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.sparse as sp

_CHUNK = 1 << 21  # numbers in memory at once while rows of documents are gathered
_RANK = 1e-10  # singular values below this part of the largest count as zero


@dataclass(frozen=True, eq=False)
class Basis:
    """Orthonormal columns U of queries and V of documents; None is the identity. `spans` if nothing is left out."""

    U: np.ndarray | None
    V: np.ndarray | None
    spans: bool

    def full(self, M: np.ndarray) -> np.ndarray:
        """Return B = I + U M Vᵀ."""
        B = M if self.U is None else self.U @ M
        B = np.array(B) if self.V is None else B @ self.V.T
        B[np.diag_indices_from(B)] += 1.0
        return B


@dataclass(frozen=True, eq=False)
class FeedbackProblem:
    """Relevant pairs, negatives, weights, temperature and λ; rows are float64.

    Attributes
    ----------
    queries, documents : ndarray of shape (n, n_features)
    pairs : ndarray of int, shape (n_pairs, 2)
        Relevant pairs, by position of query and document.
    negatives : ndarray of int, shape (n_queries, n_negatives)
        Documents that stand against the relevant ones of each query; −1 fills rows that have fewer.
    weight : ndarray of shape (n_pairs,)
        Weights of the pairs; they sum to 1.
    temperature, lam : float
        T and λ.
    """

    queries: np.ndarray
    documents: np.ndarray
    pairs: np.ndarray
    negatives: np.ndarray
    weight: np.ndarray
    temperature: float
    lam: float

    def at(self, *, lam: float, temperature: float) -> FeedbackProblem:
        """Return the same problem at another λ and T."""
        return replace(self, lam=lam, temperature=temperature)

    @cached_property
    def entries(self) -> tuple[np.ndarray, np.ndarray]:
        """Queries and documents whose scores matter: those of the pairs, then of the negatives row by row."""
        row, _ = np.nonzero(self.negatives >= 0)
        query = np.concatenate([self.pairs[:, 0], row])
        return query, np.concatenate([self.pairs[:, 1], self.negatives[self.negatives >= 0]])


class ReducedObjective:
    """P as a function of M, and its gradient, at the cost of two products with the queries and one with documents."""

    def __init__(self, problem: FeedbackProblem, basis: Basis) -> None:
        self.problem = problem
        Q, D = problem.queries, problem.documents
        self._query, self._document = problem.entries
        self._frozen = gathered_products(Q, D, self._query, self._document)  # qᵀd
        self._Q = Q if basis.U is None else Q @ basis.U
        self._D = D if basis.V is None else D @ basis.V
        self._filled = problem.negatives >= 0

    @property
    def shape(self) -> tuple[int, int]:
        return self._Q.shape[1], self._D.shape[1]

    def __call__(self, M: np.ndarray) -> tuple[float, np.ndarray]:
        """Return P(I + U M Vᵀ) and its gradient over M."""
        p = self.problem
        n_pairs = len(p.pairs)
        score = self._frozen + gathered_products(self._Q @ M, self._D, self._query, self._document)
        score /= p.temperature
        against = np.full(p.negatives.shape, -np.inf)
        against[self._filled] = score[n_pairs:]
        highest = against.max(axis=1, keepdims=True)
        against -= highest
        np.exp(against, out=against)
        total = against.sum(axis=1, keepdims=True)
        # log Σ_{d ∈ {d⁺} ∪ N} exp(s_d) − s⁺ = log(1 + exp(z)),   z = log Σ_N exp(s) − s⁺
        z = (highest + np.log(total))[p.pairs[:, 0], 0] - score[:n_pairs]
        value = float(p.weight @ np.logaddexp(0.0, z) + 0.5 * p.lam * np.vdot(M, M))
        pull = p.weight * _logistic(z)
        push = np.bincount(p.pairs[:, 0], pull, len(p.queries))[:, None] * (against / total)
        slope = np.concatenate([-pull, push[self._filled]]) / p.temperature
        # ∇ = Uᵀ (Σ_e slope_e q_e d_eᵀ) V + λM
        weights = sp.csr_array((slope, (self._query, self._document)), shape=(len(p.queries), len(p.documents)))
        return value, self._Q.T @ (weights @ self._D) + p.lam * M


def _logistic(z: np.ndarray) -> np.ndarray:
    return np.exp(-np.logaddexp(0.0, -z))


def gathered_products(A: np.ndarray, B: np.ndarray, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    """Return A[i]·B[j] for every entry, some entries at a time."""
    found = np.empty(len(i))
    step = max(1, _CHUNK // max(1, A.shape[1]))
    for a in range(0, len(i), step):
        part = slice(a, a + step)
        found[part] = np.einsum("ef,ef->e", A[i[part]], B[j[part]])
    return found


def spanning_basis(problem: FeedbackProblem, n_components: int | None) -> Basis:
    """Return orthonormal bases of the queries and of the documents, at most `n_components` leading columns each."""
    U, all_queries = _leading_columns(problem.queries, n_components)
    V, all_documents = _leading_columns(problem.documents, n_components)
    return Basis(U, V, all_queries and all_documents)


def _leading_columns(X: np.ndarray, n_components: int | None) -> tuple[np.ndarray | None, bool]:
    """Return leading right singular vectors of X as columns, or None for all of space, and whether they span X."""
    n, d = X.shape
    if n >= d and (n_components is None or n_components >= d):
        return None, True
    _, s, Vt = np.linalg.svd(X, full_matrices=False)
    rank = max(1, int((s > _RANK * s[0]).sum()))
    k = rank if n_components is None else min(rank, n_components)
    return np.ascontiguousarray(Vt[:k].T), k == rank
