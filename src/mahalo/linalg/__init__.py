"""Linear algebra: symmetric matrices, covariance, scatter within classes, rank-one updates, threads."""

from ..types import Matrix
from .blocks import row_blocks, row_slices, sq_norms, to_dense
from .class_moments import ClassMoments, ScatterKind
from .covariance import (
    Moments,
    centre_far_columns,
    column_variances,
    condense_rows,
    make_invertible,
    moments,
    positive_variances,
    scaled_sq_norms,
    second_moment,
    shrunk_correlation,
)
from .k_smallest import ExactDistances, nearest_of, nearest_rows, refined_nearest
from .rank_one import add_outer, from_upper, log_det_of_upper, rank_one_steps, times_upper
from .scatter import Scatter, ledoit_wolf_intensity, rounding_of
from .symmetric import (
    cholesky_or_none,
    inverse_factor,
    log_det,
    log_det_or_minus_infinity,
    spd_factor,
    spd_roots,
    symmetric_product,
    symmetrize,
    times_lower,
)
from .threads import in_threads, one_thread_if_narrow
from .within_class import (
    MAX_DENSE_COLUMNS,
    MAX_SPARSE_COLUMNS,
    class_means,
    fourth_moment,
    scatter_of_differences,
    within_scatter,
)
