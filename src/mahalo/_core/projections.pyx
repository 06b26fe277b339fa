"""Bregman projections for LogDet, Algorithm 1 of the paper, one constraint after the other.

A projection onto constraint k changes F⁻¹ by s z zᵀ. In the paper's letters s = −δα, so

    s = γ/(γ+1) (1/ξ − 1/p),   β = −s/(1 + s p),   ξ ← γξ/(γ − sξ),   λ ← λ + δs,   F ← F + β (Fz)(Fz)ᵀ

with s clipped so that λ stays ≥ 0. With an offset c (the distance is c + zᵀFz) s is the root of a quadratic.

A relative constraint, zᵀFz − wᵀFw + c ≤ b, changes F⁻¹ by s (zzᵀ − wwᵀ), of rank two. With p = zᵀFz, q = wᵀFw,
ρ = zᵀFw and the determinant N(s) = 1 + s (p − q) + s² (ρ² − pq) of the change,

    F ← F + (1/N) [(s² q − s) Fz(Fz)ᵀ − s² ρ (Fz(Fw)ᵀ + Fw(Fz)ᵀ) + (s + s² p) Fw(Fw)ᵀ]

and s maximises the dual: N′(s)/N(s) + c − b − h (λ + s) = 0, h = scale²/γ (0 for a hard constraint).
"""
from libc.math cimport INFINITY, fabs, sqrt

from .checks cimport check_indices, check_length, check_shape

cdef extern from "kernels.h" nogil:
    double mahalo_update_multiply(double *F, const double *x, double beta, const double *z, double *y, Py_ssize_t r)
    void mahalo_rank_one_upper(double *F, const double *x, double beta, Py_ssize_t r, Py_ssize_t first)
    void mahalo_rank_one(double *F, const double *x, const double *y, double beta, Py_ssize_t r)


cdef inline double projection(double p, double xi, double c, double gamma) noexcept nogil:
    """Return the unclipped s in (−1/p, γ/ξ) that makes distance and slack equal: c + p/(1+sp) = ξγ/(γ−sξ)."""
    cdef double A, B, C, root
    if gamma == INFINITY:
        # ξ ≤ c: no F ⪰ 0 brings the distance down to ξ. The pole s → ∞ is never reached; take a large s.
        if xi <= c:
            return 1e12 / p
        return (c + p - xi) / (p * (xi - c))
    if c == 0.0:
        return gamma / (gamma + 1.0) * (1.0 / xi - 1.0 / p)
    A = -c * p * xi
    B = c * p * gamma - c * xi - p * xi - gamma * xi * p
    C = gamma * (c + p - xi)
    root = sqrt(B * B - 4.0 * A * C)
    if B < 0.0:
        return 2.0 * C / (root - B)
    return -(B + root) / (2.0 * A)


cdef inline double project(double p, double c, double gamma, double delta,
                           double *xi, double *lam, double *largest) noexcept nogil:
    """Do steps 3.3–3.7 of Algorithm 1: update ξ and λ, return β."""
    cdef double s, change
    if p <= 0.0:
        return 0.0
    s = projection(p, xi[0], c, gamma)
    if delta * s < -lam[0]:
        s = -delta * lam[0]
        lam[0] = 0.0
    else:
        lam[0] += delta * s
    if s == 0.0:
        return 0.0
    if gamma != INFINITY:
        xi[0] = gamma * xi[0] / (gamma - s * xi[0])
    change = s * p if s > 0.0 else -s * p
    if change > largest[0]:
        largest[0] = change
    return -s / (1.0 + s * p)


cdef int check_pairs(const Py_ssize_t[::1] tail, const Py_ssize_t[::1] head, const double[::1] delta,
                     const double[::1] offset, const double[::1] gamma, const double[::1] xi,
                     const double[::1] lam, Py_ssize_t n_rows) except -1:
    cdef Py_ssize_t n = tail.shape[0]
    check_length("head", head.shape[0], n)
    check_multipliers(delta, offset, gamma, xi, lam, n)
    if n > 0:
        check_indices("tail", &tail[0], n, n_rows)
        check_indices("head", &head[0], n, n_rows)
    return 0


cdef int check_multipliers(const double[::1] delta, const double[::1] offset, const double[::1] gamma,
                           const double[::1] xi, const double[::1] lam, Py_ssize_t n) except -1:
    check_length("delta", delta.shape[0], n)
    check_length("offset", offset.shape[0], n)
    check_length("gamma", gamma.shape[0], n)
    check_length("xi", xi.shape[0], n)
    check_length("lam", lam.shape[0], n)
    return 0


