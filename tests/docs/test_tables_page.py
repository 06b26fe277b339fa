"""The page about tables on disk does what it says, command by command; the page about commands is up to date."""

from __future__ import annotations

import importlib.util
import re
import shlex
from pathlib import Path

import pytest
from sklearn.datasets import load_iris

from mahalo.cli.app import main

DOCS = Path(__file__).parents[2] / "docs"


def test_every_command_of_the_page_works(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = (DOCS / "tables.md").read_text(encoding="utf-8")
    namespace: dict = {}
    for language, block in re.findall(r"^```(python|sh)\n(.*?)^```", text, flags=re.M | re.S):
        if language == "python":
            exec(block, namespace)
            capsys.readouterr()
            continue
        for line in block.splitlines():
            program, *arguments = shlex.split(line, comments=True)
            assert program == "mahalo"
            with pytest.raises(SystemExit) as stopped:
                main(arguments)
            out, err = capsys.readouterr()
            assert stopped.value.code == 0, f"{line}\n{err}"
            assert out and ("--json" in line or max(map(len, out.splitlines())) <= 80)
    made = {path.name for path in tmp_path.iterdir()}
    assert made >= {"wine.safetensors", "moved.csv", "wine.html", "adapter.safetensors", "adapted.npy"}


def test_fit_prints_what_evaluate_prints_and_only_fit_writes(tmp_path, monkeypatch, capsys):
    assert "### Fit or evaluate?" in (DOCS / "tables.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    iris = load_iris(as_frame=True)
    iris.data.assign(species=iris.target_names[iris.target]).to_csv("iris.csv", index=False)
    printed = {}
    for command, *more in (["evaluate"], ["fit", "--out", "iris.safetensors"]):
        with pytest.raises(SystemExit) as stopped:
            main([command, "iris.csv", "--label", "species", "--gamma", "1", *more])
        assert stopped.value.code == 0
        printed[command] = capsys.readouterr().out.splitlines()
        assert Path("iris.safetensors").exists() == (command == "fit")
    assert "held-out" in " ".join(printed["evaluate"])
    assert not [line for line in printed["evaluate"] if line not in printed["fit"]]


def test_the_page_of_commands_is_made_from_them():
    spec = importlib.util.spec_from_file_location("make_cli", DOCS / "make_cli.py")
    make_cli = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make_cli)
    assert (DOCS / "cli.md").read_text(encoding="utf-8") == make_cli.page(), "run docs/make_cli.py"
