"""Small services of every kind, and clients of them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from csv_tables import table, write_csv
from sentence_tables import WORDS, WordCounts, sentences, write_sentences

from mahalo.explain.encoder_record import EncoderRecord
from mahalo.tables.dataset import load_dataset
from mahalo.tables.options import RowOptions
from mahalo.text.backends import CallableModel
from mahalo.workflows.estimation import learn_metric
from mahalo.workflows.options import LearningOptions
from mahalo.workflows.pair_answers import learn_classifier

TOKEN = "a-token-for-tests-alone"
HOST = "127.0.0.1:8770"
HEADERS = {"Authorization": f"Bearer {TOKEN}"}
COLUMNS = ("width", "height", "depth")


def tree_rows(n: int = 40, seed: int = 0) -> np.ndarray:
    """Return the rows of trees.csv, or new ones."""
    columns = table(n, seed)
    return np.column_stack([columns[name] for name in COLUMNS])


def write_numbers(folder: Path) -> None:
    """Write trees.csv, a metric of it, and a pair classifier: metric.safetensors and same.safetensors."""
    write_csv(folder / "trees.csv", table())
    rows = RowOptions(data=[str(folder / "trees.csv")], label="kind", id="name")
    learning = LearningOptions(gamma=1.0)
    learn_metric(load_dataset(rows), learning).metric.save(folder / "metric.safetensors")
    learned = learn_classifier(rows, learning)
    learned.classifier.save(folder / "same.safetensors")


@contextlib.contextmanager
def word_counts(folder: Path) -> Iterator[None]:
    """Let word counts take the place of wordllama, with a cache of their own, for what is loaded in the context."""
    model = CallableModel(EncoderRecord("wordllama", "1", len(WORDS)), WordCounts())
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MAHALO_CACHE_DIR", str(folder / "vectors"))
        patch.setattr("mahalo.text.encoder.load_wordllama", lambda: model)
        yield


def write_texts(folder: Path) -> None:
    """Write t.csv, a metric of its titles, and one of titles and sizes: texts.safetensors and mixed.safetensors."""
    write_sentences(sentences(), str(folder / "t.csv"))
    columns = {"text": ["title"], "label": "subject", "id": "code"}
    for name, more in (("texts", {}), ("mixed", {"columns": ["size"]})):
        rows = RowOptions(data=[str(folder / "t.csv")], **columns, **more)
        learned = learn_metric(load_dataset(rows), LearningOptions(embeddings=True, gamma=1.0))
        learned.metric.save(folder / f"{name}.safetensors")
