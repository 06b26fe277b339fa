# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Histogram intersections of sparse rows, sixteen at a time."""

cdef extern from "kernels.h" nogil:
    const int MAHALO_LANES
    void mahalo_intersections(const float *table, const int *start, const int *bin, const float *value,
                              double *out, Py_ssize_t n_rows)

LANES = MAHALO_LANES


def intersect_rows(float[:, ::1] table, const int[::1] start_a, const int[::1] bin_a, const float[::1] value_a,
                   const int[::1] start_b, const int[::1] bin_b, const float[::1] value_b, double[:, ::1] out):
    """out[j, t] = Σ_b min(A[t, b], B[j, b]) for the up to LANES rows of A and all rows of B, both in CSR form.

    `table` (bins × LANES) must come zero, and is left so.
    """
    cdef Py_ssize_t t, q
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
