"""Lines that `verbose` shows: none, one a second, or every step; with rich or without."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import pytest
from joblib import parallel_config
from scipy.spatial.distance import cdist
from sklearn.datasets import load_wine

from mahalo import MetricLearner, MetricLearnerCV
from mahalo import progress as shown
from mahalo.basis import ClassBasis, KMeansBasis
from mahalo.progress import SILENT, Countdown, Progress, progress_for
from mahalo.solvers import Step

STEP = Step(gamma=0.5, primal=1.0, relative_gap=1e-3, max_violation=0.25, step_length=1.0, inner_iterations=3)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch) -> Callable[[float], None]:
    """Seconds pass when they are told to."""
    now = [0.0]
    monkeypatch.setattr(shown.time, "perf_counter", lambda: now[0])

    def wait(seconds: float) -> None:
        now[0] += seconds

    return wait


@contextmanager
def solver_steps(verbose, title="learning", countdown=None):
    with progress_for(verbose) as progress, progress.solver_steps(title, 1e-4, 1.0, countdown) as on_step:
        yield on_step


def test_silence_needs_no_calls(capsys):
    with solver_steps(0) as on_step:
        assert on_step is None
    assert capsys.readouterr() == ("", "")


def test_every_step_is_a_line(capsys):
    with solver_steps(2, "path") as on_step:
        for _ in range(3):
            on_step(STEP)
    out, err = capsys.readouterr()
    *steps, last = err.splitlines()
    assert not out and len(steps) == 3 and last.startswith("path: 3 steps, ")
    assert steps[1].startswith("path: step 2, γ 0.5 → 1, relative gap 1.0e-03 → 1e-04, largest violation 0.25")


def test_without_a_terminal_a_line_a_second_at_most(capsys, clock):
    with solver_steps(1) as on_step:
        for _ in range(35):
            clock(0.1)
            on_step(STEP)
    *steps, last = capsys.readouterr().err.splitlines()
    assert len(steps) == 3 and last == "learning: 35 steps, 3.50 s"


@pytest.mark.parametrize("rich", [True, False])
def test_on_a_terminal_rich_is_used_where_it_is_installed(monkeypatch, clock, rich):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    if not rich:
        monkeypatch.setitem(sys.modules, "rich.console", None)
    with solver_steps(True) as on_step:
        on_step(STEP)
    assert ("\x1b[" in terminal.getvalue()) == rich
    assert "learning: 1 steps, 0.00 s\n" in terminal.getvalue()


# -- parts ----------------------------------------------------------------------------------------------------


def test_parts_say_which_of_how_many_and_the_time_left(capsys, clock):
    with progress_for(1) as progress:
        for _ in progress.track(range(4), 4, "choosing:", lambda k: f"fold {k + 1}"):
            clock(10.0)
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "choosing: 1 of 4, fold 1",
        "choosing: 2 of 4, fold 2, 30 s left",
        "choosing: 3 of 4, fold 3, 20 s left",
        "choosing: 4 of 4, fold 4, 10 s left",
    ]


def test_parts_are_silent_unless_asked(capsys):
    assert list(SILENT.track("abc", 3, "choosing:", str)) == ["a", "b", "c"]
    assert capsys.readouterr() == ("", "")


def test_steps_of_a_path_say_which_part_they_are_of(capsys, clock):
    countdown = Countdown(5)
    with solver_steps(1, "path", countdown) as on_step:
        for _ in range(5):
            clock(60.0)
            on_step(STEP)
            countdown.advance()
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("path: 1 of 5, step 1") and lines[3].startswith("path: 4 of 5, 3 min left"[:13])
    assert max(map(len, lines)) <= 80


def test_in_notebooks_one_line_takes_the_place_of_another(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "ipykernel", sys)
    with solver_steps(1) as on_step:
        on_step(STEP)
        on_step(STEP)
    shown_text = capsys.readouterr().err
    assert shown_text.count("\n") == 1 and shown_text.count("\r") == 3 and shown_text.endswith("\n")
    assert all(len(line.rstrip()) <= 80 for line in shown_text.split("\r"))


def test_stages_that_take_long_are_named(capsys, clock):
    with progress_for(1) as progress:
        progress.stage("posing: 1 of 3, prior and basis")
        clock(2.0)
        progress.stage("posing: 2 of 3, constraints and bounds")
    assert capsys.readouterr().err == "posing: 2 of 3, constraints and bounds\n"


def test_items_of_a_stage_have_the_time_left(capsys, clock):
    with progress_for(1) as progress:
        stage = progress.stage("posing: 1 of 3, prior or kernel, and basis")
        for _ in stage.track("abc", 3, "part"):
            clock(10.0)
    assert capsys.readouterr().err.splitlines() == [
        "posing: 1 of 3, prior or kernel, and basis: part 2 of 3, 20 s left",
        "posing: 1 of 3, prior or kernel, and basis: part 3 of 3, 10 s left",
    ]


@pytest.mark.parametrize(
    ("settings", "stage"),
    [
        ({"strategy": "neighbors"}, "posing: 2 of 3, constraints and bounds: part 3 of 3"),
        ({"kernel": "rbf", "strategy": "neighbors"}, "posing: 2 of 3, constraints and bounds: part 3 of 3"),
        ({"kernel": "rbf", "basis": KMeansBasis(5)}, "posing: 1 of 3, prior or kernel, and basis: part 1 of"),
        ({"basis": ClassBasis(9)}, "posing: 1 of 3, prior or kernel, and basis: part 3 of 3"),
    ],
    ids=str,
)
def test_bases_kernels_and_neighbours_say_which_part_they_are_at(settings, stage):
    X, y = load_wine(return_X_y=True)
    seen: list[str] = []
    MetricLearner(**settings, verbose=seen.append).fit((X - X.mean(axis=0)) / X.std(axis=0), y)
    assert any(line.startswith(stage) for line in seen), seen
    assert max(map(len, seen)) <= 80


def test_a_callable_gets_all_lines(capsys):
    seen: list[str] = []
    with progress_for(seen.append) as progress:
        progress.print_line("one")
        assert list(progress.track(["a", "b"], 2, "working:", str)) == ["a", "b"]
    assert seen == ["one", "working: 1 of 2, a", "working: 2 of 2, b, 0 s left"]
    assert capsys.readouterr() == ("", "")


def test_a_reporter_without_output_is_false():
    assert not SILENT and Progress(print)


def test_fits_in_threads_report_to_their_own_callable(capsys):
    X, y = load_wine(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    lines: list[list[str]] = [[], []]

    def fit(seen):
        MetricLearner(verbose=seen.append, random_state=0).fit(X, y)

    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(fit, seen) for seen in lines]:
            done.result()
    assert any(line.startswith("learning") for line in lines[0]) and len(lines[0]) == len(lines[1])
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_folds_worked_on_at_once_report_to_the_caller(capfd, backend):
    """joblib asks for more work from threads of its own; what they show is the caller's."""
    X, y = load_wine(return_X_y=True)
    seen: list[str] = []
    learner = MetricLearnerCV(gammas=[0.1], strategy="random", n_jobs=2, verbose=seen.append)
    with parallel_config(backend=backend):
        learner.fit((X - X.mean(axis=0)) / X.std(axis=0), y)
    choosing = [line for line in seen if line.startswith("choosing")]
    assert len(choosing) == learner.cv_results_["n_folds"].max() >= 3  # one for each fold before the race was decided
    assert "choosing" not in capfd.readouterr().err


def test_a_slow_kernel_shows_how_far_it_is(capsys, clock):
    X, y = load_wine(return_X_y=True)

    def slow(A, B):
        clock(2.0 * (len(A) >= 78))  # of the matrix of all rows; not of pairs that bounds are taken from
        return A @ B.T / 1e5 + np.exp(-1e-5 * cdist(A, B, "sqeuclidean"))

    MetricLearner(kernel=slow, verbose=1, random_state=0).fit(X, y)
    lines = [line for line in capsys.readouterr().err.splitlines() if "coordinates" in line]
    assert any("2 of 2" in line and "left" in line for line in lines), lines
