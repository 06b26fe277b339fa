"""Files of pairs: which of their columns say that a pair is similar."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import mahalo

FIT = ("fit", "trees.csv", "--drop", "kind", "--id", "name", "--gamma", "1", "--force", "--json")


def write_pairs(header: str, answer=lambda a, b: int((a - b) % 2 == 0)) -> None:
    """Pairs of trees.csv, whose kinds take turns."""
    ends = np.random.default_rng(0).integers(0, 40, (80, 2))
    lines = [f"r{a},r{b},{answer(a, b)}" for a, b in ends if a != b]
    Path("pairs.csv").write_text("\n".join([header, *lines]) + "\n")


def test_a_column_of_0_and_1_called_label_says_which_pairs_are_similar(run, trees):
    models = []
    for name in ("same", "label"):
        write_pairs(f"a,b,{name}")
        code, _, err = run(*FIT, "--pairs", "pairs.csv", "--out", f"{name}.safetensors")
        assert code == 0, err
        models.append(mahalo.load(f"{name}.safetensors"))
    np.testing.assert_array_equal(models[0].F, models[1].F)
    code, out, err = run("pairs", "trees.csv", "--drop", "kind", "--id", "name", "--gamma", "1", "--pairs", "pairs.csv",
                         "--ask", "pairs.csv", "--json")  # fmt: skip
    assert code == 0, err
    assert len(json.loads(out)["answers"]) == len(Path("pairs.csv").read_text().splitlines()) - 1


def test_two_columns_name_rows_even_if_one_is_called_label(run, trees):
    lines = [f"r{k},r{k + 2}" for k in range(30)]
    Path("pairs.csv").write_text("\n".join(["label,other", *lines]) + "\n")
    code, out, err = run(*FIT, "--pairs", "pairs.csv", "--out", "m.safetensors")
    assert code == 0 and json.loads(out)["constraints"] == 30, err


@pytest.mark.parametrize(
    ("header", "answer", "words"),
    [
        ("a,b,label", lambda a, b: "oak", "'label' of pairs.csv must hold 1"),
        ("a,b,label", lambda a, b: 3, "'label' of pairs.csv must hold 0 and 1; got 3"),
        ("a,b,match", lambda a, b: a % 2, "If 'match' holds 1 for similar pairs and 0 for others, call it 'same'"),
        ("a,b,c", lambda a, b: f"r{a}", "Leave the others out"),
    ],
)
def test_other_columns_are_refused_with_what_to_do(run, trees, header, answer, words):
    write_pairs(header, answer)
    code, _, err = run(*FIT, "--pairs", "pairs.csv", "--out", "m.safetensors")
    assert code == 2 and words in err and err.count("\n") == 1, err
