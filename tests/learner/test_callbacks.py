"""Progress of fits from Python: lines for `verbose`, and the callbacks of scikit-learn 1.9 and later."""

from __future__ import annotations

import importlib.util
import sys
import warnings
from collections.abc import Callable

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mahalo.callbacks
from mahalo import Constraints, MetricLearner, MetricLearnerCV
from mahalo.cluster import MetricKMeans
from mahalo.embeddings import EmbeddingAdapter
from mahalo.feedback import QueryAdapter
from mahalo.pairs import PairClassifier

X, y = load_wine(return_X_y=True)
X = StandardScaler().fit_transform(X)
PAIRS = Constraints.from_labels(y, random_state=0)
FEW = {"gammas": [1.0], "cv": 2, "strategy": "random", "random_state": 0}
LINEAR = {"kernel": "linear", "features": None}
FITS: dict[str, tuple[Callable, Callable, str]] = {  # estimator, its fit, and a task of it
    "learner": (MetricLearner, lambda e: e.fit(X, y), "learning"),
    "cv": (
        lambda **kw: MetricLearnerCV(kernel="linear", features=None, **FEW, **kw),
        lambda e: e.fit(X, y),
        "choosing",
    ),
    "adapter": (lambda **kw: EmbeddingAdapter(residual=[0.5], **FEW, **kw), lambda e: e.fit(X, y), "evaluating"),
    "query": (
        lambda **kw: QueryAdapter(lam=0.1, **kw),
        lambda e: e.fit(X[:5] / 10, X[5:20] / 10, [(k, k) for k in range(5)]),
        "fold",
    ),
    "pairs": (lambda **kw: PairClassifier(MetricLearner(), **kw), lambda e: e.fit(X, y), "learning"),
    "k-means": (lambda **kw: MetricKMeans(3, n_init=2, **kw), lambda e: e.fit(X, constraints=PAIRS), "clustering"),
}
every_fit = pytest.mark.parametrize(("make", "fit", "task"), FITS.values(), ids=FITS)


@every_fit
def test_a_callable_receives_the_lines_of_a_fit(make, fit, task, capsys):
    lines: list[str] = []
    fit(make(verbose=lines.append))
    assert any(line.startswith(task) for line in lines), lines
    assert all(isinstance(line, str) and 0 < len(line) <= 80 for line in lines)
    assert capsys.readouterr() == ("", "")


@every_fit
def test_a_fit_is_silent_unless_asked(make, fit, task, capsys):
    fit(make())
    assert capsys.readouterr() == ("", "")


# -- callbacks of scikit-learn --------------------------------------------------------------------------------


class Recorder:
    """Callback that checks that tasks nest, and keeps their names; it asks to stop after some solver steps."""

    def __init__(self, n_steps: float = np.inf) -> None:
        self.open: list[object] = []
        self.paths: list[tuple[str, ...]] = []
        self.estimators: list[str] = []
        self.scores: list[float] = []
        self.is_set_up = False
        self.n_steps = n_steps

    def setup(self, estimator, context):
        assert not self.is_set_up
        self.is_set_up = True

    def teardown(self, estimator, context):
        assert self.is_set_up
        self.is_set_up = False

    def on_fit_task_begin(self, estimator, context):
        assert self.is_set_up and (context.parent is None or context.parent in self.open)
        self.open.append(context)
        self.estimators.append(context.estimator_name)
        self.paths.append(tuple(task.task_name for task in self.open))

    def on_fit_task_end(self, estimator, context, *, X=None, y=None, fitted_estimator=None):
        assert self.open.pop() is context
        if fitted_estimator is not None and y is not None and hasattr(fitted_estimator, "metric_"):
            self.scores.append(fitted_estimator.score(X, y))
        self.n_steps -= context.task_name == "step"
        return self.n_steps <= 0

    def count(self, name: str) -> int:
        return sum(path[-1] == name for path in self.paths)


class Propagated(Recorder):
    max_propagation_depth = None


@pytest.fixture
def callbacks():
    return pytest.importorskip("sklearn.callback", reason="callbacks came with scikit-learn 1.9")


@every_fit
def test_tasks_of_a_fit_nest_and_end(make, fit, task, callbacks):
    recorder = Propagated()
    estimator = fit(make().set_callbacks(recorder))
    assert not recorder.open and not recorder.is_set_up and recorder.paths[0] == ("fit",)
    assert any(name.startswith(task) for path in recorder.paths for name in path), recorder.paths
    if recorder.count("step"):
        assert recorder.count("step") == len(getattr(estimator, "learner_", estimator).history_)


