"""`mahalo demo --write`: a table to try the other commands on."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.datasets import load_wine

pd = pytest.importorskip("pandas")


def test_the_table_and_the_new_bottles_are_all_of_wine(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = run("demo", "--write", "wine.csv")
    assert (code, err) == (0, "")
    assert "wine.csv and new-bottles.csv" in out and "mahalo evaluate wine.csv --label cultivar" in out
    table, new = pd.read_csv("wine.csv"), pd.read_csv("new-bottles.csv")
    wine = load_wine(as_frame=True)
    assert list(table) == ["bottle", *wine.feature_names, "cultivar"]
    assert list(new) == ["bottle", *wine.feature_names]
    assert len(table) == 168 and len(new) == 10 and not set(table.bottle) & set(new.bottle)
    both = pd.concat([table, new]).sort_values("bottle")
    np.testing.assert_array_equal(both[wine.feature_names], wine.data)
    rows = table.bottle.str[1:].astype(int)
    assert (table.cultivar == wine.target_names[wine.target[rows]]).all()


def test_both_files_are_there_already_unless_force_is_given(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "new-bottles.parquet").write_text("mine")
    code, _, err = run("demo", "--write", "wine.parquet")
    assert code == 2 and "new-bottles.parquet exists; pass --force" in err
    assert not (tmp_path / "wine.parquet").exists()
    code, out, _ = run("demo", "--write", "wine.parquet", "--force", "--json")
    assert code == 0 and json.loads(out) == {"out": "wine.parquet", "new": "new-bottles.parquet"}
    assert len(pd.read_parquet("wine.parquet")) == 168


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--write", "wine.csv", "--seed", "1"), "leave out --seed"),
        (("--write", "wine.txt"), "wanted .csv or .tsv or .parquet"),
        (("--write", "new-bottles.csv"), "give another name"),
        (("--force",), "--force is for the table of --write"),
    ],
)
def test_what_does_not_go_with_it_is_refused(run, tmp_path, monkeypatch, arguments, told):
    monkeypatch.chdir(tmp_path)
    code, _, err = run("demo", *arguments)
    assert code == 2 and told in err and err.count("\n") == 1
    assert not list(tmp_path.iterdir())
