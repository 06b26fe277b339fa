"""Models of a small table of numbers and of one of sentences, on disk."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("pyarrow")
from csv_tables import table, write_csv
from sentence_tables import WORDS, WordCounts, sentences, write_sentences

from mahalo.explain.encoder_record import EncoderRecord
from mahalo.tables.dataset import load_dataset
from mahalo.tables.options import RowOptions
from mahalo.text.backends import CallableModel
from mahalo.workflows.estimation import learn_metric
from mahalo.workflows.options import LearningOptions


@pytest.fixture
def trees(tmp_path, monkeypatch):
    """A model of trees.csv, `m.safetensors`, the options of its rows, and the rows as numbers."""
    monkeypatch.chdir(tmp_path)
    columns = table()
    write_csv(Path("trees.csv"), columns)
    rows = RowOptions(data=["trees.csv"], label="kind", id="name")
    metric = learn_metric(load_dataset(rows), LearningOptions(gamma=1.0)).metric
    metric.save("m.safetensors")
    X = np.column_stack([columns[name] for name in ("width", "height", "depth")])
    options = RowOptions(data=["trees.csv"])
    return SimpleNamespace(model=Path("m.safetensors"), rows=options, X=X, ids=columns["name"], metric=metric)


@pytest.fixture
def titles(tmp_path, monkeypatch):
    """A model of the titles of t.csv, `m.safetensors`, the options of its rows, and the titles."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MAHALO_CACHE_DIR", str(tmp_path / "vectors"))
    model = CallableModel(EncoderRecord("wordllama", "1", len(WORDS)), WordCounts())
    monkeypatch.setattr("mahalo.text.encoder.load_wordllama", lambda: model)
    write_sentences(sentences())
    rows = RowOptions(data=["t.csv"], text=["title"], label="subject", id="code")
    metric = learn_metric(load_dataset(rows), LearningOptions(embeddings=True, gamma=1.0)).metric
    metric.save("m.safetensors")
    return SimpleNamespace(model=Path("m.safetensors"), rows=RowOptions(data=["t.csv"]), metric=metric, **sentences())
