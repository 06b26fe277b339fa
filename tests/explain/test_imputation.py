"""Filling of missing numbers: that of scikit-learn's imputers, the same after a trip through JSON."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.impute import KNNImputer, SimpleImputer

from mahalo.explain import imputation
from mahalo.explain.imputation import METHODS, Imputation
from mahalo.explain.json_values import Reader, to_json_values


@pytest.fixture
def gaps(rng):
    X = rng.standard_normal((60, 4)) * [1.0, 100.0, 0.01, 1.0] + [0.0, 5.0, 0.0, 1e6]
    X[rng.random(X.shape) < 0.2] = np.nan
    return X


def of_scikit_learn(method: str, train: np.ndarray, X: np.ndarray) -> np.ndarray:
    if method != "knn":
        return SimpleImputer(strategy=method).fit(train).transform(X)
    scale = np.nanstd(train, axis=0)
    return KNNImputer(n_neighbors=5).fit(train / scale).transform(X / scale) * scale


@pytest.mark.parametrize("method", METHODS)
def test_numbers_are_those_of_scikit_learns_imputers(gaps, method):
    train, new = gaps[:40], gaps[40:]
    filled = Imputation.fit(train, method).fill(new)
    np.testing.assert_allclose(filled, of_scikit_learn(method, train, new), rtol=1e-12)
    np.testing.assert_array_equal(filled[~np.isnan(new)], new[~np.isnan(new)])
    assert np.isnan(gaps).any()


@pytest.mark.parametrize("method", METHODS)
def test_files_hold_it_exactly(gaps, method):
    fitted = Imputation.fit(gaps, method)
    about = json.loads(json.dumps({"impute": to_json_values(fitted)}, allow_nan=False))
    assert Imputation.read(Reader(about)) == fitted
    assert Imputation.read(Reader({})) is None


def test_knn_keeps_a_fixed_sample_of_rows(gaps, monkeypatch):
    monkeypatch.setattr(imputation, "_MOST_ROWS", 10)
    fitted = Imputation.fit(gaps, "knn")
    assert len(fitted.rows) == 10 and fitted == Imputation.fit(gaps, "knn")
    donors = np.array(fitted.rows, dtype=float)
    filled = fitted.fill(gaps)
    for j in range(4):
        column = filled[np.isnan(gaps[:, j]), j]
        assert (column >= np.nanmin(donors[:, j]) - 1e-9).all() and (column <= np.nanmax(donors[:, j]) + 1e-9).all()


def test_a_column_that_the_sample_lacks_is_filled_by_its_mean(gaps, monkeypatch):
    monkeypatch.setattr(imputation, "_MOST_ROWS", 5)
    gaps[1:, 2] = np.nan
    gaps[0, 2] = 7.0
    chosen = np.random.default_rng(0).choice(60, 5, replace=False)
    assert 0 not in chosen
    np.testing.assert_allclose(Imputation.fit(gaps, "knn").fill(gaps)[:, 2], 7.0)


def test_rows_without_gaps_stay_as_they_are(rng):
    X = rng.standard_normal((6, 3))
    assert Imputation.fit(X, "knn").fill(X) is X


@pytest.mark.parametrize(("names", "message"), [((), r"in column 1 \(the first"), (("a", "b"), r"in b, .*--drop b")])
def test_a_column_without_numbers_is_named(names, message):
    with pytest.raises(ValueError, match=message):
        Imputation.fit(np.array([[1.0, np.nan], [2.0, np.nan]]), "mean", names)


@pytest.mark.parametrize(
    "change",
    [
        {"method": "mode"},
        {"values": [1.0, "x", 2.0, 3.0]},
        {"values": [1.0]},
        {"values": [1.0, "nan", 2.0, 3.0]},
        {"rows": []},
        {"rows": [[1.0]]},
        {"rows": [[None] * 4]},
        {"rows": [[1.0, True, 2.0, 3.0]]},
        {"rows": 3},
        {"method": "mean"},
    ],
)
def test_damaged_files_are_refused(gaps, change):
    about = to_json_values(Imputation.fit(gaps, "knn"))
    with pytest.raises(ValueError, match=r"\w"):
        Imputation.read(Reader({"impute": about | change}))


def test_rows_of_another_width_are_refused(gaps):
    with pytest.raises(ValueError, match=r"3 columns, and missing numbers are known of 4"):
        Imputation.fit(gaps, "mean").fill(gaps[:, :3])


@pytest.mark.parametrize("method", METHODS)
def test_rows_in_single_precision_stay_so(method):
    X = np.random.default_rng(0).standard_normal((30, 3)).astype(np.float32)
    X[3, 1] = np.nan
    assert Imputation.fit(X, method).fill(X).dtype == np.float32
