"""Bregman projections, Algorithm 1 of the paper: LogDet over pairs and relative distances.

Each projection onto a pair is a rank-one update of F (or of the kernel matrix K), in compiled code. In small dimension
it is done as printed; in large dimension a block of projections first runs on the block's Gram matrix Z F Zᵀ, and one
product then applies all of them to F. The iterates are the same. Relative distances (triplets, quadruplets) are updates
of rank two; each sweep does them after the pairs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._core.edges import edge_rows
from .._core.projections import sweep_block, sweep_features, sweep_kernel, sweep_relative
from ..linalg import (
    cholesky_or_none,
    from_upper,
    inverse_factor,
    log_det_of_upper,
    rank_one_steps,
    symmetrize,
    times_upper,
)
from .certificate import FEASIBLE
from .dual import dual
from .farkas import farkas
from .problem import Problem
from .result import OnStep, Solution, Step, StepLog

_BLOCKED_FROM = 112  # rank from which blocks beat rank-one updates
_BLOCK = 96
_SMALL_KERNEL = 200  # points up to which K is projected on as printed
_REBUILD_EVERY = 50  # sweeps after which F is rebuilt from λ
_MAX_SWEEPS = 1000


def bregman(
    problem: Problem,
    *,
    tol: float = 1e-4,
    max_iter: int | None = None,
    start: Solution | None = None,
    on_step: OnStep | None = None,
    on_kernel: bool | None = None,
) -> Solution:
    """Sweep over all constraints until the relative gap is within `tol`; `max_iter` counts sweeps (default 1000).

    `on_kernel` projects on the kernel matrix of the points, as printed in the paper, instead of on F; by default True
    where that matrix is small and hardly larger than F.
    """
    if on_kernel is None:
        on_kernel = problem.forms.n_rows <= min(_SMALL_KERNEL, 1.1 * problem.rank + 1)
    state = Projections(problem, start, on_kernel)
    n_sweeps = max_iter or _MAX_SWEEPS
    log, next_check = StepLog(n_sweeps, on_step), 1
    for sweep in range(1, n_sweeps + 1):
        largest = state.sweep()
        if sweep % _REBUILD_EVERY == 0:
            state.rebuild()
        # The gap costs about as much as a sweep: compute it at sweeps 1, 2, 3, 4, 5, 6, 7, 9, 11, ...
        if sweep >= next_check or largest == 0.0:
            next_check = sweep + 1 + sweep // 8
            step = state.measure(largest)
            log.append(step)
            feasible = not problem.hard or step.max_violation <= FEASIBLE
            if log.is_full or (abs(step.relative_gap) <= 0.5 * tol and feasible):
                break
    state.rebuild()
    solution = Solution(state.F, state.lam.copy(), problem, tol, tuple(log.steps), sweep)
    if problem.hard and not solution.certificate.converged:
        proof = farkas(problem, solution.lam)
        if proof is not None:
            raise proof
        dual(problem, tol=tol)  # raises where constraints contradict, which sweeps do not detect
    return solution


@dataclass(frozen=True)
class _Pairs:
    """Arrays of the pairs, in the types that the compiled loops need."""

    tail: np.ndarray
    head: np.ndarray
    delta: np.ndarray
    offset: np.ndarray
    gamma: np.ndarray

    @classmethod
    def of(cls, problem: Problem) -> _Pairs:
        m, edge = problem.n_log, slice(None)
        if problem.forms.combine is not None:
            edge = problem.forms.combine[:m].indices
        return cls(
            np.ascontiguousarray(problem.forms.tail[edge], dtype=np.intp),
            np.ascontiguousarray(problem.forms.head[edge], dtype=np.intp),
            np.ascontiguousarray(problem.sign[:m], dtype=np.float64),
            np.ascontiguousarray(problem.offset[:m], dtype=np.float64),
            np.ascontiguousarray(problem.gamma * problem.weight[:m], dtype=np.float64),
        )


@dataclass(frozen=True)
class _Relative:
    """Arrays of the constraints d²(near) + margin ≤ d²(far), after the pairs: both edges, c − b, h = scale²/γ."""

    near: np.ndarray
    far: np.ndarray
    excess: np.ndarray
    h: np.ndarray

    @classmethod
    def of(cls, problem: Problem) -> _Relative:
        m, forms = problem.n_log, problem.forms
        rest = None if forms.combine is None else forms.combine[m:]
        if rest is None or rest.shape[0] == 0:
            none = np.empty((0, 2), dtype=np.intp)
            return cls(none, none, np.empty(0), np.empty(0))
        two_edges = (np.diff(rest.indptr) == 2).all() and (rest.sum(axis=1) == 0).all() and (abs(rest.data) == 1).all()
        if not two_edges or (problem.sign[m:] < 0).any():
            raise ValueError(
                "solver='bregman' projects onto pairs, triplets and quadruplets; this problem has other linear forms. "
                "Use solver='newton' or 'dual'."
            )
        ends = np.column_stack([forms.tail, forms.head]).astype(np.intp)
        return cls(
            near=ends[rest.indices[rest.data > 0]],
            far=ends[rest.indices[rest.data < 0]],
            excess=problem.offset[m:] - problem.bound[m:],
            h=problem.scale[m:] ** 2 / (problem.gamma * problem.weight[m:]),
        )


def _slack_of(problem: Problem, lam: np.ndarray) -> np.ndarray:
    """Return ξ at multipliers λ: 1/ξ = 1/b − s/γ, the sum of all updates of step 3.6."""
    m = problem.n_log
    if problem.hard:
        return problem.bound[:m].copy()
    return 1.0 / (1.0 / problem.bound[:m] - problem.sign[:m] * lam[:m] / (problem.gamma * problem.weight[:m]))


class Projections:
    """State F, ξ and λ of Algorithm 1 in feature space; `sweep` projects onto every constraint once, in order."""

    def __init__(self, problem: Problem, start: Solution | None = None, on_kernel: bool = False):
        self.problem = problem
        self.pairs, self.relative = _Pairs.of(problem), _Relative.of(problem)
        self.blocked = problem.rank >= _BLOCKED_FROM
        self.lam = np.zeros(problem.n_constraints) if start is None else start.lam.copy()
        self.xi = _slack_of(problem, self.lam)
        # Zero columns up to a multiple of 8 change nothing and help vectorisation. With blocks only the upper triangle
        # of F is valid.
        padding = -problem.rank % 8
        self._points = np.pad(problem.points, [(0, 0), (0, padding)])
        self._F = np.eye(problem.rank + padding)
        self._scratch = np.empty((4, len(self._F)))
        if start is not None:
            self.rebuild()
        self._kernel = None
        if on_kernel and not len(self.relative.excess):
            self._kernel = KernelProjections(problem, self._points @ self._F @ self._points.T, self.lam)

    @property
    def F(self) -> np.ndarray:
        return from_upper(self._F[: self.problem.rank, : self.problem.rank])

    def sweep(self) -> float:
        """Project onto every constraint once; return the largest relative step |s p|."""
        if self.problem.rank == 0:
            return 0.0
        if self._kernel is not None:
            return self._kernel.sweep()
        return max(self._sweep_pairs(), self._sweep_relative())

    def _sweep_relative(self) -> float:
        c = self.relative
        if not len(c.excess):
            return 0.0
        if self.blocked:
            self._F = from_upper(self._F)
        lam = self.lam[self.problem.n_log :]
        return sweep_relative(self._F, self._points, c.near, c.far, c.excess, c.h, lam, self._scratch)

    def _sweep_pairs(self) -> float:
        m = self.problem.n_log
        if m == 0:
            return 0.0
        if self.blocked:
            return max(self._project_block(slice(a, min(a + _BLOCK, m))) for a in range(0, m, _BLOCK))
        p = self.pairs
        return sweep_features(
            self._F, self._points, p.tail, p.head, p.delta, p.offset, p.gamma, self.xi, self.lam[:m], self._scratch
        )

    def _project_block(self, part: slice) -> float:
        """Project onto the pairs of one block; only the upper triangle of F is updated."""
        p = self.pairs
        Z, largest = edge_rows(self._points, p.tail[part], p.head[part]), 0.0

        def project(G: np.ndarray, beta: np.ndarray) -> None:
            nonlocal largest
            largest = sweep_block(G, p.delta[part], p.offset[part], p.gamma[part], self.xi[part], self.lam[part], beta)

        self._F, _ = rank_one_steps(self._F, Z, project)
        return largest

    def rebuild(self) -> None:
        """Compute F = (I + Σ s_k z_k z_kᵀ)⁻¹ afresh, without the rounding errors of many updates."""
        inverse = np.eye(len(self._F)) + self.problem.forms.adjoint(self._points, self.problem.sign * self.lam)
        factor = cholesky_or_none(symmetrize(inverse))
        if factor is not None:
            half = inverse_factor(factor)
            self._F = half.T @ half

    def measure(self, largest: float) -> Step:
        """Return the gap of F and λ as they stand."""
        if self._kernel is not None:
            self.rebuild()
        problem, s = self.problem, self.problem.sign * self.lam
        v = problem.offset + problem.forms.apply(times_upper(self._F, self._points), self._points)
        log_det_F = log_det_of_upper(self._F)
        primal = float(np.trace(self._F)) - len(self._F) - log_det_F + float(problem.slack.value(v).sum())
        dual = -log_det_F + float(s @ problem.offset) + float(problem.slack.dual(s).sum())
        return Step(
            gamma=problem.gamma,
            primal=primal,
            relative_gap=(primal - dual) / max(1.0, abs(primal)) if np.isfinite(log_det_F) else np.inf,
            max_violation=float(problem.relative_violation(v).max(initial=0.0)),
            step_length=largest,
            inner_iterations=problem.n_constraints,
        )


class KernelProjections:
    """State K, ξ and λ of Algorithm 1 as printed, on a kernel matrix K0 over the rows of `problem.forms`.

    M of W = I + X M Xᵀ, needed for new points, is updated by the same rank-one steps. Only the pairs, bounds and γ of
    `problem` are read; its points may be empty.
    """

    def __init__(self, problem: Problem, K0: np.ndarray, lam: np.ndarray | None = None):
        n = problem.forms.n_rows
        self.pairs = _Pairs.of(problem)
        self.K = np.array(K0, dtype=np.float64, order="C")
        if self.K.shape != (n, n):
            raise ValueError(f"K0 must be {n} × {n}, one row for each point of the pairs; got shape {self.K.shape}.")
        self.lam = np.zeros(problem.n_constraints) if lam is None else lam
        self.xi = _slack_of(problem, self.lam)
        self.M = np.zeros((n, n))
        self._B = np.eye(n)  # I + K0 M
        self._scratch = np.empty((2, max(1, n)))

    def sweep(self) -> float:
        p = self.pairs
        return sweep_kernel(
            self.K, self._B, self.M, p.tail, p.head, p.delta, p.offset, p.gamma, self.xi, self.lam, self._scratch
        )
