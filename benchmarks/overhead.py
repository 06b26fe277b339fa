"""What mahalo costs before it does anything hard: its import, its help, and a fit on iris."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from sklearn.datasets import load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

import mahalo
from mahalo import MetricLearner

from .report import Check, Report, Table
from .settings import ROOT, Settings
from .timing import alternate

__all__ = ["run"]


def run(settings: Settings) -> Report:
    with _plain_installation() as folder:
        ours, reference = _import_seconds(folder, rounds=9 if settings.quick else 21)
        help_ours, help_reference = _help_seconds(folder, rounds=5 if settings.quick else 15)
    fit = _fit_seconds(rounds=21 if settings.quick else 201)
    rows = (
        ("import mahalo.selection, against import sklearn.neighbors", 1e3 * ours, 1e3 * reference),
        ("mahalo --help, against that of a typer application of two commands", 1e3 * help_ours, 1e3 * help_reference),
        ("fit on iris, against LinearDiscriminantAnalysis", 1e3 * fit["ours"], 1e3 * fit["reference"]),
    )
    return Report(
        name="overhead",
        checks=(
            Check("import, times import sklearn.neighbors", ours / reference, 1.3, at_least=False),
            Check("--help, times that of two commands", help_ours / help_reference, 1.5, at_least=False),
            Check("fit on iris, times LDA's", fit["ours"] / fit["reference"], 3.0, at_least=False),
        ),
        tables=(Table("medians", ("", "mahalo (ms)", "reference (ms)"), rows),),
        notes=("imports: in fresh interpreters that take turns, from a plain installation",),
    )


def _fit_seconds(rounds: int) -> dict[str, float]:
    X, y = load_iris(return_X_y=True)
    tasks = {
        "ours": lambda: MetricLearner().fit(X, y),
        "reference": lambda: LinearDiscriminantAnalysis().fit(X, y),
    }
    return alternate(tasks, rounds)


@contextmanager
def _plain_installation() -> Iterator[Path | None]:
    """A folder with mahalo as users have it, if the one in use is editable; else None.

    An editable installation checks at every import whether anything must be compiled again.
    """
    if "importlib" in type(mahalo.__spec__.loader).__module__ or mahalo.__spec__.loader is None:  # Python's own
        yield None
        return
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
        subprocess.run([*command, "--target", folder, str(ROOT)], check=True, capture_output=True, env=_with_tools())
        yield Path(folder)


def _with_tools() -> dict[str, str]:
    """The environment, with this interpreter's own tools (ninja, cython) to be found first."""
    return os.environ | {"PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])}


def _import_seconds(folder: Path | None, rounds: int) -> tuple[float, float]:
    """Median seconds of `import mahalo.selection` and `import sklearn.neighbors`; one round warms the disk."""
    modules = ("mahalo.selection", "sklearn.neighbors")  # `import mahalo` alone waits for the first name that is used
    taken = [[_import_once(module, folder) for module in modules] for _ in range(rounds + 1)][1:]
    ours, reference = zip(*taken, strict=True)
    return median(ours), median(reference)


_TWO_COMMANDS = """
import typer
app = typer.Typer()
@app.command()
def one(number: int = 1): "One."
@app.command()
def two(number: int = 2): "Two."
app(["--help"])
"""


def _help_seconds(folder: Path | None, rounds: int) -> tuple[float, float]:
    """Median seconds, from the start of Python to its end, of our --help and of that of a small application."""
    programs = ("from mahalo.cli import main; main(['--help'])", _TWO_COMMANDS)
    taken = [[_seconds_of(program, folder) for program in programs] for _ in range(rounds + 1)][1:]
    ours, reference = zip(*taken, strict=True)
    return median(ours), median(reference)


def _seconds_of(program: str, folder: Path | None) -> float:
    began = time.perf_counter()
    _run(program, folder)
    return time.perf_counter() - began


def _import_once(module: str, folder: Path | None) -> float:
    code = f"import time; start = time.perf_counter(); import {module}; print(time.perf_counter() - start)"
    return float(_run(code, folder))


def _run(code: str, folder: Path | None) -> str:
    """What a program prints in a fresh interpreter.

    Without site, no hook of an editable installation gets in; so the packages' folders are named.
    """
    paths = [str(folder)] if folder else []
    paths += dict.fromkeys([sysconfig.get_path("purelib"), sysconfig.get_path("platlib")])
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        cwd=tempfile.gettempdir(),
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout
