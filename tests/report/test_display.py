"""Displays draw what they were asked for, on the axes they were given, and refuse what they cannot draw."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from matplotlib.figure import Figure
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from mahalo import MetricDisplay, MetricLearner, MetricLearnerCV, metric_path


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@pytest.fixture(scope="module")
def chosen(wine):
    X, y = wine
    return MetricLearnerCV(gammas=[0.01, 0.1, 1.0], kernel="linear").fit(X[::2], y[::2])


def test_overview_is_the_default(wine, chosen):
    X, y = wine
    display = MetricDisplay.from_estimator(chosen, X[1::2], y[1::2], class_names=["a", "b", "c"])
    assert len(display.axes_) == 6 and display.ax_.figure is display.figure_


@pytest.mark.parametrize("kind", ["map", "distances"])
def test_rows_are_drawn_on_one_or_two_axes(wine, chosen, kind):
    X, y = wine
    axes = Figure().subplots(1, 2)
    display = MetricDisplay.from_estimator(chosen, X[1::2], y[1::2], kind=kind, ax=axes)
    assert [ax.get_title(loc="left").split(":")[0] for ax in display.axes_] == ["before", "after"]
    alone = Figure().subplots()
    assert display.plot(kind, ax=alone).ax_ is alone
    assert alone.get_title(loc="left").startswith("after")
    with pytest.raises(ValueError, match="one or two"):
        display.plot(kind, ax=Figure().subplots(1, 3))


@pytest.mark.parametrize("kind", ["spectrum", "convergence", "choosing"])
def test_pictures_of_the_fit_need_no_rows(chosen, kind):
    ax = Figure().subplots()
    assert MetricDisplay.from_estimator(chosen, kind=kind, ax=ax).ax_ is ax
    assert ax.get_title(loc="left")


def test_choosing_shows_the_best_variant_of_every_problem(chosen):
    ax = MetricDisplay.from_estimator(chosen, kind="choosing").ax_
    curves = [line for line in ax.lines if len(line.get_xdata()) > 1]
    assert len(curves) == 4  # two priors, two strategies
    assert max(line.get_ydata().max() for line in curves) == pytest.approx(chosen.cv_results_["mean_score"].max())


def test_path_shows_every_eigenvalue(wine):
    path = metric_path(*wine, gammas=[1.0, 0.01, 0.1])
    ax = MetricDisplay.from_path(path).ax_
    drawn = np.array([line.get_ydata() for line in ax.lines if len(line.get_xdata()) == 3])
    expected = np.array([np.linalg.eigvalsh(path.metrics[k].F)[::-1] for k in (1, 2, 0)]).T
    np.testing.assert_allclose(drawn, expected)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_rows_of_every_space_are_drawn(wine, form, kernel):
    X, y = wine
    learner = MetricLearner(kernel=kernel).fit(form(X[:60:2]), y[:60:2] + np.arange(30) % 2)
    display = MetricDisplay.from_estimator(learner, form(X[:60:2]), np.arange(30) % 2, kind="distances")
    assert len(display.axes_) == 2


def test_precomputed_kernels_are_drawn_by_their_training_rows(wine):
    X, y = wine
    K = X @ X.T
    learner = MetricLearner(kernel="precomputed").fit(K, y)
    before, after = MetricDisplay.from_estimator(learner, K, y, kind="distances").views
    assert before.auc < after.auc


def test_what_cannot_be_drawn_is_said(wine, chosen):
    X, y = wine
    with pytest.raises(ValueError, match="kind must be one of"):
        MetricDisplay.from_estimator(chosen, X, y, kind="pie")
    with pytest.raises(ValueError, match="pass X and y"):
        MetricDisplay.from_estimator(chosen, kind="map")
    with pytest.raises(ValueError, match="pass y"):
        MetricDisplay.from_estimator(chosen, X, kind="map")
    with pytest.raises(ValueError, match="one label for each of the 178 rows"):
        MetricDisplay.from_estimator(chosen, X, y[:5], kind="map")
    with pytest.raises(ValueError, match="of a MetricLearnerCV"):
        MetricDisplay.from_estimator(MetricLearner().fit(X, y), kind="choosing")
    with pytest.raises(ValueError, match="leave ax out"):
        MetricDisplay.from_estimator(chosen, X, y, ax=Figure().subplots())
