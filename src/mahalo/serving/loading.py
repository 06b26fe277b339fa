"""A service from the files of a model and of an index."""

from __future__ import annotations

from pathlib import Path

from ..pairs import PairClassifier
from ..persistence import CLASSIFIER, FEEDBACK, HYBRID, kind_of_file
from ..progress import SILENT, Progress
from ..search import build_index
from ..tables.options import RowOptions
from ..workflows.index_files import is_saved_index
from ..workflows.neighbor_search import open_search
from ..workflows.text_search import open_text_search
from .service import SearchService

__all__ = ["load_service"]


def load_service(model: Path, index: RowOptions, progress: Progress = SILENT) -> SearchService:
    """Load a model and a saved index of it, or index the rows of a table; ValueError if they do not fit."""
    kind, path = kind_of_file(model), Path(index.data[0])
    if kind == FEEDBACK.name:
        raise ValueError(
            f"{model.name} was learned from feedback and turns queries alone; give a model of mahalo fit or pairs, or "
            "search with mahalo search."
        )
    classifier = PairClassifier.load(model) if kind == CLASSIFIER.name else None
    if is_saved_index(index) and kind_of_file(path) == HYBRID.name:
        texts = open_text_search(model, index, True, progress)
        assert texts.hybrid is not None
        rows = build_index(texts.model.metric, texts.X, ids=texts.ids)
        return SearchService(texts.model, rows, texts.hybrid.without_cache(), classifier)
    search = open_search(model, index, progress)
    return SearchService(search.model, search.index, classifier=classifier)
