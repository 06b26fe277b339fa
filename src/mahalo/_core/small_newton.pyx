"""State of Newton's method for a small problem over pairs, where calls from Python would cost more than arithmetic.

The formulas are those of `solvers.newton_state`, whose letters are used: F = A Aᵀ, y = Aᵀz for the difference z of a pair,
v = offset + yᵀy, s the slopes of the penalties, G = AᵀA − I + Σ s y yᵀ. Matrices have rows of a length p that suits
vector units, r rounded up to a multiple of 8, with zeros beyond r.
"""
from libc.math cimport INFINITY, fabs, log, log1p, pow, sqrt
from libc.string cimport memcpy, memset

import numpy as np
from scipy.linalg.lapack import dsyevd

from .checks cimport check_indices, check_length
from .small_matrices cimport (
    LogSum, add_log, congruence, factor_of_step, log_det, rows_times, rows_times_in_place, scale, sq_norm_of_inverse,
    sum_of_logs, times, trace, transpose, transposed_times,
)
from .systems cimport Forms, System, iterate, precondition

cdef extern from "kernels.h" nogil:
    void mahalo_lengths(const double *Z, const double *X, double *out, Py_ssize_t n, Py_ssize_t r)
    void mahalo_gram(const double *Z, const double *weight, double *H, Py_ssize_t n, Py_ssize_t r)
    double mahalo_dot(const double *x, const double *y, Py_ssize_t n)
    void mahalo_combine(double a, const double *x, double b, double *y, Py_ssize_t n)

# Shared with `solvers.newton_state`, which says what they are.
CLOSE_GAP, NEARLY_ALL, SHARE_WIDTH = 0.5, 0.9, 0.25
TINY_GRADIENT, LEAST_SCALE, MOST_SCALE, LONGEST_STEP = 1e-8, 1e-2, 1e2, 1e3
cdef double close_gap = CLOSE_GAP, nearly_all = NEARLY_ALL, share_width = SHARE_WIDTH
cdef double tiny_gradient = TINY_GRADIENT, least_scale = LEAST_SCALE, most_scale = MOST_SCALE
cdef double longest_step = LONGEST_STEP

cdef double GOLDEN = 0.5 * (sqrt(5.0) - 1.0)
cdef int N_SQUARES = 18
# Width of a line search's bracket at its end, relative to its lower end. Bisection makes that 1/j with a whole number j;
# the limit is between 1/50 and 1/51, so that rounding does not decide whether there is one step more.
cdef double SHORT = 1.0 / 50.5
cdef double NEAR = 0.01  # from 1, where ln(1 + t) is not to be taken from rounded 1 + t


cdef class SmallProblem:
    """Pairs of a problem, as differences of their points; memory for the steps of one solver at a time."""

    cdef Py_ssize_t m, r, p
    cdef double[:, ::1] Z
    cdef const double[::1] sign, bound, scale, weight, offset
    cdef double[::1] memory

    def __init__(self, const double[:, ::1] points, const Py_ssize_t[::1] tail, const Py_ssize_t[::1] head,
                 const double[::1] sign, const double[::1] bound, const double[::1] scale, const double[::1] weight,
                 const double[::1] offset):
        cdef Py_ssize_t k, j, m = tail.shape[0], r = points.shape[1]
        if m == 0 or r == 0:
            raise ValueError(f"a small problem has pairs and coordinates; got {m} pairs, {r} coordinates.")
        for name, length in (("head", head.shape[0]), ("sign", sign.shape[0]), ("bound", bound.shape[0]),
                             ("scale", scale.shape[0]), ("weight", weight.shape[0]), ("offset", offset.shape[0])):
            check_length(name, length, m)
        check_indices("tail", &tail[0], m, points.shape[0])
        check_indices("head", &head[0], m, points.shape[0])
        self.m, self.r, self.p = m, r, (r + 7) // 8 * 8
        self.sign, self.bound, self.scale, self.weight, self.offset = sign, bound, scale, weight, offset
        self.Z = np.zeros((m, self.p))
        for k in range(m):
            for j in range(r):
                self.Z[k, j] = points[tail[k], j] - points[head[k], j]
        self.memory = np.zeros(N_SQUARES * self.p * self.p + m * self.p + 4 * m + self.p)


