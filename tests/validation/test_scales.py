"""Warnings of columns that a metric cannot use, or that decide alone."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_wine
from sklearn.preprocessing import StandardScaler

from mahalo import MetricLearner, MetricLearnerCV


def said(learner, X, y) -> list[str]:
    """Messages of a fit."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        learner.fit(X, y)
    return [str(one.message) for one in caught if issubclass(one.category, UserWarning)]


@pytest.mark.parametrize("learner", [MetricLearner(), MetricLearnerCV(prior="identity", gammas=[1.0], cv=2)], ids=str)
def test_columns_of_very_different_units_are_named_once(learner):
    X, y = load_wine(return_X_y=True, as_frame=True)
    (message,) = said(learner, X, y)
    assert "'proline'" in message and "'nonflavanoid_phenols'" in message
    assert "StandardScaler" in message and "prior='diagonal'" in message
    (message,) = said(learner, X.to_numpy(), y)
    assert "column 12" in message and "column 7" in message


def test_priors_that_scale_columns_and_columns_of_one_unit_pass():
    X, y = load_wine(return_X_y=True)
    for prior in ("diagonal", "covariance", "within"):
        assert not said(MetricLearner(prior=prior), X, y)
    assert not said(MetricLearnerCV(gammas=[1.0], cv=2), X, y)
    assert not said(MetricLearner(kernel="rbf"), X[:40:2], y[:40:2] + np.arange(20) % 2)
    assert not said(MetricLearner(), StandardScaler().fit_transform(X), y)
    assert not said(MetricLearner(), *load_digits(return_X_y=True))  # pixels that are never drawn on


def test_a_constant_column_is_named():
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    X[:, [2, 5]] = 7.0
    (message,) = said(MetricLearner(), X, y)
    assert "2 constant columns (column 2, column 5)" in message
