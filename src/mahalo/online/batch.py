"""Batch problem of a stream: minimise D(U, I) + Σ η ℓ(U) over the stored pairs."""

from __future__ import annotations

import numpy as np

from ..constraints import EdgeForms
from ..solvers import Certificate, Problem, Solution, certify, solve
from .reservoir import StoredPairs
from .stream import StepSchedule


def batch_problem(stored: StoredPairs, rank: int, n_pairs: int, schedule: StepSchedule) -> Problem:
    """Return the problem in which each pair costs η times half the square of its relative violation, as in the stream.

    The pairs of a sample are weighted up to the `n_pairs` of the stream; faded pairs count less. Targets are bounds
    from both sides.
    """
    pairs = stored.filled()
    weight = pairs.eta * (schedule.fading ** (n_pairs // schedule.interval - pairs.number // schedule.interval))
    if schedule.half_life is None:
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


def solve_from(problem: Problem, F: np.ndarray, tol: float) -> tuple[Solution, Certificate]:
    """Return the optimum, searched from F on, and the certificate of F with the multipliers of the optimum."""
    start = Solution(F, np.zeros(problem.n_constraints), problem, tol, (), 0)
    solution = solve(problem, tol=tol, start=start)
    if not solution.certificate.converged:
        solution = solve(problem, tol=tol)
    return solution, certify(problem, F, solution.lam, tol)
