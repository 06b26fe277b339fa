"""The report of a model on the rows of a table."""

from __future__ import annotations

from pathlib import Path

from ..progress import SILENT, Progress
from ..report import write
from ..tables.constraint_files import read_constraints
from ..tables.formatting import shorten
from ..tables.labels_and_ids import read_labels
from ..tables.model import FittedModel, ModelRows
from ..tables.options import RowOptions
from ..tables.text_columns import join_texts
from ..text import WordWeights, frequent_words, word_weights

_SHOWN = 120  # characters of a sentence


def write_report(model: Path, rows: RowOptions, out: Path, progress: Progress = SILENT) -> int:
    """Write the page and return the number of rows; labels and ids are by the options, or by the columns of the fit."""
    fitted = FittedModel.load(model, rows.encoder)
    found = fitted.read(rows, progress)
    y = read_labels(found.table, found.options)
    constraints = read_constraints(found.options, found.table.n_rows, found.ids)
    ids, words = _describe_texts(fitted, found) if fitted.record.text else (found.ids, None)
    write(
        fitted.metric,
        found.X,
        y,
        out,
        constraints=constraints,
        names=fitted.feature_names,
        ids=ids,
        words=words,
        verbose=progress.show,
    )
    return found.table.n_rows


def _describe_texts(fitted: FittedModel, rows: ModelRows) -> tuple[list[str], WordWeights | None]:
    """Return the id or number of each row with its sentence, and the words that matter to a static encoder."""
    texts = join_texts(rows.table, fitted.record.text)
    names = [str(row) for row in range(len(texts))] if rows.ids is None else rows.ids
    shown = [f"{name}: {shorten(text, _SHOWN)}" for name, text in zip(names, texts, strict=True)]
    words = frequent_words(texts)
    if fitted.text_encoder.vocabulary() is None or not fitted.metric.is_linear or not words:
        return shown, None
    return shown, word_weights(fitted.text_encoder, fitted.metric, words)
