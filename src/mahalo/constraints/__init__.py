"""Pairs, triplets and linear forms: made, checked, sampled from labels, given bounds, turned into an operator."""

from .bounds import resolve_bounds
from .collection import Constraints, as_constraints, renumbered
from .diagnosis import ConstraintReport
from .forms import EdgeForms
from .geometry import Geometry, MappedGeometry, VectorGeometry, sq_distances
from .identical import Meaningful, meaningful
from .labels import (
    Labels,
    as_given,
    as_labels,
    class_codes,
    codes_by_appearance,
    codes_of,
    codes_together,
    labels_by_appearance,
    refuse_constraints,
    where_any,
)
from .posing import Posed, posed
from .splitting import PairSplit

__all__ = [
    "ConstraintReport",
    "Constraints",
    "EdgeForms",
    "Geometry",
    "Labels",
    "MappedGeometry",
    "Meaningful",
    "PairSplit",
    "Posed",
    "VectorGeometry",
    "as_constraints",
    "as_given",
    "as_labels",
    "class_codes",
    "codes_by_appearance",
    "codes_of",
    "codes_together",
    "labels_by_appearance",
    "meaningful",
    "posed",
    "refuse_constraints",
    "renumbered",
    "resolve_bounds",
    "sq_distances",
    "where_any",
]
