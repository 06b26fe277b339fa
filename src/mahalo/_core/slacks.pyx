"""Slack of the paper, γ h(v/b) with h(t) = t − ln t − 1 on the violated side: one pass over the constraints.

Constraint k requires sign_k (v_k − b_k) ≤ 0.
"""
from libc.math cimport INFINITY, log, log1p

import numpy as np

from .checks cimport check_length


cdef int check_lengths(const double[::1] at, const double[::1] sign, const double[::1] bound,
                       const double[::1] gamma) except -1:
    check_length("sign", sign.shape[0], at.shape[0])
    check_length("bound", bound.shape[0], at.shape[0])
    check_length("gamma", gamma.shape[0], at.shape[0])
    return 0


def log_values(const double[::1] v, const double[::1] sign, const double[::1] bound, const double[::1] gamma):
    """Return γ h(v/b) where a constraint is violated, 0 elsewhere."""
    cdef double[::1] out = np.zeros(v.shape[0])
    cdef double t
    cdef Py_ssize_t k
    check_lengths(v, sign, bound, gamma)
    with nogil:
        for k in range(v.shape[0]):
            if sign[k] * (v[k] - bound[k]) > 0.0:
                # ln(v/b) from (v − b)/b, exact where they nearly agree, or from v/b, exact where v is far below b.
                t = (v[k] - bound[k]) / bound[k]
                out[k] = gamma[k] * (t - (log1p(t) if t >= -0.5 else log(v[k] / bound[k])))
    return np.asarray(out)


def log_slopes(const double[::1] v, const double[::1] sign, const double[::1] bound, const double[::1] gamma):
    """Return γ (1/b − 1/v) where a constraint is violated, 0 elsewhere."""
    cdef double[::1] out = np.zeros(v.shape[0])
    cdef Py_ssize_t k
    check_lengths(v, sign, bound, gamma)
    with nogil:
        for k in range(v.shape[0]):
            if sign[k] * (v[k] - bound[k]) > 0.0:
                out[k] = gamma[k] * ((v[k] - bound[k]) / (bound[k] * v[k]))
    return np.asarray(out)


def log_curvatures(const double[::1] v, const double[::1] s, const double[::1] sign, const double[::1] bound,
                   const double[::1] gamma):
    """Return (γ/b − s)/v where a constraint is violated, 0 elsewhere."""
    cdef double[::1] out = np.zeros(v.shape[0])
    cdef Py_ssize_t k
    check_lengths(v, sign, bound, gamma)
    check_length("s", s.shape[0], v.shape[0])
    with nogil:
        for k in range(v.shape[0]):
            if sign[k] * (v[k] - bound[k]) > 0.0:
                # Rounding may make the numerator negative for v beyond 1e15 b.
                out[k] = max(gamma[k] / bound[k] - s[k], 0.0) / v[k]
    return np.asarray(out)


def log_duals(const double[::1] s, const double[::1] bound, const double[::1] gamma):
    """Return γ ln(1 − s b/γ), −∞ where s b ≥ γ."""
    cdef double[::1] out = np.empty(s.shape[0])
    cdef double share
    cdef Py_ssize_t k
    check_lengths(s, s, bound, gamma)
    with nogil:
        for k in range(s.shape[0]):
            share = s[k] * bound[k] / gamma[k]
            out[k] = 0.0 if share == 0.0 else (gamma[k] * log1p(-share) if share < 1.0 else -INFINITY)
    return np.asarray(out)
