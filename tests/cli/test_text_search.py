"""`mahalo search`: nearest texts of a typed question, learned and frozen side by side."""

from __future__ import annotations

import json

import numpy as np
import pytest

import mahalo
from mahalo.cli.console import print_answers
from mahalo.text import HybridIndex, load_encoder
from mahalo.workflows.text_search import Answer, Answers

pytest.importorskip("pyarrow")
from sentence_tables import WordCounts, sentences, write_sentences

QUESTION = "a new boat with a sail"


def answers(run, *arguments) -> dict:
    code, out, err = run("search", "m.safetensors", "--index", "t.csv", *arguments, "--json")
    assert code == 0, err
    return json.loads(out)


def expected(texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return distances of the question to texts, learned and frozen."""
    encoder = load_encoder(WordCounts(), cache=False)
    E, q = encoder.encode(texts), encoder.encode([QUESTION])
    return mahalo.load("m.safetensors").distances(q, E)[0], np.linalg.norm(E - q, axis=1)


def test_answers_are_the_nearest_texts_of_both_distances(text_model, run):
    found, titles = answers(run, QUESTION), sentences()["title"]
    assert found["question"] == QUESTION and found["index"] == "t.csv" and found["bm25_weight"] is None
    for name, distances in zip(("learned", "frozen"), expected(titles), strict=True):
        rows = [int(one["row"]) for one in found[name]]
        assert len(rows) == 10 and [one["text"] for one in found[name]] == [titles[row] for row in rows]
        np.testing.assert_allclose([one["distance"] for one in found[name]], np.sort(distances)[:10], atol=1e-6)
        np.testing.assert_allclose(distances[rows], np.sort(distances)[:10], atol=1e-6)
    assert all(sentences()["subject"][int(one["row"])] == "water" for one in found["learned"])


def test_rows_have_their_number_where_a_table_has_no_ids(text_model, run):
    columns = sentences()
    write_sentences({"title": columns["title"]}, "t.csv")
    assert all(isinstance(one["row"], int) for one in answers(run, QUESTION, "-k", "3")["learned"])


def test_more_answers_than_texts(text_model, run):
    code, out, err = run("search", text_model, "--index", "t.csv", QUESTION, "-k", "50", "--json")
    assert code == 0 and len(json.loads(out)["learned"]) == 48 and "48 texts" in err


def test_hybrid_adds_bm25(text_model, run):
    pytest.importorskip("bm25s")
    titles = sentences()["title"]
    found = answers(run, QUESTION, "--hybrid", "-k", "5")
    index = HybridIndex(titles, load_encoder(WordCounts(), name="wordllama", version="1"), mahalo.load(text_model))
    best = index.search([QUESTION], 5)
    assert [int(one["row"]) for one in found["learned"]] == best.rows[0].tolist()
    np.testing.assert_allclose([one["score"] for one in found["learned"]], best.scores[0])
    learned, frozen = expected(titles)
    np.testing.assert_allclose([one["distance"] for one in found["learned"]], learned[best.rows[0]], atol=1e-6)
    np.testing.assert_allclose([one["distance"] for one in found["frozen"]], np.sort(frozen)[:5], atol=1e-6)
    assert found["bm25_weight"] == index.weight


def test_a_second_search_encodes_the_question_alone(text_model, counts, run):
    answers(run, QUESTION)
    counts.seen.clear()
    answers(run, "an old oven")
    assert set(counts.seen) <= {"an old oven", "text"} and "an old oven" in counts.seen


def test_the_table_has_both_columns(text_model, run):
    code, out, err = run("search", text_model, "--index", "t.csv", QUESTION, "-k", "2")
    assert (code, err) == (0, "") and "learned " in out and "frozen vectors" in out
    assert max(map(len, out.splitlines())) <= 80


def test_answers_have_the_label_of_their_row_if_the_table_has_labels(text_model, run):
    found = answers(run, QUESTION)
    subjects = sentences()["subject"]
    for one in (*found["learned"], *found["frozen"]):
        assert one["label"] == subjects[int(one["row"])]
    code, out, _ = run("search", text_model, "--index", "t.csv", QUESTION, "-k", "1")
    assert code == 0 and f"{found['learned'][0]['row']}, {found['learned'][0]['label']}:" in " ".join(out.split())
    columns = sentences()
    del columns["subject"]
    write_sentences(columns)
    assert "label" not in answers(run, QUESTION)["learned"][0]


def test_printed_texts_are_short_and_harmless(capsys):
    text = "\x1b[31m[bold]red[/bold]\r\n" + "long " * 1000
    print_answers(Answers("q", "t.csv", (Answer("a", 0.5, text),), (Answer("b", 0.5, "שלום 🙂"),)))
    out = capsys.readouterr().out
    assert "\x1b" not in out and "[bold]red[/bold]" in out and "…" in out and out.count("long") < 25 and "שלום" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("t.csv", " "), ["question is empty"]),
        (("t.csv", "zebra"), ["knows no word", "'zebra'"]),
        (("holes.csv", QUESTION), ["holes.csv", "row 3 of 'title'"]),
        (("m.safetensors", QUESTION), ["m.safetensors", "wanted a table"]),
        (("t.csv", QUESTION, "--encoder", "folder"), ["--encoder folder", "other 2", "wordllama 1"]),
        (("t.csv", QUESTION, "--id", "subject"), ["ids must name every row once"]),
    ],
)
def test_wrong_questions_and_tables(text_model, run, arguments, words):
    columns = sentences()
    columns["title"][3] = ""
    write_sentences(columns, "holes.csv")
    code, out, err = run("search", text_model, "--index", *arguments)
    assert (code, out) == (2, "") and all(word in err for word in words), err
    assert err.startswith("mahalo: ") and err.count("\n") == 1


def test_a_model_of_numbers_is_refused(model, run):
    code, out, err = run("search", model, "--index", "trees.csv", QUESTION)
    assert (code, out) == (2, "") and "'width'" in err and "--text" in err and err.count("\n") == 1
