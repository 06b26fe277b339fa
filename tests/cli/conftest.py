"""A small table on disk, a model fitted on it, and the command line as a function."""

from __future__ import annotations

import contextlib
import shutil

import pytest

from mahalo.cli.app import main
from mahalo.explain.encoder_record import EncoderRecord
from mahalo.text.backends import CallableModel

pytest.importorskip("pyarrow")
from csv_tables import table, write_csv
from sentence_tables import FIT_TEXTS, WORDS, WordCounts, sentences, write_sentences


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
