"""Every loss in every space: κ = η κ0 + φᵀ(F − ηI)φ by brute force, and one optimum whatever the coordinates."""

from __future__ import annotations

import numpy as np
import pytest
from builders import PlainProblem, dense_forms, random_pair_constraints, random_triplets
from plain_losses import ALL_LOSSES, LOGDET, RESTING, VON_NEUMANN, frobenius, hellinger, sdp_frobenius
from sklearn.metrics.pairwise import rbf_kernel

import mahalo
from mahalo import Constraints, MetricLearner
from mahalo.coordinates import span
from mahalo.losses import SDPLogDet

losses = pytest.mark.parametrize("plain_loss", ALL_LOSSES, ids=repr)
# η = 1, 0, and between.
some_losses = pytest.mark.parametrize(
    "plain_loss", [VON_NEUMANN, frobenius(0.0), frobenius(0.4), sdp_frobenius(2.0), hellinger(0.7)], ids=repr
)


def dot(A, B):
    return A @ B.T


def some_constraints(rng, X, plain_loss):
    made = random_pair_constraints(rng, X, 10) + random_triplets(rng, X, 3)
    return made if plain_loss.edge > 0 else made + Constraints.linear_objective(np.eye(len(X)))


def fitted(plain_loss, X, constraints, **params):
    return MetricLearner(loss=plain_loss.loss, tol=1e-10, **params).fit(X, constraints=constraints)


# -- one optimum in whatever coordinates ---------------------------------------------------------------------------


@losses
def test_a_linear_kernel_is_the_linear_metric(rng, plain_loss):
    X, new = rng.standard_normal((10, 3)), rng.standard_normal((6, 3))
    constraints = some_constraints(rng, X, plain_loss)
    linear = fitted(plain_loss, X, constraints)
    called = fitted(plain_loss, X, constraints, kernel=dot)
    gram = fitted(plain_loss, X @ X.T, constraints, kernel="precomputed")
    expected = linear.metric_.distances(new, X)
    within = {"rtol": 0, "atol": 1e-4 * expected.max()}
    np.testing.assert_allclose(called.metric_.distances(new, X), expected, **within)
    own, own_x = (new**2).sum(axis=1), (X**2).sum(axis=1)
    D = gram.metric_.distances(new @ X.T, X @ X.T, cross=new @ X.T, diag_x=own, diag_y=own_x)
    np.testing.assert_allclose(D, expected, **within)
    for learner in (called, gram):
        assert learner.certificate_.primal == pytest.approx(linear.certificate_.primal, rel=1e-7, abs=1e-8)


@losses
def test_the_span_of_the_constraints_is_enough(rng, monkeypatch, plain_loss):
    X, new = rng.standard_normal((8, 12)), rng.standard_normal((4, 12))
    constraints = random_pair_constraints(rng, X, 5)
    if plain_loss.edge <= 0:
        constraints = constraints + Constraints.from_pairs(constraints.pairs.index, upper=50.0)
    on_span = fitted(plain_loss, X, constraints)
    assert on_span.metric_.coordinates.rank < 12
    monkeypatch.setattr(span, "_SPAN_PAYS_BELOW", 0.0)
    whole = fitted(plain_loss, X, constraints)
    assert whole.metric_.coordinates.basis is None
    W = whole.metric_.matrix
    np.testing.assert_allclose(on_span.metric_.matrix, W, rtol=0, atol=1e-5 * max(1.0, np.abs(W).max()))
    assert on_span.certificate_.primal == pytest.approx(whole.certificate_.primal, rel=1e-7, abs=1e-8)
    np.testing.assert_allclose(on_span.metric_.distances(new), whole.metric_.distances(new), atol=1e-4)


@losses
@pytest.mark.parametrize("residual", [True, False])
def test_a_basis_of_full_rank_is_exact(rng, plain_loss, residual):
    X = rng.standard_normal((10, 3))
    constraints = some_constraints(rng, X, plain_loss)
    exact = fitted(plain_loss, X, constraints)
    basis = fitted(plain_loss, X, constraints, basis=rng.standard_normal((3, 3)), residual=residual)
    W = exact.metric_.matrix
    np.testing.assert_allclose(basis.metric_.matrix, W, rtol=0, atol=1e-5 * max(1.0, np.abs(W).max()))


