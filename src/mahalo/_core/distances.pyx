"""Last step of a distance matrix, in one pass over memory."""
from .checks cimport check_length

ctypedef fused real:
    double
    float

cdef extern from "kernels.h" nogil:
    void mahalo_finish_d(double *G, const double *a, const double *b, ptrdiff_t n, ptrdiff_t m, int root)
    void mahalo_finish_s(float *G, const float *a, const float *b, ptrdiff_t n, ptrdiff_t m, int root)


def finish_distances(real[:, ::1] G, const real[::1] a, const real[::1] b, bint squared):
    """Set G[i, j] ← max(0, a[i] + b[j] − 2 G[i, j]), or its square root unless `squared`."""
    check_length("a", a.shape[0], G.shape[0])
    check_length("b", b.shape[0], G.shape[1])
    if G.shape[0] == 0 or G.shape[1] == 0:
        return
    with nogil:
        if real is double:
            mahalo_finish_d(&G[0, 0], &a[0], &b[0], G.shape[0], G.shape[1], not squared)
        else:
            mahalo_finish_s(&G[0, 0], &a[0], &b[0], G.shape[0], G.shape[1], not squared)
