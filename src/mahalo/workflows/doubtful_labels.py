"""Doubtful labels of a table, by metrics learned from the other rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..constraints import as_labels
from ..embeddings import EmbeddingAdapter
from ..explain.suspects import can_be_judged
from ..progress import Progress
from ..selection import MetricLearnerCV
from ..tables.dataset import load_dataset
from ..tables.options import RowOptions


@dataclass(frozen=True, eq=False)
class DoubtfulTable:
    """Rows with the most doubtful labels: name or number, label, label of the neighbours, score."""

    row: list[int]
    id: list[str] | None
    given: list[str]
    suggested: list[str]
    score: np.ndarray
    n_labelled: int

    @property
    def n_doubtful(self) -> int:
        """Number of rows that are closer to another class."""
        return int((self.score > 0.5).sum())

    def columns(self) -> dict[str, list[object] | np.ndarray]:
        """Return the columns of the table to write."""
        columns: dict[str, list[object] | np.ndarray] = {"row": list(self.row)}
        if self.id is not None:
            columns["id"] = list(self.id)
        return columns | {"given": list(self.given), "suggested": list(self.suggested), "score": self.score}


def find_doubtful(options: RowOptions, n: int, embeddings: bool, seed: int, progress: Progress) -> DoubtfulTable:
    """Return the most doubtful labels of a table, by metrics learned from the other rows.

    Parameters
    ----------
    options : RowOptions
    n : int
        Number of rows to return.
    embeddings : bool
        Rows are vectors of an encoder; else their columns are scaled to deviation 1.
    seed : int
    progress : Progress
    """
    dataset = load_dataset(options, progress, in_memory=True)
    if dataset.y is None:
        raise ValueError("suspects judges labels: give --label COLUMN or --labels FILE.")
    y = np.asarray(dataset.y)
    codes = as_labels(y).codes
    if not can_be_judged(codes):
        raise ValueError(f"{dataset.table.source} needs two classes with two rows or more each to judge labels.")
    learner: MetricLearnerCV = EmbeddingAdapter(random_state=seed) if embeddings else MetricLearnerCV(random_state=seed)
    X = dataset.X if embeddings else dataset.scaled(dataset.scaling())
    found = learner.fit(X, y).suspects(X, y, n)
    row = [int(k) for k in found.index]
    return DoubtfulTable(
        row,
        None if dataset.ids is None else [dataset.ids[k] for k in row],
        [str(label) for label in found["given"]],
        [str(label) for label in found["suggested"]],
        np.asarray(found["score"], dtype=np.float64),
        int((codes >= 0).sum()),
    )
