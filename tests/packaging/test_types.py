"""Types as a program that is checked strictly sees them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import mahalo

PROGRAM = """
from pathlib import Path

import numpy as np

import mahalo
from mahalo import Constraints, Metric, MetricLearner, MetricLearnerCV, OnlineMetricLearner
from mahalo.embeddings import EmbeddingAdapter
from mahalo.search import build_index

X = np.ones((60, 4))
y = np.ones(60)
learner: MetricLearner = MetricLearner(prior="within", gamma=2.0).fit(X, y, sample_weight=np.ones(60))
metric: Metric = learner.metric_
gap: float = learner.certificate_.relative_gap
Z: np.ndarray = metric.transform(X)
D: np.ndarray = metric.distances(X, squared=True)
metric.save(Path("m.safetensors"))
metric.to_onnx("m.onnx")
loaded: Metric = mahalo.load("m.safetensors")
pairs: Constraints = Constraints.from_pairs([[0, 1]], [[0, 2]]) + Constraints.from_triplets([[0, 1, 2]])
chosen: MetricLearnerCV = MetricLearnerCV(gammas=[0.1, 1.0]).fit(X, y)
adapter: EmbeddingAdapter = EmbeddingAdapter().fit(X, y)
online: OnlineMetricLearner = OnlineMetricLearner().partial_fit(X, y)
distances, rows = build_index(learner, X).kneighbors(X[:3], k=2)
"""
MISTAKES = """
wrong: str = learner.certificate_.relative_gap
metric.transfrom(X)
"""


def check(program: str, folder: Path) -> list[str]:
    (folder / "program.py").write_text(program, encoding="utf-8")
    options = ["--strict", "--config-file=", "--ignore-missing-imports", "--follow-imports=silent"]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, "--cache-dir", folder / "cache", "program.py"],
        cwd=folder,
        env=os.environ | {"MYPYPATH": _search_path()},
        capture_output=True,
        encoding="utf-8",
    )
    assert done.returncode in (0, 1), done.stderr
    return [line for line in done.stdout.splitlines() if "error:" in line]


def _search_path() -> str:
    """Where the package is, unless it is installed: mypy finds that by itself, and refuses to be told."""
    folder = Path(mahalo.__file__).parents[1]
    return "" if folder.name == "site-packages" else str(folder)


@pytest.mark.slow
def test_a_strictly_checked_program_has_types_and_is_told_its_mistakes(tmp_path):
    pytest.importorskip("mypy")
    assert check(PROGRAM, tmp_path) == []
    mistakes = check(PROGRAM + MISTAKES, tmp_path)
    assert len(mistakes) == 2 and "[assignment]" in mistakes[0] and "[attr-defined]" in mistakes[1]
