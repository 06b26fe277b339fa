"""A small table on disk, a model fitted on it, and the command line as a function."""

from __future__ import annotations

import contextlib
import shutil

import numpy as np
import pytest

from mahalo.cli.app import main
from mahalo.explain.encoder_record import EncoderRecord
from mahalo.text.backends import CallableModel

pa = pytest.importorskip("pyarrow")
from pyarrow import csv  # noqa: E402
from sentence_tables import FIT_TEXTS, WORDS, WordCounts, sentences, write_sentences  # noqa: E402


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


@pytest.fixture(autouse=True)
def no_progress_on_slow_machines(monkeypatch):
    """What a command prints does not depend on its time; tests of progress set the patience they need."""
    monkeypatch.setattr("mahalo.cli.progress._PATIENCE", 3600.0)


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


@pytest.fixture(scope="session")
def fitted_model(tmp_path_factory):
    """A file of the model of trees.csv, fitted once."""
    folder = tmp_path_factory.mktemp("fitted")
    write_csv(folder / "trees.csv", table())
    with contextlib.chdir(folder), pytest.raises(SystemExit) as stopped:
        main(["fit", "trees.csv", "--label", "kind", "--id", "name", "--gamma", "1", "--out", "m.safetensors"])
    assert stopped.value.code == 0
    return folder / "m.safetensors"


@pytest.fixture
def model(trees, fitted_model):
    return shutil.copy(fitted_model, trees.parent / "m.safetensors")


@pytest.fixture
def counts(tmp_path, monkeypatch):
    """Word counts in the place of wordllama, and in a folder called `other` in that of a model; an empty cache."""
    encoder = WordCounts()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MAHALO_CACHE_DIR", str(tmp_path / "vectors"))
    size = len(WORDS)
    made = {"wordllama": CallableModel(EncoderRecord("wordllama", "1", size), encoder)}
    made["folder"] = CallableModel(EncoderRecord("other", "2", size), encoder)
    monkeypatch.setattr("mahalo.text.encoder.load_wordllama", lambda: made["wordllama"])
    monkeypatch.setattr("mahalo.text.encoder.load_folder", lambda folder: made["folder"])
    write_sentences(sentences())
    return encoder


@pytest.fixture
def text_model(counts, run):
    code, _, err = run("fit", "t.csv", *FIT_TEXTS)
    assert code == 0, err
    return "m.safetensors"
