"""Unusual and wrong input of commands on texts: one clear line each, and nothing half-written."""

from __future__ import annotations

from pathlib import Path

import pytest

import mahalo

pytest.importorskip("pyarrow")
from sentence_tables import FIT_TEXTS, sentences, write_sentences


def refused(run, *arguments) -> str:
    """Run a command that must fail; return its one line, and check that it wrote nothing."""
    before = {path: path.stat().st_mtime_ns for path in Path().iterdir() if path.is_file()}
    code, out, err = run(*arguments)
    assert code == 2 and out == "" and err.count("\n") == 1, err
    assert {path: path.stat().st_mtime_ns for path in Path().iterdir() if path.is_file()} == before
    return err


def test_empty_texts(counts, run):
    write_sentences(sentences() | {"title": ["boat river", "", *sentences()["title"][2:]]})
    assert "1 of 48 rows of t.csv have no text, first row 1 of 'title'" in refused(run, "fit", "t.csv", *FIT_TEXTS)


def test_texts_of_digits_alone_are_warned_of(text_model, run):
    write_sentences(sentences() | {"title": [f"07 {k} 07" for k in range(48)]})
    code, _, err = run("transform", text_model, "t.csv", "--out", "new.csv")
    assert code == 0, err
    lines = [line for line in err.splitlines() if "only digits" in line]
    assert len(lines) == 1 and "pass numbers as features" in lines[0]


def test_two_megabytes_in_one_cell_are_cut_with_a_warning(counts, run):
    columns = sentences()
    columns["title"][3] = "boat sail " * 200_000
    write_sentences(columns)
    code, _, err = run("fit", "t.csv", *FIT_TEXTS)
    assert code == 0, err
    lines = [line for line in err.splitlines() if "longer than 100,000 characters" in line]
    assert len(lines) == 1 and "text 3" in lines[0] and len(err) < 2000


def test_emoji_and_right_to_left_texts(counts, run):
    columns = sentences()
    columns["title"][0] = "boat ⛵️ 👩‍👩‍👧 river"
    columns["title"][2] = "قارب boat على river"
    columns["title"][4] = "\u202eboat\u202c סירה sail"
    write_sentences(columns)
    code, _, err = run("fit", "t.csv", *FIT_TEXTS)
    assert code == 0, err
    code, out, err = run("search", "m.safetensors", "--index", "t.csv", "boat ⛵️", "--json")
    assert code == 0 and "⛵️" in out, err
    assert run("report", "m.safetensors", "--data", "t.csv", "--out", "r.html")[0] == 0
    assert "\u202e" not in Path("r.html").read_text(encoding="utf-8")


def test_a_latin_1_file_names_the_option(counts, run):
    Path("t.csv").write_bytes("code,title,subject\n1,bréad oven,kitchen\n2,boat sail,water\n".encode("latin-1"))
    assert "--encoding latin-1" in refused(run, "fit", "t.csv", *FIT_TEXTS)
    rows = [f"{k},{('bréad oven', 'boat sail')[k % 2]} {k},{('kitchen', 'water')[k % 2]}" for k in range(40)]
    Path("t.csv").write_bytes("\n".join(["code,title,subject", *rows, ""]).encode("latin-1"))
    code, _, err = run("fit", "t.csv", *FIT_TEXTS, "--encoding", "latin-1")
    assert code == 0, err


def test_ids_that_occur_twice(counts, run):
    write_sentences(sentences() | {"code": ["000", *sentences()["code"][:-1]]})
    assert "'000' of code occur more than once" in refused(run, "fit", "t.csv", *FIT_TEXTS)


def test_a_model_of_another_encoder(text_model, run):
    err = refused(run, "search", text_model, "--index", "t.csv", "boat", "--encoder", "other")
    assert "learned with vectors of wordllama" in err and "got the encoder other" in err


def test_an_encoder_that_is_not_installed(counts, run, monkeypatch):
    def missing():
        raise ImportError('encoding texts needs wordllama: pip install "mahalo[text]"')

    monkeypatch.setattr("mahalo.text.encoder.load_wordllama", missing)
    code, out, err = run("fit", "t.csv", *FIT_TEXTS)
    assert code == 1 and out == "" and err.count("\n") == 1 and 'pip install "mahalo[text]"' in err
    assert not Path("m.safetensors").exists()


def test_a_damaged_cache_is_reported_once(text_model, counts, run):
    (cache,) = Path("vectors").iterdir()
    cache.write_bytes(b"not a database at all" * 50)
    counts.seen.clear()
    code, _, err = run("fit", "t.csv", *FIT_TEXTS, "--force")
    assert code == 0, err
    lines = [line for line in err.splitlines() if "cache of text vectors" in line]
    assert len(lines) == 1 and "going on without it" in lines[0]
    assert len(counts.seen) >= len(set(sentences()["title"]))
    assert mahalo.load("m.safetensors").n_features is not None


def test_a_cache_that_cannot_be_written_is_reported_once(counts, run, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("MAHALO_CACHE_DIR", str(tmp_path / "file" / "vectors"))
    code, _, err = run("fit", "t.csv", *FIT_TEXTS)
    assert code == 0, err
    assert sum("cache of text vectors" in line for line in err.splitlines()) == 1
