"""Answers to pairs by plain functions: the same as those of the classifier."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mahalo.pairs import PairClassifier
from mahalo.progress import SILENT
from mahalo.tables.options import RowOptions
from mahalo.workflows.options import LearningOptions
from mahalo.workflows.pair_answers import PairModel, Threshold, learn_classifier


def learned(rows: RowOptions, options: LearningOptions) -> PairModel:
    learn_classifier(rows, options, Threshold("accuracy", 0.01, None), SILENT).classifier.save("same.safetensors")
    return PairModel.load(Path("same.safetensors"))


def test_two_blocks_of_rows_are_compared_row_by_row(trees):
    loaded = learned(RowOptions(data=["trees.csv"], label="kind", id="name"), LearningOptions(gamma=1.0))
    found = loaded.compare(trees.X[:10], trees.X[10:20])
    expected = PairClassifier.load("same.safetensors")
    pairs = np.column_stack([np.arange(10), np.arange(10, 20)])
    np.testing.assert_allclose(found.distance, np.diag(expected.metric_.distances(trees.X[:10], trees.X[10:20])))
    np.testing.assert_allclose(found.probability, expected.predict_proba(trees.X[:20], pairs)[:, 1])
    assert found.same.tolist() == expected.predict(trees.X[:20], pairs).astype(int).tolist()
    assert 0 < found.same.sum() < 10


def test_texts_are_compared(titles):
    options = LearningOptions(embeddings=True, gamma=1.0)
    loaded = learned(RowOptions(data=["t.csv"], text=["title"], label="subject", id="code"), options)
    found = loaded.compare_texts(titles.title[:2], titles.title[2:4])
    X = loaded.model.encode_texts(titles.title[:4])
    assert found.distance.tolist() == loaded.classifier.distances(X, [[0, 2], [1, 3]]).tolist()


def test_blocks_of_different_lengths_are_refused(trees):
    loaded = learned(RowOptions(data=["trees.csv"], label="kind", id="name"), LearningOptions(gamma=1.0))
    with pytest.raises(ValueError, match=r"as many first rows as second ones; got shapes \(2, 3\), \(3, 3\)"):
        loaded.compare(trees.X[:2], trees.X[:3])
