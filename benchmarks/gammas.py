"""Every γ on every table, certified; and hard constraints, met."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from itertools import product

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from mahalo import Constraints, MetricLearner

from .report import Check, Report
from .report import Table as ReportTable
from .settings import Settings
from .tables import Table, load_tables, source_note, standardised

__all__ = ["run"]

GAMMAS = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
PERCENTILES = ((5, 95), (1, 99))
TOL = 1e-6
FEASIBLE = 1e-8


@dataclass(frozen=True)
class _Sweep:
    """All γ on one table: the worst gap, and everything that was said on the way."""

    table: str
    units: str
    percentiles: tuple[int, int]
    largest_gap: float
    n_unconverged: int
    warnings: tuple[str, ...]
    seconds: tuple[float, ...]


@dataclass(frozen=True)
class _HardProblem:
    name: str
    X: np.ndarray
    similar: np.ndarray
    dissimilar: np.ndarray
    upper: np.ndarray
    lower: np.ndarray


@dataclass(frozen=True)
class _HardResult:
    name: str
    n_pairs: int
    max_violation: float  # relative, recomputed from the learned distances
    relative_gap: float
    warnings: tuple[str, ...]
    seconds: float


def run(settings: Settings) -> Report:
    tables = load_tables(max_rows=700 if settings.quick else None)
    gammas = GAMMAS[::2] if settings.quick else GAMMAS
    sweeps = [
        _sweep(table, units, percentiles, gammas)
        for table, units, percentiles in product(tables, ("standard", "raw"), PERCENTILES)
    ]
    hard = [_solve_hard(problem) for problem in _hard_problems(tables)]
    said = sorted({text for result in (*sweeps, *hard) for text in result.warnings})
    checks = (
        Check("largest relative gap", max(s.largest_gap for s in sweeps), TOL, at_least=False),
        Check("fits not certified", float(sum(s.n_unconverged for s in sweeps)), 0.0, at_least=False),
        Check(
            "largest violation of a hard constraint",
            max(h.max_violation for h in hard),
            FEASIBLE,
            at_least=False,
        ),
        Check("largest relative gap, hard", max(h.relative_gap for h in hard), TOL, at_least=False),
        Check("warnings of solvers", float(sum(len(r.warnings) for r in (*sweeps, *hard))), 0.0, at_least=False),
    )
    return Report(
        name="gammas",
        checks=checks,
        tables=(_sweep_table(sweeps, gammas), _hard_table(hard)),
        notes=(source_note(), *(f"warning: {text}" for text in said)),
        numbers={"seconds": {f"{s.table}, {s.units}, {s.percentiles}": s.seconds for s in sweeps}},
    )


def _sweep(table: Table, units: str, percentiles: tuple[int, int], gammas: tuple[float, ...]) -> _Sweep:
    X = standardised(table.X) if units == "standard" else table.X
    certificates, seconds = [], []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for gamma in gammas:
            learner = MetricLearner(
                gamma=gamma,
                tol=TOL,
                prior="identity",
                strategy="random",
                pairs_per_class=100,
                percentiles=percentiles,
                random_state=0,
            )
            start = time.perf_counter()
            certificates.append(learner.fit(X, table.y).certificate_)
            seconds.append(time.perf_counter() - start)
    return _Sweep(
        table=table.name,
        units=units,
        percentiles=percentiles,
        largest_gap=max(certificate.relative_gap for certificate in certificates),
        n_unconverged=sum(not certificate.converged for certificate in certificates),
        warnings=_of_solvers(caught),
        seconds=tuple(seconds),
    )


def _of_solvers(caught: list[warnings.WarningMessage]) -> tuple[str, ...]:
    """Return the texts of warnings that are not about the columns, which raw tables deserve."""
    return tuple(str(w.message) for w in caught if issubclass(w.category, (ConvergenceWarning, RuntimeWarning)))


def _hard_problems(tables: tuple[Table, ...]) -> list[_HardProblem]:
    return [
        *(_from_a_known_metric(d, n_pairs, seed=d) for d, n_pairs in ((3, 6), (10, 8), (10, 40), (30, 100))),
        *(_fewer_pairs_than_dimensions(table) for table in tables if len(table.X) <= 700),
    ]


def _from_a_known_metric(d: int, n_pairs: int, seed: int) -> _HardProblem:
    """Bounds that a known metric meets with a tenth to spare, so that all can be met at once."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((2 * max(n_pairs, d), d))
    root = np.eye(d) + 0.5 * rng.standard_normal((d, d)) / np.sqrt(d)
    pairs = _independent_pairs(rng, X, n_pairs)
    sq_distance = (((X[pairs[:, 0]] - X[pairs[:, 1]]) @ root) ** 2).sum(axis=1)
    half = n_pairs // 2
    return _HardProblem(
        name=f"known metric, d = {d}",
        X=X,
        similar=pairs[:half],
        dissimilar=pairs[half:],
        upper=1.1 * sq_distance[:half],
        lower=0.9 * sq_distance[half:],
    )


