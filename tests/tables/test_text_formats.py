"""Separators and JSON lines: what is read is what was written."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pa = pytest.importorskip("pyarrow")

from mahalo.tables.constraint_files import read_constraints  # noqa: E402
from mahalo.tables.dataset import load_dataset  # noqa: E402
from mahalo.tables.options import RowOptions, TextFormat, parse_separator  # noqa: E402
from mahalo.tables.output_files import write_table  # noqa: E402
from mahalo.tables.table import ReadOptions, read_table  # noqa: E402


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_lines(name: str, rows: list[dict]) -> str:
    Path(name).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return name


ROWS = [{"id": f"00{k}", "kind": "ab"[k % 2], "width": 0.5 * k, "v": [k, 1.5 * k]} for k in range(6)]


@pytest.mark.parametrize(
    ("name", "character"),
    [("semicolon", ";"), ("tab", "\t"), ("pipe", "|"), ("space", " "), ("comma", ","), ("~", "~")],
)
@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".txt"])
def test_a_separator_is_that_of_all_text_tables(name, character, suffix):
    Path(f"t{suffix}").write_text(f"a{character}b\n1{character}2\n3{character}4\n")
    found = read_table([f"t{suffix}"], ReadOptions(TextFormat(separator=parse_separator(name))))
    assert found.frame.to_pydict() == {"a": [1, 3], "b": [2, 4]}


@pytest.mark.parametrize("name", ["", "ab", "x", "7", '"', "\n", "é"])
def test_what_cannot_separate_is_refused(name):
    with pytest.raises(ValueError, match=r"wanted one character .*comma, semicolon, tab"):
        parse_separator(name)


def test_a_text_file_is_a_table_only_with_a_separator():
    Path("t.txt").write_text("a b\n1 2\n")
    with pytest.raises(ValueError, match="--sep tab"):
        read_table(["t.txt"])


@pytest.mark.parametrize("name", ["t.jsonl", "t.ndjson", "t.JSONL"])
def test_json_lines_are_columns_as_those_of_csv(name):
    data = load_dataset(RowOptions([write_lines(name, ROWS)], label="kind", id="id"))
    assert data.ids == [f"00{k}" for k in range(6)] and data.encoding.vectors == {"v": 2}
    np.testing.assert_array_equal(data.X, [[0.5 * k, k, 1.5 * k] for k in range(6)])
    assert list(data.y) == ["a", "b"] * 3


def test_json_lines_and_csv_of_the_same_rows_are_the_same_data():
    rows = [{name: row[name] for name in ("id", "kind", "width")} for row in ROWS]
    lines = "\n".join(f"{row['id']},{row['kind']},{row['width']}" for row in rows)
    Path("t.csv").write_text("id,kind,width\n" + lines + "\n")
    options = {"label": "kind", "id": "id"}
    found = [load_dataset(RowOptions([name], **options)) for name in ("t.csv", write_lines("t.jsonl", rows))]
    assert found[0].fingerprint == found[1].fingerprint and found[0].ids == found[1].ids


def test_columns_of_json_lines_keep_their_order_if_some_look_like_dates():
    """Triplets without known names are read in this order."""
    rows = [{"a": "2020-01-01", "b": "r", "c": "2020-01-03"}]
    constraints = read_constraints(
        RowOptions(triplets=write_lines("triplets.jsonl", rows)), 3, ["2020-01-01", "r", "2020-01-03"]
    )
    assert constraints.triplets.index.tolist() == [[0, 1, 2]]


def test_other_names_are_json_lines_if_an_option_says_so():
    write_lines("t.log", ROWS)
    with pytest.raises(ValueError, match=r"ends in '\.log'"):
        read_table(["t.log"])
    assert read_table(["t.log"], ReadOptions(TextFormat(json_lines=True))).n_rows == 6


def test_strings_stay_strings_and_lacking_keys_are_missing():
    rows = [{"day": "2020-01-01", "word": "", "a": 1}, {"b": 2.5, "word": "x"}, {}]
    frame = read_table([write_lines("t.jsonl", rows)]).frame
    assert frame.to_pydict() == {
        "day": ["2020-01-01", None, None],
        "word": [None, "x", None],
        "a": [1, None, None],
        "b": [None, 2.5, None],
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1}\n{"a": "x"}\n', r"t\.jsonl cannot be read as JSON lines, .* changed from number to string in row 1"),
        ("[1, 2]\n", "one object a row"),
        ('{"a": 1\n', "one object a row"),
        ('{"a": {"b": 1}}\n', "objects inside objects, in 'a'"),
        ("\n", "no rows"),
        ('{"a": "' + "\udcff" + '"}\n', "cannot be read as JSON lines"),
    ],
)
def test_what_is_no_table_is_refused_in_one_line(text, message):
    Path("t.jsonl").write_text(text, encoding="utf-8", errors="surrogateescape")
    with pytest.raises(ValueError, match=message) as raised:
        read_table(["t.jsonl"])
    assert "\n" not in str(raised.value)


def test_a_log_of_the_studio_is_no_shard_of_a_folder(folder):
    (folder / "shards").mkdir()
    write_lines("shards/part-0.jsonl", ROWS)
    write_lines("shards/part-0.answers.jsonl", [{"question": 1}])
    assert read_table(["shards"]).n_rows == 6


@given(
    st.lists(
        st.fixed_dictionaries(
            {"x": st.floats(allow_nan=False, allow_infinity=False), "s": st.text(min_size=1, max_size=5)}
        ),
        min_size=1,
        max_size=5,
    )
)
def test_written_json_lines_are_read_back(rows):
    columns = {"x": np.array([row["x"] for row in rows]), "s": [row["s"] for row in rows]}
    write_table(Path("o.jsonl"), columns, np.arange(2.0 * len(rows)).reshape(-1, 2), "new")
    lines = [json.loads(line) for line in Path("o.jsonl").read_text(encoding="utf-8").split("\n")[:-1]]
    assert lines == [{**row, "new0": 2.0 * k, "new1": 2.0 * k + 1} for k, row in enumerate(rows)]


def test_numbers_that_json_does_not_know_are_null():
    write_table(Path("o.jsonl"), {"x": np.array([np.nan, np.inf, 1.0])})
    assert Path("o.jsonl").read_text() == '{"x": null}\n{"x": null}\n{"x": 1.0}\n'
