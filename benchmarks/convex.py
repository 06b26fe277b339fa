"""The same problem through cvxpy: the loss written in its atoms, solved by Clarabel or SCS in a process of its own.

A process because neither can be interrupted from Python, and because stating the problem may take longer than is
allowed already.
"""

from __future__ import annotations

import multiprocessing
import time
from dataclasses import dataclass

import numpy as np

from mahalo.losses import Frobenius, SDPFrobenius, SDPLogDet, VonNeumann
from mahalo.solvers import Problem

__all__ = ["SOLVERS", "ConvexFit", "solve_by_cvxpy"]

# SCS's default, 1e-4, leaves objectives a few per cent off; with these it comes as close as Clarabel, or says so.
SOLVERS = {"Clarabel": {}, "SCS": {"eps_abs": 1e-7, "eps_rel": 1e-7, "max_iters": 1_000_000}}


@dataclass(frozen=True)
class ConvexFit:
    """What came back: the core matrix, or None where it was stopped or gave up; seconds from arrays to answer."""

    F: np.ndarray | None
    seconds: float
    stopped: bool
    status: str


def solve_by_cvxpy(problem: Problem, solver: str, time_limit: float) -> ConvexFit:
    """The optimum of `problem`, whose forms are pairs and offsets 0. Importing cvxpy is not counted."""
    ours, theirs = multiprocessing.get_context("spawn").Pipe()
    context = multiprocessing.get_context("spawn")
    child = context.Process(target=_child, args=(theirs, problem, solver), daemon=True)
    child.start()
    theirs.close()
    try:
        ours.recv()  # imports are done
        start = time.perf_counter()
        if not ours.poll(time_limit):
            return ConvexFit(None, time.perf_counter() - start, stopped=True, status="stopped")
        F, seconds, status = ours.recv()
    except EOFError:
        raise RuntimeError(f"cvxpy with {solver} ended without an answer (out of memory?)") from None
    finally:
        child.terminate()
        child.join()
    return ConvexFit(F, seconds, stopped=False, status=status)


def _child(connection, problem: Problem, solver: str) -> None:
    import cvxpy as cp

    connection.send("ready")
    start = time.perf_counter()
    F, objective = _statement(cp, problem)
    program = cp.Problem(cp.Minimize(objective))
    try:
        program.solve(solver=solver.upper(), **SOLVERS[solver])
        status, answer = program.status, F.value
    except cp.SolverError as error:
        status, answer = str(error).splitlines()[0], None
    connection.send((answer, time.perf_counter() - start, status))


def _statement(cp, problem: Problem):
    """tr f(F) + tr(R_0 F) + Σ γ_k/2 (relative violation)², with every pair as one row of a matrix times vec F."""
    rank, forms = problem.rank, problem.forms
    Z = problem.points[forms.tail] - problem.points[forms.head]
    rows = np.einsum("ki,kj->kij", Z, Z).reshape(len(Z), -1)
    F = cp.Variable((rank, rank), PSD=True)
    v = rows @ cp.vec(F, order="C")
    excess = cp.pos(cp.multiply(problem.sign / problem.scale, v - problem.bound))
    penalty = cp.sum_squares(cp.multiply(np.sqrt(0.5 * problem.gamma * problem.weight), excess))
    tilt = 0.0 if problem.tilt is None else cp.trace(problem.tilt @ F)
    return F, _loss(cp, problem.loss, F) + tilt + penalty


def _loss(cp, loss, F):
    rank = F.shape[0]
    if isinstance(loss, Frobenius):
        return 0.5 * cp.sum_squares(F - loss.eta * np.eye(rank))
    if isinstance(loss, VonNeumann):
        return -cp.von_neumann_entr(F) - cp.trace(F) + rank
    if isinstance(loss, SDPFrobenius):
        return 0.5 * loss.strength * cp.sum_squares(F)
    if isinstance(loss, SDPLogDet):
        return -loss.strength * cp.log_det(F)
    raise NotImplementedError(f"no statement for {type(loss).__name__}")
