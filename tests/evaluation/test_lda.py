"""LDA beside every comparison, against scikit-learn's."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics import pairwise_distances

from mahalo.evaluation import lda_projection


def few_rows_of_many_classes():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(12), 4)
    X = rng.standard_normal((12, 40))[y] + rng.standard_normal((48, 40)) * np.logspace(-3, 3, 40)
    X[:, 7] = 5.0  # constant
    return X, np.concatenate([y[:-1], [12]])  # one class has one row


def columns_constant_but_for_rounding():
    """Columns whose mean is not exactly their value: of all rows, and of every class."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 150)
    X = rng.standard_normal((150, 6)) + 2.0 * np.eye(3, 6)[y]
    return np.column_stack([X, np.full(150, 0.1), np.array([0.1, 0.2, 0.7])[y]]), y


TABLES = {
    "wine": lambda: load_wine(return_X_y=True),
    "digits": lambda: load_digits(return_X_y=True),
    "few rows": few_rows_of_many_classes,
    "constants": columns_constant_but_for_rounding,
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", TABLES)
def test_distances_are_those_of_scikit_learn(name):
    X, y = TABLES[name]()
    X, y = X[:400], y[:400]
    codes = np.unique(y, return_inverse=True)[1]
    codes[::9] = -1
    space = lda_projection(X, codes)
    peer = LinearDiscriminantAnalysis(solver="eigen", shrinkage="auto").fit(X[codes >= 0], codes[codes >= 0])
    found, expected = (pairwise_distances(points) for points in (space(X), peer.transform(X)))
    np.testing.assert_allclose(found, expected, atol=1e-4 * expected.max())


def test_nothing_is_returned_where_nothing_can_be_estimated():
    X = np.random.default_rng(0).standard_normal((6, 3))
    assert lda_projection(X, np.zeros(6, dtype=int)) is None
    assert lda_projection(X, np.arange(6)) is None
    assert lda_projection(np.zeros((6, 3)), np.arange(6) % 2) is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert lda_projection(X[:, :0], np.arange(6) % 2) is None
        assert lda_projection(X * 1e160, np.arange(6) % 2) is None
