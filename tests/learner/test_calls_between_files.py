"""Pairs of files of the library, one of which calls the other in a fit: few, so that a fit can be followed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from sklearn.datasets import load_iris

import mahalo
from mahalo import MetricLearner

PACKAGE = str(Path(mahalo.__file__).parent)


def calls_between_files(learner: MetricLearner) -> set[tuple[str, str]]:
    """(caller, callee) of each call from one file of the library to another during a fit."""
    found: set[tuple[str, str]] = set()

    def note(frame, event: str, argument: object) -> None:
        if event == "call" and frame.f_back is not None:
            caller, callee = frame.f_back.f_code.co_filename, frame.f_code.co_filename
            if caller != callee and caller.startswith(PACKAGE) and callee.startswith(PACKAGE):
                found.add((caller[len(PACKAGE) + 1 :], callee[len(PACKAGE) + 1 :]))

    X, y = load_iris(return_X_y=True)
    before = sys.getprofile()
    sys.setprofile(note)
    try:
        learner.fit(X, y)
    finally:
        sys.setprofile(before)
    return found


@pytest.mark.parametrize(("kernel", "most"), [("linear", 60), ("rbf", 67)])
def test_a_fit_crosses_few_files(kernel, most):
    found = calls_between_files(MetricLearner(kernel=kernel))
    assert ("learner.py", "task/task.py") in found and ("solvers/choice.py", "solvers/newton.py") in found
    assert len(found) <= most, sorted(found)
