"""Online LogDet (LEGO): one proximal step a pair, one pair after the other.

A pair with difference z, bound b and offset c (its squared distance is c + zᵀFz) has x = zᵀFz / b and wants x = t, with
t = 1 − c/b. The step minimises D(F⁺, F) + η ½ (x⁺ − t)², which is a scalar problem in x⁺, as D = h(x⁺/x), h(u) = u − ln u − 1:

    η x x⁺² − q x⁺ − x = 0,   q = η t x − 1,   x⁺ = (q + √(q² + 4ηx²)) / (2ηx) > 0,   F⁺ = F + β (Fz)(Fz)ᵀ,   β = (x⁺ − x)/(b x²)

so that 1 + β zᵀFz = x⁺/x > 0 keeps F ≻ 0. With sign ±1 the pair is a bound, and a step is made where it is violated, sign
(x − t) > 0; with sign 0 it is a target.
"""
from libc.math cimport sqrt

from .checks cimport check_length, check_shape

cdef extern from "kernels.h" nogil:
    double mahalo_update_multiply(double *F, const double *x, double beta, const double *z, double *y, Py_ssize_t r)
    void mahalo_rank_one(double *F, const double *x, const double *y, double beta, Py_ssize_t r,
                         Py_ssize_t first, Py_ssize_t start)


cdef inline double nearer(double x, double t, double eta) noexcept nogil:
    """x⁺, by the form of the root that cancels nothing."""
    cdef double q = eta * t * x - 1.0, root = sqrt(q * q + 4.0 * eta * x * x)
    if q < 0.0:
        return 2.0 * x / (root - q)
    return (q + root) / (2.0 * eta * x)


cdef inline double step(double p, double bound, double t, double sign, bint safe,
                        double *eta, double *before, double *after) noexcept nogil:
    """β of one pair with zᵀFz = p, 0 where there is nothing to do; x and x⁺ go to before and after.

    A safe step is η / max(1, x + c/b)²: then x⁺/x stays above about 1/(1 + η), whatever the pair.
    """
    cdef double x = p / bound, size = x + 1.0 - t
    before[0] = after[0] = x
    if safe and size > 1.0:
        eta[0] /= size * size
    if x <= 0.0 or sign * (x - t) < 0.0 or x == t:
        return 0.0
    after[0] = nearer(x, t, eta[0])
    return (after[0] - x) / (bound * x * x)


cdef int check_stream(Py_ssize_t n, const double[::1] bound, const double[::1] target, const double[::1] sign,
                      const double[::1] eta, const double[::1] before, const double[::1] after) except -1:
    check_length("bound", bound.shape[0], n)
    check_length("target", target.shape[0], n)
    check_length("sign", sign.shape[0], n)
    check_length("eta", eta.shape[0], n)
    check_length("before", before.shape[0], n)
    check_length("after", after.shape[0], n)
    return 0


def follow_pairs(double[:, ::1] F, const double[:, ::1] Z, const double[::1] bound, const double[::1] target,
                 const double[::1] sign, bint safe, double[::1] eta, double[::1] before, double[::1] after,
                 double[:, ::1] scratch):
    """Steps for the differences in the rows of Z, O(r²) each; F is kept up in place.

    `eta` comes as the step size of each pair and leaves as the one taken. The update of one pair is made in the same
    pass over F as the product F z of the next. r is a multiple of 8, `scratch` 2 × r.
    """
    cdef Py_ssize_t k, a, r = F.shape[0], n = Z.shape[0]
    cdef double p, beta = 0.0
    cdef double *y
    cdef double *last
    check_shape("F", F.shape[0], F.shape[1], r, r)
    check_shape("Z", Z.shape[0], Z.shape[1], n, r)
    check_shape("scratch", scratch.shape[0], scratch.shape[1], 2, r)
    check_stream(n, bound, target, sign, eta, before, after)
    if r % 8 != 0:
        raise ValueError(f"the order of F must be a multiple of 8; got {r}.")
    if r == 0 or n == 0:
        return
    y, last = &scratch[0, 0], &scratch[1, 0]
    for a in range(r):
        y[a] = 0.0
    with nogil:
        for k in range(n):
            y, last = last, y
            p = mahalo_update_multiply(&F[0, 0], last, beta, &Z[k, 0], y, r)
            beta = step(p, bound[k], target[k], sign[k], safe, &eta[k], &before[k], &after[k])
        if beta != 0.0:
            mahalo_rank_one(&F[0, 0], y, y, beta, r, 0, 0)


def follow_block(double[:, ::1] G, const double[::1] bound, const double[::1] target, const double[::1] sign,
                 bint safe, double[::1] eta, double[::1] before, double[::1] after, double[::1] beta):
    """The same steps on the Gram matrix G = Z F Zᵀ alone.

    On return beta[k] is the step of pair k and row k of G, from k on, is Z F z_k as it was just before it; from these
    the caller rebuilds the vectors F z_k, and so F, with matrix products.
    """
    cdef Py_ssize_t k, n = G.shape[0]
    check_shape("G", G.shape[0], G.shape[1], n, n)
    check_length("beta", beta.shape[0], n)
    check_stream(n, bound, target, sign, eta, before, after)
    with nogil:
        for k in range(n):
            beta[k] = step(G[k, k], bound[k], target[k], sign[k], safe, &eta[k], &before[k], &after[k])
            if beta[k] != 0.0:
                mahalo_rank_one(&G[0, 0], &G[k, 0], &G[k, 0], beta[k], n, k + 1, k + 1)
