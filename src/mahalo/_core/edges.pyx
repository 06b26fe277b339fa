# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Edge-wise products: a pair (i, j) of rows is never copied out as a difference vector."""


def edge_dots(const double[:, ::1] A, const double[:, ::1] B,
              const Py_ssize_t[::1] tail, const Py_ssize_t[::1] head, double[::1] out):
    """out[e] = (A[i] − A[j]) · (B[i] − B[j]) for the edge e = (i, j) = (tail[e], head[e])."""
    cdef Py_ssize_t e, k, n_edges = tail.shape[0], r = A.shape[1]
    cdef const double *ai
    cdef const double *aj
    cdef const double *bi
    cdef const double *bj
    cdef double total
    if r == 0 or A.shape[0] == 0:
        out[:] = 0.0
        return
    with nogil:
        for e in range(n_edges):
            ai = &A[tail[e], 0]
            aj = &A[head[e], 0]
            bi = &B[tail[e], 0]
            bj = &B[head[e], 0]
            total = 0.0
            for k in range(r):
                total += (ai[k] - aj[k]) * (bi[k] - bj[k])
            out[e] = total


def edge_laplacian(const double[:, ::1] Y, const Py_ssize_t[::1] start, const Py_ssize_t[::1] neighbour,
                   const Py_ssize_t[::1] edge, const double[::1] weight, double[:, ::1] out,
                   Py_ssize_t first, Py_ssize_t last):
    """out[i] = Σ_{e=(i,j)} weight[e] (Y[i] − Y[j]) for first ≤ i < last: rows of Laplacian(weight) @ Y.

    Row i's edges are `edge[start[i]:start[i+1]]`, its other ends `neighbour[...]`; rows are independent,
    so two threads may take two ranges.
    """
    cdef Py_ssize_t i, q, k, r = Y.shape[1]
    cdef const double *yi
    cdef const double *yj
    cdef double *zi
    cdef double w
    if r == 0:
        return
    with nogil:
        for i in range(first, last):
            zi = &out[i, 0]
            yi = &Y[i, 0]
            for k in range(r):
                zi[k] = 0.0
            for q in range(start[i], start[i + 1]):
                w = weight[edge[q]]
                if w != 0.0:
                    yj = &Y[neighbour[q], 0]
                    for k in range(r):
                        zi[k] += w * (yi[k] - yj[k])
