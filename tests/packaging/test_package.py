"""What the package says of itself, and what of it works with nothing but what `pip install mahalo` brings."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from running import run_python

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]


def name_of(requirement: str) -> str:
    return re.match(r"[\w.-]+", requirement)[0]


def test_the_core_needs_four_packages():
    assert {name_of(r) for r in PROJECT["dependencies"]} == {"numpy", "scipy", "scikit-learn", "safetensors"}


@pytest.mark.parametrize(
    "extra", ["cli", "tables", "text", "plots", "report", "experiments", "docs", "test", "lint", "all"]
)
def test_the_extra_exists(extra):
    assert PROJECT["optional-dependencies"][extra]


def test_extras_name_extras_that_exist():
    extras = PROJECT["optional-dependencies"]
    for name, requirements in extras.items():
        for inner in re.findall(r"mahalo\[(.*?)\]", " ".join(requirements)):
            assert set(inner.split(",")) <= set(extras) - {name}


def test_all_is_all():
    extras = PROJECT["optional-dependencies"]
    (everything,) = extras["all"]
    large = {"recipes", "integrations", *re.findall(r"[\w-]+", extras["integrations"][0].partition("[")[2])}
    assert set(re.fullmatch(r"mahalo\[(.*)\]", everything)[1].split(",")) == set(extras) - {"all"} - large


def test_the_version_is_the_same_everywhere():
    said = {
        "meson.build": re.search(r"version: '(.*?)'", (ROOT / "meson.build").read_text(encoding="utf-8"))[1],
        "CITATION.cff": re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), flags=re.M)[
            1
        ],
    }
    assert said == dict.fromkeys(said, PROJECT["version"])


def test_the_workflow_and_the_wheels_are_for_the_pythons_that_the_project_names():
    said = " ".join(PROJECT["classifiers"])
    pythons = re.findall(r"Python :: (3\.\d+)", said)
    assert PROJECT["requires-python"] == f">={pythons[0]}"
    wheels = PYPROJECT["tool"]["cibuildwheel"]["build"]
    assert wheels == [f"cp{version.replace('.', '')}-*" for version in pythons]
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    matrices = re.findall(r"python: \[(.*)\]", workflow)
    assert len(matrices) == 2
    assert all(re.findall(r"3\.\d+", matrix) == pythons for matrix in matrices)


def test_the_wheels_are_tried_with_a_program_that_exists_and_works():
    command = PYPROJECT["tool"]["cibuildwheel"]["test-command"].replace("{project}", str(ROOT))
    interpreter, program = command.split()
    assert interpreter == "python"
    done = run_python(program, cwd=ROOT)
    assert done.returncode == 0, done.stderr


# Installed packages that neither the core nor what it depends on asks for are hidden, as if they were not there.
CORE_ALONE = """
import importlib, importlib.metadata, pkgutil, re, sys
from importlib.machinery import PathFinder

core, more = set(), ["numpy", "scipy", "scikit-learn", "safetensors"]
while more:
    name = more.pop().lower()
    if name not in core:
        core.add(name)
        needs = importlib.metadata.requires(name) or []
        more += [re.match(r"[\\w.-]+", need)[0] for need in needs if "extra ==" not in need]

hidden = {
    module
    for module, owners in importlib.metadata.packages_distributions().items()
    if not {owner.lower() for owner in owners} & (core | {"mahalo"})
}
assert {"typer", "rich", "pandas", "pyarrow", "matplotlib"} <= hidden, "the test must have something to hide"


class CoreFinder(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in hidden else super().find_spec(name, path, target)


for name in [name for name in sys.modules if name.partition(".")[0] in hidden]:
    del sys.modules[name]
sys.meta_path[:] = [CoreFinder if finder is PathFinder else finder for finder in sys.meta_path]
"""

EVERY_ROOM = """
import mahalo
for found in pkgutil.walk_packages(mahalo.__path__, "mahalo."):
    if found.name.startswith("mahalo.integrations."):
        try:
            importlib.import_module(found.name)
        except ImportError as error:
            assert 'pip install "mahalo[' in str(error), error
    elif not found.name.startswith(
        ("mahalo.cli.", "mahalo.rows.dask", "mahalo.metric.torch_module", "mahalo.serving.", "mahalo.studio.server")
        + ("mahalo.web",)
    ):  # need extras
        importlib.import_module(found.name)
"""

A_FIT = """
import numpy as np
import mahalo
from sklearn.datasets import load_iris

X, y = load_iris(return_X_y=True)
learner = mahalo.MetricLearnerCV(verbose=1).fit(X, y)
learner.metric_.save("iris.safetensors")
again = mahalo.load("iris.safetensors")
np.testing.assert_array_equal(again.distances(X[:5], X), learner.metric_.distances(X[:5], X))
curved = mahalo.MetricLearner(kernel="rbf").fit(X, y)
print(learner.certificate_.converged, curved.score(X, y))
"""

THE_COMMAND = """
from mahalo.cli import main
main(["--help"])
"""


def test_the_core_imports_without_extras(tmp_path):
    done = run_python("-c", CORE_ALONE + EVERY_ROOM, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_the_core_learns_without_extras(tmp_path):
    done = run_python("-c", CORE_ALONE + A_FIT, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[-2] == "True"


def test_the_command_says_what_it_needs(tmp_path):
    done = run_python("-c", CORE_ALONE + THE_COMMAND, cwd=tmp_path)
    assert done.returncode == 1
    assert 'pip install "mahalo[cli]"' in done.stderr


ROOMS = ["active", "cluster", "compat", "embeddings", "pairs", "report", "search"]
EACH_ROOM_FIRST = f"""
import sys
for room in {ROOMS}:
    for name in [name for name in sys.modules if name.startswith("mahalo") and not name.startswith("mahalo._core.")]:
        del sys.modules[name]
    import mahalo
    assert f"mahalo.{{room}}" not in sys.modules
    print(getattr(mahalo, room).__name__, room in dir(mahalo))
"""


def test_rooms_need_no_import_of_their_own():
    done = run_python("-c", EACH_ROOM_FIRST, cwd=ROOT)
    assert done.stdout.splitlines() == [f"mahalo.{room} True" for room in ROOMS], done.stderr
