"""Newton systems X + root ∘ A* E A (root ∘ X) = R: a loop in NumPy, and the same compiled, against dense solutions."""

from __future__ import annotations

import numpy as np
import pytest
from builders import dense_forms, random_linear, random_pair_constraints, random_triplets
from hypothesis import given
from hypothesis import strategies as st

from mahalo.solvers import system
from mahalo.solvers.system import Preconditioner, solve_system, weighted_part

N_ROWS = 12


class Case:
    """A random system, its forms as matrices R_k = Yᵀ C_k Y, and its solution."""

    def __init__(self, seed: int, kind: str, rank: int):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((N_ROWS, rank)) / np.sqrt(rank)
        made = {
            "pairs": random_pair_constraints(rng, X, 30),
            "triplets": random_triplets(rng, X, 8),
            "forms": random_linear(rng, X, 5),
        }
        constraints = made["pairs"] + made["triplets"] + made["forms"] if kind == "all" else made[kind]
        self.forms, rows = constraints.edges()
        self.Y = np.vstack([X, np.zeros(rank)])[rows]
        self.matrices = np.array([X.T @ C @ X for C in dense_forms(constraints, N_ROWS)])
        self.E = rng.random(len(self.matrices)) * (rng.random(len(self.matrices)) < 0.8)
        self.root, self.R = (A + A.T for A in (rng.random((rank, rank)), rng.standard_normal((rank, rank))))
        entries = (self.root * self.matrices).reshape(len(self.E), -1)
        operator = np.eye(rank**2) + (entries.T * self.E) @ entries
        self.X = np.linalg.solve(operator, self.R.ravel()).reshape(rank, rank)
        self.values = entries @ self.X.ravel()

    def preconditioner(self, block: bool) -> Preconditioner:
        squares = np.einsum("k,kij->ij", self.E, self.matrices**2)
        diagonal = np.einsum("k,kii,kjj->ij", self.E, self.matrices, self.matrices)
        d = np.diagonal(self.root)
        inverse = np.linalg.inv(np.eye(len(d)) + d[:, None] * diagonal * d)
        return Preconditioner(1.0 + 2.0 * self.root**2 * squares, inverse if block else None)

    def compiled(self, precondition, **limits):
        limits = {"small": 0.0, "inexact": 0.0, "max_products": 400} | limits
        return solve_system(self.forms, self.Y, self.E, self.R, precondition, root=self.root, **limits)

    def in_numpy(self, precondition, **limits):
        limits = {"small": 0.0, "inexact": 0.0, "max_products": 400} | limits
        return system._iterate(self.forms, self.Y, self.E, self.R, precondition, self.root, **limits)


KINDS = st.sampled_from(["pairs", "triplets", "forms", "all"])
RANKS = st.sampled_from([1, 2, 7, 8, 9, 16, 17])


@pytest.mark.parametrize("kind", ["pairs", "triplets", "forms", "all"])
def test_single_precision_finds_the_solution_to_four_digits(kind):
    case = Case(3, kind, 9)
    precondition = case.preconditioner(block=True)
    exact = case.in_numpy(precondition, small=1e-8)
    case.Y = case.Y.astype(np.float32)
    single = case.in_numpy(precondition, small=1e-8)
    assert single.X.dtype == single.q.dtype == np.float64
    for found, expected in ((single.X, case.X), (single.q, case.values)):
        np.testing.assert_allclose(found, expected, atol=1e-4 * np.abs(expected).max())
    assert (single.X != exact.X).any()  # the products did differ


@given(st.integers(0, 2**32 - 1), KINDS, RANKS, st.booleans())
def test_both_loops_find_the_solution(seed, kind, rank, block):
    case = Case(seed, kind, rank)
    precondition = case.preconditioner(block)
    for solve in (case.compiled, case.in_numpy):
        X, q, _ = solve(precondition, inexact=1e-10)
        np.testing.assert_allclose(X, case.X, atol=1e-7 * np.abs(case.X).max())
        np.testing.assert_allclose(q, case.values, atol=1e-7 * max(1.0, np.abs(case.values).max()))


