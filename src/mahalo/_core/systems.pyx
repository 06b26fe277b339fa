"""Conjugate gradients for a small Newton system, where calls from Python would cost more than their arithmetic."""
from libc.math cimport INFINITY

import numpy as np

from .checks cimport check_indices, check_length, check_shape, check_starts

cdef extern from "kernels.h" nogil:
    void mahalo_lengths(const double *Z, const double *X, double *out, Py_ssize_t n, Py_ssize_t r)
    void mahalo_gram(const double *Z, const double *weight, double *H, Py_ssize_t n, Py_ssize_t r)
    double mahalo_dot(const double *x, const double *y, Py_ssize_t n)
    void mahalo_combine(double a, const double *x, double b, double *y, Py_ssize_t n)
    void mahalo_multiply(const double *x, const double *y, double a, const double *z, double *out, Py_ssize_t n)
    int MAHALO_BATCH


cdef Py_ssize_t find_places(const Forms *forms, const double[::1] E, Py_ssize_t *place) noexcept nogil:
    """Number the edges of forms with weight 0, 1, …, others −1; return how many have weight."""
    cdef Py_ssize_t k, p, n_busy = 0
    for k in range(forms.n_edges):
        place[k] = 0 if forms.start == NULL and E[k] != 0.0 else -1
    if forms.start != NULL:
        for k in range(forms.n_forms):
            if E[k] != 0.0:
                for p in range(forms.start[k], forms.start[k + 1]):
                    place[forms.edge[p]] = 0
    for k in range(forms.n_edges):
        if place[k] == 0:
            place[k] = n_busy
            n_busy += 1
    return n_busy


cdef void product(const System *system, const double *X, double *rooted, double *q, double *out) noexcept nogil:
    """Set out = X + root ∘ A* E A (root ∘ X)."""
    cdef const Forms *forms = system.forms
    cdef Py_ssize_t k, p, r = system.r
    mahalo_multiply(system.root, X, 0.0, X, rooted, r * r)
    mahalo_lengths(system.Z, rooted, system.length, system.n_busy, r)
    if forms.start == NULL:
        for k in range(system.n_busy):
            system.length[k] *= system.E[k]
    else:
        for k in range(forms.n_forms):
            q[k] = 0.0
            if system.E[k] != 0.0:
                for p in range(forms.start[k], forms.start[k + 1]):
                    q[k] += forms.coefficient[p] * system.length[system.place[forms.edge[p]]]
                q[k] *= system.E[k]
        for k in range(system.n_busy):
            system.length[k] = 0.0
        for k in range(forms.n_forms):
            if system.E[k] != 0.0:
                for p in range(forms.start[k], forms.start[k + 1]):
                    system.length[system.place[forms.edge[p]]] += forms.coefficient[p] * q[k]
    mahalo_gram(system.Z, system.length, rooted, system.n_busy, r)
    mahalo_multiply(system.root, rooted, 1.0, X, out, r * r)


cdef void values(const Forms *forms, const double[:, ::1] Y, const Py_ssize_t[::1] tail, const Py_ssize_t[::1] head,
                 const double *X, Py_ssize_t r, double *rows, double *length, double *q) noexcept nogil:
    """Set q = A X of all forms; `rows` is MAHALO_BATCH × r, zero beyond the columns of Y."""
    cdef Py_ssize_t k = 0, p, j, n
    while k < forms.n_edges:
        n = min(<Py_ssize_t>MAHALO_BATCH, forms.n_edges - k)
        for p in range(n):
            for j in range(Y.shape[1]):
                rows[p * r + j] = Y[tail[k + p], j] - Y[head[k + p], j]
        mahalo_lengths(rows, X, (q if forms.start == NULL else length) + k, n, r)
        k += n
    if forms.start != NULL:
        for k in range(forms.n_forms):
            q[k] = 0.0
            for p in range(forms.start[k], forms.start[k + 1]):
                q[k] += forms.coefficient[p] * length[forms.edge[p]]


cdef void precondition(const System *system, const double *R, double *diagonal, double *out) noexcept nogil:
    cdef Py_ssize_t i, r = system.r
    mahalo_multiply(system.inverse, R, 0.0, R, out, r * r)
    if system.block == NULL:
        return
    for i in range(r):
        diagonal[i] = R[i * r + i]
    for i in range(r):
        out[i * r + i] = mahalo_dot(system.block + i * r, diagonal, r)


