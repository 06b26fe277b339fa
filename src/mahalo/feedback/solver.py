"""Minimisation of the feedback problem by L-BFGS, stopped by the bound on the distance to the optimum."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import OptimizeResult, minimize

from .problem import Basis, FeedbackProblem, ReducedObjective

_MEMORY = 20  # pairs of steps and gradients that L-BFGS remembers


@dataclass(frozen=True, eq=False)
class Minimum:
    """M at which the solver stopped, and the number of its iterations."""

    M: np.ndarray
    n_iter: int


def minimise(
    problem: FeedbackProblem, basis: Basis, *, tol: float, max_iter: int, start: np.ndarray | None = None
) -> Minimum:
    """Minimise P(I + U M Vᵀ) over M until ‖∇P‖²_F / (2λ) ≤ tol · max(1, P), or `max_iter` iterations are done."""
    objective = ReducedObjective(problem, basis)
    shape = objective.shape
    stop = _Stop(objective, problem.lam, 0.5 * tol)  # half: the certificate is computed by other code and rounds anew
    x = np.zeros(shape) if start is None else start
    found = minimize(
        stop.value_and_gradient,
        x.ravel(),
        jac=True,
        method="L-BFGS-B",
        callback=stop,
        options={"maxiter": max_iter, "maxfun": 2 * max_iter + 10, "maxcor": _MEMORY, "gtol": 0.0, "ftol": 0.0},
    )
    return Minimum(found.x.reshape(shape), int(found.nit))


class _Stop:
    """Objective that remembers its last gradients, and the callback that ends the iterations."""

    def __init__(self, objective: ReducedObjective, lam: float, tol: float) -> None:
        self._objective, self._lam, self._tol = objective, lam, tol
        self._sq_norms: dict[float, float] = {}

    def value_and_gradient(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = self._objective(x.reshape(self._objective.shape))
        self._sq_norms[value] = float(np.vdot(gradient, gradient))
        return value, gradient.ravel()

    def __call__(self, intermediate_result: OptimizeResult) -> None:
        value = float(intermediate_result.fun)
        sq_norm = self._sq_norms.get(value, np.inf)
        self._sq_norms.clear()
        if sq_norm <= 2.0 * self._lam * self._tol * max(1.0, value):
            raise StopIteration
