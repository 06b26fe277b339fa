"""The same problem through cvxpy: the loss written in its atoms, solved by Clarabel or SCS in a process of its own.

A process because neither can be interrupted from Python, and because stating the problem may take longer than is
allowed already. Seconds are of the processor, without imports: the limit on them is the operating system's.
"""

from __future__ import annotations

import math
import multiprocessing
import resource
import signal
import time
from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits

from mahalo.losses import Frobenius, SDPFrobenius, SDPLogDet, VonNeumann
from mahalo.solvers import Problem

__all__ = ["SOLVERS", "ConvexFit", "solve_by_cvxpy"]

SOLVERS = ("Clarabel", "SCS")  # both at their defaults; what they reach is reported
REPEATED_FOR = 2.0  # seconds within which quick ones are asked again, warm, and the fastest counts


@dataclass(frozen=True)
class ConvexFit:
    """What came back: the core matrix, or None where it was stopped or gave up; seconds from arrays to answer."""

    F: np.ndarray | None
    seconds: float
    stopped: bool
    status: str


def solve_by_cvxpy(problem: Problem, solver: str, time_limit: float) -> ConvexFit:
    """The optimum of `problem`, whose forms are pairs and offsets 0, or nothing after `time_limit` seconds."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    child = context.Process(target=_child, args=(theirs, problem, solver, time_limit), daemon=True)
    child.start()
    theirs.close()
    try:
        F, seconds, status = ours.recv()
    except EOFError:
        child.join()
        if child.exitcode != -signal.SIGXCPU:
            raise RuntimeError(f"cvxpy with {solver} ended without an answer (out of memory?)") from None
        return ConvexFit(None, time_limit, stopped=True, status="stopped")
    child.join()
    return ConvexFit(F, seconds, stopped=False, status=status)


def _child(connection, problem: Problem, solver: str, time_limit: float) -> None:
    import cvxpy as cp

    threadpool_limits(1)  # of this process, to its end
    begin = time.process_time()
    limit = math.ceil(begin + time_limit)
    resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))
    answer, status = _solve(cp, problem, solver)
    end = time.process_time()
    fastest = end - begin
    resource.setrlimit(resource.RLIMIT_CPU, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))  # it was in time
    while end - begin + fastest < REPEATED_FOR:
        start = end
        _solve(cp, problem, solver)
        end = time.process_time()
        fastest = min(fastest, end - start)
    connection.send((answer, fastest, status))


def _solve(cp, problem: Problem, solver: str):
    F, objective = _statement(cp, problem)
    program = cp.Problem(cp.Minimize(objective))
    try:
        program.solve(solver=solver.upper())
    except cp.SolverError as error:
        return None, str(error).splitlines()[0]
    return F.value, program.status


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
