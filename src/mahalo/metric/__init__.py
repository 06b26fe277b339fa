"""The learned metric: measured with, saved and loaded, reduced to its leading directions."""

from .among import cosines, is_positive
from .files import load
from .leading import leading_part
from .metric import Metric
from .query_side import QuerySide
from .scaling import Scaling, for_rows_as_they_come

__all__ = [
    "Metric",
    "QuerySide",
    "Scaling",
    "cosines",
    "for_rows_as_they_come",
    "is_positive",
    "leading_part",
    "load",
]
