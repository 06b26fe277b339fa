"""Commands on columns of sentences: encoded, learned from, and encoded again for the commands that follow."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from running import run_python

import mahalo

pa = pytest.importorskip("pyarrow")
from pyarrow import parquet  # noqa: E402
from sentence_tables import FIT_TEXTS, WORDS, WordCounts, sentences, write_sentences  # noqa: E402


def refused(run, *arguments, words):
    """One line with these words; no file is written but the cache."""
    before = {path for path in Path().rglob("*") if "vectors" not in path.parts}
    code, out, err = run(*arguments)
    assert (code, out) == (2, ""), err
    assert err.startswith("mahalo: ") and err.count("\n") == 1, err
    assert all(word in err for word in words), err
    assert {path for path in Path().rglob("*") if "vectors" not in path.parts} == before


def test_fit_stores_the_columns_and_the_encoder(counts, run):
    code, out, err = run("fit", "t.csv", *FIT_TEXTS)
    assert code == 0 and "texts by wordllama" in out and "mahalo search m.safetensors" in " ".join(out.split()), err
    about = mahalo.load("m.safetensors").about
    assert about["text"] == ["title"] and "columns" not in about
    assert about["encoder"] == {"name": "wordllama", "version": "1", "dimension": len(WORDS)}
    assert about["provenance"]["data"]["standardised"] is False


def test_fit_is_the_adapter_on_encoded_texts(counts, run):
    rows = np.array([[title.split().count(word) for word in WORDS] for title in sentences()["title"]], dtype=float)
    E = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    np.savez("e.npz", X=E, subject=np.array(sentences()["subject"]))
    assert run("fit", "t.csv", "--text", "title", "--label", "subject", "--out", "m.safetensors")[0] == 0
    assert run("fit", "e.npz", "--embeddings", "--label", "subject", "--out", "e.safetensors")[0] == 0
    np.testing.assert_array_equal(mahalo.load("m.safetensors").transform(E), mahalo.load("e.safetensors").transform(E))


def test_a_second_command_encodes_nothing(text_model, counts, run):
    counts.seen.clear()
    code, out, err = run("evaluate", "t.csv", "--text", "title", "--label", "subject", "--gamma", "1", "--json")
    assert code == 0 and json.loads(out)["columns"] == len(WORDS), err
    assert counts.seen == []


def test_several_columns_are_joined(counts, run):
    columns = sentences() | {"body": ["", *[f"boat {k}" for k in range(47)]], "a,b": ["07"] * 48}
    write_sentences(columns)
    arguments = ("--text", "title,body", "--text", "a,b", *FIT_TEXTS[2:])
    code, _, err = run("fit", "t.csv", *arguments)
    assert code == 0, err
    assert mahalo.load("m.safetensors").about["text"] == ["title", "body", "a,b"]
    assert f"{columns['title'][0]} 07" in counts.seen and f"{columns['title'][1]} boat 0 07" in counts.seen


def test_an_encoder_in_a_folder(counts, run):
    code, _, err = run("fit", "t.csv", *FIT_TEXTS, "--encoder", "folder")
    assert code == 0 and mahalo.load("m.safetensors").about["encoder"]["name"] == "other", err
    code, _, err = run("transform", "m.safetensors", "t.csv", "--encoder", "folder", "--out", "o.npy")
    assert code == 0 and np.load("o.npy").shape == (48, len(WORDS)), err
    refused(run, "transform", "m.safetensors", "t.csv", "--out", "p.npy", words=["other 2", "without --encoder"])


def test_transform_copies_columns_beside_the_vectors(text_model, run):
    code, _, err = run("transform", text_model, "t.csv", "--out", "o.parquet")
    assert code == 0, err
    found, columns = parquet.read_table("o.parquet"), sentences()
    for name in ("code", "title", "subject"):
        assert found.column(name).to_pylist() == columns[name]
    rows = np.column_stack([found.column(f"mahalo{k}") for k in range(len(WORDS))])
    E = mahalo.text.load_encoder(WordCounts(), cache=False).encode(columns["title"])
    np.testing.assert_allclose(rows, mahalo.load(text_model).transform(E), atol=1e-6)


def test_transform_reads_large_tables_in_pieces(text_model, run, monkeypatch):
    monkeypatch.setattr("mahalo.tables.parquet_shards.MEMORY_LIMIT", 0)
    monkeypatch.setattr("mahalo.tables.parquet_shards.PIECE_SIZE", 10 * 4 * 8)
    parquet.write_table(pa.table(sentences()), "t.parquet", row_group_size=10)
    assert run("transform", text_model, "t.csv", "--out", "a.npy")[0] == 0
    code, _, err = run("transform", text_model, "t.parquet", "--out", "b.npy")
    assert code == 0, err
    # A product of fewer rows may round differently.
    np.testing.assert_allclose(np.load("a.npy"), np.load("b.npy"), rtol=0, atol=1e-6)
    refused(run, "fit", "t.parquet", *FIT_TEXTS[:-1], "n.safetensors", words=["--text", "memory", "fewer files"])


def test_neighbors_of_rows_and_of_a_saved_index(text_model, run):
    write_sentences(sentences(4, seed=1), "q.csv")
    code, rows, err = run("neighbors", text_model, "--index", "t.csv", "--query", "q.csv", "-k", "3")
    assert code == 0 and rows.splitlines()[1].startswith("000,1,"), err
    assert run("index", text_model, "t.csv", "--out", "i.safetensors")[0] == 0
    code, saved, err = run("neighbors", text_model, "--index", "i.safetensors", "--query", "q.csv", "-k", "3")
    assert code == 0 and saved == rows, err


def test_report_of_texts(text_model, run):
    code, _, err = run("report", text_model, "--data", "t.csv", "--out", "r.html")
    assert code == 0 and "vectors of wordllama" in Path("r.html").read_text(encoding="utf-8"), err


def test_report_names_rows_by_their_sentences(text_model, run, monkeypatch):
    columns = sentences()
    columns["title"][0] = f"<i>boat</i> sail {'old ' * 60}"
    write_sentences(columns, "t.csv")
    monkeypatch.setattr("mahalo.text.encoder.TextEncoder.vocabulary", lambda self: list(WORDS))
    code, _, err = run("report", text_model, "--data", "t.csv", "--out", "r.html")
    page = Path("r.html").read_text(encoding="utf-8")
    assert code == 0 and "Words that matter, of" in page, err
    assert f"001: {columns['title'][1]}" in page
    assert "<i>boat" not in page and "old " * 40 not in page
    assert "boat" in page[page.index("Words that matter") :]


@pytest.mark.parametrize("command", ["fit", "evaluate"])
def test_wrong_options(counts, run, command):
    out = ("--out", "m.safetensors") if command == "fit" else ()
    start = (command, "t.csv", "--label", "subject", *out)
    refused(run, *start, "--text", "titel", words=["no text column 'titel'", "'title'"])
    refused(run, *start, "--text", "subject", words=["--text", "--label", "'subject'"])
    refused(run, *start, "--text", ",", words=["--text names no column"])
    refused(run, *start, "--encoder", "folder", words=["--encoder", "--text"])
    refused(run, *start, "--text", "title", "--embeddings", words=["--text", "--embeddings"])
    refused(run, *start, "--text", "title", "--drop", "size", words=["--text", "--drop size"])


def test_empty_texts_name_the_row(text_model, run):
    columns = sentences()
    columns["title"][5], columns["title"][9] = "", "  "
    write_sentences(columns, "holes.csv")
    words = ["2 of 48 rows of holes.csv", "row 5 of 'title'", "remove"]
    refused(run, "fit", "holes.csv", *FIT_TEXTS[:-1], "n.safetensors", words=words)
    refused(run, "transform", text_model, "holes.csv", "--out", "o.npy", words=words)


def test_columns_that_are_no_text(text_model, run):
    parquet.write_table(pa.table(sentences() | {"title": list(range(48))}), "n.parquet")
    np.save("n.npy", np.eye(4))
    refused(run, "transform", text_model, "n.parquet", "--out", "o.npy", words=["'title'", "int64", "not text"])
    refused(run, "transform", text_model, "n.npy", "--out", "o.npy", words=["n.npy", "array", "'title'"])


def test_a_table_without_the_column(text_model, run):
    columns = sentences()
    write_sentences({"headline": columns["title"], "code": columns["code"]}, "h.csv")
    refused(run, "index", text_model, "h.csv", "--out", "i.safetensors", words=["no text column 'title'", "h.csv"])


def test_another_encoder_is_refused(text_model, run):
    for command in (
        ("neighbors", text_model, "--index", "t.csv"),
        ("transform", text_model, "t.csv", "--out", "o.npy"),
    ):
        refused(run, *command, "--encoder", "folder", words=["--encoder folder", "wordllama 1", "other 2"])


def test_an_encoder_for_a_model_of_numbers(counts, model, run):
    refused(run, "neighbors", model, "--index", "t.csv", "--encoder", "folder", words=["--text", "leave --encoder out"])


def test_without_wordllama_the_message_names_the_extra(counts, run, monkeypatch):
    from mahalo.text import backends

    monkeypatch.setattr("mahalo.text.encoder.load_wordllama", backends.load_wordllama)
    monkeypatch.setitem(sys.modules, "wordllama", None)
    code, out, err = run("fit", "t.csv", *FIT_TEXTS)
    assert (code, out) == (1, "") and "mahalo[text]" in err and not Path("m.safetensors").exists()


OFFLINE = """
import sys

