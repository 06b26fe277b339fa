"""Answers to the pairs of a file by plain functions: those of the classifier."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from mahalo.pairs import PairClassifier
from mahalo.tables.options import RowOptions, TextFormat
from mahalo.workflows.options import LearningOptions
from mahalo.workflows.pair_answers import learn_classifier, load_classifier


def test_pairs_are_answered_alike_by_a_learned_and_a_loaded_classifier(trees):
    rows = RowOptions(data=["trees.csv"], label="kind", id="name")
    learned = learn_classifier(rows, LearningOptions(gamma=1.0))
    learned.classifier.save("same.safetensors")
    Path("ask.csv").write_text("a,b\n" + "".join(f"r{k},r{k + 9}\n" for k in range(10)))
    loaded = load_classifier(Path("same.safetensors"), trees.rows)
    answers, again = (found.answer_file("ask.csv", TextFormat()) for found in (learned, loaded))
    expected, pairs = PairClassifier.load("same.safetensors"), np.column_stack([np.arange(10), np.arange(9, 19)])
    np.testing.assert_allclose(answers["distance"], np.diag(expected.metric_.distances(trees.X[:10], trees.X[9:19])))
    np.testing.assert_allclose(answers["probability"], expected.predict_proba(trees.X, pairs)[:, 1])
    assert answers["same"].tolist() == expected.predict(trees.X, pairs).astype(int).tolist()
    assert answers["first"].tolist() == [f"r{k}" for k in range(10)]
    assert {name: values.tolist() for name, values in again.items()} == {
        name: values.tolist() for name, values in answers.items()
    }


def test_the_aim_of_the_threshold_is_passed_on(trees):
    rows, learning = RowOptions(data=["trees.csv"], label="kind", id="name"), LearningOptions(gamma=1.0)
    strict = learn_classifier(rows, learning, threshold="fpr", fpr=0.001, base_rate=0.01).classifier
    assert (strict.threshold, strict.fpr, strict.base_rate) == ("fpr", 0.001, 0.01)
    assert strict.calibration_(np.array([0.0]))[0] < learn_classifier(rows, learning).classifier.calibration_([0.0])[0]