def _fewer_pairs_than_dimensions(table: Table) -> _HardProblem:
    """Pairs with linearly independent differences: whatever their bounds, some metric meets them."""
    rng = np.random.default_rng(0)
    X, y = standardised(table.X), table.y
    n_pairs = max(2, _rank_of_differences(X) // 2)
    pairs = _independent_pairs(rng, X, n_pairs)
    alike = y[pairs[:, 0]] == y[pairs[:, 1]]
    every = ((X[rng.integers(len(X), size=5000)] - X[rng.integers(len(X), size=5000)]) ** 2).sum(axis=1)
    upper, lower = np.percentile(every[every > 0], (5, 95))
    return _HardProblem(
        name=f"{table.name}, fewer pairs than dimensions",
        X=X,
        similar=pairs[alike],
        dissimilar=pairs[~alike],
        upper=np.full(alike.sum(), upper),
        lower=np.full((~alike).sum(), lower),
    )


def _independent_pairs(rng: np.random.Generator, X: np.ndarray, n_pairs: int) -> np.ndarray:
    """Distinct random pairs; their differences are linearly independent while the dimension allows it."""
    pairs: list[tuple[int, int]] = []
    rank = _rank_of_differences(X)
    while len(pairs) < n_pairs:
        i, j = sorted(int(k) for k in rng.choice(len(X), 2, replace=False))
        if (i, j) in pairs:
            continue
        candidate = np.array([*pairs, (i, j)])
        Z = X[candidate[:, 0]] - X[candidate[:, 1]]
        if np.linalg.matrix_rank(Z) == min(len(Z), rank):
            pairs.append((i, j))
    return np.array(pairs)


def _rank_of_differences(X: np.ndarray) -> int:
    return int(np.linalg.matrix_rank(X - X.mean(axis=0)))


def _solve_hard(problem: _HardProblem) -> _HardResult:
    constraints = Constraints.from_pairs(
        similar=problem.similar, dissimilar=problem.dissimilar, upper=problem.upper, lower=problem.lower
    )
    learner = MetricLearner(gamma=np.inf, tol=TOL, prior="identity")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        start = time.perf_counter()
        learner.fit(problem.X, constraints=constraints)
        seconds = time.perf_counter() - start
    return _HardResult(
        name=problem.name,
        n_pairs=len(problem.similar) + len(problem.dissimilar),
        max_violation=_max_violation(problem, learner),
        relative_gap=abs(learner.certificate_.relative_gap),
        warnings=_of_solvers(caught),
        seconds=seconds,
    )


def _max_violation(problem: _HardProblem, learner: MetricLearner) -> float:
    def sq_distances(pairs: np.ndarray) -> np.ndarray:
        return learner.metric_.pair_distances(problem.X[pairs[:, 0]], problem.X[pairs[:, 1]], squared=True)

    too_far = sq_distances(problem.similar) / problem.upper - 1.0 if len(problem.similar) else np.zeros(1)
    too_near = 1.0 - sq_distances(problem.dissimilar) / problem.lower if len(problem.dissimilar) else np.zeros(1)
    return float(max(0.0, too_far.max(), too_near.max()))


def _sweep_table(sweeps: list[_Sweep], gammas: tuple[float, ...]) -> ReportTable:
    columns = ("table", "units", "percentiles", "largest gap", "warnings", "all γ (s)", "slowest (s)")
    rows = tuple(
        (
            s.table,
            s.units,
            f"{s.percentiles[0]}, {s.percentiles[1]}",
            f"{s.largest_gap:.1e}",
            len(s.warnings),
            sum(s.seconds),
            max(s.seconds),
        )
        for s in sweeps
    )
    return ReportTable("γ = " + ", ".join(f"{gamma:g}" for gamma in gammas), columns, rows)


def _hard_table(results: list[_HardResult]) -> ReportTable:
    columns = ("hard constraints", "pairs", "largest violation", "relative gap", "time (s)")
    rows = tuple((h.name, h.n_pairs, f"{h.max_violation:.1e}", f"{h.relative_gap:.1e}", h.seconds) for h in results)
    return ReportTable("γ = ∞", columns, rows)
