"""Learning in the feature space of a kernel, against the paper's theorem, explicit feature maps and itself."""

from __future__ import annotations

import sys
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from builders import (
    PlainProblem,
    labelled_data,
    problem_of,
    random_linear,
    random_pair_constraints,
    random_pairs,
    random_triplets,
    relative_violations,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from paper_algorithm import PaperAlgorithm1
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import pairwise_kernels, rbf_kernel

from mahalo import Constraints, InfeasibleError, MetricLearner, MetricLearnerCV, NotPositiveDefiniteError, compare
from mahalo.basis import KMeansBasis, RandomCombination, RandomSubset
from mahalo.constraints import VectorGeometry
from mahalo.coordinates import BaseKernel, KernelCoordinates, KernelSpace, embedding
from mahalo.rows import InMemoryRows
from mahalo.solvers import newton
from mahalo.task import FitData, pose

KernelProjections = sys.modules["mahalo.solvers.bregman"].KernelProjections


def dot(X, Y):
    return X @ Y.T


LINEAR = {
    "callable": {"kernel": dot},
    "polynomial": {"kernel": "polynomial", "kernel_params": {"degree": 1, "gamma": 1.0, "coef0": 0.0}},
    "precomputed": {"kernel": "precomputed"},
}


def sq_distances_of(K, KX, KY):
    """Squared distances from the three blocks of a kernel: between rows, and the self-similarities."""
    return KX[:, None] + KY[None] - 2 * K


def asked(metric, X, Y, precomputed):
    """(kernel, squared distances, squared pair distances) of rows X and Y that training has not seen."""
    n = min(len(X), len(Y))
    if precomputed is None:
        return (
            metric.kernel(X, Y),
            metric.distances(X, Y, squared=True),
            metric.pair_distances(X[:n], Y[:n], squared=True),
        )
    KX, KY, cross = X @ precomputed.T, Y @ precomputed.T, X @ Y.T
    own_x, own_y = (X**2).sum(axis=1), (Y**2).sum(axis=1)
    return (
        metric.kernel(KX, KY, cross=cross),
        metric.distances(KX, KY, squared=True, cross=cross, diag_x=own_x, diag_y=own_y),
        metric.pair_distances(
            KX[:n], KY[:n], squared=True, cross=np.diagonal(cross), diag_x=own_x[:n], diag_y=own_y[:n]
        ),
    )


# -- the linear kernel is the linear metric ----------------------------------------------------------------------


@pytest.mark.parametrize("which", LINEAR)
@pytest.mark.parametrize("d", [3, 20], ids=["d<n", "d>n"])
@pytest.mark.parametrize("gamma", [0.5, np.inf])
def test_linear_kernel_is_the_linear_metric_on_unseen_points(rng, which, d, gamma):
    X, new, other = (rng.standard_normal((n, d)) for n in (10, 6, 4))
    constraints = random_pair_constraints(rng, X, 8, weights=True)
    if np.isfinite(gamma):
        constraints = constraints + random_triplets(rng, X, 3) + random_linear(rng, X, 2)
    else:
        constraints = Constraints.from_pairs([[0, 1]], [[2, 3]], upper=0.3, lower=40.0)
    linear = MetricLearner(gamma=gamma, tol=1e-11).fit(X, constraints=constraints)
    learner = MetricLearner(gamma=gamma, tol=1e-11, **LINEAR[which])
    learner.fit(X @ X.T if which == "precomputed" else X, constraints=constraints)
    assert isinstance(learner.metric_.coordinates, KernelCoordinates)
    assert learner.certificate_.primal == pytest.approx(linear.certificate_.primal, rel=1e-8)
    np.testing.assert_allclose(learner.duals_, linear.duals_, atol=1e-5 * linear.duals_.max())
    ours = asked(learner.metric_, new, other, X if which == "precomputed" else None)
    theirs = asked(linear.metric_, new, other, None)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-5 * np.abs(b).max())


@pytest.mark.parametrize("which", LINEAR)
@pytest.mark.parametrize("strategy", ["random", "neighbors"])
def test_labels_make_the_same_pairs_and_bounds_in_either_space(rng, which, strategy):
    X, y = labelled_data(rng)
    linear = MetricLearner(strategy=strategy, pairs_per_class=20, random_state=3).fit(X, y)
    learner = MetricLearner(strategy=strategy, pairs_per_class=20, random_state=3, **LINEAR[which])
    learner.fit(X @ X.T if which == "precomputed" else X, y)
    np.testing.assert_array_equal(learner.constraints_.pairs.index, linear.constraints_.pairs.index)
    np.testing.assert_allclose(learner.constraints_.bound, linear.constraints_.bound, rtol=1e-9)


def test_an_rbf_kernel_without_a_width_is_scikit_learns(rng):
    X = rng.standard_normal((6, 3))
    np.testing.assert_allclose(BaseKernel.of("rbf", {"gamma": None})(X, X), rbf_kernel(X), rtol=1e-12)


def test_nearest_rows_come_nearest_first(rng):
    """In the order that a search among vectors gives, whatever order a partial sort leaves them in."""
    X, rows = rng.standard_normal((500, 3)), np.arange(500)
    geometry = KernelSpace(BaseKernel.of(dot, {}), X).geometry
    np.testing.assert_array_equal(
        geometry.nearest(rows, rows, 40), VectorGeometry(InMemoryRows(X)).nearest(rows, rows, 40)
    )


def test_transform_keeps_distances_between_training_rows(rng):
    """F^½ φ leaves out what lies outside the span of the training rows, and those lie inside."""
    X = rng.standard_normal((12, 3))
    constraints = random_pair_constraints(rng, X, 20)
    learner = MetricLearner(kernel="rbf").fit(X, constraints=constraints)
    assert set(constraints.pairs.index.ravel()) == set(range(12))
    T = learner.transform(X)
    np.testing.assert_allclose(cdist(T, T), learner.metric_.distances(X), atol=1e-6)
    two = MetricLearner(kernel="rbf", n_components=2).fit(X, constraints=constraints).transform(X)
    assert two.shape == (12, 2)
    assert (cdist(two, two) <= cdist(T, T) + 1e-9).all()
    full = np.linalg.eigvalsh(np.cov(T.T, bias=True))[::-1]
    np.testing.assert_allclose(np.linalg.eigvalsh(np.cov(two.T, bias=True))[::-1], full[:2], rtol=1e-8)


