"""One posed task: constraints on data, in coordinates, in units that suit a solver."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from ..constraints import Constraints, Degeneracy, as_arrays, drop_degenerate, resolve_bounds
from ..coordinates import EmbeddedCoordinates, KernelCoordinates, KernelSpace, LinearCoordinates, span_of
from ..errors import InfeasibleError
from ..linalg import symmetrize
from ..losses import LogDet, Loss, as_loss, resting_point
from ..metric import Metric, leading_part
from ..priors import Supervision
from ..rows import SampledRows
from ..solvers import Problem, Solution, Step, contradiction_error, solve
from ..validation import as_generator, as_rows, len_of, warn
from .space import Space, make_space

__all__ = ["Task"]


@dataclass(frozen=True)
class Task:
    """What is to be learned, ready for every γ.

    The problem behind it is in units of its own: coordinates in units of 2**exponent, so that no scale of the data
    over- or underflows, and, where the loss asks for it, over the span of the constraints alone. Solutions are in
    those units; `metric` and `duals` bring them back to those of the data.

    Attributes
    ----------
    constraints : Constraints
        Those that are left, with their bounds, by row of X.
    n_dropped, n_outside : int
        Constraints left out because they are about identical points, or because a row they mention is not in X.
    """

    N_STAGES: ClassVar[int] = 3

    constraints: Constraints
    n_dropped: int
    n_outside: int
    _settings: Any = field(repr=False)
    _X: Any = field(repr=False)
    _pose: _Pose = field(repr=False)
    _given: np.ndarray = field(repr=False)
    _numbers: np.ndarray | None = field(repr=False)  # of rows, where those of X are not what the caller knows them by
    _quiet: bool = field(repr=False)

    @classmethod
    def of(
        cls,
        settings: Any,
        X: Any,
        y: Any,
        constraints: Constraints | None,
        rows: Any,
        *,
        quiet: bool = False,
        kept: dict | None = None,
        on_stage: Callable[[str], None] | None = None,
    ) -> Task:
        """From data and the parameters of a learner.

        X may be `SampledRows`, with their numbers for `rows`. `quiet` keeps warnings back; `kept` is where tasks on the
        same data share what they have in common; `on_stage` is called with a word on each of the N_STAGES stages before
        it begins.
        """
        begin = on_stage or _silent
        rng = as_generator(settings.random_state)
        _check_magnitude(X)
        rows = None if rows is None else as_rows(rows, len_of(X))
        codes, given, similar = _numbered_anew(y, X), None, None
        if constraints is not None:
            _check_not_empty(constraints)
            constraints, given = constraints.for_data(rows, len_of(X))
            similar = constraints.pairs.index[constraints.pairs.sign > 0]
        begin("prior or kernel, and basis")
        known = Supervision(codes, similar, {} if kept is None else kept)
        space = make_space(settings, X, known, rows, rng, quiet=quiet)
        begin("constraints and bounds")
        if constraints is None:
            constraints = Constraints.from_labels(
                y,
                space.geometry,
                strategy=settings.strategy,
                pairs_per_class=settings.pairs_per_class,
                random_state=rng,
            )
        if isinstance(space, KernelSpace) and settings.psd != "error":
            space = space.definite(constraints)
        geometry = space.geometry
        sampled = X if isinstance(X, SampledRows) else None
        left = drop_degenerate(constraints, geometry, rows)
        given = np.ones_like(left.keep) if given is None else given
        n_outside = int((~given).sum())
        if left.message:
            _report_impossible(left, given, hard=np.isinf(settings.gamma), quiet=quiet)
        n_dropped = int((~left.keep).sum())
        given[given] = left.keep
        constraints = constraints.take(left.keep) if n_dropped else constraints
        constraints = resolve_bounds(constraints, geometry, settings.bounds, settings.percentiles, rng)
        if not given.any():
            raise ValueError(
                f"no constraint is left to learn from ({n_outside} mention rows that are not in X, {n_dropped} join "
                "identical points). Check the constraints with constraints.report(X)."
            )
        begin("coordinates of the rows")
        pose = _pose(constraints, space, as_loss(settings.loss), rows)
        if sampled is not None:
            constraints, rows = constraints.renumber(sampled.numbers, sampled.n_total), None
        return cls(constraints, n_dropped, n_outside, settings, X, pose, given, rows, quiet)

    @property
    def problem(self) -> Problem:
        """With γ = 1."""
        return self._pose.problem

    def solve(
        self, gamma: float, *, start: Solution | None = None, on_step: Callable[[Step], None] | None = None
    ) -> Solution:
        """The optimum at one γ; `start` is the solution at a smaller one."""
        s = self._settings
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
            raise self._named(error) from None
        if not solution.certificate.converged and not self._quiet:
            _warn_of_gap(solution, s.tol)
        return solution

    def path(self, gammas: np.ndarray, on_step: Callable[[Step], None] | None = None) -> Iterator[tuple[int, Solution]]:
        """(position, solution) for each γ, in increasing order, each from the one before."""
        solution = None
        for k in np.argsort(gammas, kind="stable"):
            # A penalised solution is no start for hard constraints: its multipliers belong to another slack.
            start = None if np.isinf(gammas[k]) else solution
            solution = self.solve(gammas[k], start=start, on_step=on_step)
            yield int(k), solution

    def metric(self, solution: Solution, residual: float | None = None) -> Metric:
        """What was learned, of `n_components` directions if the settings say so; with another weight outside the basis
        than it was posed with, if one is given."""
        pose, eta = self._pose, self._pose.eta
        F = solution.F
        if pose.span is not None:
            # Outside the span nothing pulls: the loss rests.
            F = symmetrize(pose.span @ (F - eta * np.eye(len(F))) @ pose.span.T) + eta * np.eye(len(pose.span))
        coordinates = pose.coordinates
        residual = coordinates.residual if residual is None else residual
        if isinstance(coordinates, EmbeddedCoordinates):
            coordinates, F = coordinates.settled(F, eta * residual)
        elif residual != coordinates.residual and not _is_everything(coordinates):
            coordinates = replace(coordinates, residual=residual)
        metric = Metric(coordinates, F, eta=eta, normalize=self._settings.normalize)
        if not F.any() and eta * residual == 0 and not self._quiet:
            warn(
                "the learned metric is zero: under this loss nothing keeps distances up but dissimilar pairs, triplets "
                "and lower bounds, and there are none, or gamma is too small for them to count.",
                UserWarning,
            )
        k = self._settings.n_components
        if k is None:
            return metric
        # A part of the rows, as in a fold, may have fewer outputs than all.
        return leading_part(metric, self._X, min(k, metric.n_outputs) if self._quiet else k)

    def metrics(self, solutions: Sequence[Solution]) -> tuple[Metric, ...]:
        """What was learned at several γ; that it is zero is said once."""
        silent = replace(self, _quiet=True)
        zero = np.array([not solution.F.any() for solution in solutions])
        said = zero & (np.cumsum(zero) > 1)
        return tuple((silent if s else self).metric(solution) for s, solution in zip(said, solutions, strict=True))

    def duals(self, solution: Solution) -> np.ndarray:
        """Multipliers λ ≥ 0 of the constraints, in the units of X."""
        return np.ldexp(solution.lam, -2 * self._pose.exponent)

    def duals_and_values(self, solution: Solution) -> tuple[np.ndarray, np.ndarray]:
        """λ, and v of the constraints, tr(W X C_k Xᵀ), in the units of X."""
        problem = self.problem
        v = problem.offset + problem.forms.apply(np.ascontiguousarray(problem.points @ solution.F), problem.points)
        return self.duals(solution), np.ldexp(v, 2 * self._pose.exponent)

    def _named(self, error: InfeasibleError) -> InfeasibleError:
        """The same error with the constraints in words, and a multiplier for each that was given."""
        involved = error.constraints[np.argsort(-error.multipliers[error.constraints], kind="stable")]
        listed = "; ".join(self.constraints.describe(k, self._numbers) for k in involved[:4])
        more = f"; and {len(involved) - 4} more" if len(involved) > 4 else ""
        multipliers, scale = np.zeros((2, len(self._given)))
        multipliers[self._given], scale[self._given] = error.multipliers, self.problem.scale
        error = contradiction_error(multipliers, scale, error.outcome, error.trace_bound)
        return InfeasibleError(
            f"{error} In words: {listed}{more}.",
            outcome=error.outcome,
            multipliers=multipliers,
            trace_bound=error.trace_bound,
        )


def _is_everything(coordinates: Any) -> bool:
    """Whether nothing lies outside them."""
    return isinstance(coordinates, LinearCoordinates) and coordinates.basis is None


def _silent(what: str) -> None:
    """For those who do not ask."""


def _numbered_anew(codes: np.ndarray | None, X: Any) -> np.ndarray | None:
    """Codes without gaps where some rows of all, as in a fold, lack a class, and none where they lack all; of a sample
    they are those of all rows."""
    if codes is None or isinstance(X, SampledRows):
        return codes
    present, found = np.unique(codes, return_inverse=True)
    return found - int((present < 0).any()) if (present >= 0).any() else None


def _check_magnitude(X: Any) -> None:
    X = X.X if isinstance(X, SampledRows) else X
    values = X.data if sp.issparse(X) else X
    if values.dtype.kind != "f":
        return  # objects, which only a kernel can measure
    largest = max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))
    if largest > 0 and not 1e-150 <= largest <= 1e150:
        raise ValueError(
            f"the largest value in X is {largest:.3g}; squared distances would not fit into float64. Rescale X, say "
            "X / abs(X).max(): learned distances scale along."
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


def _report_impossible(left: Degeneracy, given: np.ndarray, hard: bool, quiet: bool) -> None:
    """Warn of constraints that hold identical points apart, or raise if they must hold."""
    if hard:
        lam = np.zeros(len(given))
        lam[np.flatnonzero(given)[left.impossible[0]]] = 1.0
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


@dataclass(frozen=True)
class _Pose:
    """A problem, and what it takes to come back from it: coordinates in units of 2**exponent, over `span`."""

    problem: Problem
    coordinates: LinearCoordinates | KernelCoordinates | EmbeddedCoordinates
    span: np.ndarray | None
    exponent: int
    eta: float


def _pose(constraints: Constraints, space: Space, loss: Loss, numbers: np.ndarray | None) -> _Pose:
    """The problem in coordinates, in units in which bounds are of order 1."""
    known = as_arrays(constraints)
    forms, eta = known.forms, resting_point(loss)
    coordinates, points, left_out = space.pose(forms, known.rows)
    exponent = round(float(np.median(np.frexp(known.scale)[1])) / 2)
    points = np.ldexp(points, -exponent)
    points -= points.mean(axis=0)  # differences are all that counts, and they are more exact near zero
    span = span_of(points, forms) if getattr(loss, "on_span", False) else None
    points = np.ascontiguousarray(points if span is None else points @ span)
    # c_k = ηρ [tr(C_k K0) − tr(C_k X̂X̂ᵀ)]: what the coordinates leave out of each constraint.
    left_out = eta * np.ldexp(left_out, -2 * exponent)
    tilt, constant = None, 0.0
    if constraints.objective is not None:
        # The last form is the objective; its value is in the units of X.
        forms, last, coefficient = forms.split_last()
        left_out, rest = np.split(left_out, [len(forms.tail)])
        tilt = np.ldexp(symmetrize(last.adjoint(points, coefficient)), 2 * exponent)
        constant = float(np.ldexp(coefficient @ rest, 2 * exponent))
    problem = Problem(
        points=points,
        forms=forms,
        sign=known.sign,
        bound=np.ldexp(known.bound, -2 * exponent),
        scale=np.ldexp(known.scale, -2 * exponent),
        weight=known.weight,
        offset=left_out if forms.combine is None else forms.combine @ left_out,
        gamma=1.0,
        n_log=known.n_pairs if type(loss) is LogDet else 0,
        loss=loss,
        tilt=tilt,
        constant=constant,
    )
    _check_within_reach(constraints, problem, exponent, numbers)
    return _Pose(problem.compact(), coordinates, span, exponent, eta)


def _check_within_reach(constraints: Constraints, problem: Problem, exponent: int, numbers: np.ndarray | None) -> None:
    """Raise where a constraint is so far from holding that slopes and curvatures leave float64."""
    value = problem.offset + problem.forms.apply(problem.points, problem.points)
    ratio = np.abs(value) / problem.scale
    close = (problem.sign < 0) & (np.arange(len(value)) < problem.n_log)
    wrong = np.flatnonzero((ratio > 1e120) | (close & (ratio < 1e-120)))
    if len(wrong):
        k = wrong[0]
        raise ValueError(
            f"{constraints.describe(int(k), numbers)} is out of reach: under the prior its value is "
            f"{np.ldexp(value[k], 2 * exponent):.3g}. Bounds and margins are squared distances in the units of X; "
            "check them, or drop the constraint."
        )
