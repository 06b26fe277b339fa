"""Conjugate gradients for small Newton systems, for compiled callers."""


cdef struct Forms:
    Py_ssize_t n_forms, n_edges
    const Py_ssize_t *start    # form k is Σ coefficient[p] · edge[p] over start[k] ≤ p < start[k + 1]; NULL: edge k
    const Py_ssize_t *edge
    const double *coefficient


cdef struct System:
    Forms *forms
    Py_ssize_t n_busy, r
    const Py_ssize_t *place    # row of Z for every edge of a form with weight, −1 for others
    const double *Z            # n_busy × r
    const double *E            # weight of every form; where forms are edges, in the order of Z
    const double *root
    const double *inverse      # preconditioner: 1 / divisor, and the block over the diagonal or NULL
    const double *block
    double *length             # squared length of every row of Z, then its weight


cdef void precondition(const System *system, const double *R, double *diagonal, double *out) noexcept nogil

cdef Py_ssize_t iterate(const System *system, double *X, double *residual, double *squares, double *vectors,
                        double small_rz, double inexact, Py_ssize_t most) noexcept nogil