# -- the theorem, by brute force -----------------------------------------------------------------------------------


def kernel_pairs(rng, K0, m):
    """Pairs that touch every row, about half of either kind, most of them violated under K0."""
    index = random_pairs(rng, len(K0), m)
    sq = np.diag(K0)[index].sum(axis=1) - 2 * K0[tuple(index.T)]
    h = m // 2
    constraints = Constraints.from_pairs(
        index[:h], index[h:], upper=sq[:h] * 0.6, lower=sq[h:] * 1.5, weight=rng.uniform(0.5, 2.0, m)
    )
    assert len(np.unique(index)) == len(K0)
    return constraints


@pytest.mark.parametrize("gamma", [0.05, 0.5, 5.0])
@pytest.mark.parametrize("solver", ["newton", "bregman"])
def test_gaussian_kernel_against_the_theorem(rng, gamma, solver):
    """W = I + X M Xᵀ with M = K0⁻¹(K − K0)K0⁻¹, K from Algorithm 1 as printed, at points never seen (eq. newpoints)."""
    X, new, other = (rng.standard_normal((n, 3)) for n in (9, 6, 5))

    def kappa0(A, B):
        return np.exp(-0.7 * cdist(A, B, "sqeuclidean"))

    K0 = kappa0(X, X)
    constraints = kernel_pairs(rng, K0, 14)
    pairs = constraints.pairs
    paper = PaperAlgorithm1(K0, pairs.index, pairs.sign > 0, pairs.bound, gamma * pairs.weight)
    for _ in range(1500):
        before = paper.K
        paper.sweep()
        if np.abs(paper.K - before).max() < 1e-13:
            break
    inverse = np.linalg.inv(K0)
    M = inverse @ (paper.K - K0) @ inverse

    def kappa(A, B):
        return kappa0(A, B) + kappa0(A, X) @ M @ kappa0(X, B)

    learner = MetricLearner(kernel="rbf", kernel_params={"gamma": 0.7}, gamma=gamma, solver=solver, tol=1e-10)
    learner.set_params(max_iter=20_000).fit(X, constraints=constraints)
    metric = learner.metric_
    close = {"rtol": 0, "atol": 2e-5 * np.abs(kappa(X, X)).max()}
    np.testing.assert_allclose(metric.kernel(new, other), kappa(new, other), **close)
    np.testing.assert_allclose(metric.kernel(new), kappa(new, new), **close)
    np.testing.assert_allclose(metric.kernel(X), paper.K, **close)
    D = sq_distances_of(kappa(new, other), np.diag(kappa(new, new)), np.diag(kappa(other, other)))
    np.testing.assert_allclose(metric.distances(new, other, squared=True), D, **close)
    np.testing.assert_allclose(metric.pair_distances(new[:5], other, squared=True), np.diag(D), **close)
    assert np.abs(kappa(new, other) - kappa0(new, other)).max() > 1e-3  # something was learned


def test_multipliers_give_the_learned_kernel(rng):
    """K⁻¹ = K0⁻¹ + Σ s (e_i − e_j)(e_i − e_j)ᵀ: the optimality condition of the kernel problem."""
    X = rng.standard_normal((8, 3))
    K0 = rbf_kernel(X, gamma=0.5)
    constraints = kernel_pairs(rng, K0, 12)
    learner = MetricLearner(kernel="rbf", kernel_params={"gamma": 0.5}, tol=1e-12).fit(X, constraints=constraints)
    E = np.eye(8)[constraints.pairs.index[:, 0]] - np.eye(8)[constraints.pairs.index[:, 1]]
    K = np.linalg.inv(np.linalg.inv(K0) + (E.T * (constraints.sign * learner.duals_)) @ E)
    np.testing.assert_allclose(learner.metric_.kernel(X), K, atol=1e-5)


@pytest.mark.parametrize("degree", [2, 3])
def test_polynomial_kernel_is_the_linear_metric_on_its_features(rng, degree):
    """(xᵀy)^p has the features √(p!/(a!b!)) x₁ᵃ x₂ᵇ; many points, so K0 is far from full rank."""

    def features(X):
        a = np.arange(degree + 1)
        binomial = np.array([1, 2, 1] if degree == 2 else [1, 3, 3, 1])
        return np.sqrt(binomial) * X[:, :1] ** a * X[:, 1:] ** (degree - a)

    X, new, other = (rng.standard_normal((n, 2)) for n in (15, 6, 4))
    constraints = random_pair_constraints(rng, features(X), 25)
    learner = MetricLearner(
        kernel="poly", kernel_params={"degree": degree, "gamma": 1.0, "coef0": 0.0}, gamma=2.0, tol=1e-11
    ).fit(X, constraints=constraints)
    explicit = MetricLearner(gamma=2.0, tol=1e-11).fit(features(X), constraints=constraints)
    assert learner.metric_.coordinates.rank == degree + 1
    D = explicit.metric_.distances(features(new), features(other))
    np.testing.assert_allclose(learner.metric_.distances(new, other), D, rtol=0, atol=1e-5 * D.max())
    assert learner.certificate_.primal == pytest.approx(explicit.certificate_.primal, rel=1e-9)


def test_infeasible_hard_constraints_in_kernel_space(rng):
    X = rng.standard_normal((6, 2))
    pairs = Constraints.from_pairs([[0, 1], [1, 2]], [[0, 2]], upper=0.1, lower=9.0)
    with pytest.raises(InfeasibleError, match=r"pair \(0, 2\): squared distance ≥ 9") as caught:
        MetricLearner(kernel="rbf", gamma=np.inf).fit(X, constraints=pairs)
    assert set(caught.value.constraints) == {0, 1, 2}


