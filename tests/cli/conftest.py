"""A small table on disk, a model fitted on it, and the command line as a function."""

from __future__ import annotations

import numpy as np
import pytest

from mahalo.cli.app import main

pa = pytest.importorskip("pyarrow")
from pyarrow import csv  # noqa: E402


def table(n: int = 40, seed: int = 0) -> dict[str, list]:
    """Two kinds of things, apart in one of three columns of very different units."""
    rng = np.random.default_rng(seed)
    kind = np.arange(n) % 2
    return {
        "name": [f"r{k}" for k in range(n)],
        "width": (1e3 * (kind + 0.4 * rng.standard_normal(n))).round(3).tolist(),
        "height": (5e4 + rng.standard_normal(n)).round(5).tolist(),
        "depth": (1e-3 * rng.standard_normal(n)).round(7).tolist(),
        "kind": ["oak" if k else "elm" for k in kind],
    }


def write_csv(path, columns: dict[str, list]):
    csv.write_csv(pa.table(columns), path)
    return path


@pytest.fixture
def run(capsys):
    """(exit code, what was printed, what was said on standard error) of a command."""

    def of(*arguments):
        with pytest.raises(SystemExit) as stopped:
            main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return stopped.value.code, out, err

    return of


@pytest.fixture
def trees(tmp_path, monkeypatch):
    """The folder to work in, with trees.csv."""
    monkeypatch.chdir(tmp_path)
    return write_csv(tmp_path / "trees.csv", table())


@pytest.fixture
def model(trees, run):
    code, _, err = run("fit", "trees.csv", "--label", "kind", "--id", "name", "--gamma", "1", "--out", "m.safetensors")
    assert code == 0, err
    return trees.parent / "m.safetensors"
