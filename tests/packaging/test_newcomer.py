"""A newcomer's first minutes: the wheel into a clean environment without a compiler, then from rows to neighbours.

Runs on the packages in `dist`, which `make wheel` and `make test-all` make.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import tarfile
import time
import venv
import zipfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

DIST = Path(__file__).parents[2] / "dist"
SMOKE = Path(__file__).with_name("smoke.py")
MOST_SECONDS = 600
ASSETS = ["report/templates/page.html"]
ASSETS += [f"{name}.{kind}" for name in ("report/assets/page", "drawing/assets/charts") for kind in ("css", "js")]

pytestmark = pytest.mark.slow


def only(pattern: str) -> Path:
    found = sorted(DIST.glob(pattern))
    if not found:
        pytest.skip(f"no {pattern} in dist: make wheel")
    assert len(found) == 1, f"several packages, of which one is old: {found}"
    return found[0]


@pytest.fixture(scope="module")
def wheel() -> Path:
    return only(f"mahalo-*-cp{sys.version_info.major}{sys.version_info.minor}-*.whl")


class CleanEnvironment:
    """A virtual environment of its own, where no compiler is found."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.programs = folder / "env" / "bin"
        no_compiler = {"PATH": str(self.programs), "CC": "/bin/false", "CXX": "/bin/false"}
        self.variables = {**os.environ, **no_compiler, "MPLCONFIGDIR": str(folder)}
        self.variables.pop("PYTHONPATH", None)
        folder.mkdir(exist_ok=True)
        venv.create(folder / "env", with_pip=True)

    def run(self, program: str, *arguments: object) -> str:
        begun = time.perf_counter()
        done = subprocess.run(
            [self.programs / program, *map(str, arguments)],
            cwd=self.folder,
            env=self.variables,
            capture_output=True,
            encoding="utf-8",
            timeout=MOST_SECONDS,
        )
        assert done.returncode == 0, f"{program} {arguments}\n{done.stdout}\n{done.stderr}"
        print(f"{time.perf_counter() - begun:6.1f} s  {program} {' '.join(map(str, arguments))[:90]}")
        return done.stdout


def neighbours(clean: CleanEnvironment, model: str, index: str, query: str) -> list[list]:
    answer = json.loads(clean.run("mahalo", "neighbors", model, "--index", index, "--query", query, "-k", 5, "--json"))
    return [row["neighbors"] for row in answer["neighbors"]]


def majority(labels: Iterable) -> object:
    return Counter(labels).most_common(1)[0][0]


# -- what is in the packages ---------------------------------------------------------------------------------


def test_the_wheel_is_for_many_linuxes_and_whole(wheel):
    assert "manylinux" in wheel.name
    names = zipfile.ZipFile(wheel).namelist()
    assert {"mahalo/py.typed", *(f"mahalo/{name}" for name in ASSETS)} <= set(names)
    compiled = {Path(name).name.partition(".")[0] for name in names if name.endswith(".so")}
    sources = Path(__file__).parents[2] / "src" / "mahalo"
    assert compiled == {path.stem for path in (sources / "_core").glob("*.pyx")}
    assert not [name for name in names if name.endswith((".pyx", ".pxd", ".h", ".c", "meson.build"))]
    ours = {f"mahalo/{path.relative_to(sources).as_posix()}" for path in sources.rglob("*.py")}
    assert ours == {name for name in names if name.endswith(".py")}


def test_the_sdist_has_what_a_build_needs():
    with tarfile.open(only("mahalo-*.tar.gz")) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    needed = {"pyproject.toml", "meson.build", "meson.options", "README.md", "LICENSE", "PKG-INFO"}
    assert needed | {f"src/mahalo/{name}" for name in ("_core/kernels.h", *ASSETS)} <= names


# -- the first minutes ---------------------------------------------------------------------------------------


def test_a_newcomer_has_neighbours_within_ten_minutes(wheel, wine, tmp_path):
    begun = time.perf_counter()
    clean = CleanEnvironment(tmp_path)
    wanted = f"{wheel}[cli,tables,report,plots,search]"
    clean.run("python", "-m", "pip", "install", "--quiet", "--only-binary=:all:", wanted)
    check_clean(clean)
    from_a_csv(clean, *wine)
    from_a_folder_of_embeddings(clean, *load_digits(return_X_y=True))
    seconds = time.perf_counter() - begun
    print(f"{seconds:6.1f} s  in all")
    assert seconds < MOST_SECONDS