def refuse(event, arguments):
    if event in ("socket.__new__", "socket.connect", "socket.getaddrinfo"):
        raise RuntimeError(f"network: {event}")

sys.addaudithook(refuse)
from mahalo.cli.app import main

for line in sys.argv[1:]:
    try:
        main(line.split("|"))
    except SystemExit as stop:
        assert stop.code == 0, line
"""


def test_wordllama_with_sockets_blocked(tmp_path, monkeypatch):
    pytest.importorskip("wordllama")
    pytest.importorskip("bm25s")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MAHALO_CACHE_DIR", str(tmp_path / "vectors"))
    write_sentences(sentences())
    commands = [
        "|".join(("fit", "t.csv", *FIT_TEXTS)),
        "transform|m.safetensors|t.csv|--out|o.npy",
        "search|m.safetensors|--index|t.csv|a boat on a river|--hybrid|-k|3",
        "index|m.safetensors|t.csv|--hybrid|--out|h.safetensors",
        "search|m.safetensors|--index|h.safetensors|a boat on a river|--hybrid|-k|3",
        "neighbors|m.safetensors|--index|t.csv|--query|t.csv|-k|3|--out|n.csv",
        "export|m.safetensors|--out|G.npy",
        "report|m.safetensors|--data|t.csv|--out|r.html",
        "pairs|t.csv|--text|title|--label|subject|--id|code|--gamma|1|--save|c.safetensors",
        "dedupe|t.csv|--text|title|--columns|size|--id|code|--ask|9|--out|ask.csv",
        "fit|t.csv|--text|title|--id|code|--feedback|clicks.csv|--out|q.safetensors",
        "search|q.safetensors|--index|t.csv|a boat on a river|-k|3",
        "demo|--write|questions.tsv",
        "dedupe|questions.tsv|--against|notes.tsv|--text|question|--id|number|--pairs|labelled.tsv|--out|g.csv",
    ]
    clicks = [
        f"about a {text},{code}" for code, text in zip(*(sentences()[name] for name in ("code", "title")), strict=True)
    ]
    (tmp_path / "clicks.csv").write_text("\n".join(["query,document", *clicks, ""]))
    done = run_python("-c", OFFLINE, *commands, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert np.load("o.npy").shape == (48, 256)
    assert "Words that matter" in Path("r.html").read_text(encoding="utf-8")
