"""Feature maps: their kernels, Jacobians and standardisation, and what they refuse."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from mahalo.features import Local, Quadratic, check_features

MAPS = [Quadratic(), Quadratic(2), Local(), Local(3, strength=0.5, temperature=2.0)]


def numeric_jacobian(fitted, x, step=1e-6):
    around = np.concatenate([x + step * np.eye(len(x)), x - step * np.eye(len(x))])
    columns = fitted.transform(around)
    return (columns[: len(x)] - columns[len(x) :]).T / (2 * step)


@pytest.mark.parametrize("features", MAPS, ids=str)
@given(seed=st.integers(0, 1000), d=st.integers(3, 6), scale=st.sampled_from([0.1, 1.0, 30.0]))
def test_the_jacobian_is_that_of_the_columns(features, seed, d, scale):
    rng = np.random.default_rng(seed)
    X = scale * rng.normal(size=(25, d)) + 5.0
    fitted = features.fit_map(X, 0)
    J = fitted.jacobian(X[3])
    assert J.shape == (fitted.n_columns, d)
    np.testing.assert_allclose(J, numeric_jacobian(fitted, X[3], 1e-6 * scale), atol=1e-6)


@pytest.mark.parametrize("n_factors", [None, 9])
def test_the_products_of_quadratic_columns_are_its_kernel(rng, n_factors):
    """κ0(x, y) = s² (1 + ⟨x̃, ỹ⟩/d) ⟨x̃, ỹ⟩."""
    X = rng.normal(size=(20, 5)) * [1, 2, 3, 4, 5] + 7
    fitted = Quadratic(n_factors).fit_map(X, 0)
    s = np.sqrt(X.var(axis=0).mean())
    Z = (X - X.mean(axis=0)) / s
    phi = fitted.transform(X)
    assert phi.shape == (20, 5 + 15) and fitted.n_columns == 20
    np.testing.assert_allclose(phi @ phi.T, s**2 * (1 + Z @ Z.T / 5) * (Z @ Z.T), atol=1e-11)


def test_products_of_wide_rows_are_those_of_leading_components(rng):
    X = rng.normal(size=(60, 50))
    fitted = Quadratic().fit_map(X, 0)
    assert fitted.n_columns == 50 + 40 * 41 // 2
    assert Quadratic(n_factors=3).fit_map(X, 0).n_columns == 50 + 6
    Z = (X - X.mean(axis=0)) / np.sqrt(X.var(axis=0).mean())
    leading = np.linalg.svd(Z, full_matrices=False)[2][:3].T
    z = Z @ leading
    phi = Quadratic(n_factors=3).fit_map(X, 0).transform(X) / np.sqrt(X.var(axis=0).mean())
    np.testing.assert_allclose(phi @ phi.T, Z @ Z.T + (z @ z.T) ** 2 / 3, atol=1e-10)


def test_the_products_of_local_columns_are_its_kernel(rng):
    """κ0(x, y) = s² (1 + μ ⟨r(x), r(y)⟩) ⟨x̃, ỹ⟩."""
    X = np.concatenate([rng.normal(size=(20, 3)), rng.normal(size=(20, 3)) + 6])
    fitted = Local(3, strength=0.7).fit_map(X, 0)
    r, s = fitted.memberships(X), np.sqrt(X.var(axis=0).mean())
    Z = (X - X.mean(axis=0)) / s
    np.testing.assert_allclose(r.sum(axis=1), 1.0)
    phi = fitted.transform(X)
    np.testing.assert_allclose(phi @ phi.T, s**2 * (1 + 0.7 * r @ r.T) * (Z @ Z.T), atol=1e-10)


@pytest.mark.parametrize("features", MAPS, ids=str)
def test_shifts_change_no_column_and_a_factor_scales_all(rng, features):
    X = rng.normal(size=(40, 4)) * [1, 2, 1, 3]
    plain = features.fit_map(X, 0).transform(X)
    kernel = plain @ plain.T  # signs of principal components are arbitrary
    shifted = features.fit_map(X + 1000.0, 0).transform(X + 1000.0)
    larger = features.fit_map(100.0 * X, 0).transform(100.0 * X)
    np.testing.assert_allclose(shifted @ shifted.T, kernel, atol=1e-8)
    np.testing.assert_allclose(larger @ larger.T, 1e4 * kernel, rtol=1e-8, atol=1e-7)


def test_more_regions_than_distinct_rows(rng):
    X = np.repeat(rng.normal(size=(3, 2)), 4, axis=0)
    fitted = Local(10).fit_map(X, 0)
    assert len(fitted.centres) == 3
    assert np.isfinite(fitted.transform(X)).all() and np.isfinite(fitted.jacobian(X[0])).all()


@pytest.mark.parametrize("features", MAPS, ids=str)
def test_rows_that_are_all_equal(features):
    X = np.full((6, 3), 4.0)
    fitted = features.fit_map(X, 0)
    assert np.array_equal(fitted.transform(X), np.zeros((6, fitted.n_columns)))


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (Local(0), "n_regions must be a positive integer; got 0"),
        (Local(True), "n_regions must be a positive integer; got True"),
        (Local(strength=True), "strength must be a positive number; got True"),
        (Local(2.5), "n_regions must be a positive integer; got 2.5"),
        (Local(strength=0.0), "strength must be a positive number; got 0.0"),
        (Local(temperature=np.inf), "temperature must be a positive number; got inf"),
        (Quadratic(0), "n_factors must be a positive integer or None; got 0"),
    ],
    ids=str,
)
def test_wrong_parameters(rng, features, message):
    with pytest.raises(ValueError, match=message):
        features.fit_map(rng.normal(size=(5, 2)), 0)


@pytest.mark.parametrize("features", ["quadratic", 3, Quadratic, object()], ids=["name", "number", "class", "object"])
def test_other_things_are_no_features(features):
    with pytest.raises(ValueError, match=r"features must be None, features\.Quadratic\(\)"):
        check_features(features)


def test_parameters_are_estimators():
    assert clone(Local(7, strength=2.0)).get_params() == {"n_regions": 7, "strength": 2.0, "temperature": 1.0}
    assert repr(Quadratic(3)) == "Quadratic(n_factors=3)"
