"""Histogram intersections of sparse rows, sixteen at a time."""
from .checks cimport check_length, check_shape

cdef extern from "kernels.h" nogil:
    const int MAHALO_LANES
    void mahalo_intersections(const float *table, const int *start, const int *bin, const float *value,
                              double *out, Py_ssize_t n_rows)

LANES = MAHALO_LANES


cdef int check_ends(str name, const int[::1] start, Py_ssize_t n_entries) except -1:
    cdef Py_ssize_t last = start.shape[0] - 1
    if last < 0 or start[0] < 0 or start[last] > n_entries:
        raise ValueError(f"{name} must be in [0, {n_entries}], one more than there are rows; got {list(start)}.")
    return 0


def intersect_rows(float[:, ::1] table, const int[::1] start_a, const int[::1] bin_a, const float[::1] value_a,
                   const int[::1] start_b, const int[::1] bin_b, const float[::1] value_b, double[:, ::1] out):
    """Set out[j, t] = Σ_b min(A[t, b], B[j, b]) for the up to LANES rows of A and all rows of B, both in CSR form.

    `table` (bins × LANES) must be zero, and is zero on return. Starts must not decrease and bins must be in the table;
    `kernels.histograms` checks that.
    """
    cdef Py_ssize_t t, q
    check_length("a row of table", table.shape[1], MAHALO_LANES)
    check_length("value_a", value_a.shape[0], bin_a.shape[0])
    check_length("value_b", value_b.shape[0], bin_b.shape[0])
    check_ends("start_a", start_a, bin_a.shape[0])
    check_ends("start_b", start_b, bin_b.shape[0])
    check_shape("out", out.shape[0], out.shape[1], start_b.shape[0] - 1, MAHALO_LANES)
    if start_a.shape[0] - 1 > MAHALO_LANES:
        raise ValueError(f"there must be at most {MAHALO_LANES} rows of A; got {start_a.shape[0] - 1}.")
    if bin_a.shape[0] == 0 or bin_b.shape[0] == 0:
        out[:] = 0.0
        return
    with nogil:
        for t in range(start_a.shape[0] - 1):
            for q in range(start_a[t], start_a[t + 1]):
                table[bin_a[q], t] = value_a[q]
        mahalo_intersections(&table[0, 0], &start_b[0], &bin_b[0], &value_b[0], &out[0, 0], start_b.shape[0] - 1)
        for t in range(start_a.shape[0] - 1):
            for q in range(start_a[t], start_a[t + 1]):
                table[bin_a[q], t] = 0.0
