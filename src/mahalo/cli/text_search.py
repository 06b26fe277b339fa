"""Nearest texts of a typed question, under a learned metric and by frozen vectors."""

from __future__ import annotations

import dataclasses
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..linalg import nearest_of
from ..progress import Progress
from ..search import build_index
from ..tables.formatting import list_some
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


def search_texts(model: Path, question: str, rows: RowOptions, k: int, hybrid: bool, progress: Progress) -> Answers:
    """Return the k nearest texts of a table for a question.

    Distances by frozen vectors are Euclidean ones between vectors of unit length.
    """
    fitted = FittedModel.load(model, rows.encoder)
    _check_question(fitted, question)
    read = fitted.read(rows, progress)
    texts = join_texts(read.table, fitted.record.text)
    E, encoder = read.X, fitted.text_encoder
    with warnings.catch_warnings(action="ignore"):  # the error below says it for the question
        q = encoder.encode([question])
    if not q.any():
        raise ValueError(f"{encoder.name} knows no word of the question {question!r}; ask in other words.")

    def answers(found: np.ndarray, distances: np.ndarray, scores: np.ndarray | None = None) -> tuple[Answer, ...]:
        names = name_rows(found, read.ids).tolist()
        values = [None] * len(found) if scores is None else scores.tolist()
        shown = (texts[row] for row in found)
        return tuple(map(Answer, names, distances.tolist(), shown, values))

    away = np.linalg.norm(E.astype(np.float64) - q, axis=1)
    nearest = nearest_of(away[None], k)[0]
    frozen = answers(nearest, away[nearest])
    if hybrid:
        index = HybridIndex(texts, encoder, fitted.metric)
        best = index.search([question], k)
        distances = fitted.metric.distances(q, E[best.rows[0]])[0]
        learned = answers(best.rows[0], distances, best.scores[0])
        return Answers(question, read.table.source, learned, frozen, index.weight)
    neighbors = build_index(fitted.metric, E).kneighbors(q, k)
    return Answers(question, read.table.source, answers(neighbors.ids[0], neighbors.distances[0]), frozen)


def _check_question(fitted: FittedModel, question: str) -> None:
    """Raise ValueError if the question is empty or the model does not take texts."""
    if not fitted.record.text:
        columns = f"columns {list_some(fitted.record.columns)}" if fitted.record.columns else "vectors"
        raise ValueError(
            f"{fitted.path.name} was fitted on {columns}, not on texts; give a model of mahalo fit --text COLUMN."
        )
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
        cells = [cell for one in pair for cell in (f"{one.distance:.3f}", Text(f"{one.row}: {_shorten(one.text)}"))]
        table.add_row(str(rank), *cells)
    Console(highlight=False).print(table)


def _shorten(text: str) -> str:
    """Return a text on one line without control characters, cut with an ellipsis."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text[: 4 * _SHOWN]).split())
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN - 1]}…"
