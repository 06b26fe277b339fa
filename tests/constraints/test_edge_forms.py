"""One operator for pairs, triplets and linear forms: tr(Δ Yᵀ C_k Y), and its adjoint Σ s_k Yᵀ C_k Y."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from builders import dense_forms, random_linear, random_pair_constraints, random_triplets
from hypothesis import given
from hypothesis import strategies as st

from mahalo import Constraints
from mahalo._core.edges import edge_laplacian
from mahalo.constraints import EdgeForms
from mahalo.constraints import forms as forms_module
from mahalo.linalg import threads

KINDS = ["pairs", "triplets", "linear", "all"]


def constraints_of(kind, rng, X):
    made = {
        "pairs": random_pair_constraints(rng, X, 9),
        "triplets": random_triplets(rng, X, 5),
        "linear": random_linear(rng, X, 4),
    }
    return made["pairs"] + made["triplets"] + made["linear"] if kind == "all" else made[kind]


def on_used_rows(constraints, X):
    forms, rows = constraints.edges()
    return forms, np.vstack([X, np.zeros(X.shape[1])])[rows]


def through_rows(forms, Y, s):
    """The adjoint as it is computed where edges are many."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forms_module, "_FEW", -1)
        return forms.adjoint(Y, s)


def random_symmetric(rng, r):
    A = rng.standard_normal((r, r))
    return A + A.T


@given(st.integers(0, 2**32 - 1), st.sampled_from(KINDS))
def test_operator_is_the_trace_with_each_dense_form(seed, kind):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((8, int(rng.integers(1, 12))))
    constraints = constraints_of(kind, rng, X)
    forms, Y = on_used_rows(constraints, X)
    delta = random_symmetric(rng, X.shape[1])
    expected = [np.trace(delta @ X.T @ C @ X) for C in dense_forms(constraints, 8)]
    np.testing.assert_allclose(forms.apply(Y @ delta, Y), expected, rtol=1e-10, atol=1e-10 * np.abs(expected).max())


@given(st.integers(0, 2**32 - 1), st.sampled_from(KINDS))
def test_adjoint_is_the_sum_of_dense_forms(seed, kind):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((8, int(rng.integers(1, 12))))
    constraints = constraints_of(kind, rng, X)
    forms, Y = on_used_rows(constraints, X)
    s = rng.standard_normal(constraints.n_constraints) * (rng.random(constraints.n_constraints) < 0.7)
    expected = sum(s_k * X.T @ C @ X for s_k, C in zip(s, dense_forms(constraints, 8), strict=True))
    np.testing.assert_allclose(forms.adjoint(Y, s), expected, rtol=1e-10, atol=1e-9)
    np.testing.assert_allclose(through_rows(forms, Y, s), expected, rtol=1e-10, atol=1e-9)
    # ⟨A Δ, s⟩ = ⟨Δ, A* s⟩
    delta = random_symmetric(rng, X.shape[1])
    assert forms.apply(Y @ delta, Y) @ s == pytest.approx(np.vdot(delta, forms.adjoint(Y, s)), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rank", [1, 9, 70])
def test_rows_in_single_precision(rng, kind, rank):
    X = rng.standard_normal((8, rank))
    constraints = constraints_of(kind, rng, X)
    forms, Y = on_used_rows(constraints, X)
    single, s, delta = Y.astype(np.float32), rng.standard_normal(constraints.n_constraints), random_symmetric(rng, rank)
    values = forms.apply(Y @ delta, Y)
    found = forms.apply(single @ delta.astype(np.float32), single)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, values, atol=1e-4 * np.abs(values).max())
    expected = forms.adjoint(Y, s)
    for adjoint in (forms.adjoint(single, s), through_rows(forms, single, s)):
        assert adjoint.dtype == np.float64
        np.testing.assert_array_equal(adjoint, adjoint.T)
        np.testing.assert_allclose(adjoint, expected, atol=1e-5 * np.abs(expected).max())
    assert (through_rows(forms, single, s) != expected).any()


