"""The data and the arithmetic of `python -m benchmarks scale`; nothing here takes time."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import growth, scale, scale_data


def test_texts_have_their_number_of_words_and_repeat():
    texts = scale_data.Texts(n_features=1_000, n_words=20, n_classes=4)
    X, y = texts.rows(300, block=77)
    assert X.shape == (300, 1_000) and set(y) == {0, 1, 2, 3}
    assert (np.diff(X.indptr) == 20).all() and (X.data > 0).all()
    assert all((np.diff(X.indices[a : a + 20]) > 0).all() for a in range(0, X.nnz, 20))
    np.testing.assert_allclose(X.power(2).sum(axis=1), 1.0)
    again, _ = texts.rows(300, block=77)
    other, _ = texts.rows(300, draw=1)
    assert (again != X).nnz == 0 and (other != X).nnz > 0


def test_texts_of_a_class_are_alike():
    X, y = scale_data.Texts(n_classes=3, topics_per_class=2).rows(600)
    K = (X @ X.T).toarray()
    np.fill_diagonal(K, np.nan)
    same = y[:, None] == y
    assert np.nanmean(K[same]) > 1.5 * np.nanmean(K[~same])


def test_random_pairs_are_what_they_say():
    y = np.random.default_rng(0).integers(0, 5, 200)
    pairs = scale_data.random_pairs(y, 1_000).pairs
    i, j = pairs.index.T
    assert (i != j).all()
    assert ((y[i] == y[j]) == (pairs.sign > 0)).all()
    assert 950 <= len(pairs) <= 1_000 and 0.4 < (pairs.sign > 0).mean() < 0.55


def test_slopes_are_exponents():
    sizes = np.array([10, 32, 100, 316, 1000])
    series = growth.Series("n", "", sizes, 3e-4 * sizes**1.5, np.ones(5), promised=2.0)
    assert series.slope == pytest.approx(1.5) and series.last_slope == pytest.approx(1.5)
    with_overhead = growth.Series("n", "", sizes, 0.1 + 1e-3 * sizes, np.ones(5), promised=1.0)
    assert with_overhead.slope < with_overhead.last_slope < 1.0


def test_growth_is_drawn(tmp_path):
    sizes = np.array([1, 10, 100])
    series = tuple(growth.Series(name, "", sizes, 1e-3 * sizes, sizes, promised=1.0) for name in "nm")
    assert growth.draw(series, tmp_path / "new" / "growth.png").stat().st_size > 5_000


def test_ratios_fail_only_at_full_size():
    ratio = scale._Ratio("a fit", 6.0, "a product", 1.0, required=5.0)
    assert ratio.check(quick=False).status == "FAIL"
    assert ratio.check(quick=True).status == "OPEN"
