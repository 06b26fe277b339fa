"""Products and factors of small matrices, and sums of logarithms, for compiled callers.

Matrices are of order r, with rows of a length p ≥ r, a multiple of 8, and zeros beyond r.
"""
from libc.math cimport INFINITY, log, sqrt
from libc.string cimport memcpy, memset

cdef extern from "kernels.h" nogil:
    double mahalo_dot(const double *x, const double *y, Py_ssize_t n)
    void mahalo_combine(double a, const double *x, double b, double *y, Py_ssize_t n)


cdef struct LogSum:
    double total, price, product


cdef inline void add_log(LogSum *logs, double price, double factor) noexcept nogil:
    """Add price · ln(factor) to a sum: logarithms of factors with one price are taken together."""
    if price != logs.price or not 1e-150 < logs.product < 1e150:
        logs.total += logs.price * log(logs.product)
        logs.price, logs.product = price, 1.0
    if 1e-150 < factor < 1e150:
        logs.product *= factor
    else:
        logs.total += price * log(factor)


cdef inline double sum_of_logs(const LogSum *logs) noexcept nogil:
    return logs.total + logs.price * log(logs.product)


cdef inline void scale(double *x, double factor, Py_ssize_t n) noexcept nogil:
    """Set x ← factor x."""
    cdef Py_ssize_t k
    for k in range(n):
        x[k] *= factor


cdef inline double trace(const double *S, Py_ssize_t r, Py_ssize_t p) noexcept nogil:
    cdef double total = 0.0
    cdef Py_ssize_t i
    for i in range(r):
        total += S[i * p + i]
    return total


cdef inline void times(const double *A, const double *B, double *out, Py_ssize_t r, Py_ssize_t p) noexcept nogil:
    """Set out = A B."""
    rows_times(A, B, out, r, r, p)


cdef inline void transpose(const double *A, double *out, Py_ssize_t r, Py_ssize_t p) noexcept nogil:
    """Set out = Aᵀ."""
    cdef Py_ssize_t i, j
    memset(out, 0, p * p * sizeof(double))
    for i in range(r):
        for j in range(r):
            out[j * p + i] = A[i * p + j]


cdef inline void transposed_times(const double *A, const double *B, double *out, Py_ssize_t r, Py_ssize_t p) noexcept nogil:
    """Set out = Aᵀ B."""
    cdef Py_ssize_t i, k
    memset(out, 0, p * p * sizeof(double))
    for k in range(r):
        for i in range(r):
            mahalo_combine(A[k * p + i], B + k * p, 1.0, out + i * p, p)


cdef inline void congruence(const double *B, const double *S, double *out, double *work, Py_ssize_t r,
                     Py_ssize_t p) noexcept nogil:
    """Set out = Bᵀ S B, exactly symmetric."""
    cdef Py_ssize_t i, j
    times(S, B, work, r, p)
    transposed_times(B, work, out, r, p)
    for i in range(r):
        for j in range(i):
            out[i * p + j] = out[j * p + i] = 0.5 * (out[i * p + j] + out[j * p + i])


cdef inline void rows_times(const double *Z, const double *A, double *out, Py_ssize_t n, Py_ssize_t r,
                     Py_ssize_t p) noexcept nogil:
    """Set out = Z A for n rows of Z."""
    cdef Py_ssize_t k, i
    for k in range(n):
        memset(out + k * p, 0, p * sizeof(double))
        for i in range(r):
            mahalo_combine(Z[k * p + i], A + i * p, 1.0, out + k * p, p)


cdef inline void rows_times_in_place(double *Z, const double *A, double *row, Py_ssize_t n, Py_ssize_t r,
                              Py_ssize_t p) noexcept nogil:
    """Set Z ← Z A."""
    cdef Py_ssize_t k
    for k in range(n):
        rows_times(Z + k * p, A, row, 1, r, p)
        memcpy(Z + k * p, row, p * sizeof(double))


cdef inline bint factorize(const double *S, double *L, Py_ssize_t r, Py_ssize_t p) noexcept nogil:
    """Set the lower factor L with S = L Lᵀ; return False if S is not positive definite."""
    cdef Py_ssize_t i, j
    cdef double left
    memset(L, 0, p * p * sizeof(double))
    for j in range(r):
        left = S[j * p + j] - mahalo_dot(L + j * p, L + j * p, j)
        if not 0.0 < left < INFINITY:
            return False
        L[j * p + j] = sqrt(left)
        for i in range(j + 1, r):
            L[i * p + j] = (S[i * p + j] - mahalo_dot(L + i * p, L + j * p, j)) / L[j * p + j]
    return True


cdef inline double log_det(const double *S, double *L, Py_ssize_t r, Py_ssize_t p) noexcept nogil:
    """Return log det S, or −∞ if S is not positive definite."""
    cdef double total = 0.0
    cdef Py_ssize_t i
    if not factorize(S, L, r, p):
        return -INFINITY
    for i in range(r):
        total += 2.0 * log(L[i * p + i])
    return total


cdef inline bint factor_of_step(const double *delta, double t, double *L, double *work, Py_ssize_t r,
                         Py_ssize_t p) noexcept nogil:
    """Set the lower factor of I + tΔ; return False if that is not positive definite."""
    cdef Py_ssize_t i
    memset(work, 0, p * p * sizeof(double))
    mahalo_combine(t, delta, 0.0, work, p * p)
    for i in range(r):
        work[i * p + i] += 1.0
    return factorize(work, L, r, p)


cdef inline double sq_norm_of_inverse(const double *L, double *inverse, Py_ssize_t r, Py_ssize_t p) noexcept nogil:
    """Return the squared norm of L⁻¹, which is tr (L Lᵀ)⁻¹."""
    cdef Py_ssize_t i, j, k
    cdef double total = 0.0, left
    for j in range(r):
        for i in range(j, r):
            left = 1.0 if i == j else 0.0
            for k in range(j, i):
                left -= L[i * p + k] * inverse[k * p + j]
            inverse[i * p + j] = left / L[i * p + i]
            total += inverse[i * p + j] * inverse[i * p + j]
    return total
