"""Algorithm 1 of the paper, ours and the peer's: time per projection, and whether the iterates agree.

The one benchmark that looks below a task: at single sweeps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

import numpy as np

from mahalo.solvers import Problem, bregman
from mahalo.solvers.bregman import Projections

from .peers import fit_itml
from .problems import PairProblem, digits_problem, pair_problem, simulated_classes
from .report import Check, Report, Table
from .settings import Settings
from .timing import seconds_of

__all__ = ["run"]

GAMMA = 1.0
NEVER = 0.0  # a tolerance that no iterate meets


@dataclass(frozen=True)
class _Case:
    """Sweeps first + 1 … last are timed, the same on both sides: later ones may skip more pairs."""

    problem: PairProblem
    required: float
    first: int
    last: int


@dataclass(frozen=True)
class _Measured:
    """Seconds per projection, and how far the iterates of both are apart after the last sweep, relatively."""

    case: _Case
    projections: float
    solver: float
    peer: float
    difference: float

    @property
    def ratio(self) -> float:
        return self.peer / self.projections


def run(settings: Settings) -> Report:
    repeats = 3 if settings.quick else 7
    results = [_measure(case, repeats) for case in _cases(settings.quick)]
    speed = [
        Check(
            f"d = {result.case.problem.n_features}: times faster per projection",
            result.ratio,
            result.case.required,
        )
        for result in results
    ]
    worst = max(result.difference for result in results)
    columns = (
        "d",
        "pairs",
        "mahalo (µs)",
        "with gap checks (µs)",
        "metric-learn (µs)",
        "ratio",
        "iterates differ by",
    )
    return Report(
        name="algorithm1",
        checks=(*speed, Check("iterates differ by, relatively", worst, 1e-10, at_least=False)),
        tables=(Table("one projection", columns, tuple(_row(result) for result in results)),),
        notes=(
            "metric-learn: the time that further sweeps add to a fit, over the projections in them",
            "mahalo: the same sweeps, once alone and once in the solver, which also looks at the duality gap",
        ),
    )


def _cases(quick: bool) -> list[_Case]:
    # At large d a sweep over fewer pairs tells the same.
    wide = [(384, 100, 4), (768, 40, 4)]
    return [
        _Case(digits_problem(), 10.0, 1, 6 if quick else 21),
        *(_Case(_simulated(d, pairs), 20.0, 1, 2 if quick else last) for d, pairs, last in wide),
    ]


def _simulated(n_features: int, pairs_per_class: int) -> PairProblem:
    return pair_problem(*simulated_classes(n_features, n_samples=1000), pairs_per_class=pairs_per_class)


def _measure(case: _Case, repeats: int) -> _Measured:
    problem, n_pairs = case.problem.task().problem.with_gamma(GAMMA), case.problem.n_pairs
    _sweep_seconds(problem, case)  # warms up
    sweeps, solver, peer = [], [], []
    for _ in range(repeats):
        # Ours is short: several turns of it for each turn of the peer.
        sweeps.append(median(_sweep_seconds(problem, case) for _ in range(5)))
        solver.append(median(_added_seconds(case, lambda n: _solver_seconds(problem, n)) for _ in range(5)))
        peer.append(_added_seconds(case, lambda n: _peer_seconds(case.problem, n)))
    return _Measured(
        case=case,
        projections=median(sweeps) / n_pairs,
        solver=median(solver) / n_pairs,
        peer=median(peer) / n_pairs,
        difference=_difference(case, problem),
    )


def _sweep_seconds(problem: Problem, case: _Case) -> float:
    """Seconds of one sweep, measured on the projections alone."""
    state = Projections(problem)
    for _ in range(case.first):
        state.sweep()
    n = case.last - case.first
    return seconds_of(lambda: [state.sweep() for _ in range(n)]) / n


def _added_seconds(case: _Case, seconds: Callable[[int], float]) -> float:
    """Seconds of one sweep, as what further sweeps add: validation and factorisation around them cancel."""
    return (seconds(case.last) - seconds(case.first)) / (case.last - case.first)


def _solver_seconds(problem: Problem, sweeps: int) -> float:
    return seconds_of(lambda: bregman(problem, tol=NEVER, max_iter=sweeps))


def _peer_seconds(problem: PairProblem, sweeps: int) -> float:
    return fit_itml(problem, gamma=GAMMA, max_iter=sweeps, tol=NEVER).seconds


def _difference(case: _Case, problem: Problem) -> float:
    state = Projections(problem)
    for _ in range(case.last):
        state.sweep()
    theirs = fit_itml(case.problem, gamma=GAMMA, max_iter=case.last, tol=NEVER).matrix
    return float(np.linalg.norm(state.F - theirs) / np.linalg.norm(theirs))


def _row(result: _Measured) -> tuple:
    problem = result.case.problem
    return (
        problem.n_features,
        problem.n_pairs,
        1e6 * result.projections,
        1e6 * result.solver,
        1e6 * result.peer,
        result.ratio,
        f"{result.difference:.1e}",
    )
