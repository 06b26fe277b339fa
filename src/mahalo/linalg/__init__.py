"""Symmetric-matrix functions, and threads for loops over rows; a leaf that knows nothing of metrics."""

from .covariance import column_variances, row_blocks, shrunk_correlation
from .smallest import nearest_of
from .symmetric import cholesky_or_none, inverse_factor, log_det, spd_factor, spd_roots, symmetrize
from .threads import in_threads

__all__ = [
    "cholesky_or_none",
    "column_variances",
    "in_threads",
    "inverse_factor",
    "log_det",
    "nearest_of",
    "row_blocks",
    "shrunk_correlation",
    "spd_factor",
    "spd_roots",
    "symmetrize",
]
