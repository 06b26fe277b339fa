"""Online LogDet (LEGO): one proximal step for each pair, in order.

A pair with difference z, bound b and offset c (its squared distance is c + zᵀFz) has x = zᵀFz / b and target x = t, with
t = 1 − c/b. The step minimises D(F⁺, F) + η ½ (x⁺ − t)², a scalar problem, as D = h(x⁺/x) with h(u) = u − ln u − 1:

    η x x⁺² − q x⁺ − x = 0,   q = η t x − 1,   x⁺ = (q + √(q² + 4ηx²)) / (2ηx) > 0

    F⁺ = F + β (Fz)(Fz)ᵀ,   β = (x⁺ − x)/(b x²),        F⁺⁻¹ = F⁻¹ + s z zᵀ,   s = (1/x⁺ − 1/x)/b

and 1 + β zᵀFz = x⁺/x > 0 keeps F ≻ 0. With sign ±1 the pair is a bound, and a step is made where it is violated,
sign (x − t) > 0; with sign 0 it is a target.
"""
from libc.math cimport sqrt
from libc.string cimport memset

from .checks cimport check_indices, check_length, check_shape

cdef extern from "kernels.h" nogil:
    int MAHALO_ROWS
    void mahalo_update_multiply_two(double *F, const double *X, const double *beta, const double *Z, double *Y,
                                    Py_ssize_t r)
    void mahalo_add_upper(double *H, const double *Z, const double *weight, Py_ssize_t r)
    void mahalo_rank_one_upper(double *F, const double *x, double beta, Py_ssize_t r, Py_ssize_t first)
    void mahalo_rank_one(double *F, const double *x, const double *y, double beta, Py_ssize_t r)
    void mahalo_combine(double a, const double *x, double b, double *y, Py_ssize_t n)
    double mahalo_dot(const double *x, const double *y, Py_ssize_t n)

SCRATCH_ROWS = MAHALO_ROWS + 4


cdef inline double nearer(double x, double t, double eta) noexcept nogil:
    """Return x⁺, by the form of the root without cancellation."""
    cdef double q = eta * t * x - 1.0, root = sqrt(q * q + 4.0 * eta * x * x)
    if q < 0.0:
        return 2.0 * x / (root - q)
    return (q + root) / (2.0 * eta * x)


cdef inline double step(double p, double bound, double t, double sign, bint safe,
                        double *eta, double *before, double *after) noexcept nogil:
    """Return β of one pair with zᵀFz = p, 0 if it needs no step; set before and after to x and x⁺.

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


def follow_pairs(double[:, ::1] F, double[:, ::1] inverse, const double[:, ::1] points, const Py_ssize_t[::1] tail,
                 const Py_ssize_t[::1] head, const double[::1] bound, const double[::1] target,
                 const double[::1] sign, bint safe, double[::1] eta, double[::1] before, double[::1] after,
                 double[:, ::1] scratch):
    """Make the steps for pairs of points (tail[k], head[k]), O(r²) each; update F and the upper triangle of its inverse.

    `eta` holds the step size of each pair, and on return the one taken. Two pairs share a pass over F, which also makes
    the updates of the two before them; the effect of the first on the second is corrected on the vector F z. r is a
    multiple of 8, `scratch` SCRATCH_ROWS × r.
    """
    cdef Py_ssize_t k, a, i, r = F.shape[0], n = tail.shape[0]
    cdef double beta[2]
    cdef double change[8]
    cdef double *Z
    cdef double *z
    cdef double *Y
    cdef double *last
    check_shape("F", F.shape[0], F.shape[1], r, r)
    check_shape("inverse", inverse.shape[0], inverse.shape[1], r, r)
    check_shape("points", points.shape[0], points.shape[1], points.shape[0], r)
    check_shape("scratch", scratch.shape[0], scratch.shape[1], SCRATCH_ROWS, r)
    check_length("head", head.shape[0], n)
    check_stream(n, bound, target, sign, eta, before, after)
    if r % 8 != 0:
        raise ValueError(f"the order of F must be a multiple of 8; got {r}.")
    if r == 0 or n == 0:
        return
    check_indices("tail", &tail[0], n, points.shape[0])
    check_indices("head", &head[0], n, points.shape[0])
    Z, Y, last = &scratch[0, 0], &scratch[MAHALO_ROWS, 0], &scratch[MAHALO_ROWS + 2, 0]
    with nogil:
        memset(Z, 0, (MAHALO_ROWS + 4) * r * sizeof(double))
        beta[0] = beta[1] = 0.0
        for k in range(n):
            i = k % MAHALO_ROWS
            if i == 0:
                take(points, tail, head, k, min(<Py_ssize_t> MAHALO_ROWS, n - k), Z)
            z = Z + i * r
            if i % 2 == 0:
                Y, last = last, Y
                mahalo_update_multiply_two(&F[0, 0], last, beta, z, Y, r)
                beta[0] = beta[1] = 0.0
            elif beta[0] != 0.0:
                #  F z, which the step since this pass has changed by β (F z_0)ᵀz F z_0
                mahalo_combine(beta[0] * mahalo_dot(Y, z, r), Y, 1.0, Y + r, r)
            a = i % 2
            beta[a] = step(mahalo_dot(Y + a * r, z, r), bound[k], target[k], sign[k], safe, &eta[k], &before[k], &after[k])
            change[i] = (1.0 / after[k] - 1.0 / before[k]) / bound[k] if beta[a] != 0.0 else 0.0
            if i + 1 == MAHALO_ROWS or k + 1 == n:
                for a in range(i + 1, MAHALO_ROWS):
                    change[a] = 0.0
                mahalo_add_upper(&inverse[0, 0], Z, change, r)
        for a in range(2):
            if beta[a] != 0.0:
                mahalo_rank_one(&F[0, 0], Y + a * r, Y + a * r, beta[a], r)


cdef inline void take(const double[:, ::1] points, const Py_ssize_t[::1] tail, const Py_ssize_t[::1] head,
                      Py_ssize_t first, Py_ssize_t m, double *Z) noexcept nogil:
    """Set Z to the differences of m pairs from `first` on, and to zeros for the rest of MAHALO_ROWS."""
    cdef Py_ssize_t i, a, r = points.shape[1]
    for i in range(m):
        for a in range(r):
            Z[i * r + a] = points[tail[first + i], a] - points[head[first + i], a]
    memset(Z + m * r, 0, (MAHALO_ROWS - m) * r * sizeof(double))


def follow_block(double[:, ::1] G, const double[::1] bound, const double[::1] target, const double[::1] sign,
                 bint safe, double[::1] eta, double[::1] before, double[::1] after, double[::1] beta):
    """Make the steps of a block of pairs on its Gram matrix G = Z F Zᵀ.

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
                mahalo_rank_one_upper(&G[0, 0], &G[k, 0], beta[k], n, k + 1)