# -- Algorithm 1 on K -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gamma", [0.1, 10.0, np.inf])
def test_matrix_kept_beside_the_kernel_is_that_of_the_theorem(rng, gamma):
    K0 = rbf_kernel(rng.standard_normal((8, 3)), gamma=1.0)
    constraints = kernel_pairs(rng, K0, 12)
    state = KernelProjections(problem_of(constraints, np.zeros((8, 0)), gamma), K0)
    np.testing.assert_array_equal(state.M, np.zeros((8, 8)))
    inverse = np.linalg.inv(K0)
    for _ in range(8):
        state.sweep()
        M = inverse @ (state.K - K0) @ inverse
        np.testing.assert_allclose(state.M, M, rtol=0, atol=1e-9 * np.abs(M).max())
        np.testing.assert_allclose(state.M, state.M.T, atol=1e-12 * np.abs(M).max())


def test_matrix_kept_beside_a_singular_kernel(rng):
    """No inverse exists, but K = K0 + K0 M K0 does, and the one M of Algorithm 1 serves new points."""
    X, new = rng.standard_normal((8, 2)), rng.standard_normal((5, 2))
    constraints = kernel_pairs(rng, X @ X.T, 12)
    state = KernelProjections(problem_of(constraints, np.zeros((8, 0)), 1.0), X @ X.T)
    for _ in range(3000):
        if state.sweep() < 1e-14:
            break
    np.testing.assert_allclose(state.K, X @ X.T + X @ X.T @ state.M @ X @ X.T, atol=1e-10)
    W = MetricLearner(tol=1e-12).fit(X, constraints=constraints).metric_.matrix
    kappa = new @ new.T + (new @ X.T) @ state.M @ (X @ new.T)
    np.testing.assert_allclose(kappa, new @ W @ new.T, atol=1e-5)


@pytest.mark.parametrize("n", [12, 40], ids=["points", "differences"])
@pytest.mark.parametrize("small", [0, 200], ids=["in coordinates", "on K"])
def test_either_solver_in_kernel_space(rng, monkeypatch, n, small):
    """Also where pairs share no rows, so that differences take the place of points."""
    monkeypatch.setattr(sys.modules["mahalo.solvers.bregman"], "_SMALL_KERNEL", small)
    X, new = rng.standard_normal((n, 3)), rng.standard_normal((7, 3))
    pairs = random_pair_constraints(rng, X, 14, weights=True)
    if n > 14:
        index = np.arange(28).reshape(-1, 2)
        pairs = Constraints.from_pairs(index[:7], index[7:], upper=0.3, lower=1.9)
    one, two = (
        MetricLearner(kernel="rbf", gamma=0.3, solver=solver, tol=1e-10, max_iter=20_000).fit(X, constraints=pairs)
        for solver in ("newton", "bregman")
    )
    assert one.certificate_.primal == pytest.approx(two.certificate_.primal, rel=1e-8)
    assert two.history_[-1].relative_gap <= 1e-10 and two.n_iter_ < 1000  # it saw that it had arrived
    np.testing.assert_allclose(one.metric_.distances(new), two.metric_.distances(new), atol=1e-4)
    np.testing.assert_allclose(one.duals_, two.duals_, rtol=0, atol=1e-3 * one.duals_.max())


@pytest.mark.parametrize("small", [0, 200], ids=["in coordinates", "on K"])
def test_projections_over_a_basis(rng, monkeypatch, small):
    """Offsets c > 0 on either side."""
    monkeypatch.setattr(sys.modules["mahalo.solvers.bregman"], "_SMALL_KERNEL", small)
    X, y = labelled_data(rng, n=30)
    one, two = (
        MetricLearner(
            kernel="rbf", basis=5, gamma=0.1, solver=solver, tol=1e-9, pairs_per_class=15, max_iter=20_000
        ).fit(X, y)
        for solver in ("newton", "bregman")
    )
    assert one.certificate_.primal == pytest.approx(two.certificate_.primal, rel=1e-7)
    np.testing.assert_allclose(one.metric_.F, two.metric_.F, atol=1e-3 * np.abs(one.metric_.F).max())


# -- the certificate is that of the metric returned -----------------------------------------------------------------


KERNELS = {
    "linear": {},
    "rbf": {"kernel": "rbf"},
    "nearly singular": {"kernel": "rbf", "kernel_params": {"gamma": 1e-3}},
    "laplacian": {"kernel": "laplacian"},
    "cosine": {"kernel": "cosine"},
    "polynomial": {"kernel": "poly", "kernel_params": {"degree": 2, "gamma": 1.0}},
    "callable": {"kernel": lambda A, B: np.exp(-cdist(A, B))},
}
BASES = {
    "none": None,
    "two": 2,
    "many": 30,
    "subset": RandomSubset(3),
    "clusters": KMeansBasis(3),
    "combinations": RandomCombination(4),
}


