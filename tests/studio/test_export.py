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