cdef int check_padded(const double[:, ::1] F, const double[:, ::1] X, const double[:, ::1] scratch,
                      Py_ssize_t n_scratch) except -1:
    """Raise ValueError unless F is r × r, r a multiple of 8, X has r columns, and scratch is n_scratch × r."""
    cdef Py_ssize_t r = F.shape[0]
    check_shape("F", F.shape[0], F.shape[1], r, r)
    check_shape("X", X.shape[0], X.shape[1], X.shape[0], r)
    if r % 8 != 0:
        raise ValueError(f"the order of F must be a multiple of 8; got {r}.")
    if scratch.shape[0] < n_scratch or scratch.shape[1] != r:
        raise ValueError(f"scratch must be {n_scratch} × {r}; got {scratch.shape[0]} × {scratch.shape[1]}.")
    return 0


def sweep_features(double[:, ::1] F, const double[:, ::1] X, const Py_ssize_t[::1] tail,
                   const Py_ssize_t[::1] head, const double[::1] delta, const double[::1] offset,
                   const double[::1] gamma, double[::1] xi, double[::1] lam, double[:, ::1] scratch):
    """Sweep over all pairs in feature space, O(r²) a projection; return the largest relative step |s p|.

    One pass over F makes the update of a projection and the product F z of the next. `scratch` is 3 × r, r a multiple
    of 8.
    """
    cdef Py_ssize_t k, a, i, j, r = F.shape[0]
    cdef double p, beta = 0.0, largest = 0.0
    cdef double *z
    cdef double *y
    cdef double *before
    check_padded(F, X, scratch, 3)
    check_pairs(tail, head, delta, offset, gamma, xi, lam, X.shape[0])
    if r == 0 or tail.shape[0] == 0:
        return largest
    z, y, before = &scratch[0, 0], &scratch[1, 0], &scratch[2, 0]
    for a in range(r):
        y[a] = 0.0
    with nogil:
        for k in range(tail.shape[0]):
            i, j = tail[k], head[k]
            for a in range(r):
                z[a] = X[i, a] - X[j, a]
            y, before = before, y
            p = mahalo_update_multiply(&F[0, 0], before, beta, z, y, r)
            beta = project(p, offset[k], gamma[k], delta[k], &xi[k], &lam[k], &largest)
        if beta != 0.0:
            mahalo_rank_one(&F[0, 0], y, y, beta, r)
    return largest


def sweep_kernel(double[:, ::1] K, double[:, ::1] B, double[:, ::1] M, const Py_ssize_t[::1] tail,
                 const Py_ssize_t[::1] head, const double[::1] delta, const double[::1] offset,
                 const double[::1] gamma, double[::1] xi, double[::1] lam, double[:, ::1] scratch):
    """Sweep over all pairs on a kernel matrix, O(n²) a projection; return the largest relative step.

    K(e_i − e_j) =: y is a difference of two rows of K. M of W = I + X M Xᵀ follows with m = (I + M K0)(e_i − e_j), a
    difference of two rows of B = I + K0 M; and since K0 m = y, B is updated by B ← B + β y mᵀ.
    """
    cdef Py_ssize_t k, a, i, j, n = K.shape[0]
    cdef double p, beta, largest = 0.0
    cdef double *y
    cdef double *m
    check_shape("K", K.shape[0], K.shape[1], n, n)
    check_shape("B", B.shape[0], B.shape[1], n, n)
    check_shape("M", M.shape[0], M.shape[1], n, n)
    check_pairs(tail, head, delta, offset, gamma, xi, lam, n)
    if tail.shape[0] == 0:
        return largest
    check_shape("scratch", scratch.shape[0], scratch.shape[1], 2, n)
    y, m = &scratch[0, 0], &scratch[1, 0]
    with nogil:
        for k in range(tail.shape[0]):
            i, j = tail[k], head[k]
            for a in range(n):
                y[a] = K[i, a] - K[j, a]
                m[a] = B[i, a] - B[j, a]
            p = y[i] - y[j]
            beta = project(p, offset[k], gamma[k], delta[k], &xi[k], &lam[k], &largest)
            if beta != 0.0:
                mahalo_rank_one(&K[0, 0], y, y, beta, n)
                mahalo_rank_one(&B[0, 0], y, m, beta, n)
                mahalo_rank_one(&M[0, 0], m, m, beta, n)
    return largest


def sweep_block(double[:, ::1] G, const double[::1] delta, const double[::1] offset,
                const double[::1] gamma, double[::1] xi, double[::1] lam, double[::1] beta):
    """Make the projections of one block, on its Gram matrix G = Z F Zᵀ.

    On return beta[t] is the step of projection t and row t of G, from t on, is Z F z_t as it was just before it; from
    these the caller rebuilds all the vectors F z_t, and so F, with matrix products.
    """
    cdef Py_ssize_t t, n = G.shape[0]
    cdef double largest = 0.0
    check_shape("G", G.shape[0], G.shape[1], n, n)
    check_multipliers(delta, offset, gamma, xi, lam, n)
    check_length("beta", beta.shape[0], n)
    with nogil:
        for t in range(n):
            beta[t] = project(G[t, t], offset[t], gamma[t], delta[t], &xi[t], &lam[t], &largest)
            if beta[t] != 0.0:
                # Only later entries are needed; row t stays as it was before its projection.
                mahalo_rank_one_upper(&G[0, 0], &G[t, 0], beta[t], n, t + 1)
    return largest


