"""What commands say while they work and about what they find."""

from __future__ import annotations

import time

import numpy as np
import pytest
from csv_tables import table, write_csv
from sklearn.datasets import load_wine

from mahalo import MetricLearner, report
from mahalo.cli import progress
from mahalo.pairs import PairClassifier


def test_a_line_is_shown_even_if_no_other_follows(monkeypatch, capsys):
    monkeypatch.setattr(progress, "_PATIENCE", 0.05)
    with progress.progress_display(None) as display:
        display.show("drawing: 1 of 9, summary")
        for _ in range(100):
            time.sleep(0.02)
            if shown := capsys.readouterr().err:
                break
    assert shown == "drawing: 1 of 9, summary\n"


def test_a_report_says_which_section_it_draws(tmp_path):
    X, y = load_wine(return_X_y=True)
    metric = MetricLearner(prior="diagonal").fit(X, y).metric_
    lines: list[str] = []
    report.write(metric, X, y, tmp_path / "page.html", verbose=lines.append)
    assert lines[0].startswith("drawing: 1 of 9, summary") and lines[-1].startswith("drawing: 9 of 9, hubs")


@pytest.mark.parametrize("learner", [None, MetricLearner(prior="diagonal")], ids=["default", "own"])
def test_a_pair_classifier_says_how_far_it_is(learner, monkeypatch):
    monkeypatch.setattr("mahalo.selection.splits._MAX_REPEATS", 1)
    X, y = load_wine(return_X_y=True)
    lines: list[str] = []
    PairClassifier(learner, verbose=lines.append).fit(X, y)
    assert any(line.startswith("learning: ") for line in lines)
    assert learner is not None or any(line.startswith("choosing: ") for line in lines)


def test_constant_columns_are_named(run, trees):
    write_csv("trees.csv", table() | {"year": [1990] * 40, "zero": [0.0] * 40})
    fit = ("fit", "trees.csv", "--label", "kind", "--id", "name", "--gamma", "1", "--out", "m.safetensors")
    code, _, err = run(*fit)
    assert code == 0 and err.count("\n") == 1
    assert "'year', 'zero' of trees.csv have the same value in every row" in err and "--drop year,zero" in err
    code, _, err = run(*fit, "--drop", "year,zero", "--force")
    assert (code, err) == (0, "")


def test_columns_of_different_units_are_warned_of_unless_standardised(run, trees):
    fit = ("evaluate", "trees.csv", "--label", "kind", "--drop", "name", "--gamma", "1")
    assert run(*fit)[2] == ""
    code, _, err = run(*fit, "--no-standardise")
    assert code == 0 and err.count("\n") == 1 and "standard deviations from" in err


def test_violated_constraints_are_explained_beside_converged(run, trees):
    code, out, _ = run(
        "fit", "trees.csv", "--label", "kind", "--drop", "name", "--gamma", "1", "--out", "m.safetensors"
    )
    text = " ".join(out.split())
    assert code == 0 and "converged in" in text
    assert "constraints violated, which a finite γ allows at a cost" in text


def test_constant_columns_are_named_where_rows_are_read_in_pieces(run, trees, monkeypatch):
    pytest.importorskip("dask")
    import pyarrow as pa
    from pyarrow import parquet

    from mahalo.tables import parquet_shards

    parquet.write_table(pa.table(table() | {"year": np.full(40, 1990)}), "trees.parquet", row_group_size=10)
    monkeypatch.setattr(parquet_shards, "MEMORY_LIMIT", 0)
    code, _, err = run(
        "fit", "trees.parquet", "--label", "kind", "--id", "name", "--gamma", "1", "--out", "m.safetensors"
    )
    assert code == 0 and "'year' of trees.parquet has the same value in every row" in err
