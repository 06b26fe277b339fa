"""Commands over vectors in half precision."""

from __future__ import annotations

import json

import numpy as np
import pytest

import mahalo
from mahalo.explain import fit_notes


@pytest.fixture
def halves(tmp_path, monkeypatch):
    """Vectors in float16, in two shards, and the labels of all of them."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    y = np.arange(120) % 3
    X = (rng.standard_normal((120, 8)) + 2.0 * np.eye(8)[y]).astype(np.float16)
    (tmp_path / "vectors").mkdir()
    for k in (0, 1):
        np.save(tmp_path / "vectors" / f"part-{k}.npy", X[60 * k : 60 * (k + 1)])
    np.save("labels.npy", y)
    return X, y


@pytest.mark.parametrize("how", [("--gamma", "1"), ("--embeddings",), ("--gamma", "1", "--no-standardise")])
def test_half_precision_is_learned_from_to_the_end(run, halves, how):
    code, out, err = run("fit", "vectors", "--labels", "labels.npy", *how, "--out", "m.safetensors", "--json")
    assert code == 0, err
    assert json.loads(out)["rows"] == 120
    assert mahalo.load("m.safetensors").about["provenance"]["notes"]["doubtful_rows"]["judged"] == 120
    for command in (
        ("transform", "m.safetensors", "vectors", "--out", "new.npy"),
        ("neighbors", "m.safetensors", "--index", "vectors", "--out", "near.csv"),
        ("report", "m.safetensors", "--data", "vectors", "--labels", "labels.npy"),
        ("pairs", "vectors", "--labels", "labels.npy", *how, "--save", "same.safetensors"),
    ):
        code, _, err = run(*command)
        assert code == 0, f"{command}: {err}"
    assert np.isfinite(np.load("new.npy")).all()


@pytest.mark.parametrize("settings", [{}, {"basis": 5, "residual": 0.0}, {"basis": 5, "residual": 0.5}], ids=str)
@pytest.mark.parametrize("told", ["labels", "constraints"])
def test_notes_take_rows_in_half_precision(halves, told, settings):
    X, y = halves
    given = mahalo.Constraints.from_labels(y, random_state=0) if told == "constraints" else None
    notes = []
    for rows in (X, X.astype(np.float32)):
        learner = mahalo.MetricLearner(**settings).fit(rows, None if given is not None else y, constraints=given)
        notes.append(fit_notes(learner, rows, y, given))
    assert notes[0] == notes[1]
