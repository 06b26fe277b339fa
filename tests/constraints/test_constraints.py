"""Constraints as an object: made, joined, renumbered, reported on, drawn from labels, given bounds."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from builders import labelled_data
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist, pdist

from mahalo import Constraints, MetricLearner
from mahalo.constraints import VectorGeometry, as_arrays, drop_degenerate, resolve_bounds
from mahalo.losses import SDPFrobenius
from mahalo.rows import InMemoryRows


def as_set(index):
    return {tuple(sorted(pair)) for pair in index.tolist()}


# -- made and joined -------------------------------------------------------------------------------------------


def test_from_pairs_keeps_what_it_is_given():
    c = Constraints.from_pairs([[0, 5], [3, 9]], [[1, 2]], upper=[1.0, 2.0], lower=7.0, weight=[1.0, 2.0, 3.0])
    np.testing.assert_array_equal(c.pairs.index, [[0, 5], [3, 9], [1, 2]])
    np.testing.assert_array_equal(c.sign, [1, 1, -1])
    np.testing.assert_array_equal(c.bound, [1.0, 2.0, 7.0])
    np.testing.assert_array_equal(c.weight, [1.0, 2.0, 3.0])
    assert c.n_constraints == 3
    assert c.n_rows is None
    assert repr(c) == "Constraints(2 similar, 1 dissimilar)"


def test_bounds_left_open_are_nan_until_the_data_are_known():
    c = Constraints.from_pairs([[0, 1]], [[2, 3]]) + Constraints.from_triplets([[0, 1, 2]])
    assert np.isnan(c.bound).all()
    np.testing.assert_array_equal(c.weight, 1.0)


def test_triplets_and_forms_as_signs_bounds_and_scales():
    c = Constraints.from_triplets([[0, 1, 2]], margin=0.5)
    c = c + Constraints.from_linear([np.eye(3), -2 * np.eye(3), np.eye(3)], [-4.0, 2.0, 0.0], sense=["<=", ">=", "<="])
    np.testing.assert_array_equal(c.sign, [1, 1, -1, 1])
    np.testing.assert_array_equal(c.bound, [-0.5, -4.0, 2.0, 0.0])
    np.testing.assert_array_equal(c.scale, [0.5, 4.0, 2.0, 1.0])
    assert c.n_rows == 3
    assert repr(c) == "Constraints(1 triplets, 3 linear)"


def test_a_single_matrix_is_a_list_of_one():
    for C in (np.eye(3), sp.csr_array(np.eye(3)), sp.coo_matrix(np.eye(3))):
        assert Constraints.from_linear(C, 1.0).n_constraints == 1


def test_sum_is_all_of_both_by_kind():
    a = Constraints.from_pairs([[0, 1]], upper=1.0, n_rows=9) + Constraints.from_triplets([[0, 1, 2]], margin=1.0)
    b = Constraints.from_pairs(None, [[2, 3]], lower=4.0) + Constraints.from_triplets([[3, 4, 5]], margin=2.0)
    c = a + b
    np.testing.assert_array_equal(c.pairs.index, [[0, 1], [2, 3]])
    np.testing.assert_array_equal(c.triplets.index, [[0, 1, 2], [3, 4, 5]])
    np.testing.assert_array_equal(c.sign, [1, -1, 1, 1])
    np.testing.assert_array_equal(c.bound, [1.0, 4.0, -1.0, -2.0])
    assert c.n_rows == 9
    assert (b + a).n_rows == 9
    assert a.n_constraints == 2 and b.n_constraints == 2  # neither has changed


def test_nothing_is_the_zero_of_addition():
    c = Constraints.from_pairs([[0, 1]], upper=1.0)
    for total in (c + Constraints(), Constraints() + c, c + Constraints.from_pairs()):
        np.testing.assert_array_equal(total.bound, c.bound)
    assert repr(Constraints()) == "Constraints(none)"


def test_not_array_like():
    """scikit-learn slices what has a length or a shape; constraints must reach every fold whole."""
    c = Constraints.from_pairs([[0, 1]])
    for name in ("__len__", "shape", "__array__", "__getitem__", "__iter__"):
        assert not hasattr(c, name), name


def test_constraints_in_words():
    c = Constraints.from_pairs([[0, 1]], [[1, 2]], upper=0.5, lower=9.0)
    c = (
        c
        + Constraints.from_triplets([[0, 1, 2]], margin=0.25)
        + Constraints.from_linear([np.eye(3)], [2.0], sense=">=")
    )
    assert [c.describe(k) for k in range(4)] == [
        "pair (0, 1): squared distance ≤ 0.5",
        "pair (1, 2): squared distance ≥ 9",
        "triplet (0, 1, 2) with margin 0.25 in squared distance",
        "linear form 0 ≥ 2",
    ]


def test_open_bounds_in_words():
    c = Constraints.from_pairs([[0, 1]]) + Constraints.from_triplets([[0, 1, 2]])
    assert c.describe(0) == "pair (0, 1): squared distance ≤ still open"
    assert c.describe(1) == "triplet (0, 1, 2) with margin still open in squared distance"


def test_quadruplets_in_words_wherever_they_go():
    """Joined, chosen from, renumbered and copied, they keep their rows; other forms have none to name."""
    form = Constraints.from_linear([np.eye(6)], [2.0])
    c = form + Constraints.from_quadruplets([[0, 1, 2, 3], [5, 4, 3, 2]], margin=[0.25, 4.0])
    assert [c.describe(k) for k in range(3)] == [
        "linear form 0 ≤ 2",
        "quadruplet (0, 1, 2, 3) with margin 0.25 in squared distance",
        "quadruplet (5, 4, 3, 2) with margin 4 in squared distance",
    ]
    assert c.take(np.array([False, False, True])).describe(0) == c.describe(2)
    assert pickle.loads(pickle.dumps(c)).describe(1) == c.describe(1)
    kept, keep = c.on_rows([2, 3, 4, 5])
    np.testing.assert_array_equal(keep, [False, False, True])
    assert kept.describe(0) == "quadruplet (3, 2, 1, 0) with margin 4 in squared distance"


def test_a_quadruplet_of_three_rows_does_without_the_fourth():
    """(a, a, c, d) says nothing of a; where a is not among the rows it is a form like any other."""
    kept, keep = Constraints.from_quadruplets([[0, 0, 2, 3]], margin=1.5).on_rows([2, 3])
    assert keep.all()
    assert kept.describe(0) == "linear form 0 ≤ -1.5"


def test_pickle():
    c = Constraints.from_pairs([[0, 1]], [[2, 3]], upper=1.0) + Constraints.from_linear([np.eye(4)], [1.0])
    copy = pickle.loads(pickle.dumps(c))
    np.testing.assert_array_equal(copy.pairs.index, c.pairs.index)
    np.testing.assert_array_equal(copy.linear.matrix[0].toarray(), np.eye(4))


def test_input_is_copied():
    index, bound = np.array([[0, 1]]), np.array([1.0])
    c = Constraints.from_pairs(index, upper=bound)
    index[:], bound[:] = 7, 7.0
    np.testing.assert_array_equal(c.pairs.index, [[0, 1]])
    np.testing.assert_array_equal(c.pairs.bound, [1.0])


# -- rows ------------------------------------------------------------------------------------------------------


@given(st.integers(0, 2**32 - 1))
def test_on_rows_is_the_constraint_about_the_same_points(seed):
    rng = np.random.default_rng(seed)
    n = 12
    X = rng.standard_normal((n, 3))
    C = [np.zeros((n, n)) for _ in range(3)]
    for matrix in C:
        i, j = rng.choice(n, 2, replace=False)
        matrix[[i, j, i], [j, i, i]] = 1.0
    c = Constraints.from_pairs(rng.integers(0, n, (6, 2)), rng.integers(0, n, (4, 2)), upper=np.arange(1, 7.0))
    triplets = np.array([rng.choice(n, 3, replace=False) for _ in range(5)])
    triplets[:2, 1] = triplets[:2, 0]  # (a, a, c) is about two rows
    c = c + Constraints.from_triplets(triplets, margin=np.arange(1, 6.0))
    c = c + Constraints.from_linear(C, [1.0, 2.0, 3.0])
    rows = rng.permutation(n)[: int(rng.integers(1, n + 1))]
    kept, keep = c.on_rows(rows)
    ends = [set(p) for p in c.pairs.index.tolist()] + [set(t) for t in c.triplets.index.tolist()]
    ends += [set(np.flatnonzero(m.any(axis=1)).tolist()) for m in C]
    np.testing.assert_array_equal(keep, [e <= set(rows.tolist()) for e in ends])
    np.testing.assert_array_equal(rows[kept.pairs.index], c.pairs.index[keep[:10]])
    np.testing.assert_array_equal(rows[kept.triplets.index], c.triplets.index[keep[10:15]])
    np.testing.assert_array_equal(kept.bound, c.bound[keep])
    assert kept.n_rows == len(rows)
    for small, large in zip(kept.linear.matrix, np.array(C)[keep[15:]], strict=True):
        part = X[rows].T @ small.toarray() @ X[rows]
        np.testing.assert_allclose(part, X.T @ large @ X, atol=1e-12)


def test_a_row_drawn_twice_counts_once():
    """Bootstrap samples repeat rows; a constraint goes to the first copy."""
    kept, keep = Constraints.from_pairs([[3, 7]], upper=1.0).on_rows([7, 3, 7, 3])
    assert keep.all()
    np.testing.assert_array_equal(kept.pairs.index, [[1, 0]])


def test_fit_on_some_rows_drops_and_counts(rng):
    X = rng.standard_normal((10, 3))
    c = Constraints.from_pairs([[0, 1], [2, 9]], [[3, 4], [5, 8]], upper=0.5, lower=9.0, n_rows=10)
    rows = np.array([4, 3, 1, 0, 2])
    learner = MetricLearner().fit(X[rows], constraints=c, rows=rows)
    assert learner.n_outside_ == 2
    np.testing.assert_array_equal(learner.constraints_.pairs.index, [[3, 2], [1, 0]])
    alone = Constraints.from_pairs([[0, 1]], [[3, 4]], upper=0.5, lower=9.0)
    np.testing.assert_allclose(learner.metric_.matrix, MetricLearner().fit(X, constraints=alone).metric_.matrix)


# -- report ----------------------------------------------------------------------------------------------------


def test_report(rng):
    X = rng.standard_normal((10, 2))
    X[7] = X[6]
    X[9] = X[8]
    c = Constraints.from_pairs(
        similar=[[0, 1], [1, 0], [2, 2], [6, 7], [3, 4], [0, 1]],
        dissimilar=[[4, 3], [8, 9], [5, 5], [0, 2]],
    )
    c = c + Constraints.from_triplets([[0, 1, 2], [0, 1, 2], [0, 2, 1]])
    report = c.report(X)
    assert (report.n_similar, report.n_dissimilar, report.n_triplets, report.n_linear) == (6, 4, 3, 0)
    assert report.n_rows_used == 10
    assert report.n_duplicates == 3  # (0, 1) twice more, one triplet once more
    np.testing.assert_array_equal(report.self_pairs, [[2, 2], [5, 5]])
    np.testing.assert_array_equal(report.zero_similar, [[6, 7]])
    np.testing.assert_array_equal(report.zero_dissimilar, [[8, 9]])
    np.testing.assert_array_equal(report.contradictions, [[3, 4]])
    np.testing.assert_array_equal(report.opposed_triplets, [[0, 1, 2]])
    assert report.zero_triplets.shape == (0, 3)
    text = str(report)
    assert "similar pairs        6" in text and "(3, 4)" in text and "(8, 9)" in text
    assert "opposed triplets     1: (0, 1, 2)" in text


def test_opposed_triplets_are_listed_with_their_anchor(rng):
    X = rng.standard_normal((6, 2))
    c = Constraints.from_triplets([[5, 4, 1], [0, 1, 4], [5, 1, 4], [3, 2, 1], [2, 1, 3], [5, 4, 1]])
    report = c.report(X)
    np.testing.assert_array_equal(report.opposed_triplets, [[5, 1, 4]])
    assert report.contradictions.shape == (0, 2)


def test_quadruplets_are_counted_by_their_name(rng):
    X = rng.standard_normal((12, 2))
    X[11] = X[10]
    quadruplets = [[0, 1, 2, 3], [3, 2, 0, 1], [1, 0, 2, 3], [4, 5, 6, 7], [0, 8, 10, 11]]
    form = np.zeros((12, 12))
    form[9, 9] = 1.0
    c = Constraints.from_quadruplets(quadruplets, margin=1.0, n_rows=12) + Constraints.from_linear([form], 2.0)
    assert repr(c) == "Constraints(5 quadruplets, 1 linear)"
    report = c.report(X)
    assert (report.n_quadruplets, report.n_linear) == (5, 1)
    assert report.n_rows_used == 12
    assert report.n_duplicates == 1  # (0, 1, 2, 3), in another order
    np.testing.assert_array_equal(report.opposed_quadruplets, [[0, 1, 2, 3]])
    np.testing.assert_array_equal(report.zero_quadruplets, [[0, 8, 10, 11]])
    text = str(report)
    assert "quadruplets          5\nlinear forms         1\nrows used            12\n" in text
    assert "opposed quadruplets  1: (0, 1, 2, 3)" in text and "identical, quadrup.  1: (0, 8, 10, 11)" in text


def test_report_of_triplets_that_hold_identical_points_apart(rng):
    X = rng.standard_normal((6, 2))
    X[5] = X[4]
    report = Constraints.from_triplets([[0, 4, 5], [4, 1, 5], [4, 5, 0], [0, 1, 4]]).report(X)
    np.testing.assert_array_equal(report.zero_triplets, [[0, 4, 5], [4, 1, 5]])
    assert "identical, triplets  2: (0, 4, 5), (4, 1, 5)" in str(report)


def test_bounds_that_leave_room_are_no_contradiction(rng):
    X = rng.standard_normal((4, 2))
    agree = Constraints.from_pairs([[0, 1]], [[0, 1]], upper=4.0, lower=1.0)
    conflict = Constraints.from_pairs([[0, 1], [0, 1]], [[0, 1]], upper=[4.0, 0.5], lower=1.0)
    assert len(agree.report(X).contradictions) == 0
    np.testing.assert_array_equal(conflict.report(X).contradictions, [[0, 1]])


def test_report_on_sparse_rows_and_on_nothing(rng):
    X = sp.csr_array(np.array([[0, 1.0], [0, 1.0], [2.0, 0]]))
    report = Constraints.from_pairs([[0, 1]], [[1, 2]]).report(X)
    np.testing.assert_array_equal(report.zero_similar, [[0, 1]])
    assert Constraints().report(X).n_similar == 0


# -- identical points ------------------------------------------------------------------------------------------


def test_what_can_be_learned_from_identical_points(rng):
    X = rng.standard_normal((8, 2))
    X[7], X[5] = X[6], X[4]
    c = Constraints.from_pairs([[0, 1], [6, 7], [2, 2]], [[0, 2], [4, 5]])
    c = c + Constraints.from_triplets([[0, 1, 2], [0, 6, 7], [4, 1, 5], [4, 5, 1]])
    c = c + Constraints.from_quadruplets(
        [[0, 1, 2, 3], [0, 1, 4, 5], [4, 6, 5, 7], [4, 6, 7, 5], [4, 5, 0, 1]], margin=1.0
    )
    c = c + Constraints.from_linear([np.eye(8)], [-1.0])
    found = drop_degenerate(c, VectorGeometry(InMemoryRows(X)))
    keep = [1, 0, 0, 1, 0, 1, 0, 0, 1, 1, 0, 0, 0, 1, 1]
    np.testing.assert_array_equal(found.keep, np.array(keep, dtype=bool))
    np.testing.assert_array_equal(found.impossible, [4, 6, 7, 10, 11, 12])
    assert found.message == (
        "1 dissimilar pair and 2 triplets and 3 quadruplets of identical points, such as rows (4, 5), "
        "can never be satisfied"
    )


def test_impossible_is_what_no_metric_satisfies(rng):
    """Four points in space, all six distances free, each point many times: random metrics find what is possible."""
    X = rng.standard_normal((4, 3))[rng.integers(0, 4, 10)]
    index = np.array([rng.choice(10, 4, replace=False) for _ in range(60)])
    c = Constraints.from_triplets(index[:30, :3], margin=1.0) + Constraints.from_quadruplets(index[30:], margin=1.0)
    impossible = drop_degenerate(c, VectorGeometry(InMemoryRows(X))).impossible
    possible = np.zeros(60, dtype=bool)
    for _ in range(200):
        B = rng.standard_normal((3, int(rng.integers(1, 4))))
        sq = cdist(X @ B, X @ B, "sqeuclidean")
        a, b, e = index[:30, :3].T
        possible[:30] |= sq[a, b] + 1e-9 < sq[a, e]
        a, b, e, f = index[30:].T
        possible[30:] |= sq[a, b] + 1e-9 < sq[e, f]
    np.testing.assert_array_equal(impossible, np.flatnonzero(~possible))


def test_points_all_different_leave_nothing_out(rng):
    X, y = labelled_data(rng)
    c = Constraints.from_labels(y) + Constraints.from_labels(y, X, strategy="triplets")
    found = drop_degenerate(c, VectorGeometry(InMemoryRows(X)))
    assert found.keep.all() and not len(found.impossible) and found.message == ""
    assert drop_degenerate(Constraints(), VectorGeometry(InMemoryRows(X))).keep.shape == (0,)


def test_a_triplet_of_two_rows_is_a_lower_bound(rng):
    """(a, a, c): d²(a, a) + margin ≤ d²(a, c), so d²(a, c) ≥ margin."""
    X = rng.standard_normal((6, 3))
    learner = MetricLearner(gamma=np.inf, tol=1e-9)
    triplet = learner.fit(X, constraints=Constraints.from_triplets([[0, 0, 2]], margin=40.0)).metric_.matrix
    pair = learner.fit(X, constraints=Constraints.from_pairs(None, [[0, 2]], lower=40.0)).metric_.matrix
    np.testing.assert_allclose(triplet, pair, rtol=0, atol=1e-5)
    assert (X[0] - X[2]) @ triplet @ (X[0] - X[2]) == pytest.approx(40.0, rel=1e-5)


# -- posed -----------------------------------------------------------------------------------------------------


def test_posed_is_everything_at_once(rng):
    X, y = labelled_data(rng, n=12)
    c = Constraints.from_pairs([[0, 5]], [[1, 2]], upper=1.0, lower=4.0, weight=[2.0, 3.0])
    c = c + Constraints.from_triplets([[0, 1, 7]], margin=0.5) + Constraints.target_pull(y, X)
    known, (forms, rows) = as_arrays(c), c.edges()
    for name in ("sign", "bound", "scale", "weight"):
        np.testing.assert_array_equal(getattr(known, name), getattr(c, name))
    assert known.n_pairs == 2
    np.testing.assert_array_equal(known.rows, rows)
    Y = np.ascontiguousarray(X[known.rows])
    np.testing.assert_array_equal(known.forms.apply(Y, Y), forms.apply(Y, Y))
    assert len(known.forms.apply(Y, Y)) == 4  # the objective comes last


# -- from labels -----------------------------------------------------------------------------------------------


@given(st.integers(0, 2**32 - 1), st.integers(1, 60))
def test_random_pairs_are_valid_distinct_and_as_many_as_asked_for(seed, per_class):
    rng = np.random.default_rng(seed)
    y = rng.integers(-1, 4, int(rng.integers(10, 60)))
    y[:2] = 0, 1
    c = Constraints.from_labels(y, pairs_per_class=per_class, random_state=seed)
    index, sign = c.pairs.index, c.pairs.sign
    near, far = index[sign > 0], index[sign < 0]
    assert (y[near[:, 0]] == y[near[:, 1]]).all()
    assert (y[far[:, 0]] != y[far[:, 1]]).all()
    assert (y[index] >= 0).all() and (index[:, 0] != index[:, 1]).all()
    assert len(as_set(near)) == len(near) and len(as_set(far)) == len(far)
    sizes = np.bincount(y[y >= 0])
    sizes = sizes[sizes > 0]
    for k, n in zip(np.unique(y[y >= 0]), sizes, strict=True):
        assert (y[near[:, 0]] == k).sum() == min(per_class, n * (n - 1) // 2)
    # A dissimilar pair may be drawn from either of its classes and is then kept once.
    drawn = np.minimum(per_class, sizes * (sizes.sum() - sizes))
    assert drawn.max() <= len(far) <= drawn.sum()
    assert c.n_rows == len(y)
    assert np.isnan(c.bound).all()


def test_all_pairs_where_they_are_few():
    y = np.array([0, 0, 1, 1, 1, 2, -1])
    c = Constraints.from_labels(y, pairs_per_class=100)
    every = [(i, j) for i in range(6) for j in range(i + 1, 6)]
    near, far = c.pairs.index[c.pairs.sign > 0], c.pairs.index[c.pairs.sign < 0]
    assert as_set(near) == {p for p in every if y[p[0]] == y[p[1]]}
    assert as_set(far) == {p for p in every if y[p[0]] != y[p[1]]}


def test_random_pairs_are_uniform():
    """Each of the 45 pairs inside a class of ten is drawn about as often as any other."""
    y = np.r_[np.zeros(10, int), np.ones(2, int)]
    count = np.zeros((12, 12))
    for seed in range(600):
        c = Constraints.from_labels(y, pairs_per_class=9, random_state=seed)
        near = np.sort(c.pairs.index[c.pairs.sign > 0], axis=1)
        np.add.at(count, tuple(near.T), 1)
    drawn = count[np.triu_indices(10, 1)]
    assert drawn.sum() == 600 * 9
    expected = 600 * 9 / 45
    assert ((drawn - expected) ** 2 / (expected * (1 - 9 / 45))).sum() < 80  # χ² with 44 degrees of freedom, 99.9 %


def test_random_state():
    y = np.arange(60) % 3

    def drawn(random_state):
        return Constraints.from_labels(y, pairs_per_class=10, random_state=random_state).pairs.index

    np.testing.assert_array_equal(drawn(3), drawn(3))
    np.testing.assert_array_equal(drawn(3), drawn(np.random.default_rng(3)))
    np.testing.assert_array_equal(drawn(None), drawn(None))
    np.testing.assert_array_equal(drawn(np.random.RandomState(5)), drawn(np.random.RandomState(5)))
    assert not np.array_equal(drawn(3), drawn(4))
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    drawn(None)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


@given(st.integers(0, 2**32 - 1), st.integers(1, 5))
def test_neighbour_pairs_are_nearest_friends_and_nearest_impostors(seed, k):
    rng = np.random.default_rng(seed)
    X, y = labelled_data(rng, n=40, d=3)
    y[rng.random(40) < 0.2] = -1
    y[:3] = 0, 1, 2
    c = Constraints.from_labels(y, X, strategy="neighbors", pairs_per_class=None, n_neighbors=k)
    D = cdist(X, X)
    np.fill_diagonal(D, np.inf)
    near, far = set(), set()
    for i in np.flatnonzero(y >= 0):
        friends = np.flatnonzero((y == y[i]) & (np.arange(40) != i))
        others = np.flatnonzero((y != y[i]) & (y >= 0))
        near |= {tuple(sorted((i, j))) for j in friends[np.argsort(D[i, friends])[:k]]}
        far |= {tuple(sorted((i, j))) for j in others[np.argsort(D[i, others])[:k]]}
    assert as_set(c.pairs.index[c.pairs.sign > 0]) == near
    assert as_set(c.pairs.index[c.pairs.sign < 0]) == far
    assert len(c.pairs) == len(near) + len(far)


def test_neighbour_pairs_of_some_rows(rng):
    X, y = labelled_data(rng, n=90)
    c = Constraints.from_labels(y, X, strategy="neighbors", pairs_per_class=20, n_neighbors=4, random_state=1)
    index, sign = c.pairs.index, c.pairs.sign
    for s in (1, -1):
        per_class = np.bincount(y[index[sign == s][:, 0]])
        assert (per_class <= 20).all() and (per_class >= 10).all()
    again = Constraints.from_labels(y, X, strategy="neighbors", pairs_per_class=20, n_neighbors=4, random_state=1)
    np.testing.assert_array_equal(again.pairs.index, index)


def test_duplicates_do_not_crowd_out_a_row_itself():
    """With duplicated points a row need not be its own first neighbour; it must still not be paired with itself."""
    X = np.zeros((8, 2))
    X[4:] = 1.0
    c = Constraints.from_labels([0, 0, 0, 0, 1, 1, 1, 1], X, strategy="neighbors", n_neighbors=2)
    assert (c.pairs.index[:, 0] != c.pairs.index[:, 1]).all()


# -- bounds ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("percentiles", [None, (1, 99), (0, 100), (33.3, 50)])
@pytest.mark.parametrize("prior", ["identity", "diagonal"])
def test_bounds_are_percentiles_of_all_squared_distances(rng, percentiles, prior):
    X, y = labelled_data(rng, n=50)
    X = np.vstack([X, X[:5]])  # identical points do not count
    y = np.concatenate([y, y[:5]])
    learner = MetricLearner(prior=prior, percentiles=percentiles).fit(X, y)
    sq = pdist(X / X.std(axis=0) if prior == "diagonal" else X, "sqeuclidean")
    low, high = np.percentile(sq[sq > 1e-12], percentiles or (5, 95))
    pairs = learner.constraints_.pairs
    np.testing.assert_allclose(pairs.bound[pairs.sign > 0], low, rtol=1e-10)
    np.testing.assert_allclose(pairs.bound[pairs.sign < 0], high, rtol=1e-10)


def test_bounds_of_neighbours_are_percentiles_of_their_own(rng):
    X, y = labelled_data(rng, n=50)
    for percentiles, expected in ((None, (10, 90)), ((20, 60), (20, 60))):
        pairs = MetricLearner(strategy="neighbors", percentiles=percentiles).fit(X, y).constraints_.pairs
        sq = ((X[pairs.index[:, 0]] - X[pairs.index[:, 1]]) ** 2).sum(axis=1)
        for sign, q in ((1, expected[0]), (-1, expected[1])):
            np.testing.assert_allclose(pairs.bound[pairs.sign == sign], np.percentile(sq[pairs.sign == sign], q))


def test_sampled_percentiles_are_near_the_true_ones(rng):
    """Beyond about 200 rows distances are sampled: 20 000 of them, so percentiles are off by little."""
    X = rng.standard_normal((700, 3))
    sq = pdist(X, "sqeuclidean")
    c = Constraints.from_pairs([[0, 1]], [[2, 3]])
    for seed in range(3):
        upper, lower = resolve_bounds(
            c, VectorGeometry(InMemoryRows(X)), None, (5, 95), np.random.default_rng(seed)
        ).bound
        assert 4.3 < (sq < upper).mean() * 100 < 5.7
        assert 94.3 < (sq < lower).mean() * 100 < 95.7


def test_given_bounds_win_over_percentiles_and_own_bounds_over_both(rng):
    X = rng.standard_normal((12, 3))
    c = Constraints.from_pairs([[0, 1]], [[2, 3]], upper=0.25) + Constraints.from_pairs([[4, 5]])
    c = c + Constraints.from_triplets([[0, 1, 2]]) + Constraints.from_triplets([[3, 4, 5]], margin=0.125)
    resolved = resolve_bounds(c, VectorGeometry(InMemoryRows(X)), (1.5, 6.0), (1, 99), np.random.default_rng(0))
    np.testing.assert_array_equal(resolved.bound, [0.25, 6.0, 1.5, -1.5, -0.125])


def test_open_margins_are_the_lower_percentile(rng):
    X = rng.standard_normal((12, 3))
    learner = MetricLearner(percentiles=(7, 80)).fit(X, constraints=Constraints.from_triplets([[0, 1, 2], [3, 4, 5]]))
    margin = np.percentile(pdist(X, "sqeuclidean"), 7)
    np.testing.assert_allclose(learner.constraints_.triplets.margin, margin)


def test_explicit_constraints_with_open_bounds(rng):
    X = rng.standard_normal((12, 3))
    pairs = MetricLearner().fit(X, constraints=Constraints.from_pairs([[0, 1]], [[2, 3]])).constraints_.pairs
    np.testing.assert_allclose(pairs.bound, np.percentile(pdist(X, "sqeuclidean"), [5, 95]))


def test_constraints_are_not_changed_by_a_fit(rng):
    X = rng.standard_normal((12, 3))
    c = Constraints.from_pairs([[0, 1]], [[2, 3]]) + Constraints.from_triplets([[0, 1, 2]])
    before = pickle.dumps(c)
    MetricLearner().fit(X, constraints=c)
    assert pickle.dumps(c) == before


def test_triplets_from_labels_are_targets_against_impostors(rng):
    X, y = labelled_data(rng, n=24)
    y[3] = -1
    found = Constraints.from_labels(y, X, strategy="triplets", n_neighbors=2).triplets.index
    expected = []
    for a in np.flatnonzero(y >= 0):
        order = np.argsort(((X - X[a]) ** 2).sum(axis=1), kind="stable")
        targets = [j for j in order if j != a and y[j] == y[a]][:2]
        impostors = [j for j in order if y[j] not in (y[a], -1)][:2]
        expected += [(a, j, k) for j in targets for k in impostors]
    assert sorted(map(tuple, found)) == sorted(expected)


def test_as_many_triplets_as_asked_for(rng):
    X, y = labelled_data(rng)
    found = Constraints.from_labels(y, X, strategy="triplets", n_neighbors=3, pairs_per_class=27, random_state=0)
    assert len(found.triplets) == 3 * 27


def test_target_pull_is_the_mean_squared_distance_of_targets(rng):
    X, y = labelled_data(rng, n=20)
    C = Constraints.target_pull(y, X, n_neighbors=2, weight=3.0).objective
    sq = ((X[:, None] - X) ** 2).sum(axis=-1)
    own = np.where((y[:, None] == y) & ~np.eye(20, dtype=bool), sq, np.inf)
    nearest = np.sort(own, axis=1)[:, :2]
    assert np.trace(X.T @ (C @ X)) == pytest.approx(3.0 * nearest.mean())


def test_an_objective_survives_everything_on_the_way_to_the_solver(rng):
    X, y = labelled_data(rng)
    triplets = Constraints.from_labels(y, X, strategy="triplets", n_neighbors=2)
    pull = Constraints.target_pull(y, X, weight=5.0)
    plain, pulled = (
        MetricLearner(loss=SDPFrobenius(), gamma=0.1).fit(X, constraints=c) for c in (triplets, triplets + pull)
    )
    assert pulled.constraints_.objective is not None and "a linear objective" in repr(pulled.constraints_)
    pull_of = [np.trace(pull.objective @ learner.metric_.kernel(X)) for learner in (plain, pulled)]
    assert pull_of[1] < 0.99 * pull_of[0]
