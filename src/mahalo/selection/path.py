"""All γ at once: the whole regularisation path."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..constraints import Constraints
from ..learner import MetricLearner
from ..metric import Metric
from ..progress import Parts, progress, stages
from ..solvers import Certificate
from ..task import Task
from ..validation import check_gamma

__all__ = ["MetricPath", "checked_gammas", "metric_path"]


@dataclass(frozen=True)
class MetricPath:
    """One metric for each γ, in the order the γ were given.

    Attributes
    ----------
    gammas : ndarray of shape (n_gammas,)
    metrics : tuple of Metric
    certificates : tuple of Certificate
    duals : ndarray of shape (n_gammas, n_constraints)
        Multipliers λ ≥ 0.
    constraints : Constraints
        Those that were used, with their bounds.
    """

    gammas: np.ndarray
    metrics: tuple[Metric, ...]
    certificates: tuple[Certificate, ...]
    duals: np.ndarray
    constraints: Constraints = field(repr=False)


def metric_path(
    X: Any, y: Any = None, *, gammas: Any = None, constraints: Any = None, rows: Any = None, **params: Any
) -> MetricPath:
    """The metrics of many γ for the price of a few fits.

    Parameters
    ----------
    X, y, constraints, rows
        As in `MetricLearner.fit`.
    gammas : array-like, optional
        Default: 21 values from 0.01 to 1000. Solved in increasing order, each from the one before; returned in the
        order given.
    **params
        Any parameter of `MetricLearner` but gamma.

    Returns
    -------
    MetricPath
        With gammas, metrics, certificates, duals (one row a γ) and the constraints.
    """
    if "gamma" in params:
        raise ValueError(f"metric_path takes gammas=, all of them at once; got gamma={params['gamma']!r}.")
    gammas = checked_gammas(np.logspace(-2, 3, 21) if gammas is None else gammas)
    learner = MetricLearner(**params, gamma=float(gammas.max()))
    X, y, constraints, rows = learner._validated(X, y, constraints, rows)
    with stages(learner.verbose, "posing", Task.N_STAGES) as on_stage:
        task = Task.of(learner, X, y, constraints, rows, on_stage=on_stage)
    solutions, parts = {}, Parts(len(gammas))
    with progress(learner.verbose, learner.tol, float(gammas.max()), "path", parts) as on_step:
        for k, solution in task.path(gammas, on_step):
            solutions[k] = solution
            parts.advance()
    ordered = [solutions[k] for k in range(len(gammas))]
    return MetricPath(
        gammas=gammas,
        metrics=task.metrics(ordered),
        certificates=tuple(solution.certificate for solution in ordered),
        duals=np.array([task.duals(solution) for solution in ordered]),
        constraints=task.constraints,
    )


def checked_gammas(gammas: Any) -> np.ndarray:
    gammas = np.atleast_1d(np.asarray(gammas, dtype=np.float64))
    if gammas.ndim != 1 or not len(gammas):
        raise ValueError(f"gammas must be a list of numbers; got shape {gammas.shape}.")
    for gamma in gammas:
        check_gamma(float(gamma))
    return gammas
