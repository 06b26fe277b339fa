"""The choice of a method: what suits the problem, and an error where the one asked for cannot."""

from __future__ import annotations

import dataclasses
import sys

import numpy as np
import pytest
from builders import problem_of, random_pair_constraints
from plain_losses import LOGDET, VON_NEUMANN

from mahalo.solvers import bregman, solve

choice, algorithm1 = sys.modules["mahalo.solvers.choice"], sys.modules["mahalo.solvers.bregman"]


def some_problem(rng, gamma=1.0, plain_loss=LOGDET, n=8):
    X = rng.standard_normal((n, 4))
    return problem_of(random_pair_constraints(rng, X, 10), X, gamma, plain_loss=plain_loss)


@pytest.mark.parametrize(
    ("gamma", "plain_loss", "expected"),
    [(1.0, LOGDET, "newton"), (np.inf, LOGDET, "dual"), (1.0, VON_NEUMANN, "dual")],
)
def test_auto_is_newton_for_logdet_with_slack_and_dual_for_the_rest(rng, monkeypatch, gamma, plain_loss, expected):
    used = []
    for name in choice.METHODS:
        monkeypatch.setitem(choice.METHODS, name, lambda problem, name=name, **options: used.append((name, options)))
    solve(some_problem(rng, gamma, plain_loss), tol=1e-3, max_iter=7)
    assert used == [(expected, {"tol": 1e-3, "max_iter": 7, "start": None, "on_step": None})]


def test_every_method_finds_the_same_optimum(rng):
    problem = some_problem(rng, gamma=0.1)
    answers = [solve(problem, method, tol=1e-9) for method in ("auto", "newton", "dual", "bregman")]
    assert all(answer.certificate.converged for answer in answers)
    for answer in answers[1:]:
        assert answer.certificate.primal == pytest.approx(answers[0].certificate.primal, rel=1e-8)


@pytest.mark.parametrize("method", ["newton", "bregman"])
def test_methods_for_logdet_name_the_loss_they_cannot_do(rng, method):
    with pytest.raises(
        ValueError, match=rf"solver='{method}' cannot do the loss VonNeumann; use solver='dual' or 'auto'"
    ):
        solve(some_problem(rng, plain_loss=VON_NEUMANN), method)


def test_a_linear_objective_is_for_the_dual(rng):
    problem = some_problem(rng)
    tilted = dataclasses.replace(problem, tilt=np.eye(4))
    with pytest.raises(ValueError, match="cannot do a linear objective"):
        solve(tilted, "newton")


def test_newton_wants_a_finite_gamma(rng):
    with pytest.raises(ValueError, match="solver='newton' needs a finite gamma"):
        solve(some_problem(rng, np.inf), "newton")


def test_a_method_nobody_knows(rng):
    with pytest.raises(ValueError, match="solver must be 'auto', 'newton', 'dual' or 'bregman'; got 'sgd'"):
        solve(some_problem(rng), "sgd")


@pytest.mark.parametrize(("n", "on_kernel"), [(5, True), (30, False)])
def test_projections_are_on_the_kernel_where_it_is_no_larger_than_the_coordinates(rng, monkeypatch, n, on_kernel):
    used = []
    real = algorithm1.Projections

    def spy(problem, start, on_kernel):
        used.append(on_kernel)
        return real(problem, start, on_kernel)

    monkeypatch.setattr(algorithm1, "Projections", spy)
    bregman(some_problem(rng, 0.1, n=n), max_iter=3)
    assert used == [on_kernel]
