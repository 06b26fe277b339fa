"""`mahalo index --hybrid` and `search --hybrid` on it; texts in `pairs` and `export`."""

from __future__ import annotations

import json

import numpy as np
import pytest

import mahalo
from mahalo.pairs import PairClassifier
from mahalo.text import HybridIndex, load_encoder

pytest.importorskip("pyarrow")
from sentence_tables import WORDS, WordCounts, sentences, write_sentences

QUESTION = "a new boat with a sail"


def test_a_saved_index_answers_as_the_table(text_model, counts, run):
    pytest.importorskip("bm25s")
    code, out, err = run("index", text_model, "t.csv", "--hybrid", "--out", "h.safetensors")
    assert code == 0 and "48 texts with BM25" in out, err
    found = []
    for index in ("t.csv", "h.safetensors"):
        code, out, err = run("search", text_model, "--index", index, "--hybrid", QUESTION, "--json")
        assert code == 0, err
        found.append(json.loads(out))
    assert found[0]["learned"] == found[1]["learned"] and found[0]["frozen"] == found[1]["frozen"]
    assert {one["label"] for one in found[1]["learned"]} <= {"water", "kitchen"}
    counts.seen.clear()
    run("search", text_model, "--index", "h.safetensors", "--hybrid", QUESTION)
    assert counts.seen in ([], [QUESTION])


def test_a_saved_index_is_of_one_model(text_model, run):
    pytest.importorskip("bm25s")
    assert run("index", text_model, "t.csv", "--hybrid", "--out", "h.safetensors")[0] == 0
    code, out, err = run("search", text_model, "--index", "h.safetensors", QUESTION)
    assert code == 2 and out == "" and "give --hybrid, or the table of its texts" in err
    code, out, err = run("search", text_model, "--index", "h.safetensors", "--hybrid", "--id", "code", QUESTION)
    assert code == 2 and out == "" and "saved with its ids: leave --id and --ids out" in err
    assert (
        run("fit", "t.csv", "--text", "title", "--label", "subject", "--gamma", "9", "--out", "n.safetensors")[0] == 0
    )
    code, out, err = run("search", "n.safetensors", "--index", "h.safetensors", "--hybrid", QUESTION)
    assert code == 2 and "was built with another model" in err


def test_hybrid_needs_texts_and_all_rows(model, run):
    code, _, err = run("index", "m.safetensors", "trees.csv", "--hybrid", "--out", "h.safetensors")
    assert code == 2 and "was not fitted on texts" in err
    code, _, err = run(
        "index", "m.safetensors", "trees.csv", "--hybrid", "--backend", "faiss", "--out", "h.safetensors"
    )
    assert code == 2 and "leave --backend out" in err


def test_a_damaged_index_is_refused(tmp_path):
    pytest.importorskip("bm25s")
    encoder = load_encoder(WordCounts(), cache=False)
    index = HybridIndex(sentences()["title"], encoder, ids=sentences()["code"], weight=0.4, stemmer=None)
    index.save(tmp_path / "h.safetensors")
    again = HybridIndex.load(tmp_path / "h.safetensors", encoder)
    assert (again.texts, again.ids, again.weight) == (index.texts, index.ids, 0.4)
    np.testing.assert_array_equal(again.search([QUESTION]).rows, index.search([QUESTION]).rows)
    data = bytearray((tmp_path / "h.safetensors").read_bytes())
    data[-20] ^= 1
    (tmp_path / "h.safetensors").write_bytes(data)
    with pytest.raises(ValueError, match="is damaged"):
        HybridIndex.load(tmp_path / "h.safetensors", encoder)
    with pytest.raises(ValueError, match="a stemmer of your own"):
        HybridIndex(["a boat"], encoder, stemmer=lambda words: words).save(tmp_path / "s.safetensors")


def test_queries_are_multiplied_with_a_matrix():
    pytest.importorskip("bm25s")
    encoder = load_encoder(WordCounts(), cache=False)
    turn = np.roll(np.eye(len(WORDS)), 1, axis=1)  # boat counts as river
    index = HybridIndex(["boat boat", "river river"], encoder, weight=0.0, query_matrix=turn)
    assert index.search(["boat"], k=1).rows[0, 0] == 1
    metric = mahalo.MetricLearner().fit(np.eye(len(WORDS)), np.arange(len(WORDS)) % 2).metric_
    with pytest.raises(ValueError, match="pass metric or query_matrix, not both"):
        HybridIndex(["boat"], encoder, metric, query_matrix=turn)


def test_pairs_of_texts(counts, run):
    write_sentences({"code": ["000", "001"], "other": ["002", "003"]}, "ask.csv")
    command = ("pairs", "t.csv", "--text", "title", "--label", "subject", "--id", "code", "--gamma", "1")
    code, out, err = run(*command, "--save", "c.safetensors", "--ask", "ask.csv", "--json")
    assert code == 0, err
    answers = json.loads(out)["answers"]
    assert [one["first"] for one in answers] == ["000", "001"]
    code, out, err = run("pairs", "t.csv", "--model", "c.safetensors", "--ask", "ask.csv", "--json")
    assert code == 0, err
    assert json.loads(out)["answers"] == answers
    assert PairClassifier.load("c.safetensors").metric_.about["text"] == ["title"]


def test_export_of_a_model_of_texts(text_model, run):
    code, _, err = run("export", text_model, "--out", "G.npz", "--json")
    assert code == 0, err
    assert np.load("G.npz")["matrix"].shape[0] == len(WORDS)