@pytest.mark.parametrize("rank", [1, 63, 64, 65, 128, 200])
@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_rows_of_the_laplacian(rng, rank, precision):
    Y, w = rng.standard_normal((12, rank)).astype(precision), rng.standard_normal(30)
    w[:3] = 0.0
    tail, head = rng.integers(0, 12, (2, 30))
    dense = np.zeros((12, 12))
    for i, j, weight in zip(tail, head, w, strict=True):
        ends = np.zeros(12)
        ends[i] += 1.0
        ends[j] -= 1.0
        dense += weight * np.outer(ends, ends)
    out = np.full_like(Y, np.nan)
    forms = EdgeForms(tail, head, 12)
    for first, last in ((0, 5), (5, 12)):
        edge_laplacian(Y, *forms._incidence, w, out, first, last)
    np.testing.assert_allclose(out, dense @ Y, atol=1e-4 if precision == np.float32 else 1e-12)


@given(st.integers(0, 2**32 - 1), st.sampled_from(["pairs", "triplets"]), st.sampled_from([1, 5, 8, 17, 33]))
def test_second_moments_are_those_of_the_edges(seed, kind, rank):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((8, rank))
    constraints = constraints_of(kind, rng, X)
    forms, Y = on_used_rows(constraints, X)
    E = rng.random(constraints.n_constraints) * (rng.random(constraints.n_constraints) < 0.7)
    matrices = np.array([X.T @ C @ X for C in dense_forms(constraints, 8)])
    edges = Y[forms.tail] - Y[forms.head]
    per_edge = E if kind == "pairs" else np.repeat(E, 2)
    expected = np.einsum("e,ei,ej->ij", per_edge, edges**2, edges**2)
    for cores in (1, 3):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(threads, "_WORTH_A_THREAD", 1)
            patch.setattr(threads, "_available", lambda cores=cores: cores)
            entries, diagonal = forms.second_moments(Y, E)
        np.testing.assert_allclose(entries, expected, atol=1e-12 * max(1.0, expected.max()))
        np.testing.assert_allclose(diagonal, np.einsum("k,kii->i", E, matrices**2), rtol=1e-10, atol=1e-12)


@given(st.integers(0, 2**32 - 1), st.sampled_from(KINDS))
def test_forms_reduced_to_some_keep_their_values(seed, kind):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((8, int(rng.integers(1, 12))))
    constraints = constraints_of(kind, rng, X)
    forms, Y = on_used_rows(constraints, X)
    kept = rng.random(constraints.n_constraints) < rng.choice([0.1, 0.5, 1.0])
    fewer, rows = forms.restrict(kept).compact(Y)
    assert len(rows) == fewer.n_rows <= len(Y)
    delta = random_symmetric(rng, X.shape[1])
    np.testing.assert_allclose(fewer.apply(rows @ delta, rows), forms.apply(Y @ delta, Y)[kept], atol=1e-9)
    s = rng.standard_normal(constraints.n_constraints) * kept
    np.testing.assert_allclose(fewer.adjoint(rows, s[kept]), forms.adjoint(Y, s), atol=1e-9)


def test_only_rows_in_constraints_are_kept():
    forms, rows = Constraints.from_pairs([[7, 2]], [[2, 900]]).edges()
    np.testing.assert_array_equal(rows, [2, 7, 900])
    assert forms.n_rows == 3
    np.testing.assert_array_equal(rows[forms.tail], [7, 2])
    np.testing.assert_array_equal(rows[forms.head], [2, 900])
    assert forms.combine is None


def test_forms_whose_rows_sum_to_zero_need_no_origin(rng):
    e = np.eye(5)[0] - np.eye(5)[3]
    _, rows = Constraints.from_linear(np.outer(e, e), 1.0).edges()
    np.testing.assert_array_equal(rows, [0, 3])
    _, rows = Constraints.from_linear(np.diag([0, 0, 2.0, 0, 0]), 1.0).edges()
    np.testing.assert_array_equal(rows, [-1, 2])