@every_fit
def test_callbacks_change_nothing(make, fit, task, callbacks):
    watched, plain = fit(make().set_callbacks(Recorder())), fit(make())
    for name in ("matrix_", "labels_", "threshold_", "duals_"):
        np.testing.assert_array_equal(getattr(watched, name, 0), getattr(plain, name, 0))
    assert set(vars(watched)) - set(vars(plain)) == {"_skl_callbacks"}


@pytest.mark.parametrize(
    "params", [{}, {"strategy": "neighbors"}, {"kernel": "rbf"}, {"basis": 3}, {"features": StandardScaler()}], ids=str
)
def test_no_task_has_more_subtasks_than_it_says(params, callbacks):
    """scikit-learn raises an error where it has."""
    MetricLearner(**params).set_callbacks(Recorder()).fit(X, y)


@pytest.mark.parametrize(
    "params",
    [
        {"gamma": 30.0},
        {"gamma": 30.0, "solver": "dual"},
        {"gamma": 0.1, "solver": "bregman"},
        {"gamma": np.inf, "bounds": (60.0, 0.01), "tol": 1e-9},  # the search for contradictions has steps of its own
    ],
    ids=str,
)
def test_a_callback_stops_the_solver(params, callbacks):
    learner = MetricLearner(**params)
    whole = clone(learner).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="stopped after"):
        stopped = clone(learner).set_callbacks(Recorder(n_steps=2)).fit(X, y)
    assert len(stopped.history_) <= 2 < len(whole.history_)
    assert not stopped.certificate_.converged and whole.certificate_.converged
    assert stopped.certificate_.dual <= whole.certificate_.primal * (1 + 1e-9)


def test_callbacks_get_the_fitted_estimator_at_the_end(callbacks):
    recorder = Recorder()
    learner = MetricLearner().set_callbacks(recorder).fit(X, y)
    assert recorder.scores == [learner.score(X, y)]
    monitor = callbacks.ScoringMonitor(scoring={"AUC": lambda estimator, X, y: estimator.score(X, y)})
    learner.set_callbacks(monitor).fit(X, y)
    assert [row["AUC"] for row in monitor.get_logs().data if "AUC" in row] == recorder.scores


def test_callbacks_of_a_search_reach_learners_in_its_pipeline(callbacks):
    recorder = Propagated()
    model = make_pipeline(StandardScaler(), MetricLearner(), KNeighborsClassifier(5))
    search = GridSearchCV(model, {"metriclearner__gamma": [0.1, 1.0]}, cv=StratifiedKFold(2))
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*MetricLearner does not support callbacks")
        warnings.filterwarnings("ignore", message=".*does not support callbacks")  # of KNeighborsClassifier
        search.set_callbacks(recorder).fit(X, y)
    assert recorder.count("learning") == 2 * 2 + 1 and "MetricLearner" in recorder.estimators


def test_a_progress_bar_is_drawn(callbacks, capsys):
    pytest.importorskip("rich")
    learner = MetricLearnerCV(**LINEAR, **FEW).set_callbacks(callbacks.ProgressBar())
    learner.fit(X, y)
    shown = capsys.readouterr().out
    assert "MetricLearnerCV - fit" in shown and "MetricLearnerCV - choosing" in shown


def test_callbacks_are_torn_down_when_a_fit_fails(callbacks):
    recorder = Recorder()
    learner = MetricLearner(gamma=-1.0).set_callbacks(recorder)
    with pytest.raises(ValueError, match="gamma"):
        learner.fit(X, y)
    with pytest.raises(ValueError, match="NaN"):
        learner.set_params(gamma=1.0).fit(np.where(X > 3, np.nan, X), y)
    assert recorder.paths == [("fit",)] and not recorder.is_set_up
    recorder.open.clear()
    learner.fit(X, y)
    assert recorder.count("fit") == 2 and not recorder.open


def test_older_versions_of_scikit_learn_have_no_callbacks(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.callback", None)
    spec = importlib.util.spec_from_file_location("mahalo.callbacks_without", mahalo.callbacks.__file__)
    older = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(older)

    class Estimator(older.CallbackMixin):
        verbose = 0

        @older.with_callbacks
        def fit(self, X):
            with self._fit_progress(X) as progress:
                stage = progress.stage("stage")
                return list(stage.track(X, len(X), "part"))

    assert Estimator().fit([1, 2]) == [1, 2] and not hasattr(Estimator, "set_callbacks")
