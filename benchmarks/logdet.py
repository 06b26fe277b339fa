"""The optimum of LogDet with slack: how fast mahalo proves it, how long the peer runs, and where it stops."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

import numpy as np

from mahalo import MetricLearner, metric_path
from mahalo.solvers import certify

from .peers import PeerFit, fit_itml
from .problems import PairProblem, digits_problem, pair_problem, primal_of, simulated_classes
from .report import Check, Report, Table
from .settings import Settings
from .timing import seconds_of

__all__ = ["run"]

TOL = 1e-6
GAMMA = 1.0
PATH = np.logspace(-2, 3, 21)
# Where the peer would take hours, it is stopped after this many times the required ratio: a lower bound, then.
# More than 1, because our own time is measured again after it.
PATIENCE = 1.2


@dataclass(frozen=True)
class _Case:
    name: str
    problem: PairProblem
    required: float
    to_the_end: bool = False  # whether the peer is waited for, however long it takes


@dataclass(frozen=True)
class _Comparison:
    """One problem solved by both. `excess` is (P_peer − P*)/P*, P* the certified optimum."""

    case: _Case
    fit_seconds: float
    solve_seconds: float
    relative_gap: float
    peer: PeerFit
    excess: float

    @property
    def ratio(self) -> float:
        return self.peer.seconds / self.fit_seconds

    def check(self) -> Check:
        note = f"peer stopped after {self.peer.sweeps} sweeps: a lower bound" if self.peer.stopped else ""
        name = f"{self.case.name}: times faster than metric-learn's fit"
        return Check(name, self.ratio, self.case.required, is_bound=self.peer.stopped, note=note)

    def row(self) -> tuple:
        return (
            self.case.name,
            self.case.problem.n_features,
            self.case.problem.n_pairs,
            self.fit_seconds,
            self.solve_seconds,
            f"{self.relative_gap:.1e}",
            ("> " if self.peer.stopped else "") + f"{self.peer.seconds:.4g}",
            str(self.peer.sweeps) + (" (stopped)" if self.peer.stopped else ""),
            f"{self.excess:.1e}",
        )


def run(settings: Settings) -> Report:
    repeats = 3 if settings.quick else 5
    comparisons = [_compare(case, settings.time_limit, repeats) for case in _cases(settings)]
    gap_check = Check(
        f"largest relative gap at γ = {GAMMA:g}, recomputed",
        max(comparison.relative_gap for comparison in comparisons),
        TOL,
        at_least=False,
    )
    path_check, path_table = _path(comparisons[0], repeats)
    return Report(
        name="logdet",
        checks=(*(comparison.check() for comparison in comparisons), gap_check, *path_check),
        tables=(_comparison_table(comparisons), path_table),
        notes=(
            "pairs: 100 similar and 100 dissimilar per class; bounds: 5 and 95 % of squared distances",
            "simulated: 2000 rows, correlated features; 10 classes, 26 (as many as letters) at d = 617",
            "metric-learn: ITML(gamma=1, max_iter=1000, tol=1e-3) on the same rows, pairs and squared bounds",
            "excess: how far the objective of the peer's matrix lies above the certified optimum, relatively",
        ),
        numbers={"peer_versions": comparisons[0].peer.versions},
    )


def _cases(settings: Settings) -> list[_Case]:
    cases = [
        _Case("digits", digits_problem(), 400.0, to_the_end=True),
        _Case("simulated, d = 16", _simulated(16), 1000.0, to_the_end=True),
        _Case("simulated, d = 200", _simulated(200), 500.0),
    ]
    # The width and the classes of the table of spoken letters.
    letters = _Case("simulated, d = 617", _simulated(617, n_classes=26), 500.0)
    return cases if settings.quick else [*cases, letters]


def _simulated(n_features: int, n_classes: int = 10) -> PairProblem:
    return pair_problem(*simulated_classes(n_features, n_classes=n_classes))


def _compare(case: _Case, time_limit: float, repeats: int) -> _Comparison:
    """Ours, theirs, ours again."""
    constraints, task, stated = case.problem.constraints(), case.problem.task(TOL), case.problem.as_stated(GAMMA)
    learner = MetricLearner(prior="identity", gamma=GAMMA, tol=TOL)

    def ours() -> tuple[list[float], list[float]]:
        fits = [seconds_of(lambda: learner.fit(case.problem.X, constraints=constraints)) for _ in range(repeats)]
        return fits, [seconds_of(lambda: task.solve(GAMMA)) for _ in range(repeats)]

    ours()  # warms up
    fits, solves = ours()
    patience = np.inf if case.to_the_end else PATIENCE * case.required * median(fits)
    peer = fit_itml(case.problem, gamma=GAMMA, time_limit=min(patience, time_limit))
    more_fits, more_solves = ours()
    certificate = certify(stated, learner.metric_.matrix, learner.duals_, TOL)
    return _Comparison(
        case=case,
        fit_seconds=median(fits + more_fits),
        solve_seconds=median(solves + more_solves),
        relative_gap=certificate.relative_gap,
        peer=peer,
        excess=primal_of(stated, peer.matrix) / certificate.primal - 1.0,
    )


def _path(comparison: _Comparison, repeats: int) -> tuple[tuple[Check, Check], Table]:
    """All the values of γ, each to the same tolerance, against one fit of the peer."""
    problem, peer = comparison.case.problem, comparison.peer
    constraints = problem.constraints()

    def follow():
        return metric_path(problem.X, constraints=constraints, gammas=PATH, prior="identity", tol=TOL)

    path = follow()
    seconds = median(seconds_of(follow) for _ in range(repeats))
    largest_gap = max(certificate.relative_gap for certificate in path.certificates)
    share = Check(
        f"{comparison.case.name}: {len(PATH)}-value γ path, as a share of one fit of the peer",
        seconds / peer.seconds,
        0.1,
        at_least=False,
        is_bound=peer.stopped,
    )
    gap = Check("largest relative gap on the path", largest_gap, TOL, at_least=False)
    rows = tuple(
        (float(gamma), certificate.primal, f"{certificate.relative_gap:.1e}", certificate.n_violated)
        for gamma, certificate in zip(path.gammas, path.certificates, strict=True)
    )
    title = f"γ path on {comparison.case.name}: {seconds:.3g} s in all"
    return (share, gap), Table(title, ("γ", "objective", "relative gap", "violated"), rows)


def _comparison_table(comparisons: list[_Comparison]) -> Table:
    columns = (
        "problem",
        "d",
        "pairs",
        "mahalo: fit (s)",
        "solver alone (s)",
        "relative gap",
        "metric-learn: fit (s)",
        "sweeps",
        "excess",
    )
    return Table(f"γ = {GAMMA:g}", columns, tuple(comparison.row() for comparison in comparisons))
