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
from ..progress import Progress
from ..tables.formatting import list_some, shorten
from ..tables.labels_and_ids import name_rows
from ..tables.model import FittedModel
from ..tables.text_columns import join_texts
from ..text import HybridIndex
from .options import RowOptions

__all__ = ["Answer", "Answers", "print_answers", "search_texts"]

_SHOWN = 100  # characters of a text in the printed table


@dataclass(frozen=True)
class Answer:
    """A text with its id or row number, its distance to the question, and its score in hybrid search."""

    row: str | int
    distance: float
    text: str
    score: float | None = None

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
class _Documents:
    """Texts that are searched, their ids and frozen vectors, and the hybrid index that they are stored in, if any."""

    source: str
    texts: list[str]
    ids: list[str] | None
    vectors: np.ndarray
    index: HybridIndex | None = None

    def answers(self, found: np.ndarray, distances: np.ndarray, scores: np.ndarray | None = None) -> tuple[Answer, ...]:
        names = name_rows(found, self.ids).tolist()
        values = [None] * len(found) if scores is None else scores.tolist()
        return tuple(map(Answer, names, distances.tolist(), (self.texts[row] for row in found), values))


def search_texts(model: Path, question: str, rows: RowOptions, k: int, hybrid: bool, progress: Progress) -> Answers:
    """Return the k nearest texts of a table, or of a saved hybrid index, for a question.

    Distances by frozen vectors are Euclidean ones between vectors of unit length; so are those of queries that were
    multiplied with a matrix from feedback.
    """
    fitted, adapter = _load(model, rows.encoder)
    _check_question(fitted, question, hybrid)
    documents = _load_documents(fitted, rows, hybrid, progress)
    X, encoder = documents.vectors, fitted.text_encoder
    E = X[:, : encoder.dimension]
    with warnings.catch_warnings(action="ignore"):  # the error below says it for the question
        q = encoder.encode([question])
    if not q.any():
        raise ValueError(f"{encoder.name} knows no word of the question {question!r}; ask in other words.")
    away = np.linalg.norm(E.astype(np.float64) - q, axis=1)
    nearest = nearest_of(away[None], k)[0]
    frozen = documents.answers(nearest, away[nearest])
    if adapter is not None:
        turned = adapter.transform(q)
        learned_away = np.linalg.norm(E.astype(np.float64) - turned / np.linalg.norm(turned), axis=1)
    else:
        numbers = X[:, encoder.dimension :].mean(axis=0, keepdims=True)  # a question has none: the mean of the table
        learned_away = fitted.metric.distances(np.hstack([q, numbers]), X)[0]
    if hybrid:
        index = documents.index or _hybrid_index(documents, fitted, adapter)
        best = index.search([question], k)
        learned = documents.answers(best.rows[0], learned_away[best.rows[0]], best.scores[0])
        return Answers(question, documents.source, learned, frozen, index.weight)
    found = nearest_of(learned_away[None], k)[0]
    return Answers(question, documents.source, documents.answers(found, learned_away[found]), frozen)


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


def _load_documents(fitted: FittedModel, rows: RowOptions, hybrid: bool, progress: Progress) -> _Documents:
    path = Path(rows.data[0])
    if path.suffix == ".safetensors" and kind_of_file(path) == HYBRID.name:
        if not hybrid:
            raise ValueError(f"{path.name} is an index with BM25; give --hybrid, or the table of its texts.")
        index = HybridIndex.load(path, fitted.text_encoder, progress)
        if index.metric is None or not np.array_equal(index.metric.matrix, fitted.metric.matrix):
            raise ValueError(f"{path.name} was built with another model; build it again: mahalo index --hybrid.")
        vectors = fitted.text_encoder.encode(index.texts, progress)
        return _Documents(path.name, index.texts, index.ids, vectors, index)
    read = fitted.read(rows, progress)
    return _Documents(read.table.source, join_texts(read.table, fitted.record.text), read.ids, read.X)


def _hybrid_index(documents: _Documents, fitted: FittedModel, adapter: QueryAdapter | None) -> HybridIndex:
    if adapter is None:
        return HybridIndex(documents.texts, fitted.text_encoder, fitted.metric)
    return HybridIndex(documents.texts, fitted.text_encoder, query_matrix=adapter.matrix_)


def _check_question(fitted: FittedModel, question: str, hybrid: bool) -> None:
    """Raise ValueError if the question is empty or the model does not take texts."""
    if not fitted.record.text:
        columns = f"columns {list_some(fitted.record.columns)}" if fitted.record.columns else "vectors"
        raise ValueError(
            f"{fitted.path.name} was fitted on {columns}, not on texts; give a model of mahalo fit --text COLUMN."
        )
    if hybrid and fitted.is_mixed:
        raise ValueError(f"{fitted.path.name} was fitted on texts and numbers; --hybrid is for texts alone.")
    if not question.strip():
        raise ValueError("the question is empty; wanted a text in quotes.")


def print_answers(answers: Answers) -> None:
    """Print learned and frozen answers side by side."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(show_edge=False, pad_edge=False, header_style="dim")
    table.add_column("", justify="right")
    learned = "learned metric" if answers.bm25_weight is None else f"learned metric, BM25 {answers.bm25_weight:g}"
    for name in (learned, "frozen vectors"):
        table.add_column("distance", justify="right")
        table.add_column(name, ratio=1)
    for rank, pair in enumerate(zip(answers.learned, answers.frozen, strict=True), 1):
        cells = [
            cell for one in pair for cell in (f"{one.distance:.3f}", Text(f"{one.row}: {shorten(one.text, _SHOWN)}"))
        ]
        table.add_row(str(rank), *cells)
    Console(highlight=False).print(table)
