"""Pairs, triplets and linear forms over rows: construction, checks, sampling from labels, bounds, operator."""

from .arrays import ConstraintArrays, as_arrays
from .bounds import resolve_bounds
from .collection import Constraints, as_constraints
from .degenerate import Degeneracy, drop_degenerate
from .diagnosis import ConstraintReport
from .forms import EdgeForms
from .geometry import Geometry, MappedGeometry, VectorGeometry, first_of_equal, number_rows, sq_distances
from .labels import (
    Labels,
    as_label_array,
    as_labels,
    class_codes,
    codes_by_appearance,
    codes_of,
    joint_codes,
    labels_by_appearance,
    none_if_unlabelled,
    reject_constraints,
    unique_inverse,
)
from .pair_split import PairSplit
from .row_weights import weighted_by_rows

__all__ = ["ConstraintReport", "Constraints"]