@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(sorted(KERNELS)),
    st.sampled_from(sorted(BASES)),
    st.booleans(),
    st.booleans(),
    st.sampled_from([0.1, 3.0, 100.0]),
)
@settings(max_examples=80)
def test_violation_certified_is_that_of_the_metrics_own_distances(seed, kernel, basis, residual, repeated, gamma):
    rng = np.random.default_rng(seed)
    X, y = labelled_data(rng, n=16, d=3)
    constraints = random_pair_constraints(rng, X, 10, weights=True)
    constraints = constraints + random_triplets(rng, X, 3) + random_linear(rng, X, 2)
    if repeated:
        X[8:12] = X[:4]
    residual = residual or BASES[basis] is None
    learner = MetricLearner(basis=BASES[basis], residual=residual, gamma=gamma, **KERNELS[kernel])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*identical points")
        learner.fit(X, y, constraints=constraints)
    violation = relative_violations(learner.metric_, X, learner.constraints_)
    assert learner.certificate_.max_violation == pytest.approx(violation.max(), rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("basis", [None, 3, 30])
def test_objective_certified_is_that_of_the_metric_returned(rng, basis):
    """Primal and dual from K0 and the constraints alone: the part outside the coordinates counts as c_k."""
    X, y = labelled_data(rng, n=20)
    learner = MetricLearner(kernel="rbf", kernel_params={"gamma": 1 / 4}, basis=basis, pairs_per_class=10, gamma=2.0)
    learner.fit(X, y)
    phi = learner.metric_.coordinates.map(X)
    K0, pairs = rbf_kernel(X), learner.constraints_.pairs
    i, j = pairs.index.T
    full = K0[i, i] + K0[j, j] - 2 * K0[i, j]
    plain = PlainProblem.of(learner.constraints_, phi, 2.0, full - ((phi[i] - phi[j]) ** 2).sum(axis=1))
    F, certificate = learner.metric_.F, learner.certificate_
    assert certificate.primal == pytest.approx(plain.primal(F), rel=1e-7)
    assert certificate.dual == pytest.approx(plain.dual(learner.duals_), rel=1e-7)


def test_fewer_points_of_the_same_problem(rng):
    """`compact` changes neither the answer nor its value."""
    X = rng.standard_normal((30, 4))
    pairs = np.arange(20).reshape(-1, 2)
    constraints = Constraints.from_pairs(pairs[:5], pairs[5:], upper=1.0, lower=20.0)
    for mixed in (constraints, constraints + random_triplets(rng, X[20:], 1) + random_linear(rng, X, 1)):
        problem = problem_of(mixed, X, 1.0, rng.uniform(0, 0.3, mixed.n_constraints))
        compact = problem.compact()
        assert len(compact.points) == len(problem.forms.tail) + 1 < len(problem.points)
        s, Y = rng.standard_normal(mixed.n_constraints), rng.standard_normal((4, 4))
        np.testing.assert_allclose(
            compact.forms.apply(compact.points @ (Y @ Y.T), compact.points),
            problem.forms.apply(problem.points @ (Y @ Y.T), problem.points),
            rtol=1e-10,
        )
        np.testing.assert_allclose(
            compact.forms.adjoint(compact.points, s), problem.forms.adjoint(problem.points, s), atol=1e-9
        )
        one, two = newton(problem, tol=1e-10), newton(compact, tol=1e-10)
        assert one.certificate.primal == pytest.approx(two.certificate.primal, rel=1e-9)
        np.testing.assert_allclose(one.F, two.F, atol=1e-4 * np.abs(one.F).max())
    shared = problem_of(random_pair_constraints(rng, X[:6], 12), X, 1.0)
    assert shared.compact().forms is shared.forms
    task = pose(MetricLearner(kernel="rbf").fit_settings(), FitData(X, None, constraints, None))
    assert task.problem.points.shape == (11, 20)  # what a fit solves: ten differences and the origin


def test_pivots_below_the_documented_share_are_left_out(rng):
    """Of the rank of a nearly singular K0: what is left out is below 1e-10 of it, what is kept above."""
    X = rng.standard_normal((30, 3))
    constraints = random_pair_constraints(rng, X, 60)
    learner = MetricLearner(kernel="rbf", kernel_params={"gamma": 1e-3}).fit(X, constraints=constraints)
    coordinates = learner.metric_.coordinates
    assert 10 < coordinates.rank < 30
    phi = coordinates.map(X)
    left = 1.0 - (phi**2).sum(axis=1)
    assert np.abs(left).max() < 2e-10
    assert (1 / np.diag(coordinates.T) ** 2 > 1e-10).all()


# -- awkward kernels ------------------------------------------------------------------------------------------------


def test_only_constrained_points_are_kept(rng):
    X = rng.standard_normal((50, 3))
    constraints = Constraints.from_pairs([[3, 7], [7, 9]], [[40, 41]], upper=0.1, lower=1.9)
    coordinates = MetricLearner(kernel="rbf").fit(X, constraints=constraints).metric_.coordinates
    assert coordinates.T.shape == (5, 5)
    assert {tuple(row) for row in coordinates.support} == {tuple(row) for row in X[[3, 7, 9, 40, 41]]}


@pytest.mark.parametrize("precomputed", [False, True])
def test_singular_kernel_matrices(rng, precomputed):
    """Rank 3 of 20, every point twice, and pairs from one copy to the other: as good as the points once."""
    X = rng.standard_normal((10, 3))
    constraints = random_pair_constraints(rng, X, 12)
    twice = np.vstack([X, X])
    moved = Constraints.from_pairs(
        np.add(constraints.pairs.index[:6], [0, 10]),
        np.add(constraints.pairs.index[6:], [10, 0]),
        upper=constraints.bound[:6],
        lower=constraints.bound[6:],
    )
    once = MetricLearner(tol=1e-10).fit(X, constraints=constraints)
    kernel = "precomputed" if precomputed else dot
    learner = MetricLearner(kernel=kernel, tol=1e-10).fit(twice @ twice.T if precomputed else twice, constraints=moved)
    assert learner.metric_.coordinates.rank == 3
    D = asked(learner.metric_, X[:4], X[5:], twice if precomputed else None)[1]
    np.testing.assert_allclose(D, once.metric_.distances(X[:4], X[5:], squared=True), atol=1e-4)


@pytest.mark.parametrize("kernel", ["poly", "rbf", "cosine", "laplacian", "callable", "precomputed"])
@pytest.mark.parametrize("form", [np.asarray, np.float32, sp.csr_array], ids=["dense", "single", "sparse"])
def test_identical_points_under_a_kernel(rng, kernel, form):
    """Found, although rounding may leave κ(x,x) + κ(y,y) − 2κ(x,y) a little above or below zero."""
    X = 10 * rng.standard_normal((160, 7))
    X[:100] *= 1e-3  # rounding is relative to the rows it is about, not to others
    X[120:140] = X[100:120]
    near = np.column_stack([np.arange(100, 110), np.arange(120, 130)])
    far = near + 10
    pairs = Constraints.from_pairs([*near, [141, 142]], [*far, [150, 151]])
    data, which = form(X), kernel
    if kernel == "precomputed":
        if form is sp.csr_array:
            pytest.skip("precomputed kernels are dense")
        data = pairwise_kernels(data, metric="poly")
        noise = rng.uniform(-1, 1, (160, 160)).astype(data.dtype)
        data *= 1 + np.finfo(data.dtype).eps * (noise + noise.T)
    if kernel == "callable":
        which = lambda A, B: (A @ B.T if not sp.issparse(A) else (A @ B.T).toarray()) + 1  # noqa: E731
    with pytest.warns(UserWarning, match=r"10 dissimilar pairs of identical points, such as rows \(110, 130\)"):
        learner = MetricLearner(kernel=which).fit(data, constraints=pairs)
    assert learner.n_dropped_ == 20
    with pytest.raises(InfeasibleError, match=r"rows \(110, 130\), can never be satisfied"):
        MetricLearner(kernel=which, gamma=np.inf).fit(data, constraints=pairs)


def test_rows_that_are_all_alike_under_the_kernel():
    X, y = np.outer([1.0, 2.0, 3.0, 4.0], [1.0, 2.0]), [0, 0, 1, 1]
    with (
        pytest.raises(ValueError, match=r"no constraint is left to learn from .* 6 join identical points"),
        pytest.warns(UserWarning, match="4 dissimilar pairs of identical points"),
    ):
        MetricLearner(kernel="cosine").fit(X, y)
    with (
        pytest.raises(ValueError, match=r"no constraint is left to learn from .* 1 join identical points"),
        pytest.warns(UserWarning, match="1 triplet of identical points"),
    ):
        MetricLearner(kernel="cosine").fit(X, constraints=Constraints.from_triplets([[0, 1, 2]]))


def test_kernel_of_one_dimension(rng):
    """The cosine of numbers is ±1: two points in feature space."""
    X = np.array([[1.0], [2.0], [3.0], [-1.0], [-4.0], [-2.0]])
    learner = MetricLearner(kernel="cosine", bounds=(0.1, 16.0), tol=1e-8).fit(X, [0, 0, 0, 1, 1, 1])
    assert learner.metric_.coordinates.rank == 1
    D = learner.metric_.distances(X)
    np.testing.assert_allclose(D[:3, :3], 0, atol=1e-6)
    assert 2.0 < D[0, 3] < 4.0


@pytest.mark.parametrize("kernel", ["rbf", "poly", "laplacian", "precomputed"])
def test_single_precision(rng, kernel):
    X, y = labelled_data(rng, n=40)
    X = X.astype(np.float32)
    K = rbf_kernel(X.astype(np.float64)).astype(np.float32) if kernel == "precomputed" else X
    single = MetricLearner(kernel=kernel, pairs_per_class=20).fit(K, y)
    double = MetricLearner(kernel=kernel, pairs_per_class=20).fit(K.astype(np.float64), y)
    assert single.certificate_.converged
    assert single.transform(K).dtype == np.float32
    assert double.transform(K.astype(np.float64)).dtype == np.float64
    D = [
        m.distances(A, cross=A if kernel == "precomputed" else None)
        for m, A in ((single.metric_, K), (double.metric_, K.astype(np.float64)))
    ]
    np.testing.assert_allclose(D[0], D[1], rtol=0, atol=2e-2 * D[1].max())


@pytest.mark.parametrize("basis", [None, np.eye(50), RandomSubset(40)], ids=["exact", "all", "subset"])
@pytest.mark.parametrize("width", [1e-4, 1e-2])
def test_nearly_singular_in_single_precision(rng, basis, width):
    """Rounding of K0 is neither taken for directions nor for negative eigenvalues."""
    X, y = labelled_data(rng, n=50)
    K = rbf_kernel(X, gamma=width)
    exact = MetricLearner(kernel="precomputed", basis=basis).fit(K, y)
    learner = MetricLearner(kernel="precomputed", basis=basis).fit(K.astype(np.float32), y)
    assert learner.metric_.coordinates.rank <= np.linalg.matrix_rank(K, tol=1e-6)
    D, single = exact.metric_.distances(K, cross=K), learner.metric_.distances(K, cross=K)
    np.testing.assert_allclose(single, D, rtol=0, atol=0.1 * D.max())


@pytest.mark.parametrize("kernel", ["rbf", "poly", "laplacian", "cosine", "sigmoid"])
def test_sparse_is_dense(rng, kernel):
    # From dense arrays, for 32-bit indices: scikit-learn's Laplacian kernel takes no others.
    X, new = (sp.csr_array(sp.random_array((n, 12), density=0.4, random_state=rng).toarray()) for n in (30, 5))
    X.data += 0.5
    y = np.arange(30) % 3
    params = {"gamma": 0.01, "coef0": 0.0} if kernel == "sigmoid" else None
    learner = MetricLearner(kernel=kernel, kernel_params=params, tol=1e-9, pairs_per_class=15)
    if kernel == "sigmoid":
        learner.set_params(psd="clip")
    sparse = learner.fit(X, y).metric_
    dense = learner.fit(X.toarray(), y).metric_
    assert sp.issparse(sparse.coordinates.support) and not sp.issparse(dense.coordinates.support)
    for metric in (sparse, dense):
        for other in (X, X.toarray()):
            D = dense.distances(new.toarray(), X.toarray())
            np.testing.assert_allclose(metric.distances(new, other), D, rtol=0, atol=1e-4 * D.max())
            np.testing.assert_allclose(
                metric.kernel(new, other), dense.kernel(new.toarray(), X.toarray()), rtol=0, atol=1e-4 * D.max()
            )
        assert metric.transform(new).shape == metric.transform(new.toarray()).shape


# -- kernels that are not positive semidefinite -----------------------------------------------------------------------


def indefinite(rng, n=12):
    B = rng.standard_normal((n, n))
    return B @ B.T / n - 0.3 * np.eye(n)


def as_numbers(K):
    """The same similarities as a callable on the numbers 0, 1, …"""

    def kernel(A, B):
        return K[np.ix_(np.asarray(A, dtype=int), np.asarray(B, dtype=int))]

    return kernel


def test_negative_eigenvalues_are_named(rng):
    K = indefinite(rng)
    smallest, largest = np.linalg.eigvalsh(K)[[0, -1]]
    assert smallest < -0.1
    message = rf"12 constrained points .* eigenvalue is {smallest:.4g} \(largest {largest:.4g}\).*psd='clip'"
    with pytest.raises(NotPositiveDefiniteError, match=message):
        MetricLearner(kernel="precomputed").fit(K, np.arange(12) % 3)
    with pytest.raises(ValueError, match="not positive semidefinite"):
        MetricLearner(kernel=as_numbers(K)).fit(list(range(12)), np.arange(12) % 3)
    forms = Constraints.from_linear([np.eye(4)], [1.0])
    with pytest.raises(NotPositiveDefiniteError, match=r"eigenvalue is -1 \(largest -1\)"):
        MetricLearner(kernel="precomputed").fit(-np.eye(4), constraints=forms)


def test_only_eigenvalues_of_constrained_points_count(rng):
    K = np.eye(12)
    K[10:, 10:] = [[0, 1], [1, 0]]
    pairs = Constraints.from_pairs([[0, 1]], [[2, 3]], upper=1.0, lower=3.0)
    assert MetricLearner(kernel="precomputed").fit(K, constraints=pairs).metric_.coordinates.rank == 4
    pairs = Constraints.from_pairs([[0, 10]], [[2, 11]], upper=0.5, lower=3.0)
    with pytest.raises(NotPositiveDefiniteError, match=r"4 constrained points .* eigenvalue is -1 "):
        MetricLearner(kernel="precomputed").fit(K, constraints=pairs)


@pytest.mark.parametrize("which", ["precomputed", "callable"])
def test_negative_eigenvalues_clipped(rng, which):
    """As if learned on the positive part of K0, which is what bounds and new points see too."""
    K = indefinite(rng, 15)
    values, V = np.linalg.eigh(K[:12, :12])
    positive = values > 0
    T = (V[:, positive] / np.sqrt(values[positive])).T
    points = (T @ K[:12]).T  # of all 15, the last three being new
    y = np.arange(12) % 3
    explicit = MetricLearner(tol=1e-10).fit(points[:12], y)
    kernel = "precomputed" if which == "precomputed" else as_numbers(K)
    learner = MetricLearner(kernel=kernel, psd="clip", tol=1e-10)
    learner.fit(K[:12, :12] if which == "precomputed" else list(range(12)), y)
    np.testing.assert_allclose(learner.constraints_.bound, explicit.constraints_.bound, rtol=1e-8)
    assert learner.certificate_.primal == pytest.approx(explicit.certificate_.primal, rel=1e-8)
    rows = K[:, :12] if which == "precomputed" else list(range(15))
    D = explicit.metric_.distances(points)
    np.testing.assert_allclose(learner.metric_.distances(rows), D, rtol=0, atol=1e-4 * D.max())
    np.testing.assert_allclose(cdist(learner.transform(rows), learner.transform(rows)), D, rtol=0, atol=1e-4 * D.max())


def test_negative_eigenvalues_shifted(rng):
    """As if the kernel were κ0 plus a little for equal objects, wherever they turn up."""
    K = indefinite(rng, 14)
    K[11], K[:, 11] = K[10], K[:, 10]  # two names for one object would be two objects: 10 and 11
    names = list(range(14))
    pairs = Constraints.from_pairs([[0, 1], [2, 3], [10, 11]], [[4, 5], [6, 7], [8, 9]], upper=0.5, lower=6.0)
    learner = MetricLearner(kernel=as_numbers(K), psd="shift", tol=1e-10).fit(names[:12], constraints=pairs)
    shift = learner.metric_.coordinates.kernel.shift
    assert shift == pytest.approx(-np.linalg.eigvalsh(K[:12, :12])[0], rel=1e-2)
    shifted = K + shift * np.eye(14)
    other = MetricLearner(kernel="precomputed", tol=1e-10).fit(shifted[:12, :12], constraints=pairs)
    D = other.metric_.distances(shifted[:, :12], cross=shifted)
    ours = learner.metric_.distances(names)
    np.testing.assert_allclose(ours, D, rtol=0, atol=1e-4 * D.max())
    np.testing.assert_allclose(learner.metric_.distances(names, names[:12]), ours[:, :12], atol=1e-7)
    np.testing.assert_allclose(learner.metric_.pair_distances(names[:7], names[7:]), np.diag(ours[:7, 7:]), atol=1e-7)
    np.testing.assert_allclose(np.diag(learner.metric_.kernel(names)), np.diag(learner.metric_.kernel(names, names)))


@pytest.mark.parametrize("psd", ["error", "clip", "shift"])
@pytest.mark.parametrize("prior", ["within", "covariance"])
def test_a_prior_over_an_indefinite_kernel_is_refused(rng, psd, prior):
    """With advice that can be followed."""
    X, y = labelled_data(rng, n=40)
    message = rf"prior='{prior}' over; psd, here '{psd}', mends that .* alone\. Use prior='identity' with psd='clip'"
    with pytest.raises(NotPositiveDefiniteError, match=message):
        MetricLearner(kernel="sigmoid", psd=psd, prior=prior).fit(X, y)
    MetricLearner(kernel="sigmoid", psd="clip", prior="identity").fit(X, y)
    MetricLearner(kernel="rbf", psd=psd, prior=prior).fit(X, y)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("psd", ["clip", "shift"])
def test_certificate_after_repair_is_that_of_the_metric(rng, form, psd):
    """The sigmoid kernel is indefinite; two rows are equal, and so are their images, shifted or not."""
    X, y = labelled_data(rng, n=18)
    X[9] = X[3]
    learner = MetricLearner(kernel="sigmoid", psd=psd, pairs_per_class=20)
    with pytest.raises(NotPositiveDefiniteError):
        MetricLearner(kernel="sigmoid", pairs_per_class=20).fit(form(X), y)
    learner.fit(form(X), y)
    violation = relative_violations(learner.metric_, form(X), learner.constraints_)
    assert learner.certificate_.max_violation == pytest.approx(violation.max(), rel=1e-6)
    assert learner.metric_.distances(form(X))[3, 9] == pytest.approx(0.0, abs=1e-6)
    assert learner.metric_.distances(form(X[3:4]), X[9:10])[0, 0] == pytest.approx(0.0, abs=1e-6)
    assert np.linalg.eigvalsh(learner.metric_.kernel(form(X)))[0] > -1e-8


def test_repair_is_not_made_where_it_is_not_needed(rng):
    X, y = labelled_data(rng, n=18)
    metrics = [MetricLearner(kernel="rbf", psd=psd).fit(X, y).metric_ for psd in ("error", "clip", "shift")]
    for metric in metrics:
        np.testing.assert_array_equal(metric.F, metrics[0].F)
        assert metric.coordinates.residual and metric.coordinates.kernel.shift == 0.0


def test_repairs_that_cannot_be_made(rng):
    K = indefinite(rng)
    with pytest.raises(NotPositiveDefiniteError, match=r"add \S+ or more to the diagonal of the matrix before"):
        MetricLearner(kernel="precomputed", psd="shift").fit(K, np.arange(12) % 3)
    lists = [[float(k)] for k in range(12)]
    with pytest.raises(ValueError, match="these cannot be hashed; use psd='clip'"):
        MetricLearner(kernel=lambda A, B: K[: len(A), : len(B)], psd="shift", bounds=(1, 2)).fit(
            lists, constraints=Constraints.from_pairs(np.arange(12).reshape(-1, 2))
        )
    with pytest.raises(ValueError, match="psd must be 'error', 'clip' or 'shift'; got 'flip'"):
        MetricLearner(kernel="rbf", psd="flip").fit(np.eye(4), [0, 0, 1, 1])


def test_negative_eigenvalues_under_a_basis(rng):
    """Found in the basis, or outside it, if a constraint points there; without the residual nothing is outside."""
    K, y = indefinite(rng), np.arange(12) % 3
    with pytest.raises(NotPositiveDefiniteError, match=r"over this basis .* psd='clip'"):
        MetricLearner(kernel="precomputed", basis=np.eye(12)).fit(K, y)
    clipped = MetricLearner(kernel="precomputed", basis=np.eye(12), psd="clip", residual=False).fit(K, y)
    assert clipped.metric_.coordinates.rank == (np.linalg.eigvalsh(K) > 0).sum()
    K = np.diag([2.0, 2.0, 2.0, 2.0, -1.0, -1.0])
    pairs = Constraints.from_pairs([[0, 1]], [[4, 5]], upper=1.0, lower=3.0)
    learner = MetricLearner(kernel="precomputed", basis=np.eye(6)[:, :4])
    with pytest.raises(NotPositiveDefiniteError, match=r"outside the basis .* squared length is -2.*residual=False"):
        learner.fit(K, constraints=pairs)
    with pytest.warns(UserWarning, match=r"rows \(4, 5\), can never be satisfied"):
        learner.set_params(residual=False).fit(K, constraints=pairs)


def test_hardly_negative_eigenvalues_are_rounding(rng):
    X = rng.standard_normal((12, 2))
    K = X @ X.T
    K += 1e-9 * np.linalg.norm(K, 2) * np.sign(np.add.outer(np.arange(12), np.arange(12)) % 2 - 0.5)
    assert np.linalg.eigvalsh(K)[0] < 0
    assert MetricLearner(kernel="precomputed").fit(K, np.arange(12) % 3).metric_.coordinates.rank == 2


# -- what is wrong is said -------------------------------------------------------------------------------------------


def shaped(shape):
    return lambda A, B: np.ones(shape)


def sometimes_nan(A, B):
    K = rbf_kernel(A, B)
    K[0, -1] = np.nan
    return K


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"kernel": "rbff"}, r"kernel must be 'precomputed', a callable or one of \['additive_chi2'.*; got 'rbff'"),
        ({"kernel": 3}, r"kernel must be a name or a callable\(X, Y\); got int"),
        ({"kernel": None}, r"kernel must be a name or a callable\(X, Y\); got NoneType"),
        ({"kernel": "rbf", "prior": "diagonal"}, r"a diagonal prior, or a matrix, .* needs kernel='linear'"),
        ({"kernel": "precomputed", "prior": np.eye(3)}, r"needs kernel='linear'; .* leave prior='identity'"),
        ({"kernel_params": {"gamma": 1.0}}, r"kernel='linear' takes no kernel_params; got \['gamma'\]"),
        (
            {"kernel": "rbf", "kernel_params": {"degree": 1.0}},
            r"'rbf' takes the kernel_params \['width'\] or \['gamma'\]; got \['de",
        ),
        ({"kernel": "rbf", "kernel_params": 0.5}, r"kernel_params must be a dict.*got 0\.5"),
        ({"kernel": sometimes_nan}, r"the kernel returned NaN or infinity; check the data and kernel_params"),
        ({"kernel": shaped((2, 3))}, r"must return \d+ × \d+ similarities .*; got an array of shape \(2, 3\)"),
        ({"kernel": shaped(())}, r"must return \d+ × \d+ similarities .*; got an array of shape \(\)"),
        ({"kernel": "precomputed"}, r"kernel='precomputed' needs the n × n matrix of the training rows; got shape"),
        ({"kernel": "rbf", "residual": False}, r"residual=False learns only the part inside a basis; pass a basis"),
        ({"residual": False}, r"residual=False learns only the part inside a basis; pass a basis too"),
    ],
)  # fmt: skip
def test_parameters(rng, parameters, message):
    X, y = labelled_data(rng, n=12, d=3)
    with pytest.raises(ValueError, match=message):
        MetricLearner(**parameters).fit(X, y)