def check_clean(clean: CleanEnvironment) -> None:
    look = "import shutil, mahalo; print(shutil.which('cc'), shutil.which('gcc'), mahalo.__file__)"
    cc, gcc, installed = clean.run("python", "-c", look).split()
    assert (cc, gcc) == ("None", "None")
    assert Path(installed).is_relative_to(clean.folder)
    assert clean.run("python", SMOKE).endswith(": good\n")
    assert "--out" in clean.run("mahalo", "demo", "--help")


def from_a_csv(clean: CleanEnvironment, X: np.ndarray, y: np.ndarray) -> None:
    new = [0, 50, 100, 150, 177]
    for file, rows in {"wine.csv": [i for i in range(len(y)) if i not in new], "new.csv": new}.items():
        with open(clean.folder / file, "w", newline="", encoding="utf-8") as out:
            table = csv.writer(out)
            table.writerow(["bottle", *(f"measure {k}" for k in range(X.shape[1])), "cultivar"])
            table.writerows([f"b{i}", *X[i], f"kind {y[i]}"] for i in rows)

    clean.run("mahalo", "fit", "wine.csv", "--label", "cultivar", "--id", "bottle", "--out", "wine.safetensors")
    clean.run("mahalo", "report", "wine.safetensors", "--data", "wine.csv", "--out", "wine.html")
    page = (clean.folder / "wine.html").read_text(encoding="utf-8")
    assert "</html>" in page and "measure 12" in page

    clean.run("mahalo", "index", "wine.safetensors", "wine.csv", "--out", "wine-index.safetensors")
    found = neighbours(clean, "wine.safetensors", "wine-index.safetensors", "new.csv")
    assert found == neighbours(clean, "wine.safetensors", "wine.csv", "new.csv")
    assert [majority(y[int(name[1:])] for name in names) for names in found] == list(y[new])


def from_a_folder_of_embeddings(clean: CleanEnvironment, E: np.ndarray, y: np.ndarray) -> None:
    (clean.folder / "vectors").mkdir()
    for k in range(4):
        np.save(clean.folder / "vectors" / f"part-{k}.npy", E[150 * k : 150 * (k + 1)].astype(np.float32))
    np.save(clean.folder / "labels.npy", y[:600])
    np.save(clean.folder / "queries.npy", E[600:605].astype(np.float32))

    told = ["--labels", "labels.npy"]
    clean.run("mahalo", "fit", "vectors", *told, "--embeddings", "--out", "digits.safetensors")
    clean.run("mahalo", "report", "digits.safetensors", "--data", "vectors", *told, "--out", "digits.html")
    assert "</html>" in (clean.folder / "digits.html").read_text(encoding="utf-8")

    index = "digits-index.safetensors"
    clean.run("mahalo", "index", "digits.safetensors", "vectors", "--out", index, "--backend", "faiss")
    found = neighbours(clean, "digits.safetensors", index, "queries.npy")
    assert [majority(y[int(row)] for row in rows) for rows in found] == list(y[600:605])


# -- an exported graph where nothing of ours is --------------------------------------------------------------

RUN_GRAPH = """
import importlib.util
import numpy as np
import onnxruntime

assert not any(importlib.util.find_spec(name) for name in ("mahalo", "onnx", "sklearn", "scipy"))
session = onnxruntime.InferenceSession("wine.onnx", providers=["CPUExecutionProvider"])
(found,) = session.run(["transformed"], {"X": np.load("rows.npy")})
np.save("found.npy", found)
"""


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_an_exported_graph_runs_where_only_onnxruntime_is(wheel, wine, tmp_path, kernel):
    X, y = wine
    ours, theirs = CleanEnvironment(tmp_path / "ours"), CleanEnvironment(tmp_path / "theirs")
    ours.run("python", "-m", "pip", "install", "--quiet", "--only-binary=:all:", f"{wheel}[cli,tables,onnx]")
    np.save(ours.folder / "rows.npy", X.astype(np.float32))
    np.save(ours.folder / "labels.npy", y)
    given = ["--labels", "labels.npy", "--kernel", kernel, "--gamma", 1]
    ours.run("mahalo", "fit", "rows.npy", *given, "--out", "wine.safetensors")
    ours.run("mahalo", "export", "wine.safetensors", "--onnx", "--out", "wine.onnx")
    ours.run("mahalo", "transform", "wine.safetensors", "rows.npy", "--out", "wanted.npy")

    theirs.run("python", "-m", "pip", "install", "--quiet", "--only-binary=:all:", "onnxruntime")
    for name in ("rows.npy", "wine.onnx"):
        (theirs.folder / name).write_bytes((ours.folder / name).read_bytes())
    theirs.run("python", "-c", RUN_GRAPH)
    found, wanted = np.load(theirs.folder / "found.npy"), np.load(ours.folder / "wanted.npy")
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5 * np.abs(wanted).max())
