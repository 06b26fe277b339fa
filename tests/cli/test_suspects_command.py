"""`mahalo suspects`: a table of labels that look wrong; `mahalo studio`: its refusals."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from sklearn.datasets import load_iris


@pytest.fixture
def irises(tmp_path):
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    names[[4, 20]] = "virginica"
    with (tmp_path / "iris.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["flower", "kind", "a", "b", "c", "d"])
        writer.writerows([f"iris {k}", name, *x] for k, (x, name) in enumerate(zip(X, names, strict=True)))
    return tmp_path


@pytest.mark.slow
def test_wrong_labels_come_first(irises, run):
    out = irises / "doubtful.csv"
    command = ["suspects", str(irises / "iris.csv"), "--label", "kind", "--id", "flower", "--out", str(out), "--json"]
    code, printed, _ = run(*command)
    assert code == 0
    printed = json.loads(printed)
    with out.open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert {line["id"] for line in lines[:2]} == {"iris 4", "iris 20"}
    assert [line["suggested"] for line in lines[:2]] == ["setosa", "setosa"] and float(lines[0]["score"]) > 0.5
    assert printed["rows"] == 150 and printed["doubtful"] >= 2 and len(lines) == 50


def test_what_cannot_be_judged_or_written_is_named(irises, run):
    code, _, err = run("suspects", irises / "iris.csv", "--out", irises / "d.csv")
    assert code == 2 and "there is nothing to learn from" in err
    each_its_own = ("--label", "flower", "--drop", "kind")
    code, _, err = run("suspects", irises / "iris.csv", *each_its_own, "--out", irises / "d.csv")
    assert code == 2 and "two classes with two rows or more each" in err
    code, _, err = run("suspects", irises / "iris.csv", "--label", "kind", "--out", irises / "d.html")
    assert code == 2 and "wanted .csv or .tsv or .parquet" in err


def test_a_studio_on_other_rows_or_a_taken_port_is_refused(irises, run):
    import socket

    log = irises / "log.jsonl"
    log.write_text('{"format": "mahalo answers", "version": 1, "data": {}}\n')
    data = (irises / "iris.csv", "--label", "kind", "--id", "flower", "--no-browser")
    code, _, err = run("studio", *data, "--log", log)
    assert code == 2 and "holds answers about other rows" in err
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        code, out, err = run("studio", *data, "--port", taken.getsockname()[1], "--log", irises / "new.jsonl")
    assert code != 0 and not out and "is taken; pass --port 0" in err
    for port in (70_000, -1):
        code, _, err = run("studio", *data, "--port", port, "--log", irises / "new.jsonl")
        assert code == 2 and f"from 0 (any that is free) to 65535; got {port}" in err and err.count("\n") <= 2, err


def test_the_help_of_the_studio_offers_no_standard_input(run, irises):
    helps = {name: run(name, "--help")[1].partition("Options")[0].split() for name in ("studio", "suspects")}
    assert [name for name, words in helps.items() if "-" in words] == ["suspects"]
    code, _, err = run("studio", "-", "--no-browser")
    assert code == 2 and "save standard input to a file" in err
