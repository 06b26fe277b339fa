"""Types as a program that is checked strictly sees them."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from reference import listed_names, thing_of

import mahalo

PROGRAM = """
from pathlib import Path

import numpy as np

import mahalo
from mahalo import Constraints, Metric, MetricLearner, MetricLearnerCV, OnlineMetricLearner
from mahalo.active import next_pairs
from mahalo.basis import BetweenBasis, Landmarks
from mahalo.cluster import MetricKMeans
from mahalo.compat import ITML
from mahalo.dedupe import Columns, Deduplicator, Duplicates, propose_pairs
from mahalo.embeddings import EmbeddingAdapter
from mahalo.features import Quadratic
from mahalo.feedback import QueryAdapter
from mahalo.kernels import PyramidMatch, UniformGrid
from mahalo.losses import Frobenius
from mahalo.pairs import PairClassifier
from mahalo.priors import Within
from mahalo.search import Index, build_index

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
index: Index = build_index(learner, X)
distances, rows = index.kneighbors(X[:3], k=2)
words: str = pairs.describe(0)
named: MetricLearner = MetricLearner(loss=Frobenius(), basis=BetweenBasis(3), prior=Within(), features=Quadratic())
sets: MetricLearner = MetricLearner(kernel=PyramidMatch(UniformGrid(finest=0.1, n_levels=3)), basis=Landmarks(9))
proofs: list[bool] = [certificate.converged for certificate in mahalo.metric_path(X, y).certificates]
table: str = str(mahalo.compare(X, y, {"mahalo": learner}))
ask: np.ndarray = next_pairs(learner, X, 5, known=pairs)
groups: np.ndarray = MetricKMeans(2, learner=learner).fit(X, constraints=pairs).labels_
same: np.ndarray = PairClassifier(learner).fit(X, y).predict_proba(X, ask)
queries: np.ndarray = QueryAdapter().fit(X[:2], X, [(0, 3), (1, 4)]).transform(X[:2])
old: ITML = ITML(random_state=0).fit(X[ask], np.ones(5))
columns: Columns = {"price": y}
candidates: np.ndarray = propose_pairs(columns, 10)
found: Duplicates = Deduplicator().fit(columns, candidates, np.ones(10)).find(columns)
"""
MISTAKES = """
wrong: str = learner.certificate_.relative_gap
metric.transfrom(X)
"""


def check(program: str, folder: Path) -> list[str]:
    """Return the errors and notes of a strict check."""
    (folder / "program.py").write_text(program, encoding="utf-8")
    options = ["--strict", "--config-file=", "--ignore-missing-imports", "--follow-imports=silent"]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, "--cache-dir", folder.parent / "cache", "program.py"],
        cwd=folder,
        env=os.environ | {"MYPYPATH": _search_path()},
        capture_output=True,
        encoding="utf-8",
    )
    assert done.returncode in (0, 1), done.stderr
    return [line for line in done.stdout.splitlines() if line.startswith("program.py")]


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


# -- what public names are -----------------------------------------------------------------------------------

# What pandas and scipy make has no types, and what scikit-learn adds while a program runs no checker can see.
UNTYPED = re.compile(r"\b(DataFrame|csr_array|csc_array|sparray|Matrix)\b")
ROUTING = re.compile(r"set_\w+_request")


def public_expressions() -> dict[str, str]:
    """Return expressions for all that the reference lists and for members of its classes, with their annotations."""
    found = {}
    for name in listed_names():
        thing = thing_of(name)
        if not inspect.isclass(thing):
            found[name] = str(getattr(thing, "__annotations__", {}).get("return", ""))
            continue
        found[name] = ""
        arguments = ", ".join("np.ndarray" for _ in getattr(thing, "__parameters__", ()))
        instance = f"cast({name}[{arguments}], None)" if arguments else f"cast({name}, None)"
        ours = [base for base in inspect.getmro(thing) if base.__module__.startswith("mahalo.")]
        found |= {f"{instance}.{member}": said for base in ours for member, said in annotated_members(base).items()}
    return found


def annotated_members(kind: type) -> dict[str, str]:
    """Return the public members that a class defines itself, with the annotation of what each is or returns."""
    said = {name: str(annotation) for name, annotation in inspect.get_annotations(kind).items()}
    for name, member in vars(kind).items():
        for attribute in ("fget", "func", "__func__"):  # of a property, a cached one, a class method
            member = getattr(member, attribute, member)
        if inspect.isfunction(member):
            said[name] = str(member.__annotations__.get("return", ""))
    return {name: kind for name, kind in said.items() if not name.startswith("_") and not ROUTING.fullmatch(name)}


def result_of(revealed: str) -> str:
    """Return the result of a function that mypy revealed, or the type of anything else."""
    return revealed.rpartition("-> ")[2] if revealed.startswith(("def ", "Overload")) else revealed


@pytest.mark.slow
def test_nothing_public_is_of_an_unknown_type(tmp_path):
    pytest.importorskip("mypy")
    expressions = public_expressions()
    rooms = sorted({name.rpartition(".")[0] for name in listed_names()})
    lines = ["from typing import cast", "import numpy as np", *(f"import {room}" for room in rooms)]
    lines += [f"reveal_type({expression})" for expression in expressions]
    notes = check("\n".join(lines), tmp_path)
    revealed = [re.fullmatch(r'program\.py:\d+: note: Revealed type is "(.*)"', note)[1] for note in notes]
    unknown = [
        expression
        for (expression, said), kind in zip(expressions.items(), revealed, strict=True)
        if "Any" in result_of(kind).split(" | ") and not UNTYPED.search(said)
    ]
    assert not unknown
