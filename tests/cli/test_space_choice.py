"""The choice of the space, as `fit` and `evaluate` print it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from csv_tables import write_csv

import mahalo
from mahalo.explain import Provenance


@pytest.fixture
def shells(tmp_path, monkeypatch):
    """Write a ball inside a shell, which a curved space tells apart."""
    monkeypatch.chdir(tmp_path)
    X = np.random.default_rng(0).normal(size=(200, 6))
    length = np.linalg.norm(X, axis=1)
    columns = dict(zip("abcdef", X.T.round(6).tolist(), strict=True))
    return write_csv(Path("shells.csv"), columns | {"kind": np.where(length > np.median(length), "out", "in").tolist()})


def test_fit_prints_how_far_the_other_spaces_were_behind(shells, run):
    code, out, err = run("fit", "shells.csv", "--label", "kind", "--out", "m.safetensors")
    assert (code, err) == (0, "")
    choice = Provenance.of(mahalo.load("m.safetensors")).choice
    words = " ".join(out.split())
    assert f"space {choice.chosen.space};" in words
    for space, behind in choice.spaces_behind.items():
        lag = f"{behind:.3f} behind" if behind >= 0 else f"{-behind:.3f} ahead, a near-tie"
        assert f"{space} {lag}" in words
    assert choice.spaces_behind["linear"] > 0.1


def test_json_has_the_spaces(shells, run):
    code, out, _ = run("evaluate", "shells.csv", "--label", "kind", "--json")
    found = json.loads(out)
    assert code == 0 and found["space"] in ("quadratic", "local", "rbf")
    assert found["space"] not in found["spaces_behind"]
    assert {"unlearned", "LDA", "linear"} <= set(found["spaces_behind"])


def test_one_space_has_no_others(shells, run):
    code, out, _ = run("evaluate", "shells.csv", "--label", "kind", "--kernel", "linear", "--json")
    found = json.loads(out)
    assert code == 0 and found["space"] == "linear" and found["spaces_behind"] == {}
