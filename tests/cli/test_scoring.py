"""The score that settings are chosen by, on the command line."""

from __future__ import annotations

import json

import pytest

import mahalo
from mahalo.explain import Provenance

FIT = ("fit", "trees.csv", "--label", "kind", "--id", "name", "--kernel", "linear", "--out", "m.safetensors")


@pytest.mark.parametrize("scoring", ["map", "precision@3"])
def test_the_score_chooses_and_is_recorded(trees, run, scoring):
    code, out, err = run(*FIT, "--scoring", scoring, "--json")
    assert code == 0, err
    summary, fitted = json.loads(out), Provenance.of(mahalo.load("m.safetensors"))
    assert summary["scoring"] == fitted.fit.parameters["scoring"] == scoring
    assert summary["score"] == pytest.approx(fitted.choice.chosen.score)


def test_scores_of_held_out_rows_depend_on_it(trees, run):
    found = {}
    for scoring in ("accuracy", "recall@1"):
        code, out, err = run("evaluate", *FIT[1:-2], "--scoring", scoring, "--json")
        assert code == 0, err
        found[scoring] = json.loads(out)["score"]
    assert found["recall@1"] < 0.5 < found["accuracy"]  # one of a dozen rows of the class
    printed = " ".join(run("evaluate", *FIT[1:-2], "--scoring", "recall@1")[1].split())
    assert "candidates by recall@1" in printed


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--scoring", "f1"), "--scoring 'f1' does not exist; wanted accuracy, auc, map"),
        (("--scoring", "precision@0"), "does not exist"),
        (("--scoring", "map", "--gamma", "1"), "give one of them"),
        (("--scoring", "accuracy", "--holdout", "classes"), "wanted auc, map"),
    ],
)
def test_scores_that_do_not_exist_or_suit_are_refused(trees, run, options, message):
    code, out, err = run(*FIT, *options)
    assert code == 2 and message in err and not out and len(err.splitlines()) == 1
    assert not (trees.parent / "m.safetensors").exists()


def test_retrieval_needs_labels(trees, run):
    (trees.parent / "pairs.csv").write_text("a,b,same\nr0,r2,1\nr0,r1,0\n")
    code, _, err = run(
        "evaluate", "trees.csv", "--id", "name", "--drop", "kind", "--pairs", "pairs.csv", "--scoring", "map"
    )
    assert code == 2 and "--scoring map needs labels" in err and "--scoring auc" in err
