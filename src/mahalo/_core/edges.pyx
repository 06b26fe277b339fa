"""Products over edges (i, j), pairs of rows, with at most a few differences in memory at a time.

Ends of edges must be valid rows: `EdgeForms` checks them, except for `edge_rows`.
"""
import numpy as np

from .checks cimport check_indices, check_length, check_shape

ctypedef fused real:
    double
    float

cdef extern from "kernels.h" nogil:
    void mahalo_edge_rows(const double *Y, const Py_ssize_t *tail, const Py_ssize_t *head, double *out,
                          Py_ssize_t n_edges, Py_ssize_t r)
    void mahalo_edge_dots_d(const double *A, const double *B, const Py_ssize_t *tail, const Py_ssize_t *head,
                            double *out, Py_ssize_t n_edges, Py_ssize_t r)
    void mahalo_edge_laplacian_d(const double *Y, const Py_ssize_t *start, const Py_ssize_t *neighbour,
                                 const Py_ssize_t *edge, const double *weight, double *out,
                                 Py_ssize_t first, Py_ssize_t last, Py_ssize_t r)
    void mahalo_edge_dots_s(const float *A, const float *B, const Py_ssize_t *tail, const Py_ssize_t *head,
                            double *out, Py_ssize_t n_edges, Py_ssize_t r)
    void mahalo_edge_laplacian_s(const float *Y, const Py_ssize_t *start, const Py_ssize_t *neighbour,
                                 const Py_ssize_t *edge, const double *weight, float *out,
                                 Py_ssize_t first, Py_ssize_t last, Py_ssize_t r)
    void mahalo_edge_gram(const double *Y, const Py_ssize_t *tail, const Py_ssize_t *head, const double *weight,
                          double *H, double *rows, Py_ssize_t n_edges, Py_ssize_t r, Py_ssize_t padded, int squared)
    int MAHALO_BATCH


def edge_rows(const double[:, ::1] Y, const Py_ssize_t[::1] tail, const Py_ssize_t[::1] head):
    """Return Y[i] − Y[j] for every edge (i, j); the ends are checked."""
    cdef Py_ssize_t n = tail.shape[0], r = Y.shape[1]
    cdef double[:, ::1] out = np.empty((n, r))
    check_length("head", head.shape[0], n)
    if n == 0 or r == 0:
        return np.asarray(out)
    check_indices("tail", &tail[0], n, Y.shape[0])
    check_indices("head", &head[0], n, Y.shape[0])
    with nogil:
        mahalo_edge_rows(&Y[0, 0], &tail[0], &head[0], &out[0, 0], n, r)
    return np.asarray(out)


def edge_dots(const real[:, ::1] A, const real[:, ::1] B,
              const Py_ssize_t[::1] tail, const Py_ssize_t[::1] head, double[::1] out):
    """Set out[e] = (A[i] − A[j]) · (B[i] − B[j]) for the edge e = (i, j) = (tail[e], head[e])."""
    check_shape("B", B.shape[0], B.shape[1], A.shape[0], A.shape[1])
    check_length("head", head.shape[0], tail.shape[0])
    check_length("out", out.shape[0], tail.shape[0])
    if tail.shape[0] == 0:
        return
    if A.shape[1] == 0:
        out[:] = 0.0
        return
    with nogil:
        if real is double:
            mahalo_edge_dots_d(&A[0, 0], &B[0, 0], &tail[0], &head[0], &out[0], tail.shape[0], A.shape[1])
        else:
            mahalo_edge_dots_s(&A[0, 0], &B[0, 0], &tail[0], &head[0], &out[0], tail.shape[0], A.shape[1])


def edge_laplacian(const real[:, ::1] Y, const Py_ssize_t[::1] start, const Py_ssize_t[::1] neighbour,
                   const Py_ssize_t[::1] edge, const double[::1] weight, real[:, ::1] out,
                   Py_ssize_t first, Py_ssize_t last):
    """Set out[i] = Σ_{e=(i,j)} weight[e] (Y[i] − Y[j]) for first ≤ i < last: rows of Laplacian(weight) @ Y.

    Row i's edges are `edge[start[i]:start[i+1]]`, its other ends `neighbour[...]`; rows are independent,
    so threads may divide them.
    """
    check_length("start", start.shape[0], Y.shape[0] + 1)
    check_length("edge", edge.shape[0], 2 * weight.shape[0])
    check_length("neighbour", neighbour.shape[0], edge.shape[0])
    check_length("the last row's end in edge", start[Y.shape[0]], edge.shape[0])
    check_shape("out", out.shape[0], out.shape[1], Y.shape[0], Y.shape[1])
    if not 0 <= first <= last <= Y.shape[0]:
        raise ValueError(f"first and last must be in order in [0, {Y.shape[0]}]; got {first} and {last}.")
    if Y.shape[0] == 0 or Y.shape[1] == 0:
        return
    if edge.shape[0] == 0:
        out[first:last] = 0.0
        return
    with nogil:
        if real is double:
            mahalo_edge_laplacian_d(&Y[0, 0], &start[0], &neighbour[0], &edge[0], &weight[0], &out[0, 0],
                                    first, last, Y.shape[1])
        else:
            mahalo_edge_laplacian_s(&Y[0, 0], &start[0], &neighbour[0], &edge[0], &weight[0], &out[0, 0],
                                    first, last, Y.shape[1])


def edge_gram(const double[:, ::1] Y, const Py_ssize_t[::1] tail, const Py_ssize_t[::1] head,
              const double[::1] weight, bint squared):
    """Return Σ_e weight[e] z zᵀ over edges z = Y[i] − Y[j], or over their squares z ∘ z; for few edges, in one thread."""
    cdef Py_ssize_t r = Y.shape[1], padded = (r + 7) // 8 * 8, i, j
    cdef double[:, ::1] out = np.zeros((r, r))
    cdef double[:, ::1] work
    check_length("head", head.shape[0], tail.shape[0])
    check_length("weight", weight.shape[0], tail.shape[0])
    if r == 0 or tail.shape[0] == 0:
        return np.asarray(out)
    work = np.zeros((padded + MAHALO_BATCH, padded))
    with nogil:
        mahalo_edge_gram(&Y[0, 0], &tail[0], &head[0], &weight[0], &work[0, 0], &work[padded, 0],
                         tail.shape[0], r, padded, squared)
        for i in range(r):
            for j in range(r):
                out[i, j] = work[i, j]
    return np.asarray(out)
