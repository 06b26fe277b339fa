"""One small Newton system, solved whole: where calls from Python would cost more than the arithmetic they ask for."""
from libc.math cimport INFINITY

import numpy as np

from .checks cimport check_indices, check_length, check_shape, check_starts

cdef extern from "kernels.h" nogil:
    void mahalo_lengths(const double *Z, const double *X, double *out, Py_ssize_t n, Py_ssize_t r)
    void mahalo_gram(const double *Z, const double *weight, double *H, Py_ssize_t n, Py_ssize_t r)
    double mahalo_dot(const double *x, const double *y, Py_ssize_t n)
    void mahalo_combine(double a, const double *x, double b, double *y, Py_ssize_t n)
    void mahalo_multiply(const double *x, const double *y, double a, const double *z, double *out, Py_ssize_t n)


cdef struct System:
    Py_ssize_t n_edges, n_forms, r
    const double *Z            # n_edges × r
    const Py_ssize_t *start    # form k is Σ coefficient[q] · edge[q] over start[k] ≤ q < start[k + 1]; NULL: edge k
    const Py_ssize_t *edge
    const double *coefficient
    const double *E
    const double *root
    const double *inverse      # preconditioner: 1 / divisor, and the block over the diagonal or NULL
    const double *block
    double *length             # of every edge, then its weight


cdef void product(const System *system, const double *X, double *rooted, double *q, double *out) noexcept nogil:
    """q = A (root ∘ X) and out = X + root ∘ A* E q."""
    cdef Py_ssize_t k, p, r = system.r
    cdef double value
    mahalo_multiply(system.root, X, 0.0, X, rooted, r * r)
    mahalo_lengths(system.Z, rooted, system.length, system.n_edges, r)
    if system.start == NULL:
        for k in range(system.n_forms):
            q[k] = system.length[k]
            system.length[k] *= system.E[k]
    else:
        for k in range(system.n_forms):
            value = 0.0
            for p in range(system.start[k], system.start[k + 1]):
                value += system.coefficient[p] * system.length[system.edge[p]]
            q[k] = value
        for k in range(system.n_edges):
            system.length[k] = 0.0
        for k in range(system.n_forms):
            for p in range(system.start[k], system.start[k + 1]):
                system.length[system.edge[p]] += system.coefficient[p] * system.E[k] * q[k]
    mahalo_gram(system.Z, system.length, rooted, system.n_edges, r)
    mahalo_multiply(system.root, rooted, 1.0, X, out, r * r)


cdef void precondition(const System *system, const double *R, double *diagonal, double *out) noexcept nogil:
    cdef Py_ssize_t i, r = system.r
    mahalo_multiply(system.inverse, R, 0.0, R, out, r * r)
    if system.block == NULL:
        return
    for i in range(r):
        diagonal[i] = R[i * r + i]
    for i in range(r):
        out[i * r + i] = mahalo_dot(system.block + i * r, diagonal, r)


cdef Py_ssize_t iterate(const System *system, double *X, double *q, double *residual, double *squares, double *vectors,
                        double small_rz, double inexact, Py_ssize_t most) noexcept nogil:
    """Preconditioned conjugate gradients from X = 0; `squares` and `vectors` are room to work in."""
    cdef Py_ssize_t n = 0, rr = system.r * system.r
    cdef double *direction = squares
    cdef double *H_direction = squares + rr
    cdef double *z = squares + 2 * rr
    cdef double *rooted = squares + 3 * rr
    cdef double *diagonal = vectors
    cdef double *q_direction = vectors + system.r
    cdef double rz, previous, curvature, alpha
    precondition(system, residual, diagonal, direction)
    rz = mahalo_dot(residual, direction, rr)
    while rz > small_rz and n < most:
        if mahalo_dot(residual, residual, rr) <= inexact * inexact * mahalo_dot(X, X, rr):
            break
        n += 1
        product(system, direction, rooted, q_direction, H_direction)
        curvature = mahalo_dot(direction, H_direction, rr)
        if not 0.0 < curvature < INFINITY:
            break
        alpha = rz / curvature
        mahalo_combine(alpha, direction, 1.0, X, rr)
        mahalo_combine(alpha, q_direction, 1.0, q, system.n_forms)
        mahalo_combine(-alpha, H_direction, 1.0, residual, rr)
        precondition(system, residual, diagonal, z)
        previous = rz
        rz = mahalo_dot(residual, z, rr)
        mahalo_combine(1.0, z, rz / previous, direction, rr)
    return n