cdef class SmallState:
    """State at F = A Aᵀ under one γ, with multipliers s = share · slope; numbers are those of the state in NumPy."""

    cdef SmallProblem problem
    cdef double[::1] memory      # A, AᵀA and Σ slope y yᵀ; v and slopes; Y
    cdef double *A_              # lower triangular
    cdef double *AtA
    cdef double *pull
    cdef double *v_
    cdef double *slope
    cdef double *Y
    cdef double log_det_F, penalty, share_, gap_
    cdef bint has_gap
    cdef readonly double gamma

    def __init__(self, SmallProblem problem, const double[:, :] A, double gamma):
        cdef Py_ssize_t i, j
        if A.shape[0] != problem.r or A.shape[1] != problem.r:
            raise ValueError(f"A must be {problem.r} × {problem.r}; got {A.shape[0]} × {A.shape[1]}.")
        self.allocate(problem, gamma)
        for i in range(problem.r):
            for j in range(i + 1):
                self.A_[i * problem.p + j] = A[i, j]
        self.evaluate()

    cdef void allocate(self, SmallProblem problem, double gamma):
        cdef Py_ssize_t m = problem.m, p = problem.p
        self.problem, self.gamma, self.has_gap = problem, gamma, False
        self.memory = np.zeros(3 * p * p + 2 * m + m * p)
        self.A_ = &self.memory[0]
        self.AtA, self.pull, self.v_ = self.A_ + p * p, self.A_ + 2 * p * p, self.A_ + 3 * p * p
        self.slope, self.Y = self.v_ + m, self.v_ + 2 * m

    cdef void evaluate(self):
        """Set everything that follows from A and γ."""
        cdef SmallProblem problem = self.problem
        cdef Py_ssize_t i, k, m = problem.m, r = problem.r, p = problem.p
        cdef LogSum logs
        cdef double t
        with nogil:
            rows_times(&problem.Z[0, 0], self.A_, self.Y, m, r, p)
            transposed_times(self.A_, self.A_, self.AtA, r, p)
            self.log_det_F = self.penalty = logs.total = logs.price = 0.0
            logs.product = 1.0
            for i in range(r):
                self.log_det_F += 2.0 * log(self.A_[i * p + i])
            for k in range(m):
                self.v_[k] = problem.offset[k] + mahalo_dot(self.Y + k * p, self.Y + k * p, p)
                self.slope[k] = self.slope_at(k, self.v_[k])
                if self.slope[k] != 0.0:
                    t = (self.v_[k] - problem.bound[k]) / problem.bound[k]
                    self.penalty += self.gamma * problem.weight[k] * (t - log1p(t) if fabs(t) < NEAR else t)
                    if fabs(t) >= NEAR:
                        add_log(&logs, self.gamma * problem.weight[k], self.v_[k] / problem.bound[k])
            self.penalty -= sum_of_logs(&logs)
            mahalo_gram(self.Y, self.slope, self.pull, m, p)

    cdef inline bint is_violated(self, Py_ssize_t k, double v) noexcept nogil:
        return self.problem.sign[k] * (v - self.problem.bound[k]) > 0.0

    cdef inline double slope_at(self, Py_ssize_t k, double v) noexcept nogil:
        cdef double bound = self.problem.bound[k]
        return self.gamma * self.problem.weight[k] * ((v - bound) / (bound * v)) if self.is_violated(k, v) else 0.0

    def at_gamma(self, double gamma):
        """Return the state at the same F under another γ, to which slopes and penalty are proportional."""
        cdef SmallState state = SmallState.__new__(SmallState)
        cdef double factor = gamma / self.gamma
        state.allocate(self.problem, gamma)
        memcpy(&state.memory[0], &self.memory[0], self.memory.shape[0] * sizeof(double))
        scale(state.slope, factor, self.problem.m)
        scale(state.pull, factor, self.problem.p * self.problem.p)
        state.log_det_F, state.penalty = self.log_det_F, factor * self.penalty
        return state

    @property
    def A(self):
        return np.array(<double[:self.problem.p, :self.problem.p]> self.A_)[:self.problem.r, :self.problem.r]

    @property
    def v(self):
        return np.array(<double[:self.problem.m]> self.v_)

    @property
    def s(self):
        return self.share * np.array(<double[:self.problem.m]> self.slope)

    @property
    def gradient_over_gamma(self):
        cdef Py_ssize_t pp = self.problem.p * self.problem.p
        cdef double *G = &self.problem.memory[0]
        self.gradient(G)
        scale(G, 1.0 / self.gamma, pp)
        return sqrt(mahalo_dot(G, G, pp))

    @property
    def primal(self):
        return trace(self.AtA, self.problem.r, self.problem.p) - self.problem.r - self.log_det_F + self.penalty

    @property
    def max_violation(self):
        cdef SmallProblem problem = self.problem
        cdef double largest = 0.0
        cdef Py_ssize_t k
        for k in range(problem.m):
            largest = max(largest, problem.sign[k] * (self.v_[k] - problem.bound[k]) / problem.scale[k])
        return largest

    @property
    def share(self):
        self.find_gap()
        return self.share_

    @property
    def gap(self):
        self.find_gap()
        return self.gap_

    @property
    def relative_gap(self):
        return self.gap / max(1.0, fabs(self.primal))

    cdef double gradient(self, double *G) noexcept nogil:
        """Set G = AᵀA + Σ slope y yᵀ − I, and return the square of its norm."""
        cdef Py_ssize_t i, r = self.problem.r, p = self.problem.p
        memcpy(G, self.AtA, p * p * sizeof(double))
        mahalo_combine(1.0, self.pull, 1.0, G, p * p)
        for i in range(r):
            G[i * p + i] -= 1.0
        return mahalo_dot(G, G, p * p)

    cdef double log_det_Z(self, double share) noexcept nogil:
        cdef Py_ssize_t pp = self.problem.p * self.problem.p
        cdef double *Z = &self.problem.memory[0]
        memcpy(Z, self.AtA, pp * sizeof(double))
        mahalo_combine(share, self.pull, 1.0, Z, pp)
        return log_det(Z, Z + pp, self.problem.r, self.problem.p)

    cdef double dual_at(self, double share) noexcept nogil:
        """Return D(share · slope)."""
        cdef double total = self.log_det_Z(share) - self.log_det_F, price, s, t
        cdef Py_ssize_t k
        cdef LogSum logs
        logs.total, logs.price, logs.product = 0.0, 0.0, 1.0
        if total == -INFINITY:
            return total
        for k in range(self.problem.m):
            s = share * self.slope[k]
            if s != 0.0:
                price = self.gamma * self.problem.weight[k]
                total += s * self.problem.offset[k]
                t = s * self.problem.bound[k] / price
                if t >= 1.0:
                    return -INFINITY
                if fabs(t) < NEAR:
                    total += price * log1p(-t)
                else:
                    add_log(&logs, price, 1.0 - t)
        return total + sum_of_logs(&logs)

    cdef void find_gap(self):
        """Set the gap P(F) − D(s), and the share of the slopes that is s."""
        cdef double sq_norm, primal, dual = 0.0, share = 0.0, low = 0.0, high = 1.0, left, right, at_left, at_right
        if self.has_gap:
            return
        self.has_gap, self.share_ = True, 1.0
        sq_norm = self.gradient(&self.problem.memory[0])
        if sq_norm < tiny_gradient:
            self.gap_ = 0.5 * sq_norm
            return
        self.gap_ = trace(&self.problem.memory[0], self.problem.r, self.problem.p)
        self.gap_ -= self.log_det_Z(1.0)
        primal = self.primal
        if self.gap_ <= close_gap or (self.gap_ < INFINITY and self.dual_at(nearly_all) <= primal - self.gap_):
            return
        # Golden-section search: D is concave and D(0) = 0.
        left, right = 1.0 - GOLDEN, GOLDEN
        at_left, at_right = self.dual_at(left), self.dual_at(right)
        while high - low > share_width:
            if at_left >= at_right:  # or both are outside the domain, where D = −∞
                high, right, at_right = right, left, at_left
                left = high - GOLDEN * (high - low)
                at_left = self.dual_at(left)
            else:
                low, left, at_left = left, right, at_right
                right = low + GOLDEN * (high - low)
                at_right = self.dual_at(right)
        if at_left > dual:
            share, dual = left, at_left
        if at_right > dual:
            share, dual = right, at_right
        if primal - dual < self.gap_:
            self.share_, self.gap_ = share, primal - dual

    def step(self, bint primal_dual, double inexact, Py_ssize_t most):
        """Return the state after a Newton step, its length (None and 0 if there is none), and the number of products.

        `primal_dual` selects primal-dual scaling; the system is solved to a relative residual of `inexact` at most.
        """
        cdef SmallProblem problem = self.problem
        cdef Py_ssize_t r = problem.r, p = problem.p, m = problem.m, pp = p * p, n_products
        cdef double *squares = &problem.memory[2 * pp]  # behind those of `find_gap`
        cdef double *delta = squares
        cdef double *G = squares + pp
        cdef double *factor = squares + 2 * pp
        cdef double *q = squares + (N_SQUARES - 2) * pp
        cdef SmallState state
        cdef double t
        self.gradient(G)
        n_products = self.direction(primal_dual, inexact, most, G, delta, squares + 3 * pp, q + m)
        mahalo_lengths(self.Y, delta, q, m, p)
        t = self.line_search(G, delta, q, factor, squares + 3 * pp)
        if t == 0.0:
            return None, 0.0, n_products
        state = SmallState.__new__(SmallState)
        state.allocate(problem, self.gamma)
        times(self.A_, factor, state.A_, r, p)
        state.evaluate()
        return state, t, n_products

    cdef Py_ssize_t direction(self, bint primal_dual, double inexact, Py_ssize_t most, const double *G, double *delta,
                              double *squares, double *vectors) except -1:
        """Set Δ with H Δ ≈ −G and return the number of products with H."""
        cdef SmallProblem problem = self.problem
        cdef Py_ssize_t i, j, k, n = 0, r = problem.r, p = problem.p, m = problem.m, pp = p * p, n_products
        cdef double *S = squares
        cdef double *B = squares + pp
        cdef double *M = squares + 2 * pp
        cdef double *work = squares + 3 * pp
        cdef double *inverse = squares + 4 * pp
        cdef double *block = squares + 5 * pp
        cdef double *residual = squares + 6 * pp
        cdef double *X = squares + 7 * pp
        cdef double *root = squares + 8 * pp
        cdef double *weight = vectors
        cdef double *length = vectors + m
        cdef double *diagonal = vectors + 2 * m
        cdef double *rows = vectors + 3 * m + p
        cdef double share = self.share, omega, norm, c = 0.0, rz
        cdef double[:] values
        cdef double[:, :] eigenvectors
        cdef Forms forms
        cdef System system
        for k in range(m):
            if self.is_violated(k, self.v_[k]):
                weight[n] = max(self.gamma * problem.weight[k] / problem.bound[k] - share * self.slope[k], 0.0)
                weight[n] /= self.v_[k]
                length[n] = sqrt(weight[n])
                memcpy(rows + n * p, self.Y + k * p, p * sizeof(double))
                n += weight[n] > 0.0
        mahalo_gram(rows, length, S, n, p)
        scale(S, 1.0 / max(n, 1), pp)
        memset(B, 0, 2 * pp * sizeof(double))
        if primal_dual:
            memcpy(work, self.AtA, pp * sizeof(double))
            mahalo_combine(share, self.pull, 1.0, work, pp)
            values, eigenvectors = eigh(work, r, p)
            for j in range(r):
                norm = pow(min(max(values[j], least_scale), most_scale), -0.25)
                for i in range(r):
                    M[i * p + j] = eigenvectors[i, j] * norm
            congruence(M, S, work, inverse, r, p)
            memcpy(S, work, pp * sizeof(double))
        values, eigenvectors = eigh(S, r, p)
        for i in range(r):
            for j in range(r):
                work[i * p + j] = eigenvectors[i, j]
        if primal_dual:
            times(M, work, B, r, p)
        else:
            memcpy(B, work, pp * sizeof(double))
        # The Hessian as if the vectors y were Gaussian is diagonal plus rank one in these coordinates.
        omega = 0.5 * max(n, 1)
        memset(inverse, 0, 2 * pp * sizeof(double))
        memset(root, 0, pp * sizeof(double))
        for i in range(r):
            diagonal[i] = fabs(values[i]) / (1.0 + 2.0 * omega * values[i] * values[i])
            c += diagonal[i] * fabs(values[i])
        c = omega / (1.0 + omega * c)
        for i in range(r):
            for j in range(r):
                root[i * p + j] = 1.0
                inverse[i * p + j] = 1.0 / (1.0 + 2.0 * omega * fabs(values[i] * values[j]))
                block[i * p + j] = -c * diagonal[i] * diagonal[j]
            block[i * p + i] += inverse[i * p + i]
        congruence(B, G, residual, work, r, p)
        scale(residual, -1.0, pp)
        rows_times_in_place(rows, B, work, n, r, p)
        forms.n_forms = forms.n_edges = n
        forms.start = NULL
        system.forms, system.n_busy, system.r, system.place = &forms, n, p, NULL
        system.Z, system.E, system.length = rows, weight, length
        system.root, system.inverse, system.block = root, inverse, block
        precondition(&system, residual, diagonal, work)
        rz = mahalo_dot(residual, work, pp)
        memset(X, 0, pp * sizeof(double))
        with nogil:
            n_products = iterate(&system, X, residual, root + pp, diagonal,
                                 rz * min(inexact, pow(rz, 0.25)) ** 2, 0.0, most)
            transpose(B, work, r, p)
            congruence(work, X, delta, inverse, r, p)
        return n_products

    cdef double line_search(self, const double *G, double *delta, const double *q, double *factor,
                            double *squares) except? -1.0:
        """Return t > 0 where the objective along Δ stops falling, and set the factor of I + tΔ; 0 if there is none."""
        cdef Py_ssize_t i, j, r = self.problem.r, p = self.problem.p, pp = p * p
        cdef double falling = mahalo_dot(G, delta, pp), linear, at_one, low, high, t
        cdef double *inverse = squares
        cdef double[:] mu
        if not falling < 0.0:
            return 0.0
        linear = falling + trace(delta, r, p) - mahalo_dot(self.slope, q, self.problem.m)
        if factor_of_step(delta, 1.0, factor, squares, r, p):
            # Σ μ/(1+μ) = r − tr (I+Δ)⁻¹; the full step is accepted if it removes most of the slope.
            at_one = linear - r + sq_norm_of_inverse(factor, inverse, r, p) + self.pull_along(q, 1.0)
            if fabs(at_one) <= -0.5 * falling:
                return 1.0
        mu = eigh(delta, r, p)[0]
        if self.derivative(linear, mu, q, 0.0) >= 0.0:
            return 0.0
        low, high = 0.0, 0.99 / -mu[0] if mu[0] < 0.0 else longest_step
        t = high
        if self.derivative(linear, mu, q, high) > 0.0:
            while high - low > SHORT * low and high > 1e-14:
                t = 0.5 * (low + high)
                if self.derivative(linear, mu, q, t) > 0.0:
                    high = t
                else:
                    low = t
            t = low if low > 0.0 else high
        return t if factor_of_step(delta, t, factor, squares, r, p) else 0.0

    cdef double pull_along(self, const double *q, double t) noexcept nogil:
        """Return Σ slope(v + t q) q."""
        cdef double total = 0.0
        cdef Py_ssize_t k
        for k in range(self.problem.m):
            total += self.slope_at(k, self.v_[k] + t * q[k]) * q[k]
        return total

    cdef double derivative(self, double linear, double[:] mu, const double *q, double t) noexcept nogil:
        cdef double total = linear + self.pull_along(q, t)
        cdef Py_ssize_t i
        for i in range(self.problem.r):
            total -= mu[i] / (1.0 + t * mu[i])
        return total


cdef tuple eigh(double *S, Py_ssize_t r, Py_ssize_t p):
    """Return eigenvalues, smallest first, and eigenvectors of a symmetric matrix."""
    matrix = np.array(<double[:p, :p]> S)[:r, :r]
    values, vectors, info = dsyevd(matrix)
    if info != 0:
        raise np.linalg.LinAlgError("Eigenvalues did not converge")
    return values, vectors