def test_kernels_that_need_other_data(rng):
    """What the kernel itself says is passed on."""
    with pytest.raises(ValueError, match="X contains negative values"):
        MetricLearner(kernel="chi2").fit(rng.standard_normal((6, 2)), [0, 0, 0, 1, 1, 1])


def test_precomputed_matrices_have_no_parameters(rng):
    with pytest.raises(ValueError, match=r"kernel='precomputed' takes no kernel_params; got \['gamma'\]"):
        MetricLearner(kernel="precomputed", kernel_params={"gamma": 1.0}).fit(np.eye(4), [0, 0, 1, 1])


class OddlyCompared:
    """A kernel that compares as arrays do: with an array."""

    def __call__(self, X, Y, scale=1.0):
        return scale * dot(X, Y)

    def __eq__(self, other):
        return np.zeros(2, dtype=bool)

    __hash__ = None


def test_kernels_that_compare_as_arrays_do(rng):
    X, y = labelled_data(rng, n=20, d=3)
    learner = MetricLearner(kernel=OddlyCompared(), kernel_params={"scale": 1.0})
    D = MetricLearner(kernel=dot).fit(X, y).metric_.distances(X)
    np.testing.assert_allclose(learner.fit(X, y).metric_.distances(X), D, atol=1e-9)
    compare(X, y, learner, cv=2)
    options = {"gammas": [1.0], "cv": 2, "strategy": "random"}
    search = MetricLearnerCV(kernel=["linear", OddlyCompared()], **options).make_search(X, y)
    assert [problem.space for problem in search.problems] == ["linear", "kernel"]
    assert np.isfinite(search.scores).any(axis=1).all()