def solve_small(const double[:, ::1] Y, const Py_ssize_t[::1] tail, const Py_ssize_t[::1] head, combine,
                const double[::1] E, const double[:, :] R, const double[:, :] root,
                const double[:, :] divisor, const double[:, ::1] block,
                double small_rz, double inexact, Py_ssize_t most):
    """X, q = A (root ∘ X) and the number of products for X + root ∘ A* E A (root ∘ X) = R.

    Edges join rows of Y; `combine` is None or (start, edge, coefficient), which make forms of them. R, root and divisor
    are symmetric, as X is then: of some one half is read. Matrices are copied to rows of a length that suits vector units.
    """
    cdef Py_ssize_t n_edges = tail.shape[0], n_forms = E.shape[0], r = Y.shape[1], padded = (r + 7) // 8 * 8
    cdef Py_ssize_t rr = padded * padded, i, j, n
    cdef double[::1] memory = np.zeros(9 * rr + n_edges * (padded + 1) + padded + n_forms)
    cdef double[:, ::1] X = np.zeros((r, r))
    cdef double[::1] q = np.zeros(n_forms)
    cdef const Py_ssize_t[::1] start, edge
    cdef const double[::1] coefficient
    cdef double *square  # root, inverse, block, residual, X, and four to work with
    cdef double *rows
    cdef System system
    check_shape("R", R.shape[0], R.shape[1], r, r)
    check_shape("root", root.shape[0], root.shape[1], r, r)
    check_shape("divisor", divisor.shape[0], divisor.shape[1], r, r)
    if block is not None:
        check_shape("block", block.shape[0], block.shape[1], r, r)
    check_length("head", head.shape[0], n_edges)
    if n_edges == 0 or n_forms == 0 or r == 0:
        return np.array(R), np.asarray(q), 0
    check_indices("tail", &tail[0], n_edges, Y.shape[0])
    check_indices("head", &head[0], n_edges, Y.shape[0])
    system.start = NULL
    if combine is None:
        check_length("the weights E", n_forms, n_edges)
    else:
        start, edge, coefficient = combine
        check_length("the weights E", n_forms, start.shape[0] - 1)
        check_starts("start", start, edge.shape[0])
        check_length("coefficient", coefficient.shape[0], edge.shape[0])
        if edge.shape[0] == 0:
            return np.array(R), np.asarray(q), 0
        check_indices("edge", &edge[0], edge.shape[0], n_edges)
        system.start, system.edge, system.coefficient = &start[0], &edge[0], &coefficient[0]
    square = &memory[0]
    rows = square + 9 * rr
    with nogil:
        for i in range(n_edges):
            for j in range(r):
                rows[i * padded + j] = Y[tail[i], j] - Y[head[i], j]
        for i in range(r):
            for j in range(r):
                square[i * padded + j] = root[i, j]
                square[rr + i * padded + j] = 1.0 / divisor[i, j]
                if block is not None:
                    square[2 * rr + i * padded + j] = block[i, j]
                square[3 * rr + i * padded + j] = R[i, j]
        system.n_edges, system.n_forms, system.r = n_edges, n_forms, padded
        system.Z, system.E, system.length = rows, &E[0], rows + n_edges * padded
        system.root, system.inverse = square, square + rr
        system.block = NULL if block is None else square + 2 * rr
        n = iterate(&system, square + 4 * rr, &q[0], square + 3 * rr, square + 5 * rr,
                    system.length + n_edges, small_rz, inexact, most)
        for i in range(r):
            for j in range(r):
                X[i, j] = square[4 * rr + i * padded + j]
    return np.asarray(X), np.asarray(q), n
