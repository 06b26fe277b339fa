"""Notes on a fit say what the learner says, fit into JSON, and are refused where they cannot be of that fit."""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from mahalo import Constraints, MetricLearner
from mahalo.explain import fit_notes
from mahalo.explain.notes import N_NOTED, FitNotes

CLASSES = ("red", "rosé", "white")


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return StandardScaler().fit_transform(X), np.array(CLASSES)[y]


@pytest.fixture(scope="module")
def learner(wine):
    return MetricLearner().fit(*wine)


@pytest.fixture(scope="module")
def noted(learner, wine):
    return json.loads(json.dumps(fit_notes(learner, *wine), allow_nan=False))


def test_constraints_are_those_that_are_influential(learner, noted):
    notes = FitNotes.read(noted, 178, CLASSES)
    table = learner.influential(N_NOTED)
    assert notes.influential.rows == [list(rows) for rows in table["rows"]]
    assert notes.influential.kinds == table["kind"].tolist()
    np.testing.assert_allclose(notes.influential.share, table["dual"] / learner.duals_.sum(), rtol=1e-5)
    np.testing.assert_allclose(notes.influential.value, table["value"], rtol=1e-5)
    assert notes.influential.n_constraints == len(learner.duals_) and notes.constraints is None


def test_doubts_are_those_of_metrics_that_had_not_seen_the_label(learner, wine, noted):
    notes = FitNotes.read(noted, 178, CLASSES)
    table = learner.suspects(*wine, N_NOTED)
    assert notes.rows.held_out and notes.rows.n_judged == 178
    assert notes.rows.rows.tolist() == table.index.tolist()
    np.testing.assert_allclose(notes.rows.score, table["score"], rtol=1e-5)
    assert [CLASSES[code] for code in notes.rows.suggested] == table["suggested"].tolist()
    assert [tuple(near) for near in notes.rows.neighbours] == table["neighbours"].tolist()


def test_constraints_that_were_given_are_judged_as_they_are(wine):
    X, y = wine
    pairs = Constraints.from_labels(y, pairs_per_class=40, random_state=0)
    learner = MetricLearner().fit(X, constraints=pairs)
    notes = FitNotes.read(fit_notes(learner, X, None, pairs), 178, ())
    table = learner.suspects(X, n=N_NOTED)
    assert notes.rows is None
    assert notes.constraints.which.tolist() == table.index.tolist()
    assert notes.constraints.suggested == table["suggested"].tolist()
    with_labels = FitNotes.read(fit_notes(learner, X, y, pairs), 178, CLASSES)
    assert not with_labels.rows.held_out  # no label had a say in what was learned


def test_notes_are_small(noted):
    assert len(json.dumps(noted)) < 20_000


@pytest.mark.parametrize(
    ("where", "value"),
    [
        ((), None),
        ((), []),
        (("constraints",), 3),
        (("constraints", "count"), -1),
        (("constraints", "active"), 10**9),
        (("constraints", "first"), "x"),
        (("constraints", "first", 0, "rows"), [178, 0]),
        (("constraints", "first", 0, "rows"), [True, 0]),
        (("constraints", "first", 0, "kind"), "<script>"),
        (("constraints", "first", 0, "kind"), ["similar"]),
        (("constraints", "first", 0, "bound"), "1"),
        (("constraints", "first", 0, "value"), float("nan")),
        (("constraints", "first", 0, "share"), 1.5),
        (("doubtful_rows", "rows"), [{}]),
        (("doubtful_rows", "rows", 0, "row"), -1),
        (("doubtful_rows", "rows", 0, "score"), 2.0),
        (("doubtful_rows", "rows", 0, "suggested"), "blue"),
        (("doubtful_rows", "rows", 0, "neighbours"), None),
        (("doubtful_rows", "held_out"), "yes"),
        (("doubtful_rows", "judged"), 179),
        (("doubtful_constraints",), [{"constraint": 0, "rows": [0, 1], "given": "linear", "score": 0.5}]),
    ],
    ids=str,
)
def test_damage_is_refused(noted, where, value):
    changed = copy.deepcopy(noted)
    inner = {"": changed}
    *way, last = ("", *where)
    for step in way:
        inner = inner[step]
    inner[last] = value
    with pytest.raises(ValueError, match=r"notes of this model on its fit are damaged \(.*\); fit it again"):
        FitNotes.read(inner[last] if not where else changed, 178, CLASSES)


def test_more_entries_than_are_ever_noted_are_refused(noted):
    changed = copy.deepcopy(noted)
    changed["constraints"]["first"] *= 2
    with pytest.raises(ValueError, match="at most 50 entries"):
        FitNotes.read(changed, 178, CLASSES)