def test_threads_change_no_value(rng, monkeypatch):
    """Edges and rows are shared out; each is computed by one thread, in one order."""
    X = rng.standard_normal((50, 7))
    constraints = random_pair_constraints(rng, X, 300) + random_triplets(rng, X, 40)
    forms, Y = on_used_rows(constraints, X)
    Y = np.ascontiguousarray(Y)
    s = rng.standard_normal(constraints.n_constraints)
    alone = forms.apply(Y, Y), through_rows(forms, Y, s)
    monkeypatch.setattr(threads, "_WORTH_A_THREAD", 1)
    monkeypatch.setattr(threads, "_available", lambda: 5)
    shared = forms.apply(Y, Y), through_rows(forms, Y, s)
    np.testing.assert_array_equal(shared[0], alone[0])
    np.testing.assert_array_equal(shared[1], alone[1])


def test_no_constraints_and_no_dimensions():
    forms, rows = Constraints.from_pairs().edges()
    assert len(forms.tail) == 0 and len(rows) == 0
    forms, _ = Constraints.from_pairs([[0, 1]]).edges()
    empty = np.zeros((2, 0))
    np.testing.assert_array_equal(forms.apply(empty, empty), [0.0])
    assert forms.adjoint(empty, np.ones(1)).shape == (0, 0)


def test_dropping_the_objective_leaves_pairs_as_plain_edges(rng):
    pairs = Constraints.from_pairs(similar=[[0, 1], [2, 3]], dissimilar=[[1, 4]])
    objective = Constraints.linear_objective(np.eye(5) - 0.2)
    forms, rows = (pairs + objective).edges()
    kept, (plain, plain_rows) = forms.split_last()[0], pairs.edges()
    assert kept.combine is None and len(kept.tail) == 3
    X = rng.standard_normal((5, 3))
    np.testing.assert_allclose(kept.apply(X[rows], X[rows]), plain.apply(X[plain_rows], X[plain_rows]))


def test_dropping_the_objective_keeps_how_triplets_combine_edges(rng):
    triplets = Constraints.from_triplets([[0, 1, 4], [2, 3, 0]])
    forms, rows = (triplets + Constraints.linear_objective(np.eye(5) - 0.2)).edges()
    X = rng.standard_normal((5, 3))
    sq = ((X[:, None] - X) ** 2).sum(axis=2)
    kept, last, coefficient = forms.split_last()
    np.testing.assert_allclose(kept.apply(X[rows], X[rows]), [sq[0, 1] - sq[0, 4], sq[2, 3] - sq[2, 0]])
    np.testing.assert_allclose(last.adjoint(X[rows], coefficient), X.T @ (np.eye(5) - 0.2) @ X, atol=1e-12)


@pytest.mark.parametrize(
    "tail, head, match",
    [
        ([0, 1000], [1, 2], r"edges join rows 0 to 3; got row 1000 in tail"),
        ([0, 1], [-1, 2], r"edges join rows 0 to 3; got row -1 in head"),
        ([0, 1, 2], [1, 2], r"every edge has two ends; got 3 tails and 2 heads"),
        ([[0, 1]], [1, 2], r"tail must be a contiguous vector of np.intp; got int64 of shape \(1, 2\)"),
        ([0.0, 1.0], [1, 2], r"tail must be a contiguous vector of np.intp; got float64"),
    ],
)
def test_edges_must_join_rows(tail, head, match):
    with pytest.raises(ValueError, match=match):
        EdgeForms(np.array(tail), np.array(head), 4)


def test_forms_must_be_made_of_edges():
    edges = np.array([0, 1]), np.array([1, 2])
    with pytest.raises(ValueError, match=r"a column for each of 2 edges; got 3"):
        EdgeForms(*edges, 4, sp.csr_array(np.ones((1, 3))))
    outside = sp.csr_array(np.ones((1, 2)))
    outside.indices[1] = 1000
    with pytest.raises(ValueError, match=r"indices|index values"):
        EdgeForms(*edges, 4, outside)


@pytest.mark.parametrize("n", [2, 5])
def test_rows_must_be_those_the_forms_are_over(n):
    forms, Y = EdgeForms(np.array([0, 1]), np.array([1, 3]), 4), np.ones((n, 2))
    for use in (lambda: forms.apply(Y, Y), lambda: forms.adjoint(Y, np.ones(2)), lambda: forms.second_moments(Y, Y[0])):
        with pytest.raises(ValueError, match=f"these forms are over 4 rows; got {n}"):
            use()