@pytest.mark.parametrize("plain_loss", [p for p in RESTING if p.eta != 1.0], ids=repr)
def test_what_no_constraint_sees_is_eta_times_the_prior(rng, plain_loss):
    X = rng.standard_normal((6, 4))
    X[:, 3] = 2.0
    W0 = np.diag([1.0, 2.0, 3.0, 5.0])
    W = fitted(plain_loss, X, random_pair_constraints(rng, X, 6), prior=W0).metric_.matrix
    np.testing.assert_allclose(W[3], [0, 0, 0, 5 * plain_loss.eta], atol=1e-7)


def test_a_prior_whitens_under_every_loss(rng):
    """f is of W0^{-1/2} W W0^{-1/2}: the same as learning on whitened rows from the identity."""
    X = rng.standard_normal((8, 3))
    constraints = random_pair_constraints(rng, X, 6)
    A = rng.standard_normal((3, 3))
    W0 = A @ A.T + np.eye(3)
    values, vectors = np.linalg.eigh(W0)
    root = (vectors * np.sqrt(values)) @ vectors.T
    for plain_loss in RESTING:
        one = fitted(plain_loss, X, constraints, prior=W0).metric_.matrix
        other = root @ fitted(plain_loss, X @ root, constraints).metric_.matrix @ root
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-5 * max(1.0, np.abs(other).max()))


# -- the formula ---------------------------------------------------------------------------------------------------

SPACES = {
    "linear": {},
    "span": {},
    "rbf": {"kernel": "rbf", "kernel_params": {"gamma": 0.2}},
    "basis": {"basis": 2},
    "basis alone": {"basis": 2, "residual": False},
    "rbf basis": {"kernel": "rbf", "kernel_params": {"gamma": 0.2}, "basis": 4},
    "rbf basis alone": {"kernel": "rbf", "kernel_params": {"gamma": 0.2}, "basis": 4, "residual": False},
}


def base_kernel(space, A, B):
    return rbf_kernel(A, B, gamma=0.2) if "rbf" in space else A @ B.T


def map_by_hand(space, coordinates, Z):
    """φ, after making sure that its directions are orthonormal under κ0."""
    if "rbf" in space:
        gram = base_kernel(space, coordinates.support, coordinates.support)
        np.testing.assert_allclose(coordinates.T @ gram @ coordinates.T.T, np.eye(coordinates.rank), atol=1e-6)
        return base_kernel(space, Z, coordinates.support) @ coordinates.T.T
    Q = np.eye(Z.shape[1]) if coordinates.basis is None else coordinates.basis
    np.testing.assert_allclose(Q.T @ Q, np.eye(Q.shape[1]), atol=1e-10)
    return Z @ Q