def test_precomputed_matrices_are_symmetric(rng):
    K = rng.random((6, 6))
    with pytest.raises(ValueError, match=r"kernel matrix must be symmetric; it differs from its transpose by 0\.\d+"):
        MetricLearner(kernel="precomputed").fit(K, [0, 0, 0, 1, 1, 1])


@pytest.mark.parametrize("kernel", ["rbf", dot])
def test_new_points_of_another_width(rng, kernel):
    X, y = labelled_data(rng, n=12, d=3)
    learner = MetricLearner(kernel=kernel).fit(X, y)
    message = r"X has 2 features, but this metric was learned on 3 features"
    for ask in (learner.metric_.transform, learner.metric_.kernel, learner.metric_.distances):
        with pytest.raises(ValueError, match=message):
            ask(X[:, :2])
    with pytest.raises(ValueError, match=message):
        learner.metric_.distances(X, X[:, :2])
    with pytest.raises(ValueError, match=message):
        learner.metric_.pair_distances(X, X[:, :2])
    with pytest.raises(ValueError, match="X has 2 features, but MetricLearner is expecting 3 features"):
        learner.transform(X[:, :2])
    with pytest.raises(ValueError, match="NaN"):
        learner.metric_.distances(np.full((2, 3), np.nan))


def test_a_kernel_that_fails_later_is_caught_then(rng):
    """Its answers are checked at every use, not at fit alone."""
    X, y = labelled_data(rng, n=12, d=3)

    def spoiled(A, B):
        return rbf_kernel(A, B)[:, :-1] if len(A) == 5 else rbf_kernel(A, B)

    metric = MetricLearner(kernel=spoiled).fit(X, y).metric_
    with pytest.raises(ValueError, match=r"the kernel must return 5 × 12 similarities .* shape \(5, 11\)"):
        metric.kernel(X[:5])


