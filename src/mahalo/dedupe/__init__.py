"""Duplicates in one table or between two: candidate pairs, calibrated probabilities, and groups of a precision."""

from .columns import Columns, fold_text, number_columns, text_columns
from .deduplicator import Deduplicator
from .groups import Duplicates
from .proposals import propose_pairs

__all__ = [
    "Columns",
    "Deduplicator",
    "Duplicates",
    "fold_text",
    "number_columns",
    "propose_pairs",
    "text_columns",
]
