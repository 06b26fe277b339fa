"""Exports: cells as they were, unless a spreadsheet would run them, and a command that a shell understands."""

from __future__ import annotations

import shlex

import numpy as np
import pytest

from mahalo.studio import Session
from mahalo.studio.answer_log import Entry
from mahalo.studio.export import RowNames, csv_text, export_answers
from mahalo.studio.items import Items


def test_numbers_stay_numbers_and_formulas_become_texts():
    cells = ["-1", "+1", "-2.5e3", "=1+1", "-1+cmd", "@x", " =1", "-inf", "plain"]
    lines = csv_text(("cell",), [[cell] for cell in cells]).decode().splitlines()
    assert lines == ["cell", "-1", "+1", "-2.5e3", "'=1+1", "'-1+cmd", "'@x", "' =1", "'-inf", "plain"]


def test_answers_about_ids_that_look_like_formulas_can_be_learned_from_again(tmp_path):
    pytest.importorskip("pyarrow", reason="tables need pyarrow: pip install 'mahalo[tables]'")
    from mahalo.tables.dataset import load_dataset
    from mahalo.tables.options import RowOptions

    ids = ["=sum", "+a", "-b", "@c", "-1", "plain", "'quoted", " =space"]
    X, table = np.random.default_rng(0).standard_normal((len(ids), 2)), tmp_path / "rows.csv"
    lines = [f'"{name}",{a},{b}' for name, (a, b) in zip(ids, X, strict=True)]
    table.write_text("\n".join(["name,x,y", *lines]) + "\n")
    session = Session(X)
    for k in range(len(ids) - 1):
        session.log.append(Entry(str(k), "pair", (k, k + 1), "same" if k % 2 else "different"))
    export_answers(tmp_path, X, session.answers(), session.final(), RowNames(ids, source=str(table)))
    options = RowOptions(data=[str(table)], id="name", pairs=str(tmp_path / "answers.csv"))
    pairs = load_dataset(options).constraints.pairs
    assert pairs.index.tolist() == [[k, k + 1] for k in range(len(ids) - 1)]
    assert (pairs.sign > 0).tolist() == [bool(k % 2) for k in range(len(ids) - 1)]


def test_the_command_quotes_the_path_of_the_table(tmp_path):
    session = Session(np.eye(4))
    source = "my rows; echo $HOME.csv"
    found = export_answers(tmp_path, session.X, session.answers(), session.final(), RowNames(source=source))
    assert shlex.split(found.command).count(source) == 2


def test_a_corrected_table_has_the_columns_of_the_table(tmp_path):
    pytest.importorskip("starlette", reason="the studio is served by starlette: pip install 'mahalo[studio]'")
    from mahalo.studio.server.corrections import write_corrected

    items = Items(3, None, {"id": ["a", "b", "c"], "x": [1.0, 2.0, None]}, ["-1", "+1", ""], label_name="y")
    write_corrected(tmp_path, items, {1: Entry("l", "label", (1,), "change", label="-1")})
    assert (tmp_path / "corrected.csv").read_text() == "id,x,y\na,1.0,-1\nb,2.0,-1\nc,,\n"
