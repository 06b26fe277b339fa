"""Indexes of the rows or texts of a table, under the distance of a model."""

from __future__ import annotations

from pathlib import Path

from ..progress import SILENT, Progress
from ..search import Index, build_index
from ..tables.labels_and_ids import class_names, read_labels
from ..tables.model import FittedModel
from ..tables.options import RowOptions
from ..tables.text_columns import join_texts
from ..text import HybridIndex


def index_rows(model: Path, rows: RowOptions, backend: str, progress: Progress = SILENT) -> Index:
    """Return an index of the rows of a table, for `mahalo neighbors`."""
    fitted = FittedModel.load(model, rows.encoder)
    found = fitted.read(rows, progress)
    progress.show(f"building: {found.X.shape[0]:,} rows")
    return build_index(fitted.metric, found.X, backend, ids=found.ids)


def index_texts(model: Path, rows: RowOptions, progress: Progress = SILENT) -> HybridIndex:
    """Return an index of the texts of a table with BM25, for `mahalo search --hybrid`."""
    fitted = FittedModel.load(model, rows.encoder)
    if not fitted.record.text:
        raise ValueError(f"{model.name} was not fitted on texts; --hybrid needs a model of mahalo fit --text COLUMN.")
    if fitted.is_mixed:
        raise ValueError(f"{model.name} was fitted on texts and numbers; --hybrid is for texts alone.")
    found = fitted.read(rows, progress)
    texts = join_texts(found.table, fitted.record.text)
    labels = class_names(read_labels(found.table, found.options), len(texts))
    return HybridIndex(texts, fitted.text_encoder, fitted.metric, ids=found.ids, labels=labels, progress=progress)


def is_saved_index(rows: RowOptions) -> bool:
    """Return whether the rows to search are an index that was saved, not a table."""
    return Path(rows.data[0]).suffix.lower() == ".safetensors"


def refuse_ids(index: RowOptions) -> None:
    """Raise ValueError if ids are given for a saved index, which has its own."""
    if index.id is not None or index.ids is not None:
        name = Path(index.data[0]).name
        raise ValueError(f"{name} is an index that was saved with its ids: leave --id and --ids out.")
