"""`mahalo demo --write`: a table to try the other commands on."""

from __future__ import annotations

import json

import numpy as np
import pytest
from running import run_python
from sklearn.datasets import load_wine

from mahalo.text import load_library_questions

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
    assert "or give another folder to --write" in err  # the name is that of the second table, whatever the first one's
    assert not (tmp_path / "wine.parquet").exists()
    code, out, _ = run("demo", "--write", "wine.parquet", "--force", "--json")
    assert code == 0 and json.loads(out) == {"out": "wine.parquet", "new": "new-bottles.parquet"}
    assert len(pd.read_parquet("wine.parquet")) == 168


def test_questions_come_with_notes_clicks_and_labelled_pairs(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = run("demo", "--write", "questions.csv")
    assert (code, err) == (0, "")
    assert "mahalo evaluate questions.csv --text question --label topic" in out
    questions, notes, clicks, labelled = (
        pd.read_csv(f"{name}.csv") for name in ("questions", "notes", "clicks", "labelled")
    )
    library = load_library_questions()
    assert tuple(questions.question) == library.texts and tuple(questions.topic) == library.topics
    assert questions.number.is_unique and notes.number.is_unique and len(notes) == 160
    by_number, note = questions.set_index("number"), notes.set_index("number")
    assert set(clicks.document) <= set(questions.number) and set(clicks["query"]) <= set(notes.question.str.lower())
    assert clicks.groupby("query").document.nunique().eq(3).all()
    same = labelled[labelled.same == 1]
    assert 50 <= len(same) < len(labelled) <= 200
    for first, second in zip(same["first"], same["second"], strict=True):
        words = by_number.question[first].upper()
        assert all(word in words for word in note.question[second].split())
        assert 0 <= note.day[second] - by_number.day[first] <= 1


def test_example_tables_are_the_same_in_another_process(run, tmp_path, monkeypatch):
    """Python orders sets of texts anew in every process."""
    monkeypatch.chdir(tmp_path)
    assert run("demo", "--write", "questions.csv")[0] == 0
    code = "from pathlib import Path; from mahalo.workflows.sample_tables import write_questions as write; "
    code += "write(Path('questions.tsv'), True)"
    assert run_python("-c", code, cwd=tmp_path).returncode == 0
    for name in ("questions", "notes", "clicks", "labelled"):
        pd.testing.assert_frame_equal(pd.read_csv(f"{name}.csv"), pd.read_csv(f"{name}.tsv", sep="\t"))


def test_no_question_is_written_where_a_table_beside_is_there_already(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "clicks.csv").write_text("mine")
    code, _, err = run("demo", "--write", "questions.csv")
    assert code == 2 and "clicks.csv exists; pass --force" in err
    assert [path.name for path in tmp_path.iterdir()] == ["clicks.csv"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--write", "wine.csv", "--seed", "1"), "leave out --seed"),
        (("--write", "wine.txt"), "wanted .csv or .tsv or .parquet"),
        (("--write", "new-bottles.csv"), "give another name"),
        (("--write", "questions.npz"), "wanted .csv or .tsv or .parquet"),
        (("--force",), "--force is for the table of --write"),
    ],
)
def test_what_does_not_go_with_it_is_refused(run, tmp_path, monkeypatch, arguments, told):
    monkeypatch.chdir(tmp_path)
    code, _, err = run("demo", *arguments)
    assert code == 2 and told in err and err.count("\n") == 1
    assert not list(tmp_path.iterdir())
