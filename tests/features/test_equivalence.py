"""A metric over features is the paper's problem with other columns: against kernels, plain columns and cvxpy."""

import numpy as np
import pytest
from builders import PlainProblem

from mahalo import Constraints, MetricLearner
from mahalo.basis import Landmarks
from mahalo.features import Local, Quadratic


def two_rings(rng, n=40, d=3):
    y = np.arange(n) % 2
    X = rng.normal(size=(n, d))
    X *= ((1.0 + 1.5 * y) / np.linalg.norm(X, axis=1))[:, None]
    return 2.0 * X + 3.0 + 0.1 * rng.normal(size=(n, d)), y


SETTINGS = {"gamma": 2.0, "tol": 1e-10, "pairs_per_class": 20, "random_state": 0}


def test_quadratic_features_are_a_kernel_and_plain_columns(rng):
    X, y = two_rings(rng)
    new = X[:7] + 0.3
    s, mean = np.sqrt(X.var(axis=0).mean()), X.mean(axis=0)

    def kernel(A, B):
        inner = ((A - mean) / s) @ ((B - mean) / s).T
        return s**2 * (1 + inner / X.shape[1]) * inner

    constraints = Constraints.from_labels(y, pairs_per_class=20, random_state=0)
    over = MetricLearner(features=Quadratic(), **SETTINGS).fit(X, constraints=constraints)
    by_kernel = MetricLearner(kernel=kernel, **SETTINGS).fit(X, constraints=constraints)
    columns = over.metric_.features.transform
    explicit = MetricLearner(**SETTINGS).fit(columns(X), constraints=constraints)
    assert over.certificate_.converged
    D = over.metric_.distances(new, X)
    np.testing.assert_allclose(D, by_kernel.metric_.distances(new, X), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(D, explicit.metric_.distances(columns(new), columns(X)), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(over.certificate_.primal, by_kernel.certificate_.primal, rtol=1e-8)


@pytest.mark.parametrize("features", [Quadratic(), Local(2, strength=0.5)], ids=str)
def test_a_tiny_problem_against_cvxpy(rng, features):
    cp = pytest.importorskip("cvxpy")
    X, y = two_rings(rng, n=12, d=2)
    phi = features.fit_map(X, 0).transform(X) if isinstance(features, Quadratic) else None
    drawn = Constraints.from_labels(y, pairs_per_class=3, random_state=0).pairs
    constraints = Constraints.from_pairs(
        drawn.index[drawn.sign > 0], drawn.index[drawn.sign < 0], upper=1.0, lower=20.0
    )
    learner = MetricLearner(features=features, gamma=2.0, tol=1e-10).fit(X, constraints=constraints)
    phi = learner.metric_.features.transform(X) if phi is None else phi
    plain = PlainProblem.of(constraints, phi, 2.0)
    F = cp.Variable((phi.shape[1], phi.shape[1]), PSD=True)
    objective, asked = cp.trace(F) - cp.log_det(F), []
    for R, sign, b in zip(plain.R, plain.sign, plain.bound, strict=True):
        t = cp.Variable()  # ξ/b
        asked.append(sign * (cp.trace(F @ R) / b - t) <= 0)
        objective += 2.0 * (t - cp.log(t))
    cp.Problem(cp.Minimize(objective), asked).solve(solver=cp.CLARABEL)
    i, j = constraints.pairs.index.T
    delta = phi[i] - phi[j]
    expected = np.einsum("ij,jk,ik->i", delta, F.value, delta)
    np.testing.assert_allclose(learner.values_, expected, rtol=2e-4)
    np.testing.assert_allclose(learner.metric_.pair_distances(X[i], X[j], squared=True), expected, rtol=2e-4)


@pytest.mark.parametrize("strength", [0.25, 1.0, 3.0])
def test_one_region_is_the_linear_metric_up_to_a_factor(rng, strength):
    X, y = two_rings(rng)
    constraints = Constraints.from_labels(y, pairs_per_class=20, random_state=0)
    settings = SETTINGS | {"prior": "identity"}
    one = MetricLearner(features=Local(1, strength=strength), **settings).fit(X, constraints=constraints)
    linear = MetricLearner(**settings).fit(X, constraints=constraints)
    D = linear.metric_.distances(X, squared=True)
    np.testing.assert_allclose(one.metric_.distances(X, squared=True), (1 + strength) * D, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("features", [Quadratic(), Local()], ids=str)
@pytest.mark.parametrize("prior", ["identity", "within"])
def test_units_and_places(rng, features, prior):
    """100·X scales every distance by 100, and a shift changes none."""
    X, y = two_rings(rng, n=60)
    settings = SETTINGS | {"features": features, "prior": prior}
    D = MetricLearner(**settings).fit(X, y).metric_.distances(X)
    shifted = MetricLearner(**settings).fit(X + 50.0, y).metric_.distances(X + 50.0)
    larger = MetricLearner(**settings).fit(100.0 * X, y).metric_.distances(100.0 * X)
    np.testing.assert_allclose(shifted, D, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(larger, 100.0 * D, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("residual", [0.0, 1.0])
def test_nystroem_with_all_rows_is_exact(rng, residual):
    X, y = two_rings(rng)
    settings = SETTINGS | {"kernel": "rbf", "kernel_params": {"width": 1.0}}
    exact = MetricLearner(**settings).fit(X, y).metric_
    over = MetricLearner(basis=Landmarks(len(X)), residual=residual, **settings).fit(X, y).metric_
    np.testing.assert_allclose(over.distances(X), exact.distances(X), rtol=1e-5, atol=1e-6)
    if residual:
        np.testing.assert_allclose(over.distances(X + 0.5), exact.distances(X + 0.5), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("landmarks", [None, 10])
def test_the_width_of_a_kernel_does_not_depend_on_units(rng, landmarks):
    X, y = two_rings(rng)
    basis = None if landmarks is None else Landmarks(landmarks)
    settings = SETTINGS | {"kernel": "rbf", "kernel_params": {"width": 3.0}, "basis": basis}
    D = MetricLearner(**settings).fit(X, y).metric_.distances(X)
    larger = MetricLearner(**settings).fit(100.0 * X - 7.0, y).metric_.distances(100.0 * X - 7.0)
    np.testing.assert_allclose(larger, D, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("width", "most"), [(0.1, 20), (1.0, 100), (30.0, 200)])
def test_the_number_of_landmarks_follows_the_kernel(rng, width, most):
    """As many as leave 5 % of κ(x, x), which is 1, a batch at a time; 200 at most."""
    X = rng.normal(size=(500, 3))
    settings = SETTINGS | {"kernel": "rbf", "kernel_params": {"width": width}}
    learner = MetricLearner(basis=Landmarks(), residual=0.0, **settings).fit(X, np.arange(500) % 2)
    support = learner.metric_.coordinates.support
    assert len(support) <= most
    D = ((X[:, None] - X) ** 2).sum(axis=2)
    K = np.exp(-width / np.median(D[D > 0]) * D)
    rows = [int(np.abs(X - row).sum(axis=1).argmin()) for row in support]
    inside = K[:, rows] @ np.linalg.pinv(K[np.ix_(rows, rows)], rcond=1e-10) @ K[rows]
    left = 1.0 - inside.diagonal().mean()
    assert (left <= 0.05) == (width < 30.0)
    assert len(support) in (20, 200) or left > 0.001  # no more than a batch beyond those needed


def test_the_width_is_in_units_of_the_median_squared_distance(rng):
    X, y = two_rings(rng)
    D = ((X[:, None] - X) ** 2).sum(axis=2)
    gamma = 2.0 / np.median(D[D > 0])
    by_width, by_gamma = (
        MetricLearner(kernel="rbf", kernel_params=params, **SETTINGS).fit(X, y).metric_.distances(X)
        for params in ({"width": 2.0}, {"gamma": gamma})
    )
    np.testing.assert_allclose(by_width, by_gamma, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(
    "change", [lambda X: 100.0 * X, lambda X: 1e-4 * X, lambda X: X + 1e7], ids=["100", "1e-4", "1e7"]
)
def test_the_default_width_of_rbf_does_not_depend_on_units(rng, change):
    X, y = two_rings(rng)
    learner = MetricLearner(kernel="rbf", **SETTINGS)
    named = MetricLearner(kernel="rbf", kernel_params={"width": 1.0}, **SETTINGS).fit(X, y).metric_
    found = learner.fit(change(X), y).metric_.distances(change(X))
    np.testing.assert_allclose(found, named.distances(X), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"gamma": -1.0}, r"kernel_params\['gamma'\] must be a positive number; got -1.0"),
        ({"widht": 1.0}, r"takes the kernel_params \['width'\] or \['gamma'\]; got \['widht'\]"),
        ({"width": 0.0}, r"kernel_params\['width'\] must be a positive number; got 0.0"),
        ({"width": 1.0, "gamma": 1.0}, "both 'gamma' and 'width'; give one of them"),
    ],
)
def test_wrong_widths(rng, params, message):
    X, y = two_rings(rng)
    with pytest.raises(ValueError, match=message):
        MetricLearner(kernel="rbf", kernel_params=params).fit(X, y)


def test_a_kernel_without_positive_diagonal_has_no_landmarks(rng):
    X = rng.normal(size=(30, 3))
    D = ((X[:, None] - X) ** 2).sum(axis=2)
    with pytest.raises(ValueError, match="no row can be a landmark"):
        MetricLearner(kernel="precomputed", psd="clip", basis=Landmarks(), residual=0.0).fit(-D, np.arange(30) % 2)