def test_triplets_alone(rng):
    X = rng.standard_normal((10, 3))
    triplets = random_triplets(rng, X, 6)
    linear = MetricLearner(tol=1e-10).fit(X, constraints=triplets)
    kernel = MetricLearner(kernel="poly", kernel_params=LINEAR["polynomial"]["kernel_params"], tol=1e-10)
    D = linear.metric_.distances(X)
    np.testing.assert_allclose(kernel.fit(X, constraints=triplets).metric_.distances(X), D, atol=1e-4)
    assert MetricLearner(kernel="rbf").fit(X, constraints=Constraints.from_triplets([[0, 1, 2]])).n_dropped_ == 0


def test_single_precision_of_a_callable_is_believed(rng):
    """A kernel that rounds to float32 is not taken for one of full rank, nor for an indefinite one."""
    X, y = labelled_data(rng, n=30, d=3)
    learner = MetricLearner(kernel=lambda A, B: (A @ B.T).astype(np.float32)).fit(X, y)
    assert learner.metric_.coordinates.rank == 3
    exact = MetricLearner().fit(X, y).metric_.distances(X)
    np.testing.assert_allclose(learner.metric_.distances(X), exact, atol=1e-2 * exact.max())


def test_more_rows_than_can_be_learned_from_are_refused(rng, monkeypatch):
    monkeypatch.setattr("mahalo.coordinates.kernel._LARGEST", 20)
    X, y = labelled_data(rng, n=40)
    with pytest.raises(ValueError, match=r"40 constrained rows under a kernel .* Use a basis \(e.g. basis=200\)"):
        MetricLearner(kernel="rbf").fit(X, y)
    assert MetricLearner(kernel="rbf", basis=5).fit(X, y).certificate_.converged


