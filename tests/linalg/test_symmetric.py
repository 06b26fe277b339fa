"""Products that are symmetric, from their lower triangles alone, and products with lower triangles."""

from __future__ import annotations

import numpy as np
import pytest

from mahalo.linalg import symmetric_product, times_lower


@pytest.mark.parametrize("r", [0, 1, 64, 65, 128, 200])
@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_symmetric_product(rng, r, precision):
    A = rng.standard_normal((30, r)).astype(precision)
    B = rng.standard_normal((30, 30))
    B = ((B + B.T) @ A).astype(precision)
    product = symmetric_product(A, B)
    assert product.dtype == precision
    np.testing.assert_array_equal(product, product.T)
    np.testing.assert_allclose(product, A.T @ B, rtol=0, atol=1e-4 if precision == np.float32 else 1e-12)


@pytest.mark.parametrize("r", [0, 1, 64, 65, 128, 200])
@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_product_with_a_lower_triangle(rng, r, precision):
    X, L = rng.standard_normal((30, r)).astype(precision), np.tril(rng.standard_normal((r, r))).astype(precision)
    product = times_lower(X, L)
    assert product.dtype == precision
    np.testing.assert_allclose(product, X @ L, rtol=0, atol=1e-4 if precision == np.float32 else 1e-12)
