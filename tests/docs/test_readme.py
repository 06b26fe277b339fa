"""The README shows what its Python prints, and its commands run in an empty folder."""

from __future__ import annotations

import importlib.util
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from mahalo.cli.app import main

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
NUMBER = r"\d+\.\d+"


@pytest.fixture
def make_output():
    spec = importlib.util.spec_from_file_location("make_output", ROOT / "docs" / "make_output.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_output_in_the_readme_is_that_of_a_run(make_output):
    """To a hundredth: the last digits are the machine's."""
    text = README.read_text(encoding="utf-8")
    shown, printed = make_output.shown(text), make_output.printed(text)
    layout = [re.sub(NUMBER, "#", one).replace("*", " ") for one in (shown, printed)]
    assert layout[0] == layout[1], "run docs/make_output.py"
    values = [np.array(re.findall(NUMBER, one), dtype=float) for one in (shown, printed)]
    np.testing.assert_allclose(*values, atol=0.01, err_msg="run docs/make_output.py")


def test_a_page_without_marks_for_output_is_refused(make_output):
    with pytest.raises(ValueError, match="must have <!-- output:start -->"):
        make_output.shown("no output here")


@pytest.fixture
def run_commands(tmp_path, monkeypatch, capsys):
    """Run the commands of a block of the page in an empty folder, and return the files that are there in the end."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MAHALO_CACHE_DIR", str(tmp_path / "vectors"))

    def run(table: str, names: list[str]) -> set[str]:
        blocks = re.findall(r"^```sh\n(.*?)^```", README.read_text(encoding="utf-8"), flags=re.M | re.S)
        (block,) = (one for one in blocks if f"--write {table}" in one)
        assert [line.split()[:2] for line in block.splitlines()] == [["mahalo", name] for name in names]
        for line in block.splitlines():
            _, *arguments = shlex.split(line, comments=True)
            with pytest.raises(SystemExit) as stopped:
                main(arguments)
            out, err = capsys.readouterr()
            assert stopped.value.code == 0, f"{line}\n{out}{err}"
        return {path.name for path in tmp_path.iterdir()}

    return run


def test_commands_on_a_table_run_in_an_empty_folder(run_commands):
    made = run_commands("wine.csv", ["demo", "evaluate", "fit", "neighbors", "report"])
    assert made >= {"wine.csv", "new-bottles.csv", "wine.safetensors", "wine.html"}


@pytest.mark.slow
def test_commands_on_sentences_run_in_an_empty_folder(run_commands):
    pytest.importorskip("wordllama")
    made = run_commands("questions.csv", ["demo", "evaluate", "fit", "search", "fit", "dedupe"])
    assert made >= {"questions.csv", "questions.safetensors", "queries.safetensors", "groups.csv"}


def test_the_readme_names_the_extras_that_its_commands_need():
    """In an environment with all extras the commands run whatever the page says."""
    text = README.read_text(encoding="utf-8")
    before_commands = text[: text.index("mahalo demo --write")]
    extras = re.findall(r'pip install "\.\[([a-z,]+)\]"', before_commands)
    assert [set(names.split(",")) for names in extras] == [{"tables", "report"}, {"cli", "tables", "report"}]
    assert 'pip install ".[cli,tables,report]"' in text[text.index("## Install") :]
