"""Pairs with nearest rows, where rows have copies."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from mahalo import Constraints, MetricLearner
from mahalo.constraints import VectorGeometry, number_rows
from mahalo.coordinates import KernelGeometry
from mahalo.coordinates.base_kernel import BaseKernel
from mahalo.rows import InMemoryRows

GEOMETRIES = {
    "dense": lambda X: VectorGeometry(InMemoryRows(X)),
    "sparse": lambda X: VectorGeometry(InMemoryRows(sp.csr_array(X))),
    "kernel": lambda X: KernelGeometry(BaseKernel("rbf", {"gamma": 0.1}), X),
}


def table(seed, n=60, n_values=3, d=2):
    """Return rows of few distinct points, and labels."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, n_values, (n, d)).astype(float), rng.integers(0, 2, n)


@pytest.mark.parametrize("kind", GEOMETRIES)
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), k=st.integers(1, 4))
def test_every_row_has_its_nearest_rows_at_a_distance(kind, seed, k):
    """Against brute force: distances from a row are those to its nearest distinct points, or to nearest rows."""
    X, y = table(seed)
    pairs = Constraints.from_labels(
        y, GEOMETRIES[kind](X), strategy="neighbors", pairs_per_class=None, n_neighbors=k
    ).pairs
    D = cdist(X, X, "sqeuclidean")
    for sign, same in ((1, y[:, None] == y), (-1, y[:, None] != y)):
        index = pairs.index[pairs.sign == sign]
        linked = np.zeros_like(same)
        linked[index[:, 0], index[:, 1]] = linked[index[:, 1], index[:, 0]] = True
        assert not (linked & ~same).any()
        for i in range(len(X)):
            candidates = D[i, same[i] & (D[i] > 0)]
            if not len(candidates):
                assert not linked[i].any()
                continue
            nearest_rows = np.sort(candidates)[:k]
            distinct = np.unique(X[same[i] & (D[i] > 0)], axis=0)
            nearest_points = np.sort(cdist(X[i : i + 1], distinct, "sqeuclidean")[0])[:k]
            own = np.sort(D[i, linked[i]])
            assert (own > 0).all()
            assert any(np.isin(nearest, own).all() for nearest in (nearest_rows, nearest_points))
            assert own[0] == pytest.approx(candidates.min())


def test_rows_without_copies_have_the_pairs_of_a_plain_search():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((50, 3)), np.arange(50) % 2
    pairs = Constraints.from_labels(y, X, strategy="neighbors", n_neighbors=3).pairs
    D = cdist(X, X)
    np.fill_diagonal(D, np.inf)
    expected = {
        (frozenset((i, int(j))), sign)
        for i in range(50)
        for sign, mask in ((1, y == y[i]), (-1, y != y[i]))
        for j in np.argsort(np.where(mask, D[i], np.inf))[:3]
    }
    assert {(frozenset(pair), int(s)) for pair, s in zip(pairs.index.tolist(), pairs.sign, strict=True)} == expected


def test_a_table_of_one_column_of_few_values_is_learned_from():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, (400, 1)).astype(float)
    y = (rng.random(400) < X[:, 0] / 4).astype(int)
    learner = MetricLearner(strategy="neighbors").fit(X, y)
    assert learner.n_dropped_ == 0
    assert learner.certificate_.relative_gap <= 1e-4


def test_copies_in_a_kernel_matrix_are_passed_over():
    K = np.kron(np.eye(4) + 0.5, np.ones((20, 20)))
    learner = MetricLearner(kernel="precomputed", strategy="neighbors").fit(K, np.arange(80) % 2)
    assert learner.n_dropped_ == 0
    assert learner.constraints_.n_constraints > 100


def test_negative_squared_distances_are_no_copies(rng):
    """Before an indefinite kernel is clipped its nearest rows may have negative squared distances."""
    A = rng.standard_normal((60, 60))
    geometry = KernelGeometry(BaseKernel("precomputed", {}), A + A.T)
    pairs = Constraints.from_labels(np.arange(60) % 2, geometry, strategy="neighbors", pairs_per_class=None).pairs
    degree = np.bincount(pairs.index.ravel(), minlength=60)
    assert degree.min() >= 5
    assert (pairs.index[:, 0] != pairs.index[:, 1]).all()


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_rows_are_numbered_exactly(form):
    """Entries far larger than others hide no difference; how sparse rows are stored does not matter."""
    X = np.array([[1.7e18, 0.1, 0.0], [1.7e18, 0.2, 0.0], [1.7e18, 0.1, 0.0], [0.0, 0.0, -0.0]])
    rows = form(X)
    if sp.issparse(rows):
        rows = sp.csr_array((rows.data[[1, 0, 2, 3, 4, 5]], rows.indices[[1, 0, 2, 3, 4, 5]], rows.indptr), rows.shape)
    first, second, third, last = number_rows(rows)
    assert first == third and len({first, second, last}) == 3
