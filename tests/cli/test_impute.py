"""Missing numbers on the command line: filled at the fit, and in new rows by what the model learned then."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
from csv_tables import table, write_csv

import mahalo
from mahalo.explain import Provenance

FIT = ("--label", "kind", "--id", "name", "--gamma", "1")
METHODS = ("mean", "median", "knn")


@pytest.fixture
def gaps(trees):
    """Columns of gaps.csv; trees.csv is the same table with none."""
    columns = table()
    for name, first in (("width", 3), ("depth", 5)):
        columns[name] = [None if k % 8 == first else value for k, value in enumerate(columns[name])]
    write_csv(Path("gaps.csv"), columns)
    return columns


def fit(run, method: str) -> dict:
    code, out, err = run("fit", "gaps.csv", *FIT, "--impute", method, "--out", "m.safetensors", "--json")
    assert code == 0, err
    return json.loads(out)


@pytest.mark.parametrize("method", METHODS)
def test_the_model_fills_new_rows_as_those_it_learned_from(gaps, run, method):
    summary, metric = fit(run, method), mahalo.load("m.safetensors")
    record = Provenance.of(metric)
    assert summary["imputed"] == record.table.impute.method == method
    assert summary["numbers_imputed"] == record.data.n_imputed == 10
    names = ("width", "height", "depth")
    X = record.table.impute.fill(np.array([gaps[name] for name in names], dtype=float).T)
    code, _, err = run("transform", "m.safetensors", "gaps.csv", "--out", "moved.npy")
    assert code == 0, err
    np.testing.assert_allclose(np.load("moved.npy"), metric.transform(X), rtol=1e-9)
    few = {name: values[3:6] for name, values in gaps.items()}
    write_csv(Path("few.csv"), few)
    code, out, err = run("neighbors", "m.safetensors", "--index", "gaps.csv", "--query", "few.csv", "-k", "1")
    assert code == 0, err
    found = list(csv.DictReader(io.StringIO(out)))
    assert [row["neighbor"] for row in found] == ["r3", "r4", "r5"] and {float(row["distance"]) for row in found} == {
        0.0
    }


def test_indexes_reports_and_pairs_take_rows_with_gaps(gaps, run):
    fit(run, "knn")
    commands = [
        ("index", "m.safetensors", "gaps.csv", "--out", "i.safetensors"),
        ("neighbors", "m.safetensors", "--index", "i.safetensors", "--query", "gaps.csv", "-k", "1"),
        ("report", "m.safetensors", "--data", "gaps.csv", "--out", "r.html"),
        ("evaluate", "gaps.csv", *FIT, "--impute", "median"),
        ("suspects", "gaps.csv", *FIT[:4], "--impute", "mean", "--out", "s.csv"),
        ("pairs", "gaps.csv", *FIT, "--impute", "mean", "--save", "p.safetensors"),
    ]
    for command in commands:
        code, out, err = run(*command)
        assert code == 0, (command, err)
        if command[0] == "evaluate":
            assert "10 missing numbers filled by median" in " ".join(out.split())
    Path("ask.csv").write_text("a,b\nr3,r5\n")
    code, out, err = run("pairs", "gaps.csv", "--model", "p.safetensors", "--ask", "ask.csv")
    assert code == 0 and out.startswith("first,second"), err


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (("fit", "gaps.csv", *FIT, "--out", "x.safetensors"), "give --impute mean, remove these rows"),
        (("fit", "gaps.csv", *FIT, "--impute", "mode", "--out", "x.safetensors"), "wanted mean, median or knn"),
        (
            ("dedupe", "gaps.csv", "--id", "name", "--columns", "width", "--ask", "3", "--out", "x.csv"),
            "remove these rows",
        ),
    ],
)
def test_gaps_and_methods_are_refused_in_one_line(gaps, run, command, message):
    code, out, err = run(*command)
    assert code == 2 and message in err and len(err.splitlines()) == 1 and not out
    assert ("--impute" in err) == (command[0] == "fit") and not list(Path().glob("x.*"))


def test_a_model_without_it_says_how_to_get_it(gaps, model, run):
    code, _, err = run("neighbors", model, "--index", "gaps.csv")
    assert code == 2 and "fit again with --impute mean, or remove these rows" in err
