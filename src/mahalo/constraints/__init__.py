"""Pairs, triplets and linear forms: made, checked, sampled from labels, given bounds, turned into an operator."""

from .bounds import checked_bounds, checked_percentiles, resolve_bounds
from .collection import Constraints, as_constraints, as_rows
from .diagnosis import ConstraintReport
from .forms import EdgeForms
from .geometry import Geometry, MappedGeometry, VectorGeometry, len_of, sq_distances
from .sampling import as_generator, check_count, check_strategy, class_codes, n_classes
from .splitting import PairSplit

__all__ = [
    "ConstraintReport",
    "Constraints",
    "EdgeForms",
    "Geometry",
    "MappedGeometry",
    "PairSplit",
    "VectorGeometry",
    "as_constraints",
    "as_generator",
    "as_rows",
    "check_count",
    "check_strategy",
    "checked_bounds",
    "checked_percentiles",
    "class_codes",
    "len_of",
    "n_classes",
    "resolve_bounds",
    "sq_distances",
]
