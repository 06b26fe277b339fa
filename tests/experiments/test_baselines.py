"""The methods LogDet is compared with: each does what its paper says, so that beating it means something."""

from __future__ import annotations

import numpy as np
import pytest
from builders import labelled_data
from scipy.linalg import sqrtm
from scipy.optimize import approx_fprime
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from experiments.baselines import GMML, LMNN, MCML, HMRFKMeans
from experiments.baselines.common import descend, edge_scatter
from experiments.baselines.gmml import geometric_mean
from experiments.baselines.lmnn import margin_loss, target_neighbours
from experiments.baselines.mcml import class_neighbours, collapse
from mahalo import Constraints


def random_spd(rng, d):
    B = rng.standard_normal((d, 2 * d))
    return B @ B.T / d


def gradient_matches(objective, W):
    d = len(W)
    numeric = approx_fprime(W.ravel(), lambda w: objective(w.reshape(d, d))[0], 1e-7).reshape(d, d)
    np.testing.assert_allclose(objective(W)[1], (numeric + numeric.T) / 2, atol=1e-5)


# -- shared ----------------------------------------------------------------------------------------------------


def test_edge_scatter_is_the_sum_over_edges(rng):
    X, weight = rng.standard_normal((7, 3)), rng.standard_normal((7, 7))
    plain = sum(weight[i, j] * np.outer(X[i] - X[j], X[i] - X[j]) for i in range(7) for j in range(7))
    np.testing.assert_allclose(edge_scatter(weight, X), plain, atol=1e-12)


def test_descent_finds_the_nearest_psd_matrix(rng):
    A = np.diag([3.0, 1.0, -2.0])

    def half_sq_distance(W):
        return 0.5 * ((W - A) ** 2).sum(), W - A

    found = descend(half_sq_distance, random_spd(rng, 3), tol=1e-12, max_iter=100)
    assert found.converged and np.all(np.diff(found.values) <= 0)
    np.testing.assert_allclose(found.W, np.diag([3.0, 1.0, 0.0]), atol=1e-6)


@pytest.mark.parametrize("method", [GMML(), MCML(), LMNN()], ids=lambda m: type(m).__name__)
def test_transform_is_the_distance(rng, method):
    X, y = labelled_data(rng)
    W = method.fit(X, y).matrix_
    assert np.linalg.eigvalsh(W)[0] >= -1e-10 * np.linalg.eigvalsh(W)[-1]
    T, delta = method.transform(X), X[0] - X[7]
    assert ((T[0] - T[7]) ** 2).sum() == pytest.approx(delta @ W @ delta)


# -- GMML ------------------------------------------------------------------------------------------------------


def test_geometric_mean_solves_its_riccati_equation(rng):
    """X = A ♯ B is the one positive definite solution of X A⁻¹ X = B; ♯_0 and ♯_1 are the ends."""
    A, B = random_spd(rng, 4), random_spd(rng, 4)
    M = geometric_mean(A, B, 0.5)
    np.testing.assert_allclose(M @ np.linalg.inv(A) @ M, B, rtol=1e-8)
    np.testing.assert_allclose(geometric_mean(A, B, 0.0), A, rtol=1e-8)
    np.testing.assert_allclose(geometric_mean(A, B, 1.0), B, rtol=1e-8)
    np.testing.assert_allclose(geometric_mean(A, B, 0.3), geometric_mean(B, A, 0.7), rtol=1e-8)


def test_gmml_minimises_its_objective(rng):
    """t = ½: no other W has smaller tr(W S) + tr(W⁻¹ D), S and D from the pairs the labels give."""
    X, y = labelled_data(rng)
    method = GMML(regularization=0.0).fit(X, y)
    pairs = Constraints.from_labels(y, pairs_per_class=100, random_state=0).pairs
    delta = X[pairs.index[:, 0]] - X[pairs.index[:, 1]]
    S, D = ((delta[pairs.sign == s].T @ delta[pairs.sign == s]) / (pairs.sign == s).sum() for s in (1, -1))

    def objective(W):
        return np.trace(W @ S) + np.trace(np.linalg.solve(W, D))

    best = objective(method.matrix_)
    root = np.real(sqrtm(method.matrix_))
    for _ in range(20):
        assert objective(root @ random_spd(rng, 4) @ root) > best
        nearby = np.eye(4) + 0.02 * (random_spd(rng, 4) - random_spd(rng, 4))
        assert objective(root @ nearby @ root) > best


def test_gmml_refuses_t_outside_its_geodesic(rng):
    with pytest.raises(ValueError, match="from 0 to 1; got 2"):
        GMML(t=2).fit(*labelled_data(rng))


# -- MCML ------------------------------------------------------------------------------------------------------


