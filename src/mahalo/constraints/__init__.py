"""Pairs, triplets and linear forms: made, checked, sampled from labels, given bounds, turned into an operator."""

from .bounds import resolve_bounds, sample_sq_distances, sq_distances
from .collection import Constraints, as_constraints
from .diagnosis import ConstraintReport
from .forms import EdgeForms
from .sampling import as_generator, class_codes
from .splitting import PairSplit

__all__ = [
    "ConstraintReport",
    "Constraints",
    "EdgeForms",
    "PairSplit",
    "as_constraints",
    "as_generator",
    "class_codes",
    "resolve_bounds",
    "sample_sq_distances",
    "sq_distances",
]
