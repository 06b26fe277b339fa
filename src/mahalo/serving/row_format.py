"""Form of the rows that a model takes, and of the ids of an index."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..tables.formatting import list_some
from ..tables.model import FittedModel

__all__ = ["RowFormat"]


@dataclass(frozen=True)
class RowFormat:
    """Form of rows and ids in requests.

    Attributes
    ----------
    n_features : int
        Numbers of a row.
    names : tuple of str
        Names of these numbers; empty if the model has none.
    takes_texts : bool
        True if rows may be texts.
    n_beside : int
        Numbers beside a text, the last of a row; 0 for a model of texts alone.
    has_text_ids : bool
        True if ids are strings, False if they are integers.
    """

    n_features: int
    names: tuple[str, ...]
    takes_texts: bool
    n_beside: int
    has_text_ids: bool

    @classmethod
    def of(cls, model: FittedModel, ids: np.ndarray) -> RowFormat:
        """Return the form for a model and the ids of an index; raise ValueError if rows are not numbers or texts."""
        n_features = model.metric.n_features
        if n_features is None or model.metric.coordinates.is_precomputed:
            raise ValueError(f"{model.path.name} compares objects that are no rows of numbers; use it in Python.")
        takes_texts = bool(model.record.text)
        n_beside = n_features - model.text_encoder.dimension if takes_texts else 0
        return cls(n_features, tuple(model.feature_names or ()), takes_texts, n_beside, ids.dtype == object)

    @property
    def row(self) -> str:
        """Description of a row."""
        return f"{self.n_features} numbers{_column_list(self.names)}"

    @property
    def beside(self) -> str:
        """Description of the numbers beside a text."""
        return f"{self.n_beside} numbers{_column_list(self.names[-self.n_beside :])}"


def _column_list(names: tuple[str, ...]) -> str:
    return f": {list_some(names)}" if names else ""
