"""Texts with numbers beside them: vectors and standardised numbers, with a weight by cross-validation."""

from __future__ import annotations

import json

import numpy as np
import pytest

import mahalo
from mahalo.constraints import Constraints
from mahalo.selection.block_weight import WEIGHTS, choose_block_weight

pytest.importorskip("pyarrow")
from sentence_tables import WORDS, sentences, write_sentences

FIT = ("--text", "title", "--columns", "price", "--label", "subject", "--id", "code", "--gamma", "1")


@pytest.fixture
def priced(counts):
    """Titles that say nothing, and prices that say the subject."""
    rng = np.random.default_rng(0)
    columns = sentences()
    columns["title"] = [" ".join(rng.choice(WORDS[:12], 4)) for _ in range(48)]
    prices = [1000.0 * (subject == "water") + 50 * rng.normal() for subject in columns["subject"]]
    write_sentences(columns | {"price": prices, "kind": ["ab"[k % 2] for k in range(48)]})
    return np.array(prices)


def test_numbers_beside_texts_decide(priced, run):
    code, out, err = run("evaluate", "t.csv", *FIT, "--json")
    assert code == 0, err
    mixed = json.loads(out)
    code, out, err = run("evaluate", "t.csv", "--text", "title", "--label", "subject", "--gamma", "1", "--json")
    assert code == 0, err
    alone = json.loads(out)
    name = mixed["measure"]
    assert mixed["columns"] == alone["columns"] + 1 == len(WORDS) + 1
    assert mixed["after"][name] > 0.95 > alone["after"][name]


def test_other_commands_find_texts_and_numbers_by_name(priced, run):
    code, _, err = run("fit", "t.csv", *FIT, "--out", "m.safetensors")
    assert code == 0, err
    metric = mahalo.load("m.safetensors")
    assert metric.about["text"] == ["title"] and metric.column_names[-1] == "price"
    assert metric.n_features == len(WORDS) + 1
    code, out, err = run("neighbors", "m.safetensors", "--index", "t.csv", "--query", "t.csv", "-k", "5", "--json")
    assert code == 0, err
    assert run("transform", "m.safetensors", "t.csv", "--out", "o.npy")[0] == 0
    assert len(np.load("o.npy")) == 48
    code, out, err = run("search", "m.safetensors", "--index", "t.csv", "boat river", "--json")
    assert code == 0 and len(json.loads(out)["learned"]) == 10, err
    code, _, err = run("report", "m.safetensors", "--data", "t.csv", "--out", "r.html")
    assert code == 0, err
    write_sentences({name: values for name, values in sentences().items() if name != "size"}, "without.csv")
    code, _, err = run("transform", "m.safetensors", "without.csv", "--out", "p.npy")
    assert code == 2 and "without.csv lacks 1 of the 1 columns that m.safetensors was fitted on: 'price'" in err


def test_units_of_numbers_do_not_matter(priced, run):
    assert run("fit", "t.csv", *FIT, "--out", "a.safetensors")[0] == 0
    assert run("transform", "a.safetensors", "t.csv", "--out", "a.npy")[0] == 0
    columns = sentences()
    rng = np.random.default_rng(0)
    columns["title"] = [" ".join(rng.choice(WORDS[:12], 4)) for _ in range(48)]
    write_sentences(columns | {"price": priced / 1000 + 7}, "t.csv")
    assert run("fit", "t.csv", *FIT, "--out", "b.safetensors")[0] == 0
    assert run("transform", "b.safetensors", "t.csv", "--out", "b.npy")[0] == 0
    A, B = (np.load(name).astype(float) for name in ("a.npy", "b.npy"))
    distances = [np.linalg.norm(X[:, None] - X[None], axis=2) for X in (A, B)]
    np.testing.assert_allclose(distances[0], distances[1], rtol=1e-3, atol=1e-3)


def test_values_become_columns_beside_texts(priced, run):
    code, _, err = run("fit", "t.csv", *FIT, "--one-hot", "kind", "--out", "m.safetensors")
    assert code == 0, err
    assert mahalo.load("m.safetensors").column_names[-2:] == ["kind=a", "kind=b"]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--drop", "size"), "leave --drop size out"),
        (("--columns", "title"), "--text and --columns name 'title'"),
        (("--no-standardise",), "numbers beside texts are always standardised"),
        (("--columns", "prize"), "no column 'prize' in t.csv; did you mean 'price'?"),
    ],
)
def test_wrong_options(priced, run, more, message):
    code, out, err = run("fit", "t.csv", *FIT, *more, "--out", "m.safetensors")
    assert code == 2 and out == "" and message in err and err.count("\n") == 1


def test_hybrid_is_for_texts_alone(priced, run):
    assert run("fit", "t.csv", *FIT, "--out", "m.safetensors")[0] == 0
    for command in (
        ("search", "m.safetensors", "--index", "t.csv", "boat", "--hybrid"),
        ("index", "m.safetensors", "t.csv", "--hybrid", "--out", "h.safetensors"),
    ):
        code, _, err = run(*command)
        assert code == 2 and "was fitted on texts and numbers; --hybrid is for texts alone" in err


def test_weight_follows_what_tells_classes_apart(rng):
    codes = np.arange(200) % 2
    telling, noise = codes[:, None] + 0.1 * rng.normal(size=(200, 1)), rng.normal(size=(200, 1))
    assert choose_block_weight(noise, telling, codes, None) > 0.5
    assert choose_block_weight(telling, noise, codes, None) == WEIGHTS[0]
    pairs = rng.integers(200, size=(100, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    same = codes[pairs[:, 0]] == codes[pairs[:, 1]]
    constraints = Constraints.from_pairs(pairs, same=same.astype(int), n_rows=200)
    assert choose_block_weight(noise, telling, None, constraints) > choose_block_weight(
        telling, noise, None, constraints
    )
    assert choose_block_weight(noise, telling, None, None) == 1.0
