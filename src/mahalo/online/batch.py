"""The batch problem that a stream has been working on: minimise D(U, I) + Σ η ℓ(U) over the pairs that were kept."""

from __future__ import annotations

import numpy as np

from ..constraints import EdgeForms
from ..solvers import Certificate, Problem, Solution, certify, solve
from .kept import KeptPairs
from .stream import Pace

__all__ = ["batch_problem", "solved_from"]


def batch_problem(kept: KeptPairs, rank: int, n_pairs: int, pace: Pace) -> Problem:
    """Pairs pay η times half the square of their relative violation, as in the stream.

    Those of a sample stand for all that were seen; those that have faded count less. Targets are bounds from both
    sides.
    """
    pairs = kept.held()
    weight = pairs.eta * (pace.fading ** (n_pairs // pace.interval - pairs.number // pace.interval))
    if pace.half_life is None:
        weight *= n_pairs / len(pairs)
    side = np.concatenate([np.flatnonzero(pairs.sign >= 0), np.flatnonzero(pairs.sign <= 0)])
    sign = np.repeat([1.0, -1.0], [int((pairs.sign >= 0).sum()), int((pairs.sign <= 0).sum())])
    exponent = round(float(np.median(np.frexp(pairs.bound)[1])) / 2)
    points = np.zeros((len(pairs) + 1, rank))
    np.ldexp(pairs.Z[:, :rank], -exponent, out=points[1:])
    bound = np.ldexp(pairs.bound, -2 * exponent)[side]
    return Problem(
        points=points,
        forms=EdgeForms(side.astype(np.intp) + 1, np.zeros(len(side), dtype=np.intp), len(points)),
        sign=sign,
        bound=bound,
        scale=bound,
        weight=np.maximum(weight[side], 1e-20),
        offset=np.ldexp(pairs.offset, -2 * exponent)[side],
        gamma=1.0,
        n_log=0,
    )


def solved_from(problem: Problem, F: np.ndarray, tol: float) -> tuple[Solution, Certificate]:
    """The optimum, sought from F on, and how far from it F is at most: what F and the optimum's multipliers prove."""
    start = Solution(
        F, np.zeros(problem.n_constraints), certify(problem, F, np.zeros(problem.n_constraints), tol), (), 0
    )
    solution = solve(problem, tol=tol, start=start)
    if not solution.certificate.converged:
        solution = solve(problem, tol=tol)
    return solution, certify(problem, F, solution.lam, tol)
