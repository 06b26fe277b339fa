"""StudioTable: what is known about the rows of a session beside the numbers that are learned from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..metric import Metric
from .items import Items


def _unchanged(metric: Metric) -> Metric:
    return metric


@dataclass(frozen=True, eq=False)
class StudioTable:
    """Items, names and use of the rows of a session.

    Attributes
    ----------
    items : Items
        Rows as people see them.
    names : tuple of str or None
        Names of the columns that are learned from.
    source : str
        Path of the table.
    finish : callable
        Adds to a metric what tables need to use it: scaling of columns, names, the encoder of texts.
    encode : callable or None
        Returns the vector of a typed text; None if rows are not texts.
    """

    items: Items
    names: Sequence[str] | None = None
    source: str = "data.csv"
    finish: Callable[[Metric], Metric] = _unchanged
    encode: Callable[[str], np.ndarray] | None = None
