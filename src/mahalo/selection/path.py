"""Regularisation path: metrics of all γ."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..constraints import Constraints
from ..learner import MetricLearner
from ..metric import Metric
from ..solvers import Certificate
from ..validation import check_gamma


@dataclass(frozen=True)
class MetricPath:
    """Metrics of a path, one for each γ, in the order in which the γ were passed.

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
    X: Any,
    y: Any = None,
    *,
    gammas: ArrayLike | None = None,
    constraints: Constraints | None = None,
    rows: ArrayLike | None = None,
    **params: Any,
) -> MetricPath:
    """Return the metrics of many γ for the price of a few fits.

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
    task, solutions = learner.solve_path(X, y, gammas, constraints=constraints, rows=rows)
    return MetricPath(
        gammas=gammas,
        metrics=task.metrics(solutions),
        certificates=tuple(solution.certificate for solution in solutions),
        duals=np.array([task.duals(solution) for solution in solutions]),
        constraints=task.constraints,
    )


def checked_gammas(gammas: ArrayLike) -> np.ndarray:
    """Return γ values as an array; raise ValueError if one is not positive."""
    gammas = np.atleast_1d(np.asarray(gammas, dtype=np.float64))
    if gammas.ndim != 1 or not len(gammas):
        raise ValueError(f"gammas must be a list of numbers; got shape {gammas.shape}.")
    for gamma in gammas:
        check_gamma(float(gamma))
    return gammas