@pytest.mark.parametrize("rank", [31, 32, 33, 40, 70])
def test_any_number_of_columns(rank):
    case = Case(rank, "all", rank)
    precondition = Preconditioner(np.ones((rank, rank)))
    for solve in (case.compiled, case.in_numpy):
        X, q, _ = solve(precondition, inexact=1e-9)
        product = X + case.root * case.forms.adjoint(case.Y, case.E * q)
        np.testing.assert_allclose(product, case.R, atol=1e-6 * np.abs(case.R).max())
        np.testing.assert_allclose(case.forms.apply(case.Y @ (case.root * X), case.Y), q, atol=1e-9)


@pytest.mark.parametrize("n_weighted", [0, 1, 12, 20, 30])
def test_forms_without_weight_are_left_out_unless_few(n_weighted):
    case = Case(5, "pairs", 9)
    weight = np.zeros(len(case.E))
    weight[:n_weighted] = 1.0
    which, forms, rows = weighted_part(case.forms, weight, case.Y)
    assert len(forms.tail) == (n_weighted if n_weighted <= len(weight) / 2 else len(weight))
    np.testing.assert_allclose(forms.adjoint(rows, weight[which]), case.forms.adjoint(case.Y, weight), atol=1e-12)


@given(st.integers(0, 2**32 - 1), KINDS, st.sampled_from([3, 9, 16]), st.sampled_from(["inexact", "small"]))
def test_both_loops_stop_alike(seed, kind, rank, limit):
    case = Case(seed, kind, rank)
    precondition = case.preconditioner(block=False)
    limits = {limit: 0.03 if limit == "inexact" else 1e-3 * float(np.vdot(case.R, precondition(case.R)))}
    a, b = case.compiled(precondition, **limits), case.in_numpy(precondition, **limits)
    assert abs(a.n_products - b.n_products) <= 2  # rounding has a say in the last ones
    for X, q, _ in (a, b):
        residual = case.R - X - case.root * case.forms.adjoint(case.Y, case.E * q)
        if limit == "inexact":
            assert np.linalg.norm(residual) <= 0.0301 * np.linalg.norm(X)
        else:
            assert np.vdot(residual, precondition(residual)) <= 1.01 * limits[limit]
    assert case.compiled(precondition, max_products=2).n_products <= 2


def test_inexact_is_relative_to_the_solution():
    case = Case(0, "all", 9)
    for solve in (case.compiled, case.in_numpy):
        X, q, _ = solve(case.preconditioner(block=False), inexact=0.1)
        residual = case.R - X - case.root * case.forms.adjoint(case.Y, case.E * q)
        assert 1e-6 < np.linalg.norm(residual) <= 0.1 * np.linalg.norm(X)


def test_no_forms_leave_the_right_hand_side():
    case = Case(1, "pairs", 5)
    forms = case.forms.restrict(np.zeros(len(case.E), dtype=bool))
    ones = Preconditioner(np.ones((5, 5)))
    X, q, _ = solve_system(forms, case.Y, np.empty(0), case.R, ones, inexact=1e-3, max_products=10)
    np.testing.assert_allclose(X, case.R)
    assert q.shape == (0,)


def test_what_overflows_ends_the_loop():
    case = Case(2, "pairs", 5)
    with np.errstate(all="ignore"):
        for solve in (case.compiled, case.in_numpy):
            case.E = np.full(len(case.E), 1e308)
            case.root = np.full((5, 5), 1e10)
            assert solve(Preconditioner(np.ones((5, 5))), inexact=0.1, max_products=50).n_products <= 50


def test_as_many_weights_as_forms():
    case = Case(3, "pairs", 4)
    case.E = np.ones(len(case.E) + 1)
    with pytest.raises(ValueError, match="weights"):
        case.compiled(Preconditioner(np.ones((4, 4))))
