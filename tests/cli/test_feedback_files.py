"""`mahalo fit --feedback`: a matrix for queries from judged searches, used by `search` and `export`."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

from mahalo.feedback import QueryAdapter
from mahalo.text import load_encoder

pytest.importorskip("pyarrow")
from sentence_tables import WORDS, WordCounts, write_sentences

FIT = ("fit", "docs.csv", "--text", "body", "--id", "code", "--out", "q.safetensors")


@pytest.fixture
def clicks(counts):
    """40 documents of three words, and 80 queries that call each word by its neighbour in the list."""
    rng = np.random.default_rng(0)
    documents = [" ".join(rng.choice(WORDS[:12], 3, replace=False)) for _ in range(40)]
    turned = dict(zip(WORDS[:12], (*WORDS[1:12], WORDS[0]), strict=True))
    write_sentences({"code": [f"d{k}" for k in range(40)], "body": documents}, "docs.csv")
    rows = [(" ".join(turned[w] for w in documents[k % 40].split()[: 2 + k // 40]), f"d{k % 40}") for k in range(80)]
    queries = [f"{text} {('old', 'new')[k // 40]}" for k, (text, _) in enumerate(rows)]
    write_clicks([(query, document, 1) for query, (_, document) in zip(queries, rows, strict=True)])
    return documents


def write_clicks(rows, names=("query", "document", "grade"), path="clicks.csv"):
    with open(path, "w", encoding="utf8", newline="") as file:
        csv.writer(file).writerows([names[: len(rows[0])], *rows])


def read_clicks():
    with open("clicks.csv", encoding="utf8", newline="") as file:
        return [tuple(row) for row in csv.reader(file)][1:]


def test_fit_is_the_adapter_of_the_library(clicks, run):
    code, out, err = run(*FIT, "--feedback", "clicks.csv", "--json")
    assert code == 0, err
    found = json.loads(out)
    assert found["documents"] == 40 and found["judgements"] == 80
    encoder = load_encoder(WordCounts(), name="wordllama", version="1", cache=False)
    queries = list(dict.fromkeys(row[0] for row in read_clicks()))
    relevance = [(queries.index(q), int(d[1:]), float(g)) for q, d, g in read_clicks()]
    adapter = QueryAdapter(random_state=0).fit(encoder.encode(queries), encoder.encode(clicks), relevance)
    again = QueryAdapter.load("q.safetensors")
    np.testing.assert_allclose(again.matrix_, adapter.matrix_)
    assert found["adapted"] == bool(np.isfinite(adapter.lam_))
    assert set(found["evaluation"]["rows"]) <= {"documents with feedback", "documents without"}
    assert again.metric_.about["text"] == ["body"]


def test_both_kinds_of_documents_are_printed(clicks, run):
    code, out, err = run(*FIT, "--feedback", "clicks.csv")
    assert code == 0, err
    assert "documents with feedback" in out and "documents without" in out
    assert "mahalo search q.safetensors --index docs.csv" in out


def test_search_multiplies_the_question(clicks, run):
    assert run(*FIT, "--feedback", "clicks.csv")[0] == 0
    question = read_clicks()[0][0]
    for more in ((), ("--hybrid",)):
        code, out, err = run("search", "q.safetensors", "--index", "docs.csv", question, "--json", "-k", "5", *more)
        assert code == 0, err
        found = json.loads(out)
        assert len(found["learned"]) == len(found["frozen"]) == 5 and found["learned"][0]["row"].startswith("d")
    adapter, encoder = QueryAdapter.load("q.safetensors"), load_encoder(WordCounts(), cache=False)
    code, out, _ = run("search", "q.safetensors", "--index", "docs.csv", question, "--json", "-k", "40")
    scores = (adapter.transform(encoder.encode([question])) @ encoder.encode(clicks).T)[0]
    rows = [int(one["row"][1:]) for one in json.loads(out)["learned"]]
    assert (np.diff(scores[rows]) <= 1e-6).all()


def test_export_writes_the_matrix_of_queries(clicks, run):
    assert run(*FIT, "--feedback", "clicks.csv")[0] == 0
    code, _, err = run("export", "q.safetensors", "--side", "query", "--out", "B.npy")
    assert code == 0, err
    np.testing.assert_allclose(np.load("B.npy"), QueryAdapter.load("q.safetensors").matrix_)
    code, _, err = run("export", "q.safetensors", "--out", "C.npy")
    assert code == 2 and "turns queries alone: give --side query" in err


def test_queries_may_be_ids_of_documents(clicks, run):
    write_clicks([(f"d{k}", f"d{(k + 1) % 40}", 1) for k in range(40)])
    code, out, err = run(*FIT, "--feedback", "clicks.csv", "--json")
    assert code == 0 and json.loads(out)["queries"] == 40, err


def test_other_names_are_taken_in_order(clicks, run):
    rows = [(q, d) for q, d, _ in read_clicks()]
    write_clicks(rows, names=("asked", "clicked"))
    code, out, err = run(*FIT, "--feedback", "clicks.csv", "--json")
    assert code == 0 and json.loads(out)["judgements"] == 80, err


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("boat", "d1", 1), ("sail", "x9", 1)], "clicks.csv names 1 documents that no row has: 'x9'"),
        ([("boat", "d1", 0), ("sail", "d2", 0)], "no query has a relevant document"),
        ([("boat", "d1", 1), (" ", "d2", 1)], "row 1 of clicks.csv has no query"),
        ([("boat", "d1", "good"), ("sail", "d2", 1)], "the grades of clicks.csv must be numbers"),
        ([("boat", "d1", 1), ("boat", "d1", 2)], "relevance ('boat', 'd1', 2.0): this query and document have another"),
        ([("boat", "d1", 1)], "takes at least two with relevant documents; got one. Judge more queries"),
        ([("boat",)], "wanted a table with the columns query, document and grade"),
    ],
)
def test_bad_feedback_is_one_line_and_writes_nothing(clicks, run, tmp_path, rows, message):
    write_clicks(rows)
    code, out, err = run(*FIT, "--feedback", "clicks.csv")
    assert code == 2 and out == "" and message in err and err.count("\n") == 1
    assert not (tmp_path / "q.safetensors").exists()


def test_a_query_without_a_relevant_document_is_warned_of(clicks, run):
    write_clicks([*read_clicks(), ("an oar with no answer", "d3", 0)])
    code, _, err = run(*FIT, "--feedback", "clicks.csv")
    assert code == 0 and "1 query has no relevant document (grade above 0)" in err
    assert "the first is 'an oar with no answer'" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("fit", "docs.csv", "--out", "q.safetensors", "--feedback", "clicks.csv"), "give --text COLUMN"),
        ((*FIT, "--feedback", "clicks.csv", "--gamma", "1"), "leave out --gamma"),
        ((*FIT, "--feedback", "clicks.csv", "--label", "code"), "leave out --label"),
    ],
)
def test_options_of_distances_are_refused(clicks, run, arguments, message):
    code, out, err = run(*arguments)
    assert code == 2 and out == "" and message in err


def test_other_commands_name_the_kind_of_the_file(clicks, run):
    assert run(*FIT, "--feedback", "clicks.csv")[0] == 0
    code, _, err = run("transform", "q.safetensors", "docs.csv", "--out", "new.csv")
    assert code == 2 and "mahalo-feedback" in err
