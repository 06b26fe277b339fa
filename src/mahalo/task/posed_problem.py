"""The problem of a solver: constraints in coordinates, in units in which bounds are of order 1."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..constraints import Constraints, as_arrays
from ..coordinates import PosedCoordinates, Space, span_of
from ..linalg import symmetrize
from ..losses import LogDet, Loss, resting_point
from ..progress import Progress
from ..solvers import Problem, Solution


@dataclass(frozen=True)
class PosedProblem:
    """A problem in units of 2**exponent over `span`, and the way back to the units of the data.

    `eta` is the resting point of the loss: the core matrix outside the span.
    """

    problem: Problem
    coordinates: PosedCoordinates
    span: np.ndarray | None
    exponent: int
    eta: float

    def core(self, solution: Solution) -> np.ndarray:
        """Return F over all coordinates: the solution inside the span, η I outside it."""
        F, Q, eta = solution.F, self.span, self.eta
        if Q is None:
            return F
        return symmetrize(Q @ (F - eta * np.eye(len(F))) @ Q.T) + eta * np.eye(len(Q))

    def duals(self, solution: Solution) -> np.ndarray:
        """Return the multipliers λ ≥ 0 in the units of the data."""
        return np.ldexp(solution.lam, -2 * self.exponent)

    def values(self, solution: Solution) -> np.ndarray:
        """Return v_k = tr(W X C_k Xᵀ) of the constraints in the units of the data."""
        p = self.problem
        v = p.offset + p.forms.apply(np.ascontiguousarray(p.points @ solution.F), p.points)
        return np.ldexp(v, 2 * self.exponent)


def pose_problem(
    constraints: Constraints, space: Space, loss: Loss, numbers: np.ndarray | None, progress: Progress
) -> PosedProblem:
    """Pose the problem of constraints with bounds; `numbers` are the caller's numbers of the rows, for messages."""
    known = as_arrays(constraints)
    forms, eta = known.forms, resting_point(loss)
    coordinates, points, left_out = space.pose(forms, known.rows, progress)
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
    return PosedProblem(problem.compact(), coordinates, span, exponent, eta)


def _check_within_reach(constraints: Constraints, problem: Problem, exponent: int, numbers: np.ndarray | None) -> None:
    """Raise ValueError if a constraint is so far from holding that slopes and curvatures leave float64."""
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
