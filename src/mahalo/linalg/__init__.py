"""Symmetric-matrix functions, and threads for loops over rows; a leaf that knows nothing of metrics."""

from .class_moments import ClassMoments, Order
from .covariance import (
    Moments,
    column_variances,
    condensed,
    invertible,
    moments,
    near_zero,
    positive_variances,
    row_blocks,
    second_moment,
    shrunk_correlation,
    sq_norms,
)
from .matrix import Matrix
from .rank_one import add_outer, from_upper, log_det_of_upper, steps_in_block, times_upper
from .scatter import Scatter, rounding_of
from .smallest import nearest_of
from .symmetric import (
    cholesky_or_none,
    inverse_factor,
    log_det,
    log_det_or_minus_infinity,
    spd_factor,
    spd_roots,
    symmetrize,
)
from .threads import in_threads
from .within import WIDEST, WIDEST_DENSE, class_means, fourth_moment, scatter_of_differences, within_scatter

__all__ = [
    "WIDEST",
    "WIDEST_DENSE",
    "ClassMoments",
    "Matrix",
    "Moments",
    "Order",
    "Scatter",
    "add_outer",
    "cholesky_or_none",
    "class_means",
    "column_variances",
    "condensed",
    "fourth_moment",
    "from_upper",
    "in_threads",
    "inverse_factor",
    "invertible",
    "log_det",
    "log_det_of_upper",
    "log_det_or_minus_infinity",
    "moments",
    "near_zero",
    "nearest_of",
    "positive_variances",
    "rounding_of",
    "row_blocks",
    "scatter_of_differences",
    "second_moment",
    "shrunk_correlation",
    "spd_factor",
    "spd_roots",
    "sq_norms",
    "steps_in_block",
    "symmetrize",
    "times_upper",
    "within_scatter",
]
