"""Task: constraints on data, posed once and solved for any γ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from ..constraints import (
    Constraints,
    Degeneracy,
    drop_degenerate,
    resolve_bounds,
    unique_inverse,
    weighted_by_rows,
)
from ..errors import InfeasibleError, NothingToLearnError
from ..features import FeatureMap, fit_features
from ..losses import as_loss
from ..metric import Metric, leading_part
from ..priors import Supervision
from ..progress import SILENT, Countdown, Progress
from ..rows import SampledRows
from ..solvers import OnStep, Problem, Solution, contradiction_error, solve
from ..validation import as_generator, as_rows, check_magnitude, len_of, warn
from .posed_problem import PosedProblem, pose_problem
from .sample import check_suits_dask
from .settings import FitData, FitSettings
from .space import make_space

_N_STAGES = 3


@dataclass(frozen=True)
class Task:
    """A posed problem, ready to be solved for every γ.

    Solutions are in the units of the problem; `metric`, `duals` and `values` are in those of the data.

    Attributes
    ----------
    constraints : Constraints
        Constraints that are used, with their bounds, by row of X.
    n_dropped, n_outside : int
        Constraints left out because they join identical points, or because they mention a row that is not in X.
    """

    constraints: Constraints
    n_dropped: int
    n_outside: int
    _settings: FitSettings = field(repr=False)
    _X: Any = field(repr=False)
    _posed: PosedProblem = field(repr=False)
    _is_used: np.ndarray = field(repr=False)  # for each constraint of the caller
    _numbers: np.ndarray | None = field(repr=False)  # caller's numbers of the rows; None: 0, 1, …
    _quiet: bool = field(repr=False)
    _features: FeatureMap | None = field(default=None, repr=False)

    @property
    def problem(self) -> Problem:
        """The problem with γ = 1."""
        return self._posed.problem

    def solve(self, gamma: float, *, start: Solution | None = None, on_step: OnStep | None = None) -> Solution:
        """Return the optimum at one γ; `start` is the solution at a smaller one, of no use to hard constraints."""
        s = self._settings
        if np.isinf(gamma):
            start = None  # multipliers of a penalised solution belong to another slack
        try:
            solution = solve(
                replace(self.problem, gamma=float(gamma)),
                s.solver,
                tol=s.tol,
                max_iter=s.max_iter,
                start=start,
                on_step=on_step,
            )
        except InfeasibleError as error:
            raise self._in_words(error) from None
        if not self._quiet and not solution.certificate.converged:
            _warn_of_gap(solution, s.tol)
        return solution

    def path(self, gammas: np.ndarray, on_step: OnStep | None = None) -> Iterator[tuple[int, Solution]]:
        """Yield (position, solution) for each γ, in increasing order, each started from the one before."""
        solution = None
        for k in np.argsort(gammas, kind="stable"):
            solution = self.solve(gammas[k], start=solution, on_step=on_step)
            yield int(k), solution

    def metric(self, solution: Solution, residual: float | None = None) -> Metric:
        """Return the learned metric, of `n_components` directions if the settings say so.

        `residual` is the weight outside the basis, by default the one of the settings.
        """
        eta, posed = self._posed.eta, self._posed.coordinates
        residual = posed.residual if residual is None else residual
        coordinates, F = posed.with_solution(self._posed.core(solution), eta, residual)
        metric = Metric(coordinates, F, eta=eta, normalize=self._settings.normalize)
        if not F.any() and eta * residual == 0 and not self._quiet:
            warn(
                "the learned metric is zero: under this loss nothing keeps distances up but dissimilar pairs, triplets "
                "and lower bounds, and there are none, or gamma is too small for them to count.",
                UserWarning,
            )
        k = self._settings.n_components
        if k is not None:
            # A part of the rows, as in a fold, may have fewer outputs than all.
            metric = leading_part(metric, self._X, min(k, metric.n_outputs) if self._quiet else k)
        return metric if self._features is None else replace(metric, features=self._features)

    def basis_in_words(self, solution: Solution) -> str:
        """Return the basis of all metrics that are compared, such as "64 landmarks"; empty without one."""
        basis, rank = self._settings.basis, len(solution.F)
        name = getattr(basis, "direction_name", "direction")
        return "" if basis is None else f"{rank:,} {name}{'s' * (rank != 1)}"

    def metrics(self, solutions: Sequence[Solution]) -> tuple[Metric, ...]:
        """Return one metric per solution; warn once if any is zero."""
        silent = replace(self, _quiet=True)
        zero = np.array([not solution.F.any() for solution in solutions])
        repeated = zero & (np.cumsum(zero) > 1)
        return tuple((silent if r else self).metric(solution) for r, solution in zip(repeated, solutions, strict=True))

    def duals(self, solution: Solution) -> np.ndarray:
        """Return the multipliers λ ≥ 0 of the constraints, in the units of X."""
        return self._posed.duals(solution)

    def values(self, solution: Solution) -> np.ndarray:
        """Return v_k = tr(W X C_k Xᵀ) of the constraints, in the units of X."""
        return self._posed.values(solution)

    def _in_words(self, error: InfeasibleError) -> InfeasibleError:
        """Return the error with the constraints in words, and a multiplier for each constraint of the caller."""
        involved = error.constraints[np.argsort(-error.multipliers[error.constraints], kind="stable")]
        listed = "; ".join(self.constraints.describe(k, self._numbers) for k in involved[:4])
        more = f"; and {len(involved) - 4} more" if len(involved) > 4 else ""
        multipliers, scale = np.zeros((2, len(self._is_used)))
        multipliers[self._is_used], scale[self._is_used] = error.multipliers, self.problem.scale
        error = contradiction_error(multipliers, scale, error.outcome, error.trace_bound)
        return InfeasibleError(
            f"{error} In words: {listed}{more}.",
            outcome=error.outcome,
            multipliers=multipliers,
            trace_bound=error.trace_bound,
        )


def pose(
    settings: FitSettings,
    data: FitData,
    *,
    quiet: bool = False,
    scatter_cache: dict | None = None,
    progress: Progress = SILENT,
) -> Task:
    """Pose the problem of some data under some settings.

    `quiet` suppresses warnings; `scatter_cache` is shared by tasks on the same rows.
    """
    data = data if settings.is_linear and settings.features is None else data.held_if_complete()
    X, constraints = data.X, data.constraints
    rng = as_generator(settings.random_state)
    check_magnitude(X.X if isinstance(X, SampledRows) else X)
    rows = None if data.rows is None else as_rows(data.rows, len_of(X))
    features = None
    if settings.features is not None:
        if isinstance(X, SampledRows):
            check_suits_dask(settings)
        _check_takes_features(X)
        features = fit_features(settings.features, X, data.y, int(rng.integers(2**31)))
        X = features.transform(X)
    codes, is_used, similar = _compact_codes(data.y, X), None, None
    if constraints is not None:
        _check_not_empty(constraints)
        constraints, is_used = constraints.for_data(rows, len_of(X))
        similar = constraints.pairs.index[constraints.pairs.sign > 0]
    stage = progress.stage(f"posing: 1 of {_N_STAGES}, prior or kernel, and basis")
    shared = {} if scatter_cache is None or features is not None else scatter_cache  # of the rows as they are
    known = Supervision(codes, similar, shared)
    space = make_space(settings, X, known, rows, rng, quiet=quiet, progress=stage)
    stage = progress.stage(f"posing: 2 of {_N_STAGES}, constraints and bounds")
    if constraints is None:
        assert data.y is not None
        constraints = Constraints.from_labels(
            data.y,
            space.geometry,
            strategy=settings.strategy,
            pairs_per_class=settings.pairs_per_class,
            random_state=rng,
            progress=stage,
        )
    space = space.with_definite_kernel(constraints)
    geometry = space.geometry
    left = drop_degenerate(constraints, geometry, rows)
    is_used = np.ones_like(left.keep) if is_used is None else is_used
    n_outside = int((~is_used).sum())
    if left.message:
        _report_impossible(left, is_used, hard=np.isinf(settings.gamma), quiet=quiet)
    n_dropped = int((~left.keep).sum())
    is_used[is_used] = left.keep
    constraints = constraints.take(left.keep) if n_dropped else constraints
    if data.sample_weight is not None:
        constraints = weighted_by_rows(constraints, data.sample_weight)
    constraints = resolve_bounds(constraints, geometry, settings.bounds, settings.percentiles, rng)
    if not is_used.any():
        raise _nothing_to_learn_error(n_outside, n_dropped, by_labels=data.constraints is None)
    stage = progress.stage(f"posing: 3 of {_N_STAGES}, coordinates of the rows")
    posed = pose_problem(constraints, space, as_loss(settings.loss), rows, stage)
    if isinstance(X, SampledRows):
        constraints, rows = constraints.renumber(X.numbers, X.n_total), None
    return Task(constraints, n_dropped, n_outside, settings, X, posed, is_used, rows, quiet, features)


def pose_and_solve(settings: FitSettings, data: FitData, progress: Progress = SILENT) -> tuple[Task, Solution]:
    """Pose the problem and solve it at the γ of the settings."""
    task = pose(settings, data, progress=progress)
    with progress.solver_steps("learning", settings.tol, settings.gamma) as on_step:
        return task, task.solve(settings.gamma, on_step=on_step)


def solve_path(
    settings: FitSettings, data: FitData, gammas: np.ndarray, progress: Progress = SILENT
) -> tuple[Task, list[Solution]]:
    """Pose the problem and solve it at every γ; solutions are in the order of `gammas`."""
    task = pose(settings, data, progress=progress)
    solutions: dict[int, Solution] = {}
    countdown = Countdown(len(gammas))
    with progress.solver_steps("path", settings.tol, float(gammas.max()), countdown) as on_step:
        for k, solution in task.path(gammas, on_step):
            solutions[k] = solution
            countdown.advance()
    return task, [solutions[k] for k in range(len(gammas))]


def _compact_codes(codes: np.ndarray | None, X: Any) -> np.ndarray | None:
    """Return class codes without gaps, None if all rows are unlabelled; those of sampled rows are left as they are."""
    if codes is None or isinstance(X, SampledRows):
        return codes
    present, found = unique_inverse(codes)
    return found - int((present < 0).any()) if (present >= 0).any() else None


def _check_takes_features(X: Any) -> None:
    """Raise ValueError if rows are sparse."""
    if sp.issparse(X):
        raise ValueError(
            "features make dense columns of dense rows; with sparse rows use features=None, or X.toarray()."
        )


def _check_not_empty(constraints: Constraints) -> None:
    if constraints.n_constraints:
        return
    if constraints.objective is not None:
        raise ValueError(
            "a linear objective needs constraints beside it to learn from; add some, such as "
            "Constraints.from_labels(y) + objective."
        )
    raise ValueError(
        "the constraints are empty: there is nothing to learn from. Make some, such as "
        "Constraints.from_pairs(similar=[[0, 1]], dissimilar=[[0, 2]])."
    )


def _nothing_to_learn_error(n_outside: int, n_dropped: int, by_labels: bool) -> NothingToLearnError:
    remedy = (
        "Labelled rows must differ from one another."
        if by_labels
        else "Check the constraints with constraints.report(X)."
    )
    return NothingToLearnError(
        f"no constraint is left to learn from ({n_outside} mention rows that are not in X, {n_dropped} join identical "
        f"points). {remedy}"
    )


def _report_impossible(left: Degeneracy, is_used: np.ndarray, hard: bool, quiet: bool) -> None:
    """Warn of constraints that hold identical points apart, or raise if they must hold."""
    if hard:
        lam = np.zeros(len(is_used))
        lam[np.flatnonzero(is_used)[left.impossible[0]]] = 1.0
        raise InfeasibleError(f"{left.message}; drop them or use a finite gamma.", multipliers=lam)
    if not quiet:
        warn(f"{left.message}; dropped.", UserWarning)


def _warn_of_gap(solution: Solution, tol: float) -> None:
    certificate = solution.certificate
    warn(
        f"stopped after {solution.n_iter} steps with relative duality gap {certificate.relative_gap:.2e} (asked for "
        f"{tol:.0e}), largest violation {certificate.max_violation:.2e}. Raise tol, lower gamma (from np.inf to a "
        "finite one), or raise max_iter if you have set it; where features have very different scales, "
        "prior='diagonal' helps.",
        ConvergenceWarning,
    )
