"""What `verbose` shows: nothing, now and then, or every step; with rich or without."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import numpy as np
import pytest
from joblib import parallel_config
from scipy.spatial.distance import cdist
from sklearn.datasets import load_wine

from mahalo import MetricLearner, MetricLearnerCV
from mahalo import progress as shown
from mahalo.basis import ClassBasis, KMeansBasis
from mahalo.parts import in_parts
from mahalo.progress import Parts, parts_of, progress, say, shown_by, stages
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


def test_silence_needs_no_calls(capsys):
    with progress(0, 1e-4, 1.0) as on_step:
        assert on_step is None
    assert capsys.readouterr() == ("", "")


def test_every_step_is_a_line(capsys):
    with progress(2, 1e-4, 1.0, "path") as on_step:
        for _ in range(3):
            on_step(STEP)
    out, err = capsys.readouterr()
    *steps, last = err.splitlines()
    assert not out and len(steps) == 3 and last.startswith("path: 3 steps, ")
    assert steps[1].startswith("path: step 2, γ 0.5 → 1, relative gap 1.0e-03 → 1e-04, largest violation 0.25, ")


def test_without_a_terminal_a_line_a_second_at_most(capsys, clock):
    with progress(1, 1e-4, 1.0) as on_step:
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
    with progress(True, 1e-4, 1.0) as on_step:
        on_step(STEP)
    assert ("\x1b[" in terminal.getvalue()) == rich
    assert terminal.getvalue().endswith("learning: 1 steps, 0.00 s\n")


# -- parts ----------------------------------------------------------------------------------------------------


def test_parts_say_which_of_how_many_and_the_time_left(capsys, clock):
    for _ in parts_of(range(4), 1, "choosing", lambda k: f"fold {k + 1}"):
        clock(10.0)
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "choosing: 1 of 4, fold 1",
        "choosing: 2 of 4, fold 2, 30 s left",
        "choosing: 3 of 4, fold 3, 20 s left",
        "choosing: 4 of 4, fold 4, 10 s left",
    ]


def test_parts_are_silent_unless_asked(capsys):
    assert list(parts_of("abc", 0, "choosing", str)) == ["a", "b", "c"]
    assert capsys.readouterr() == ("", "")


def test_steps_of_a_path_say_which_part_they_are_of(capsys, clock):
    parts = Parts(5)
    with progress(1, 1e-4, 1.0, "path", parts) as on_step:
        for _ in range(5):
            clock(60.0)
            on_step(STEP)
            parts.advance()
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("path: 1 of 5, step 1") and lines[3].startswith("path: 4 of 5, 3 min left"[:13])
    assert max(map(len, lines)) <= 80


def test_in_notebooks_one_line_takes_the_place_of_another(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "ipykernel", sys)
    with progress(1, 1e-4, 1.0) as on_step:
        on_step(STEP)
        on_step(STEP)
    shown_text = capsys.readouterr().err
    assert shown_text.count("\n") == 1 and shown_text.count("\r") == 4
    assert all(len(line.rstrip()) <= 80 for line in shown_text.split("\r"))


def test_stages_that_take_long_are_named(capsys, clock):
    with stages(1, "posing", 3) as begin:
        begin("prior and basis")
        clock(2.0)
        begin("constraints and bounds")
    assert capsys.readouterr().err == "posing: 2 of 3, constraints and bounds, 2.0 s so far\n"
    with stages(0, "posing", 3) as begin:
        assert begin is None


def test_parts_of_a_stage_have_the_time_left(capsys, clock):
    with stages(1, "posing", 3) as begin:
        begin("prior or kernel, and basis")
        for _ in in_parts("abc", 3):
            for _ in in_parts("inner", 5):  # which nobody hears of
                clock(2.0)
    assert capsys.readouterr().err.splitlines() == [
        "posing: 1 of 3, prior or kernel, and basis: part 2 of 3, 20 s left",
        "posing: 1 of 3, prior or kernel, and basis: part 3 of 3, 10 s left",
    ]
    assert list(in_parts("after", 5)) == list("after") and capsys.readouterr().err == ""


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
    with shown_by(seen.append):
        MetricLearner(**settings, verbose=1).fit((X - X.mean(axis=0)) / X.std(axis=0), y)
    assert any(line.startswith(stage) for line in seen), seen
    assert max(map(len, seen)) <= 80


def test_whoever_asks_for_the_lines_gets_them_all(capsys):
    seen: list[str] = []
    with shown_by(seen.append):
        say("one")
        assert list(parts_of(["a", "b"], 1, "working", str)) == ["a", "b"]
    say("after")
    assert seen[0] == "one" and [line.split(",")[0] for line in seen[1:]] == ["working: 1 of 2", "working: 2 of 2"]
    assert capsys.readouterr().err == "after\n"


def test_a_handler_gets_lines_of_its_own_thread_alone(capsys):
    """One thread fits without a handler, one with its own, while a third has installed another."""
    X, y = load_wine(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    here: list[str] = []
    there: list[str] = []

    def fit(seen=None):
        with nullcontext() if seen is None else shown_by(seen.append):
            MetricLearner(verbose=2, random_state=0).fit(X, y)

    with shown_by(here.append), ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(fit), pool.submit(fit, there)]:
            done.result()
        assert here == []
        fit()
    assert any(line.startswith("learning") for line in here) and len(there) == len(here)
    assert "learning" in capsys.readouterr().err


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_folds_worked_on_at_once_report_to_the_caller(capfd, backend):
    """joblib asks for more work from threads of its own; what they show is the caller's."""
    X, y = load_wine(return_X_y=True)
    seen: list[str] = []
    learner = MetricLearnerCV(gammas=[0.1], strategy="random", n_jobs=2, verbose=1)
    with shown_by(seen.append), parallel_config(backend=backend):
        learner.fit((X - X.mean(axis=0)) / X.std(axis=0), y)
    choosing = [line for line in seen if line.startswith("choosing")]
    assert len(choosing) == len(learner.cv_results_["scores"][0]) * 2  # folds × priors
    assert "choosing" not in capfd.readouterr().err


def test_a_slow_kernel_shows_how_far_it_is(capsys, clock):
    X, y = load_wine(return_X_y=True)

    def slow(A, B):
        clock(0.5 * (len(A) >= 78))  # of the matrix of all rows; not of pairs that bounds are taken from
        return A @ B.T / 1e5 + np.exp(-1e-5 * cdist(A, B, "sqeuclidean"))

    MetricLearner(kernel=slow, verbose=1, random_state=0).fit(X, y)
    lines = [line for line in capsys.readouterr().err.splitlines() if "coordinates" in line]
    assert any("2 of 2" in line and "left" in line for line in lines), lines
