"""The learned metric: measured with, saved and loaded, reduced to its leading directions."""

from .files import load
from .leading import leading_part
from .metric import Metric

__all__ = ["Metric", "leading_part", "load"]