# -- priors over a kernel: the span of many rows ---------------------------------------------------------------------


@pytest.mark.parametrize("n_labelled", [0, 6, 30, 50])
def test_of_many_rows_labelled_ones_come_first_and_others_fill_up(rng, monkeypatch, n_labelled):
    monkeypatch.setattr("mahalo.coordinates.embedded.MOST_ROWS", 30)
    X = rng.standard_normal((60, 8))
    labelled = rng.permutation(60) < n_labelled
    space = KernelSpace(BaseKernel.of("rbf", {"gamma": 1.0}), X)
    codes = np.where(labelled, 0, -1)
    with pytest.warns(UserWarning, match="the span of 30 of 60 rows"):
        found = embedding(space, np.random.default_rng(0), codes)
    inside = np.einsum("ij,ij->i", found.map(X), found.map(X)) > 1 - 1e-9  # of κ(x, x) = 1
    assert found.rank == inside.sum() == 30
    assert (inside & labelled).sum() == min(n_labelled, 30)
    again = embedding(space, np.random.default_rng(0), codes)
    np.testing.assert_array_equal(again.support, found.support)


def test_of_many_labelled_rows_no_small_class_is_left_out(rng, monkeypatch):
    monkeypatch.setattr("mahalo.coordinates.embedded.MOST_ROWS", 30)
    X, codes = rng.standard_normal((60, 8)), np.repeat([0, 1, 2], [50, 6, 4])
    found = embedding(KernelSpace(BaseKernel.of("rbf", {"gamma": 1.0}), X), np.random.default_rng(0), codes)
    inside = np.einsum("ij,ij->i", found.map(X), found.map(X)) > 1 - 1e-9
    np.testing.assert_array_equal(np.bincount(codes[inside]), [20, 6, 4])
