"""The linear objective tr(W X C₀ Xᵀ) and quadruplets, as constraints over rows."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from builders import random_pair_constraints, random_pairs

from mahalo import Constraints, MetricLearner
from mahalo.losses import SDPFrobenius


def laplacian(pairs, weights, n):
    C = np.zeros((n, n))
    for (i, j), w in zip(pairs, weights, strict=True):
        C[i, i] += w
        C[j, j] += w
        C[i, j] -= w
        C[j, i] -= w
    return C


def test_on_a_part_of_the_rows_it_is_the_objective_of_the_pairs_left(rng):
    """C_0 = Σ w (e_i − e_j)(e_i − e_j)ᵀ + Σ w e_i e_iᵀ: terms with an end outside go, the others stay as they are."""
    n, rows = 9, np.array([7, 2, 0, 5, 4])
    pairs, weights, alone = random_pairs(rng, n, 12), rng.standard_normal(12), rng.standard_normal(n)
    C = laplacian(pairs, weights, n) + np.diag(alone)
    kept, keep = Constraints.linear_objective(C).on_rows(rows)
    inside = np.isin(pairs, rows).all(axis=1)
    position = {row: p for p, row in enumerate(rows)}
    renumbered = [(position[i], position[j]) for i, j in pairs[inside]]
    expected = laplacian(renumbered, weights[inside], len(rows)) + np.diag(alone[rows])
    np.testing.assert_allclose(kept.objective.toarray(), expected, atol=1e-12)
    assert kept.n_rows == 5 and keep.shape == (0,)


def test_a_fold_learns_from_the_objective_of_its_own_pairs(rng):
    X, n = rng.standard_normal((10, 3)), 10
    rows = np.array([8, 1, 3, 0, 6, 5])
    pairs, weights = random_pairs(rng, n, 20), rng.uniform(0.1, 0.5, 20)
    constraints = random_pair_constraints(rng, X, 20)
    learner = MetricLearner(loss=SDPFrobenius(), tol=1e-9)
    whole = constraints + Constraints.linear_objective(laplacian(pairs, weights, n))
    fold = learner.fit(X[rows], constraints=whole, rows=rows).metric_.matrix
    inside = np.isin(pairs, rows).all(axis=1)
    assert 0 < inside.sum() < 20
    kept = constraints.take(np.isin(constraints.pairs.index, rows).all(axis=1))
    by_hand = kept + Constraints.linear_objective(laplacian(pairs[inside], weights[inside], n))
    np.testing.assert_allclose(learner.fit(X, constraints=by_hand).metric_.matrix, fold, rtol=0, atol=1e-6)


def test_an_objective_with_no_term_left_is_none(rng):
    X = rng.standard_normal((6, 2))
    objective = Constraints.linear_objective(laplacian([(0, 5)], [1.0], 6))
    constraints = Constraints.from_pairs([[1, 2]], [[2, 3]], upper=0.5, lower=9.0)
    rows = [1, 2, 3, 4]
    learner = MetricLearner(loss=SDPFrobenius(), tol=1e-9)
    one = learner.fit(X[rows], constraints=constraints + objective, rows=rows).metric_.matrix
    other = learner.fit(X, constraints=constraints).metric_.matrix
    np.testing.assert_allclose(one, other, atol=1e-6)


def test_objectives_add_up_and_are_not_counted(rng):
    A, B = rng.standard_normal((2, 5, 5))
    one, other = Constraints.linear_objective(A + A.T), Constraints.linear_objective(sp.csr_array(B + B.T))
    both = one + Constraints.from_pairs([[0, 1]], upper=1.0) + other
    np.testing.assert_allclose(both.objective.toarray(), A + A.T + B + B.T)
    assert both.n_constraints == 1
    assert repr(both) == "Constraints(1 similar, a linear objective)"
    assert both.take(np.array([False])).objective is both.objective
    assert Constraints.from_pairs([[0, 1]]).objective is None


@pytest.mark.parametrize(
    ("C", "message"),
    [
        (np.triu(np.ones((3, 3))), "must be symmetric"),
        (np.ones((2, 3)), "must be square"),
        (np.zeros((3, 3)), "is zero"),
        (np.full((3, 3), np.nan), "NaN or infinity"),
    ],
)  # fmt: skip
def test_wrong_objectives_are_named(C, message):
    with pytest.raises(ValueError, match=message):
        Constraints.linear_objective(C)


def test_objectives_over_other_rows_are_refused(rng):
    X = rng.standard_normal((6, 2))
    constraints = Constraints.from_pairs([[0, 1]], upper=1.0) + Constraints.linear_objective(np.eye(5))
    with pytest.raises(ValueError, match=r"constraints are about 5 rows, X has 6"):
        MetricLearner().fit(X, constraints=constraints)
    with pytest.raises(ValueError, match=r"cannot join constraints over 5 rows with constraints over 6 rows"):
        Constraints.linear_objective(np.eye(5)) + Constraints.linear_objective(np.eye(6))


def test_more_of_an_objective_means_less_of_what_it_measures(rng):
    X = rng.standard_normal((8, 3))
    constraints = random_pair_constraints(rng, X, 8)
    B = rng.standard_normal((8, 8))
    C = B @ B.T
    measured = []
    for strength in (0.001, 0.01, 0.1):
        learner = MetricLearner(loss="vonneumann", tol=1e-8)
        learner.fit(X, constraints=constraints + Constraints.linear_objective(strength * C))
        measured.append(np.sum(C * learner.metric_.kernel(X)))
    assert measured[0] > measured[1] > measured[2]


# -- quadruplets ---------------------------------------------------------------------------------------------------


def test_quadruplets_are_linear_forms(rng):
    X = rng.standard_normal((8, 3))
    index = np.array([[0, 1, 2, 3], [4, 5, 0, 6], [7, 1, 7, 2]])
    margin, weight = [0.5, 1.0, 2.0], [1.0, 2.0, 0.5]
    quadruplets = Constraints.from_quadruplets(index, margin=margin, weight=weight, n_rows=8)
    forms = [laplacian([q[:2]], [1.0], 8) - laplacian([q[2:]], [1.0], 8) for q in index]
    for made, C in zip(quadruplets.linear.matrix, forms, strict=True):
        np.testing.assert_array_equal(made.toarray(), C)
    linear = Constraints.from_linear(forms, [-0.5, -1.0, -2.0], sense="<=", weight=weight)
    np.testing.assert_array_equal(quadruplets.bound, linear.bound)
    np.testing.assert_array_equal(quadruplets.sign, linear.sign)
    np.testing.assert_array_equal(quadruplets.weight, linear.weight)
    np.testing.assert_array_equal(quadruplets.scale, margin)
    one, other = (MetricLearner(tol=1e-9).fit(X, constraints=c).metric_.matrix for c in (quadruplets, linear))
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("loss", ["logdet", "vonneumann", "frobenius"])
@pytest.mark.parametrize("gamma", [2.0, np.inf])
def test_a_quadruplet_that_shares_a_row_is_a_triplet(rng, loss, gamma):
    X = rng.standard_normal((8, 3))
    triplets = np.array([[0, 1, 2], [3, 4, 5], [6, 7, 0]])
    quadruplets = np.column_stack([triplets[:, :2], triplets[:, ::2]])
    learner = MetricLearner(loss=loss, gamma=gamma, tol=1e-9)
    one = learner.fit(X, constraints=Constraints.from_triplets(triplets, margin=1.5)).metric_.matrix
    other = learner.fit(X, constraints=Constraints.from_quadruplets(quadruplets, margin=1.5)).metric_.matrix
    np.testing.assert_allclose(one, other, rtol=0, atol=1e-5)
    assert np.abs(one - np.eye(3)).max() > 1e-2


def test_quadruplets_hold_where_they_must(rng):
    X = rng.standard_normal((8, 3))
    index = np.array([[0, 1, 2, 3], [4, 5, 6, 7]])
    learner = MetricLearner(gamma=np.inf).fit(X, constraints=Constraints.from_quadruplets(index, margin=[3.0, 1.0]))
    d = learner.metric_.distances(X, squared=True)
    for (a, b, c, e), margin in zip(index, (3.0, 1.0), strict=True):
        assert d[a, b] + margin <= d[c, e] * (1 + 1e-7)


def test_quadruplets_follow_rows(rng):
    made = Constraints.from_quadruplets([[0, 1, 2, 3], [1, 2, 3, 4]], margin=1.0)
    assert made.n_rows is None
    kept, keep = made.on_rows([4, 3, 2, 1])
    np.testing.assert_array_equal(keep, [False, True])
    expected = laplacian([(3, 2)], [1.0], 4) - laplacian([(1, 0)], [1.0], 4)
    np.testing.assert_array_equal(kept.linear.matrix[0].toarray(), expected)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[0, 1, 2]],), r"quadruplets must have shape \(n, 4\)"),
        (([[0, 1, 2, -3]],), "row indices ≥ 0"),
        (([[0.0, 1.0, 2.0, 3.0]],), "integer row indices"),
        (([[0, 1, 2, 3], [0, 1, 0, 1]],), r"quadruplet \(0, 1, 0, 1\) can never hold: a and b are the rows c and d"),
        (([[0, 1, 1, 0]],), r"quadruplet \(0, 1, 1, 0\) can never hold: a and b are the rows c and d"),
        (([[0, 1, 2, 2]],), r"quadruplet \(0, 1, 2, 2\) can never hold: c and d are the same row"),
    ],
)  # fmt: skip
def test_wrong_quadruplets_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        Constraints.from_quadruplets(*arguments, margin=1.0)
    with pytest.raises(ValueError, match=r"margin must be > 0 \(bounds are squared distances\)"):
        Constraints.from_quadruplets([[0, 1, 2, 3]], margin=-1.0)
