"""Files that are written are never those that are read; a reader who goes away is no error."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

COMMANDS = [
    ("transform", "m.safetensors", "trees.csv", "--out", "trees.csv"),
    ("transform", "m.safetensors", "trees.csv", "--out", "linked.csv"),
    ("transform", "m.safetensors", "trees.csv", "--out", "symbolic.csv"),
    ("transform", "m.safetensors", "./*.csv", "--out", "trees.csv"),
    ("fit", "trees.csv", "--label", "kind", "--ids", "m.safetensors", "--out", "m.safetensors"),
    ("neighbors", "m.safetensors", "--index", "trees.csv", "--out", "trees.csv"),
    ("neighbors", "m.safetensors", "--index", "trees.csv", "--query", "new.csv", "--out", "new.csv"),
    ("neighbors", "m.safetensors", "--index", "trees.csv", "--index-ids", "names.csv", "--out", "names.csv"),
    ("index", "m.safetensors", "trees.csv", "--out", "m.safetensors"),
    ("report", "m.safetensors", "--data", "trees.csv", "--ids", "names.html", "--out", "names.html"),
    ("pairs", "trees.csv", "--label", "kind", "--ask", "asked.csv", "--out", "asked.csv"),
    ("pairs", "trees.csv", "--model", "m.safetensors", "--ask", "asked.csv", "--out", "trees.csv"),
]


@pytest.fixture
def folder(model):
    for name in ("new.csv", "names.csv", "names.html", "asked.csv"):
        Path(name).write_text("here\nfirst\n")
    os.link("trees.csv", "linked.csv")
    os.symlink("trees.csv", "symbolic.csv")
    return model.parent


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("force", [(), ("--force",)], ids=["", "force"])
def test_no_command_writes_over_what_it_reads(run, folder, command, force):
    before = {path: path.read_bytes() for path in folder.iterdir()}
    code, out, err = run(*command, *force)
    assert (code, out) == (2, "") and err.count("\n") == 1
    assert "is a file that is read from" in err and "give another --out" in err
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_export_does_not_write_over_the_model(run, folder):
    os.link("m.safetensors", "m.npy")
    code, _, err = run("export", "m.safetensors", "--out", "m.npy", "--force")
    assert code == 2 and "is a file that is read from (m.safetensors)" in err


@pytest.mark.parametrize("command", [("fit", "--out", "n.safetensors"), ("evaluate",)])
def test_a_log_is_not_added_to_a_file_that_is_read(run, folder, command):
    before = Path("trees.csv").read_bytes()
    name, *more = command
    code, _, err = run(
        name, "trees.csv", "--label", "kind", "--drop", "name", "--gamma", "1", *more, "--log", "trees.csv"
    )
    assert code == 2 and "--log trees.csv is a file that is read from" in err
    assert Path("trees.csv").read_bytes() == before


# -- readers that go away ------------------------------------------------------------------------------------------


def run_without_reader(*arguments: str, errors: bool = False) -> tuple[int, str]:
    """Exit code and standard error of a command whose output, and errors too, nobody reads."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "mahalo.cli", *arguments],
            stdout=writer,
            stderr=writer if errors else subprocess.PIPE,
            text=True,
            timeout=300,
        )
    finally:
        os.close(writer)
    return done.returncode, "" if errors else done.stderr


@pytest.mark.parametrize(
    "command",
    [
        ("neighbors", "m.safetensors", "--index", "trees.csv", "-k", "2"),
        ("neighbors", "m.safetensors", "--index", "many.csv", "-k", "10"),
        ("neighbors", "m.safetensors", "--index", "trees.csv", "--json"),
        ("evaluate", "trees.csv", "--label", "kind", "--drop", "name", "--gamma", "1"),
        ("fit", "--help"),
    ],
    ids=["little", "much", "json", "a table", "help"],
)
def test_a_reader_who_goes_away_is_no_error(folder, command):
    rng = np.random.default_rng(0)
    lines = [f"s{k},{a:.4f},{b:.4f},{c:.4f}" for k, (a, b, c) in enumerate(rng.standard_normal((2000, 3)))]
    Path("many.csv").write_text("\n".join(["name,width,height,depth", *lines]) + "\n")
    assert run_without_reader(*command) == (0, "")


def test_work_is_done_where_nobody_reads_what_is_said(folder):
    code, _ = run_without_reader(
        "neighbors", "m.safetensors", "--index", "trees.csv", "-k", "99", "--out", "near.csv", errors=True
    )
    assert code == 0
    assert len(Path("near.csv").read_text().splitlines()) == 1 + 40 * 39
