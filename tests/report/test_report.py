"""Numbers on held-out rows agree with plain arithmetic, and pictures show them all."""

from __future__ import annotations

import numpy as np
import pytest
from running import run_python
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

import mahalo
from mahalo import MetricDisplay, MetricLearner, drawing, evaluation


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    train, test = np.arange(0, len(X), 2), np.arange(1, len(X), 2)
    learner = MetricLearner(gamma=10.0).fit(X[train], y[train])
    Z = learner.transform(X)
    before = evaluation.view("before", X[train], y[train], X[test], y[test])
    after = evaluation.view("after", Z[train], y[train], Z[test], y[test])
    return before, after, learner


def titles(figure) -> list[str]:
    return [ax.get_title(loc="left") for ax in figure.axes]


def test_view_agrees_with_plain_arithmetic(wine):
    before, _, _ = wine
    n = len(before.labels)
    distance = np.sqrt(((before.rows[:, None] - before.rows[None]) ** 2).sum(axis=2))
    same = before.labels[:, None] == before.labels[None]
    above = np.triu(np.ones((n, n), dtype=bool), 1)
    similar, dissimilar = distance[same & above], distance[~same & above]
    np.testing.assert_allclose(np.sort(before.similar), np.sort(similar), rtol=1e-10)
    np.testing.assert_allclose(np.sort(before.dissimilar), np.sort(dissimilar), rtol=1e-10)
    closer = (similar[:, None] < dissimilar[None]).mean()
    assert before.auc == pytest.approx(closer, abs=1e-12)


def test_a_view_gives_ties_to_the_nearer_neighbours():
    rows, test = np.array([[1.0], [2.0], [3.0], [4.0]]), np.array([[0.0], [0.1], [-0.1]])
    for labels in (["b", "b", "a", "a"], ["a", "a", "b", "b"]):
        first, other = labels[0], labels[-1]
        assert evaluation.view("", rows, labels, test, [first, first, other]).error == pytest.approx(1 / 3)


def test_learning_helps_on_wine(wine):
    before, after, _ = wine
    assert after.auc > before.auc + 0.05


def test_maps_show_every_held_out_row(wine):
    before, after, _ = wine
    figure = MetricDisplay(views=(before, after), learner=wine[2]).plot("map").figure_
    assert len(figure.axes) == 2
    for ax, seen in zip(figure.axes, (before, after), strict=True):
        shown = np.concatenate([points.get_offsets() for points in ax.collections])
        assert shown.shape == (len(seen.labels), 2) and np.isfinite(shown).all()
        assert f"{100 * seen.error:.1f} %" in ax.get_title(loc="left")


def test_class_names_must_match_the_classes(wine):
    before, after, _ = wine
    with pytest.raises(ValueError, match="3 classes"):
        MetricDisplay(views=(before, after), learner=wine[2], class_names=["one", "two"]).plot("map")


def test_histograms_carry_the_auc(wine):
    before, after, _ = wine
    figure = MetricDisplay(views=(before, after), learner=wine[2]).plot("distances").figure_
    assert titles(figure) == [f"before: pair AUC {before.auc:.3f}", f"after: pair AUC {after.auc:.3f}"]


def test_spectrum_shows_all_directions(wine):
    *_, learner = wine
    (ax,) = MetricDisplay.from_estimator(learner, kind="spectrum").axes_
    heights = next(line.get_ydata() for line in ax.lines if len(line.get_ydata()) == 13)
    np.testing.assert_allclose(heights, np.sort(np.linalg.eigvalsh(learner.metric_.matrix))[::-1], rtol=1e-9)
    assert ax.get_yscale() == "log"


def test_spectrum_outside_a_basis_is_what_is_kept_there():
    X = np.random.default_rng(0).normal(size=(40, 8))
    learner = MetricLearner(basis=3, residual=0.2).fit(X, np.arange(40) % 2)
    (ax,) = MetricDisplay.from_estimator(learner, kind="spectrum").axes_
    heights = next(line.get_ydata() for line in ax.lines if len(line.get_ydata()) == 8)
    np.testing.assert_allclose(heights, np.sort(np.linalg.eigvalsh(learner.metric_.matrix))[::-1], rtol=1e-9)


def test_spectrum_counts_directions_that_no_constraint_sees():
    X = np.random.default_rng(0).normal(size=(10, 30))
    pairs = mahalo.Constraints.from_pairs(similar=[[0, 1]], dissimilar=[[2, 3]])
    learner = MetricLearner().fit(X, constraints=pairs)
    (ax,) = MetricDisplay.from_estimator(learner, kind="spectrum").axes_
    heights = next(line.get_ydata() for line in ax.lines if len(line.get_ydata()) == 30)
    np.testing.assert_allclose(heights, np.sort(np.linalg.eigvalsh(learner.metric_.matrix))[::-1], rtol=1e-9)


def test_convergence_shows_every_step_and_the_path(wine):
    *_, learner = wine
    (ax,) = MetricDisplay.from_estimator(learner, kind="convergence").axes_
    n_stages = len({step.gamma for step in learner.history_})
    curves = [line for line in ax.lines if line.get_marker() == "o"]
    assert len(curves) == n_stages > 1
    drawn = np.concatenate([line.get_ydata() for line in curves])
    np.testing.assert_allclose(drawn, [step.relative_gap for step in learner.history_])
    assert ax.get_yscale() == "log"


@pytest.mark.filterwarnings("error")
def test_figures_of_a_fit_that_needed_no_step(tmp_path):
    X, y = load_wine(return_X_y=True)
    learner = MetricLearner(prior="diagonal", gamma=1e-6).fit(X, y)
    assert not learner.history_
    for kind in ("convergence", "spectrum"):
        figure = MetricDisplay.from_estimator(learner, kind=kind).figure_
        assert drawing.save(figure, tmp_path / "figure.png").exists()


def test_overview_has_all_panels_and_is_saved(wine, tmp_path):
    before, after, learner = wine
    convergence = drawing.Convergence(learner.history_, learner.certificate_.relative_gap, learner.tol)
    figure = drawing.overview(
        before, after, learner.metric_, convergence, title="wine", class_names=["a wine", "another", "a third"]
    )
    assert [title.split(":")[0] for title in titles(figure)] == [
        "before",
        "after",
        "learned metric",
        "before",
        "after",
        "proof",
    ]
    assert drawing.save(figure, tmp_path / "wine.png").stat().st_size < 200_000
    assert drawing.save(figure, tmp_path / "wine.svg").read_text(encoding="utf-8").startswith("<?xml")


def test_figures_leave_pyplot_alone(tmp_path):
    code = "import sys, mahalo.drawing; print('matplotlib' in sys.modules, 'matplotlib.pyplot' in sys.modules)"
    assert run_python("-c", code, cwd=tmp_path).stdout.split() == ["False", "False"]
