"""Standard input, separators and JSON lines on the command line."""

from __future__ import annotations

import io
import json
import sys
import tempfile
from pathlib import Path

import pytest
from csv_tables import table

import mahalo
from mahalo.explain import Provenance

FIT = ("--label", "kind", "--id", "name", "--gamma", "1", "--out", "piped.safetensors", "--json")


@pytest.fixture
def pipe(monkeypatch, tmp_path):
    """Set standard input; the folder of temporary files is empty when the test ends."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))

    def set_input(data: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))  # at its end after one reading

    yield set_input
    assert not list(folder.iterdir())


def json_lines() -> bytes:
    columns = table()
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def test_a_table_comes_through_a_pipe(trees, run, pipe):
    code, out, err = run("fit", "trees.csv", *FIT)
    assert code == 0, err
    from_file, model = json.loads(out), mahalo.load("piped.safetensors")
    pipe(trees.read_bytes())
    code, out, err = run("fit", "-", *FIT, "--force")
    assert code == 0, err
    assert json.loads(out) == from_file | {"data": "standard input"}
    piped = mahalo.load("piped.safetensors")
    assert (piped.matrix == model.matrix).all() and Provenance.of(piped).data.source == "standard input"
    assert Provenance.of(piped).data.fingerprint == Provenance.of(model).data.fingerprint


def test_the_next_command_names_no_temporary_file(trees, run, pipe):
    pipe(trees.read_bytes())
    _, out, _ = run("fit", "-", *FIT[:-1])
    assert "mahalo transform piped.safetensors DATA --out" in " ".join(out.split()) and "temporary" not in out


@pytest.mark.parametrize("option", ["--index", "--query"])
def test_rows_and_queries_come_through_a_pipe(trees, model, run, pipe, option):
    files = {"--index": "trees.csv", "--query": "trees.csv"}
    arguments = [word for pair in files.items() for word in pair]
    _, expected, _ = run("neighbors", model, *arguments, "-k", "2")
    pipe(trees.read_bytes())
    code, out, err = run(
        "neighbors", model, *(word for pair in (files | {option: "-"}).items() for word in pair), "-k", "2"
    )
    assert code == 0 and out == expected, err


def test_constraints_come_through_a_pipe(trees, run, pipe):
    pairs = "first,second,same\n" + "".join(f"r{k},r{k + 2},1\nr{k},r{k + 1},0\n" for k in range(30))
    pipe(pairs.encode())
    code, out, err = run(
        "evaluate", "trees.csv", "--id", "name", "--drop", "kind", "--pairs", "-", "--gamma", "1", "--json"
    )
    assert code == 0 and json.loads(out)["constraints"] == 60, err


@pytest.mark.parametrize(
    ("arguments", "data", "message"),
    [
        (("neighbors", "m.safetensors", "--index", "-", "--query", "-"), b"a\n1\n", "got - for two files"),
        (("fit", "-", *FIT), b"", "standard input is empty; wanted a header and rows"),
        (("fit", "-", *FIT), b"name,kind,width\n", "standard input has no rows below its header"),
        (("fit", "-", "--sep", ";", *FIT), b"name,kind,width\nr,a,1\n", "Give --sep comma"),
        (
            ("fit", "-", "--json-lines", *FIT),
            b"name,kind,width\nr,a,1\n",
            "standard input cannot be read as JSON lines",
        ),
        (("studio", "-"), b"name,kind,width\nr,a,1\n", "save standard input to a file"),
        (("fit", "trees.csv", "--json-lines", *FIT), b"", "trees.csv is read by its suffix. Leave --json-lines out."),
        (("transform", "m.safetensors", "trees.jsonl", "--sep", ";", "--out", "o.csv"), b"", "got trees.jsonl. Leave"),
        (
            ("transform", "m.safetensors", "trees.jsonl", "--encoding", "latin-1", "--out", "o.csv"),
            b"",
            "--encoding is for",
        ),
        (("fit", "-", "--json-lines", "--encoding", "latin-1", *FIT), b"{}", "--encoding is for"),
        (("fit", "trees.csv", "--sep", "xy", *FIT), b"", "wanted one character"),
    ],
)
def test_wrong_input_is_refused_in_one_line(trees, model, run, pipe, arguments, data, message):
    Path("trees.jsonl").write_bytes(json_lines())
    pipe(data)
    code, out, err = run(*arguments)
    assert code == 2 and message in err and len(err.splitlines()) == 1 and not out
    assert not Path("piped.safetensors").exists()


def test_a_terminal_is_no_table(trees, run, monkeypatch):
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    code, _, err = run("fit", "-", *FIT)
    assert code == 2 and "pipe a table into the command" in err


def test_a_separator_may_be_named(trees, run):
    Path("trees.csv").write_text(trees.read_text().replace(",", ";"))
    for name in ("semicolon", ";"):
        code, out, err = run("fit", "trees.csv", "--sep", name, *FIT, "--force")
        assert code == 0 and json.loads(out)["rows"] == 40, err


def test_json_lines_are_read_by_name_and_from_a_pipe(trees, model, run, pipe):
    Path("trees.jsonl").write_bytes(json_lines())
    results = []
    for arguments in (("trees.csv",), ("trees.jsonl",), ("-", "--json-lines")):
        pipe(json_lines())
        code, out, err = run("evaluate", *arguments, *FIT[:6], "--json")
        assert code == 0, err
        results.append(json.loads(out) | {"data": ""})
    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize(
    "command",
    [("transform", "m.safetensors", "trees.csv"), ("neighbors", "m.safetensors", "--index", "trees.csv", "-k", "1")],
)
def test_results_are_written_as_json_lines(trees, model, run, command):
    for out in ("out.jsonl", "out.csv"):
        code, _, err = run(*command, "--out", out)
        assert code == 0, err
    lines = [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()]
    header, *rows = Path("out.csv").read_text().splitlines()
    assert [name.strip('"') for name in header.split(",")] == list(lines[0]) and len(lines) == len(rows) == 40
    first = rows[0].replace('"', "").split(",")
    assert [str(value) for value in lines[0].values()] == first or lines[0]["distance"] == pytest.approx(
        float(first[3])
    )
