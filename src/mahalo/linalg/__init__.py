"""Symmetric-matrix functions, and threads for loops over rows; a leaf that knows nothing of metrics."""

from .covariance import column_variances, row_blocks, shrunk_correlation
from .scatter import Scatter
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
from .within import class_means, scatter_of_differences, within_scatter

__all__ = [
    "Scatter",
    "cholesky_or_none",
    "class_means",
    "column_variances",
    "in_threads",
    "inverse_factor",
    "log_det",
    "log_det_or_minus_infinity",
    "nearest_of",
    "row_blocks",
    "scatter_of_differences",
    "shrunk_correlation",
    "spd_factor",
    "spd_roots",
    "symmetrize",
    "within_scatter",
]
