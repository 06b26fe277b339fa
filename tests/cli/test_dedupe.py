"""`mahalo dedupe`: pairs to label, groups of one table and of two, and a page."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pyarrow")
from sentence_tables import WORDS, write_sentences


@pytest.fixture
def catalogues(counts):
    """Two tables of titles and years; the k-th titles of both are the same article, in other words order and case."""
    rng = np.random.default_rng(0)
    titles = [" ".join(rng.choice(WORDS[:12], 5)) for _ in range(60)]
    again = [" ".join(rng.permutation(title.upper().split())) for title in titles[:40]]
    years = rng.integers(1990, 2020, 60)
    write_sentences({"key": [f"a{k}" for k in range(60)], "title": titles, "year": years}, "a.csv")
    write_sentences({"key": [f"b{k}" for k in range(40)], "title": again, "year": years[:40]}, "b.csv")
    both = {"key": [f"a{k}" for k in range(60)] + [f"b{k}" for k in range(40)], "title": titles + again}
    write_sentences(both | {"year": np.append(years, years[:40])}, "both.csv")


def read(path):
    with open(path, encoding="utf8", newline="") as file:
        return list(csv.DictReader(file))


def label(path="ask.csv"):
    """Fill in the truth: articles of one number are the same."""
    rows = read(path)
    with open(path, "w", encoding="utf8", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(row | {"same": int(row["first"][1:] == row["second"][1:])} for row in rows)


COLUMNS = ("--text", "title", "--columns", "year", "--id", "key")


def test_pairs_are_proposed_labelled_and_learned_from(catalogues, run):
    code, out, err = run("dedupe", "a.csv", "--against", "b.csv", *COLUMNS, "--ask", "60", "--out", "ask.csv")
    again = "mahalo dedupe a.csv --against b.csv --text title --columns year --id key --pairs ask.csv --out groups.csv"
    assert code == 0 and f"write 1 or 0 into 'same', then {again}" in " ".join(out.split()), err
    rows = read("ask.csv")
    assert list(rows[0]) == ["first", "second", "same", "first_row", "second_row"]
    assert all(row["first"][0] == "a" and row["second"][0] == "b" and row["same"] == "" for row in rows)
    assert "year 2" in rows[0]["first_row"] or "year 1" in rows[0]["first_row"]
    label()
    command = ("dedupe", "a.csv", "--against", "b.csv", *COLUMNS, "--pairs", "ask.csv", "--precision", ".9")
    code, out, err = run(*command, "--out", "groups.csv", "--page", "groups.html", "--json")
    assert code == 0, err
    found = json.loads(out)
    assert found["groups"] > 30 and found["expected_precision"] >= 0.9 and set(found["weights"]) == {"title", "year"}
    groups: dict[str, set[str]] = {}
    for row in read("groups.csv"):
        groups.setdefault(row["group"], set()).add(row["row"])
        assert row["table"] == ("1" if row["row"][0] == "a" else "2") and 0 <= float(row["probability"]) <= 1
    right = sum(f"a{k}" in group and f"b{k}" in group for group in groups.values() for k in range(40))
    assert right >= 35 and len(groups) == found["groups"]
    page = Path("groups.html").read_text(encoding="utf8")
    assert "groups of duplicates" in page and "a0" in page and "<script" not in page


def test_one_table_and_numbers_alone(catalogues, run):
    rng = np.random.default_rng(1)
    things = rng.normal(size=(80, 3))
    rows = np.vstack([things, things[:50] + 0.02 * rng.normal(size=(50, 3))])
    write_sentences({name: rows[:, k] for k, name in enumerate("xyz")}, "numbers.csv")
    assert run("dedupe", "numbers.csv", "--ask", "60", "--out", "ask.csv")[0] == 0
    pairs = read("ask.csv")
    with open("labelled.csv", "w", encoding="utf8") as file:
        file.write("first,second,same\n")
        file.writelines(f"{p['first']},{p['second']},{int(int(p['second']) - int(p['first']) == 80)}\n" for p in pairs)
    code, out, err = run("dedupe", "numbers.csv", "--pairs", "labelled.csv", "--out", "groups.csv")
    assert code == 0 and "expected to be the same" in out, err
    found = read("groups.csv")
    assert list(found[0]) == ["group", "row", "probability"]
    groups = {row["row"]: row["group"] for row in found}
    assert sum(groups.get(str(k)) == groups.get(str(k + 80)) is not None for k in range(50)) >= 45


def test_nothing_certain_is_said_and_no_group_written(catalogues, run):
    """Answers that no column explains: no pair is certain."""
    assert run("dedupe", "both.csv", *COLUMNS, "--ask", "60", "--out", "ask.csv")[0] == 0
    rows = read("ask.csv")
    with open("ask.csv", "w", encoding="utf8") as file:
        file.write("first,second,same\n")
        file.writelines(f"{row['first']},{row['second']},{int(k % 4 == 0)}\n" for k, row in enumerate(rows))
    command = ("dedupe", "both.csv", *COLUMNS, "--pairs", "ask.csv", "--out", "groups.csv", "--page", "g.html")
    code, out, err = run(*command)
    assert code == 0 and "no pair is the same with enough certainty" in err
    assert "none: no pair of" in out and "%" not in out and read("groups.csv") == []
    page = Path("g.html").read_text(encoding="utf8")
    assert "No duplicates found" in page and "doubtful groups" not in page
    code, out, _ = run(*command, "--force", "--json")
    assert code == 0 and json.loads(out)["expected_precision"] is None


def test_texts_on_the_page_are_escaped(catalogues, run):
    rows = read("both.csv")
    for row in rows:
        row["title"] += " <b>old</b>"
    write_sentences({name: [row[name] for row in rows] for name in rows[0]}, "both.csv")
    assert run("dedupe", "both.csv", "--text", "title", "--id", "key", "--ask", "80", "--out", "ask.csv")[0] == 0
    label()
    command = ("dedupe", "both.csv", "--text", "title", "--id", "key", "--pairs", "ask.csv", "--precision", ".7")
    code, _, err = run(*command, "--out", "g.csv", "--page", "g.html")
    assert code == 0, err
    page = Path("g.html").read_text(encoding="utf8")
    assert "&lt;b&gt;old&lt;/b&gt;" in page and "<b>old" not in page


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give --pairs FILE with labelled pairs, or --ask 300"),
        (("--pairs", "p.csv", "--ask", "9"), "--ask writes pairs to label and learns nothing; leave --pairs out"),
        (("--ask", "9", "--precision", ".9", "--base-rate", ".1"), "leave --precision and --base-rate out"),
        (("--pairs", "p.csv", "--seed", "1"), "--seed is that of the pairs of --ask"),
        (("--pairs", "p.csv", "--precision", "2"), "precision must be a share between 0 and 1"),
        (("--pairs", "empty.csv"), "no pair of empty.csv is labelled"),
        (("--pairs", "unknown.csv"), "unknown.csv names 1 ids that no row has: 'q'"),
        (("--pairs", "graded.csv"), "must hold 0 and 1; got 3"),
        (("--pairs", "nothing.csv"), "nothing.csv has no column 'same'"),
        (("--pairs", "p.csv", "--text", "titel"), "no text column 'titel' in both.csv; did you mean 'title'?"),
        (("--pairs", "p.csv", "--out", "g.txt"), "ends in '.txt'"),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(catalogues, run, tmp_path, arguments, message):
    for name, lines in {
        "p.csv": ["first,second,same", "a0,b0,1", "a1,b0,0"],
        "empty.csv": ["first,second,same", "a0,b0,", "a1,b0,"],
        "unknown.csv": ["first,second,same", "a0,b0,1", "q,b0,0"],
        "graded.csv": ["first,second,same", "a0,b0,3", "a1,b0,0"],
        "nothing.csv": ["first,second", "a0,b0"],
    }.items():
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    before = sorted(path.name for path in tmp_path.iterdir())
    defaults = ("--text", "title") * ("--text" not in arguments) + ("--out", "g.csv") * ("--out" not in arguments)
    code, out, err = run("dedupe", "both.csv", "--id", "key", *defaults, *arguments)
    assert code != 0 and out == "" and message in err and err.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "vectors") == before