cdef Py_ssize_t iterate(const System *system, double *X, double *residual, double *squares, double *vectors,
                        double small_rz, double inexact, Py_ssize_t most) noexcept nogil:
    """Run preconditioned conjugate gradients from X = 0; `squares` and `vectors` are scratch space."""
    cdef Py_ssize_t n = 0, rr = system.r * system.r
    cdef double *direction = squares
    cdef double *H_direction = squares + rr
    cdef double *z = squares + 2 * rr
    cdef double *rooted = squares + 3 * rr
    cdef double *diagonal = vectors
    cdef double *q = vectors + system.r
    cdef double rz, previous, curvature, alpha
    precondition(system, residual, diagonal, direction)
    rz = mahalo_dot(residual, direction, rr)
    while rz > small_rz and n < most:
        if mahalo_dot(residual, residual, rr) <= inexact * inexact * mahalo_dot(X, X, rr):
            break
        n += 1
        product(system, direction, rooted, q, H_direction)
        curvature = mahalo_dot(direction, H_direction, rr)
        if not 0.0 < curvature < INFINITY:
            break
        alpha = rz / curvature
        mahalo_combine(alpha, direction, 1.0, X, rr)
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
    """Return X, q = A (root ∘ X) and the number of products for X + root ∘ A* E A (root ∘ X) = R.

    Edges join rows of Y; `combine` is None or (start, edge, coefficient), which make forms of them. Forms whose weight
    in E is 0 take no part but have their values in q. R, root and divisor are symmetric, as X is then: of some one half
    is read. Matrices are copied to rows of a length that suits vector units.
    """
    cdef Py_ssize_t n_edges = tail.shape[0], n_forms = E.shape[0], r = Y.shape[1], padded = (r + 7) // 8 * 8
    cdef Py_ssize_t rr = padded * padded, n_busy, i, j, n
    cdef double[::1] memory, q = np.zeros(n_forms)
    cdef Py_ssize_t[::1] place
    cdef double[:, ::1] X
    cdef const Py_ssize_t[::1] start, edge
    cdef const double[::1] coefficient
    cdef double *square  # root, inverse, block, residual, X, and four of scratch
    cdef double *batch
    cdef double *length
    cdef double *weight
    cdef double *row
    cdef Forms forms
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
    forms.n_forms, forms.n_edges, forms.start = n_forms, n_edges, NULL
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
        forms.start, forms.edge, forms.coefficient = &start[0], &edge[0], &coefficient[0]
    place = np.empty(n_edges, dtype=np.intp)
    n_busy = find_places(&forms, E, &place[0])
    memory = np.zeros(9 * rr + MAHALO_BATCH * padded + n_edges + n_busy * (padded + 1) + padded + n_forms)
    X = np.empty((r, r))
    square = &memory[0]
    batch = square + 9 * rr
    length = batch + MAHALO_BATCH * padded
    weight = length + n_edges
    row = weight + n_busy
    system.forms, system.n_busy, system.r = &forms, n_busy, padded
    system.place, system.Z, system.length = &place[0], row, length
    system.E = &E[0]
    if combine is None:
        system.E = weight
    system.root, system.inverse = square, square + rr
    system.block = NULL if block is None else square + 2 * rr
    with nogil:
        for i in range(n_edges):
            if place[i] >= 0:
                for j in range(r):
                    row[j] = Y[tail[i], j] - Y[head[i], j]
                row += padded
                if forms.start == NULL:
                    weight[place[i]] = E[i]
        for i in range(r):
            for j in range(r):
                square[i * padded + j] = root[i, j]
                square[rr + i * padded + j] = 1.0 / divisor[i, j]
                if block is not None:
                    square[2 * rr + i * padded + j] = block[i, j]
                square[3 * rr + i * padded + j] = R[i, j]
        n = iterate(&system, square + 4 * rr, square + 3 * rr, square + 5 * rr, row, small_rz, inexact, most)
        for i in range(r):
            for j in range(r):
                X[i, j] = square[4 * rr + i * padded + j]
        mahalo_multiply(system.root, square + 4 * rr, 0.0, system.root, square + 5 * rr, rr)
        values(&forms, Y, tail, head, square + 5 * rr, padded, batch, length, &q[0])
    return np.asarray(X), np.asarray(q), n