@some_losses
@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("gamma", [2.0])
def test_distances_and_certificate_by_brute_force(rng, tmp_path, plain_loss, space, gamma):
    d = 15 if space == "span" else 3
    X, new = rng.standard_normal((9, d)), rng.standard_normal((5, d))
    constraints = random_pair_constraints(rng, X, 8, weights=True) + random_triplets(rng, X, 3)
    learner = fitted(plain_loss, X, constraints, gamma=gamma, **SPACES[space])
    metric, constraints = learner.metric_, learner.constraints_
    eta = plain_loss.eta if "alone" not in space else 0.0
    F = metric.F
    rows = np.vstack([X, new])
    phi = map_by_hand(space, metric.coordinates, rows)
    K = eta * base_kernel(space, rows, rows) + phi @ (F - eta * np.eye(len(F))) @ phi.T
    own = np.diagonal(K)
    sq = np.maximum(own[:, None] + own - 2 * K, 0.0)
    within = {"rtol": 0, "atol": 1e-9 * max(1.0, sq.max())}
    np.testing.assert_allclose(metric.kernel(rows), K, **within)
    np.testing.assert_allclose(metric.distances(rows, squared=True), sq, **within)
    np.testing.assert_allclose(metric.pair_distances(X[:5], new, squared=True), sq[range(5), range(9, 14)], **within)
    assert metric.eta == plain_loss.eta
    if "rbf" not in space:
        T = metric.transform(rows)
        np.testing.assert_allclose(((T[:, None] - T) ** 2).sum(axis=2), sq, **within)

    # The certificate, from learned values and multipliers: c_k is what the coordinates leave out, η times.
    phi, K0 = phi[:9], base_kernel(space, X, X)
    offset = [eta * np.sum(C * (K0 - phi @ phi.T)) for C in dense_forms(constraints, 9)]
    plain = PlainProblem.of(constraints, phi, gamma, np.array(offset), plain_loss)
    np.testing.assert_allclose(plain.values(F), [np.sum(C * K[:9, :9]) for C in dense_forms(constraints, 9)], **within)
    assert learner.certificate_.primal == pytest.approx(plain.primal(F), rel=1e-7, abs=1e-7)
    assert learner.certificate_.dual == pytest.approx(plain.dual(learner.duals_), rel=1e-7, abs=1e-7)
    assert learner.certificate_.max_violation == pytest.approx(plain.relative_violation(F).max(), rel=1e-6, abs=1e-8)

    metric.save(tmp_path / "metric.safetensors")
    loaded = mahalo.load(tmp_path / "metric.safetensors")
    assert loaded.eta == metric.eta
    np.testing.assert_array_equal(loaded.distances(rows), metric.distances(rows))


@some_losses
@pytest.mark.parametrize("space", ["basis", "rbf basis", "rbf"])
def test_an_objective_counts_what_the_coordinates_leave_out(rng, plain_loss, space):
    """c_0 = η [tr(C_0 K0) − tr(C_0 X̂X̂ᵀ)] is part of the primal value: tr(C_0 K) of the learned K."""
    X = rng.standard_normal((9, 4))
    constraints = random_pair_constraints(rng, X, 6)
    B = rng.standard_normal((9, 9))
    C = 0.05 * B @ B.T
    learner = fitted(plain_loss, X, constraints + Constraints.linear_objective(C), **SPACES[space])
    v = learner.metric_.pair_distances(*X[constraints.pairs.index.T], squared=True)
    excess = np.maximum(constraints.sign * (v - constraints.bound) / constraints.scale, 0.0)
    total = sum(plain_loss.f(w) for w in np.linalg.eigvalsh(learner.metric_.F)) + np.sum(excess**2) / 2
    total += np.sum(C * learner.metric_.kernel(X))
    assert learner.certificate_.primal == pytest.approx(total, rel=1e-7)
    assert learner.certificate_.converged


@pytest.mark.parametrize("space", ["linear", "rbf", "basis", "basis alone"])
def test_sdp_logdet_in_every_space(rng, space):
    X = rng.standard_normal((9, 3))
    constraints = random_pair_constraints(rng, X, 8) + Constraints.linear_objective(np.eye(9))
    learner = MetricLearner(loss=SDPLogDet(0.5), tol=1e-9, **SPACES[space]).fit(X, constraints=constraints)
    assert learner.certificate_.converged
    assert learner.metric_.eta == 0.0
    phi = map_by_hand(space, learner.metric_.coordinates, X)
    np.testing.assert_allclose(learner.metric_.kernel(X), phi @ learner.metric_.F @ phi.T, atol=1e-9)


def test_logdet_is_at_home_in_every_space_by_the_dual_too(rng):
    X = rng.standard_normal((9, 3))
    constraints = random_pair_constraints(rng, X, 8)
    for params in SPACES.values():
        one = fitted(LOGDET, X, constraints, solver="dual", **params)
        other = fitted(LOGDET, X, constraints, solver="newton", **params)
        np.testing.assert_allclose(one.metric_.distances(X), other.metric_.distances(X), rtol=0, atol=1e-4)
