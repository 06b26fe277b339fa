"""What a fit of a table solves, and whose labels it doubts."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_wine

from mahalo.explain import Provenance
from mahalo.tables.dataset import load_dataset
from mahalo.tables.options import RowOptions
from mahalo.task import Task
from mahalo.workflows.estimation import FitOutcome, learn_metric
from mahalo.workflows.options import LearningOptions


@pytest.fixture
def solved(monkeypatch):
    """A list with one entry for each problem that is solved."""
    found = []
    solve = Task.solve

    def counted(self, *arguments, **options):
        found.append(self)
        return solve(self, *arguments, **options)

    monkeypatch.setattr(Task, "solve", counted)
    return found


@pytest.fixture
def wine(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y = load_wine(return_X_y=True)
    wrong = np.array([3, 40, 77, 110, 150])
    y = y.copy()
    y[wrong] = (y[wrong] + 1) % 3
    np.savez("wine.npz", X=X, y=y)
    return X, y, wrong


def fit(gamma: float | None) -> FitOutcome:
    dataset = load_dataset(RowOptions(data=["wine.npz"], label="y"))
    return learn_metric(dataset, LearningOptions(gamma=gamma))


def test_a_settled_fit_solves_one_problem_a_fold_and_its_own(wine, solved):
    assert fit(1.0).converged
    assert len(solved) == 9 + 1  # 178 rows: three folds, three times over


@pytest.mark.parametrize("gamma", [1.0, None])
def test_labels_are_doubted_by_the_metrics_of_the_evaluation(wine, gamma):
    _, _, wrong = wine
    noted = Provenance.of(fit(gamma).metric).notes["doubtful_rows"]
    assert noted["held_out"] and noted["judged"] == 178
    assert {entry["row"] for entry in noted["rows"][: len(wrong)]} == set(wrong.tolist())