cdef inline double relative_projection(double p, double q, double rho, double excess, double h, double lam) noexcept nogil:
    """Return the root s of N′/N + excess − h (λ + s), which falls from ∞ to −∞ where N > 0, by bracketed Newton."""
    cdef double slope = p - q, bend = rho * rho - p * q, N, dN, value, derivative, root, trial
    cdef double low = -INFINITY, high = INFINITY, s = 0.0
    cdef int k
    if bend > 0.0:
        bend = 0.0  # ≤ 0 by Cauchy and Schwarz, up to rounding
    root = sqrt(slope * slope - 4.0 * bend)
    # The ends of the domain are the roots of N on either side of 0, computed without cancellation.
    if slope >= 0.0:
        if slope + root > 0.0:
            low = -2.0 / (slope + root)
        if bend < 0.0:
            high = -(slope + root) / (2.0 * bend)
    else:
        high = 2.0 / (root - slope)
        if bend < 0.0:
            low = (root - slope) / (2.0 * bend)
    for k in range(100):
        N = 1.0 + s * (slope + s * bend)
        dN = slope + 2.0 * s * bend
        value = dN / N + excess - h * (lam + s)
        derivative = (2.0 * bend - dN * dN / N) / N - h
        if value > 0.0:
            low = s
        elif value < 0.0:
            high = s
        else:
            return s
        trial = s - value / derivative if derivative < 0.0 else INFINITY
        if not (low < trial < high):
            if low > -INFINITY and high < INFINITY:
                trial = 0.5 * (low + high)
            else:
                # One end of the bracket is open: move outwards.
                trial = 2.0 * s + 1.0 / (p + q) if value > 0.0 else 2.0 * s - 1.0 / (p + q)
        if fabs(trial - s) <= 1e-15 * fabs(trial):
            return trial
        s = trial
    return s


def sweep_relative(double[:, ::1] F, const double[:, ::1] X, const Py_ssize_t[:, ::1] near,
                   const Py_ssize_t[:, ::1] far, const double[::1] excess, const double[::1] h, double[::1] lam,
                   double[:, ::1] scratch):
    """Sweep over relative constraints d²(near) ≤ d²(far) + …, O(r²) a projection.

    `excess` is c − b; `scratch` is 4 × r, r a multiple of 8. Return the largest relative step |s| (p + q).
    """
    cdef Py_ssize_t k, a, r = F.shape[0], n = near.shape[0]
    cdef double p, q, rho, s, N, largest = 0.0, one, both, other
    cdef double *z
    cdef double *w
    cdef double *Fz
    cdef double *Fw
    check_padded(F, X, scratch, 4)
    check_shape("near", near.shape[0], near.shape[1], n, 2)
    check_shape("far", far.shape[0], far.shape[1], n, 2)
    check_length("excess", excess.shape[0], n)
    check_length("h", h.shape[0], n)
    check_length("lam", lam.shape[0], n)
    if r == 0 or n == 0:
        return largest
    check_indices("near", &near[0, 0], 2 * n, X.shape[0])
    check_indices("far", &far[0, 0], 2 * n, X.shape[0])
    z, w, Fz, Fw = &scratch[0, 0], &scratch[1, 0], &scratch[2, 0], &scratch[3, 0]
    with nogil:
        for k in range(n):
            for a in range(r):
                z[a] = X[near[k, 0], a] - X[near[k, 1], a]
                w[a] = X[far[k, 0], a] - X[far[k, 1], a]
            p = mahalo_update_multiply(&F[0, 0], z, 0.0, z, Fz, r)
            q = mahalo_update_multiply(&F[0, 0], w, 0.0, w, Fw, r)
            if p + q <= 0.0:
                continue
            rho = 0.0
            for a in range(r):
                rho += z[a] * Fw[a]
            s = relative_projection(p, q, rho, excess[k], h[k], lam[k])
            if s < -lam[k]:
                s = -lam[k]
                lam[k] = 0.0
            else:
                lam[k] += s
            if s == 0.0:
                continue
            largest = max(largest, fabs(s) * (p + q))
            N = 1.0 + s * (p - q + s * (rho * rho - p * q))
            one, both, other = (s * s * q - s) / N, -s * s * rho / N, (s + s * s * p) / N
            for a in range(r):
                # z and w are no longer needed: reuse them for the two combinations that multiply Fz and Fw.
                z[a] = one * Fz[a] + both * Fw[a]
                w[a] = both * Fz[a] + other * Fw[a]
            mahalo_rank_one(&F[0, 0], z, Fz, 1.0, r)
            mahalo_rank_one(&F[0, 0], w, Fw, 1.0, r)
    return largest
