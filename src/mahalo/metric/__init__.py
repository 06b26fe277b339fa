"""The learned metric: measured with, saved and loaded, reduced to its leading directions."""

from .coordinate_distances import CoordinateDistances
from .files import load
from .leading import leading_part
from .metric import Metric
from .pairwise import cosines, is_positive
from .query_side import QuerySide
from .scaling import Scaling, absorb_scaling

__all__ = ["Metric", "QuerySide", "load"]