def test_mcml_objective_is_the_divergence_up_to_a_constant(rng):
    X, y = labelled_data(rng, n=12, d=3)
    wanted = class_neighbours(y)

    def divergence(W):
        total = 0.0
        for i in range(12):
            weight = np.array([np.exp(-(X[i] - X[j]) @ W @ (X[i] - X[j])) if j != i else 0.0 for j in range(12)])
            p = weight / weight.sum()
            total += sum(wanted[i, j] * np.log(wanted[i, j] / p[j]) for j in range(12) if wanted[i, j] > 0)
        return total / 12

    first, second = 0.1 * random_spd(rng, 3), 0.2 * random_spd(rng, 3)
    difference = collapse(first, X, wanted)[0] - collapse(second, X, wanted)[0]
    assert difference == pytest.approx(divergence(first) - divergence(second), rel=1e-9)
    gradient_matches(lambda W: collapse(W, X, wanted), first)


def test_mcml_descends_to_the_same_optimum_from_two_starts(rng):
    X, y = labelled_data(rng)
    one, other = (MCML(start=start, tol=1e-10).fit(X, y) for start in ("identity", "zero"))
    for method in (one, other):
        assert np.all(np.diff(method.objective_) <= 0)
    assert one.objective_[-1] == pytest.approx(other.objective_[-1], rel=1e-6)
    np.testing.assert_allclose(one.matrix_, other.matrix_, atol=1e-3 * np.abs(one.matrix_).max())


# -- LMNN ------------------------------------------------------------------------------------------------------


def test_lmnn_loss_is_the_sum_over_triplets(rng):
    X, y = labelled_data(rng, n=14, d=3)
    targets, W = target_neighbours(X, y, 2), random_spd(rng, 3)

    def sq(i, j):
        return (X[i] - X[j]) @ W @ (X[i] - X[j])

    total = sum(0.4 * sq(i, j) for i, j in targets)
    total += sum(0.6 * max(0.0, 1 + sq(i, j) - sq(i, k)) for i, j in targets for k in range(14) if y[k] != y[i])
    assert margin_loss(W, X, y, targets, 0.6)[0] == pytest.approx(total / len(targets))
    gradient_matches(lambda W: margin_loss(W, X, y, targets, 0.6), W)


def test_lmnn_targets_are_the_nearest_of_the_same_class(rng):
    X, y = labelled_data(rng, n=20)
    y[0] = 9  # a class of one has no targets
    targets = target_neighbours(X, np.unique(y, return_inverse=True)[1], 3)
    assert 0 not in targets
    for i in range(1, 20):
        mates = [j for j in np.argsort(((X - X[i]) ** 2).sum(axis=1)) if y[j] == y[i] and j != i]
        assert set(targets[targets[:, 0] == i, 1]) == set(mates[:3])


def test_lmnn_descends_and_leaves_fewer_impostors(rng):
    X, y = labelled_data(rng, n=90, apart=1.0)
    method = LMNN().fit(X, y)
    assert np.all(np.diff(method.objective_) <= 0)
    assert method.objective_[-1] < 0.9 * method.objective_[0]


# -- HMRF-KMeans -----------------------------------------------------------------------------------------------


def some_pairs(rng, y, m):
    index = np.array([rng.choice(len(y), 2, replace=False) for _ in range(m)])
    same = y[index[:, 0]] == y[index[:, 1]]
    return Constraints.from_pairs(index[same], index[~same], n_rows=len(y))


@pytest.mark.parametrize("learn_weights", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_hmrf_objective_never_increases(seed, learn_weights):
    rng = np.random.default_rng(seed)
    X, y = labelled_data(rng, n=80, apart=1.0)
    method = HMRFKMeans(3, learn_weights=learn_weights, n_init=1, random_state=seed)
    objective = np.array(method.fit(X, constraints=some_pairs(rng, y, 40)).objective_)
    assert len(objective) > 2
    assert np.all(np.diff(objective) <= 1e-9 * np.abs(objective[:-1]))


def test_hmrf_heavy_penalties_keep_every_consistent_pair(rng):
    X, y = labelled_data(rng, n=60, apart=0.5)
    constraints = some_pairs(rng, y, 40)
    labels = HMRFKMeans(3, weight=100.0).fit(X, constraints=constraints).labels_
    i, j = constraints.pairs.index.T
    assert np.mean((labels[i] == labels[j]) != (constraints.pairs.sign > 0)) < 0.1
    free = HMRFKMeans(3, weight=1e-6).fit(X, constraints=constraints).labels_
    assert np.mean((free[i] == free[j]) != (constraints.pairs.sign > 0)) > 0.2


def test_hmrf_starts_from_random_rows_where_nothing_must_be_linked(rng):
    X, y = labelled_data(rng)
    pairs = some_pairs(rng, y, 20).pairs
    constraints = Constraints.from_pairs(dissimilar=pairs.index[pairs.sign < 0], n_rows=len(X))
    assert len(set(HMRFKMeans(3).fit(X, constraints=constraints).labels_)) == 3


def test_hmrf_without_penalties_or_feature_weights_is_kmeans(rng):
    X, y = labelled_data(rng, n=90)
    pairs = some_pairs(rng, y, 30)
    labels = HMRFKMeans(3, weight=1e-9, learn_weights=False).fit(X, constraints=pairs).labels_
    plain = KMeans(3, n_init=20, random_state=0).fit_predict(X)
    assert adjusted_rand_score(labels, plain) == 1.0
