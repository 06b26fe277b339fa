"""Nearest texts of a typed question, under a learned metric and by frozen vectors."""

from __future__ import annotations

import dataclasses
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..feedback import QueryAdapter
from ..linalg import nearest_of
from ..persistence import FEEDBACK, HYBRID, kind_of_file
from ..progress import SILENT, Progress
from ..tables.labels_and_ids import class_names, name_rows, read_labels
from ..tables.model import FittedModel
from ..tables.options import RowOptions
from ..tables.text_columns import join_texts
from ..text import HybridIndex
from .index_files import is_saved_index, refuse_ids


@dataclass(frozen=True)
class Answer:
    """A text with its id or row number, its distance to the question, its score in hybrid search, and its label."""

    row: str | int
    distance: float
    text: str
    score: float | None = None
    label: str | None = None

    def to_dict(self) -> dict[str, str | int | float]:
        """Return the values that are present."""
        return {name: value for name, value in dataclasses.asdict(self).items() if value is not None}


@dataclass(frozen=True)
class Answers:
    """Answers to a question, nearest first: by the learned metric and by frozen vectors.

    `bm25_weight` is the weight of BM25 in the learned answers, None without it.
    """

    question: str
    source: str
    learned: tuple[Answer, ...]
    frozen: tuple[Answer, ...]
    bm25_weight: float | None = None

    def to_dict(self) -> dict[str, object]:
        """Return values that JSON knows."""
        return {
            "question": self.question,
            "index": self.source,
            "bm25_weight": self.bm25_weight,
            "learned": [one.to_dict() for one in self.learned],
            "frozen": [one.to_dict() for one in self.frozen],
        }


@dataclass(frozen=True, eq=False)
class TextSearch:
    """Texts to search under a model of texts, their ids and labels, and their rows as the model takes them.

    `adapter` turns queries, of a model that was learned from feedback; `hybrid` adds the scores of BM25.
    """

    model: FittedModel
    source: str
    texts: list[str]
    ids: list[str] | None
    labels: list[str | None]
    X: np.ndarray
    adapter: QueryAdapter | None = None
    hybrid: HybridIndex | None = None

    def answer(self, question: str, k: int) -> Answers:
        """Return the k nearest texts of a question.

        Distances by frozen vectors are Euclidean ones between vectors of unit length; so are those of queries that were
        multiplied with a matrix from feedback.
        """
        _check_question(question)
        encoder = self.model.text_encoder
        E = self.X[:, : encoder.dimension]
        with warnings.catch_warnings(action="ignore"):  # the error below says it for the question
            q = encoder.encode([question])
        if not q.any():
            raise ValueError(f"{encoder.name} knows no word of the question {question!r}; ask in other words.")
        frozen_distances = np.linalg.norm(E.astype(np.float64) - q, axis=1)
        frozen = self._nearest(frozen_distances, k)
        if self.adapter is not None:
            turned = self.adapter.transform(q)
            distances = np.linalg.norm(E.astype(np.float64) - turned / np.linalg.norm(turned), axis=1)
        else:
            numbers = self.X[:, encoder.dimension :].mean(axis=0, keepdims=True)  # a question has none: their means
            distances = self.model.metric.distances(np.hstack([q, numbers]), self.X)[0]
        if self.hybrid is None:
            return Answers(question, self.source, self._nearest(distances, k), frozen)
        best = self.hybrid.search([question], k)
        learned = self._answers(best.rows[0], distances[best.rows[0]], best.scores[0].tolist())
        return Answers(question, self.source, learned, frozen, self.hybrid.weight)

    def _nearest(self, distances: np.ndarray, k: int) -> tuple[Answer, ...]:
        found = nearest_of(distances[None], k)[0]
        return self._answers(found, distances[found], [None] * len(found))

    def _answers(self, rows: np.ndarray, distances: np.ndarray, scores: list[float] | list[None]) -> tuple[Answer, ...]:
        names = name_rows(rows, self.ids).tolist()
        texts, labels = ([values[row] for row in rows] for values in (self.texts, self.labels))
        return tuple(map(Answer, names, distances.tolist(), texts, scores, labels))


def search_texts(
    model: Path, question: str, rows: RowOptions, k: int, hybrid: bool, progress: Progress = SILENT
) -> Answers:
    """Return the k nearest texts of a table, or of a saved hybrid index, for a question."""
    _check_question(question)
    return open_text_search(model, rows, hybrid, progress).answer(question, k)


def open_text_search(model: Path, rows: RowOptions, hybrid: bool, progress: Progress = SILENT) -> TextSearch:
    """Load a model of texts, and the texts of a table or of a saved hybrid index; with BM25 if `hybrid`."""
    fitted, adapter = _load(model, rows.encoder)
    fitted.require_texts()
    if hybrid and fitted.is_mixed:
        raise ValueError(f"{fitted.path.name} was fitted on texts and numbers; --hybrid is for texts alone.")
    path = Path(rows.data[0])
    if is_saved_index(rows) and kind_of_file(path) == HYBRID.name:
        refuse_ids(rows)
        return _open_index(fitted, adapter, path, hybrid, progress)
    read = fitted.read(rows, progress)
    texts = join_texts(read.table, fitted.record.text)
    index = _hybrid_index(texts, fitted, adapter) if hybrid else None
    labels = class_names(read_labels(read.table, read.options), len(texts))
    return TextSearch(fitted, read.table.source, texts, read.ids, labels, read.X, adapter, index)


def _load(model: Path, encoder: str | None) -> tuple[FittedModel, QueryAdapter | None]:
    """Return a model, and the adapter of queries if it was learned from feedback."""
    if kind_of_file(model) != FEEDBACK.name:
        return FittedModel.load(model, encoder), None
    adapter = QueryAdapter.load(model)
    if adapter.metric_ is None:
        raise ValueError(
            f"{model.name} does not name its encoder; fit it with mahalo fit --text COLUMN --feedback FILE."
        )
    return FittedModel(model, adapter.metric_, encoder), adapter


def _open_index(
    fitted: FittedModel, adapter: QueryAdapter | None, path: Path, hybrid: bool, progress: Progress
) -> TextSearch:
    """Return the search of a saved hybrid index."""
    if not hybrid:
        raise ValueError(f"{path.name} is an index with BM25; give --hybrid, or the table of its texts.")
    index = HybridIndex.load(path, fitted.text_encoder, progress)
    if index.metric is None or not np.array_equal(index.metric.matrix, fitted.metric.matrix):
        raise ValueError(f"{path.name} was built with another model; build it again: mahalo index --hybrid.")
    E = fitted.text_encoder.encode(index.texts, progress)
    labels = index.labels or [None] * index.n_texts
    return TextSearch(fitted, path.name, index.texts, index.ids, labels, E, adapter, index)


def _hybrid_index(texts: list[str], fitted: FittedModel, adapter: QueryAdapter | None) -> HybridIndex:
    if adapter is None:
        return HybridIndex(texts, fitted.text_encoder, fitted.metric)
    return HybridIndex(texts, fitted.text_encoder, query_matrix=adapter.matrix_)


def _check_question(question: str) -> None:
    if not question.strip():
        raise ValueError("the question is empty; wanted a text in quotes.")
