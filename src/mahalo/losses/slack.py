"""Slack penalties of violated constraints: penalty(v), its slope s(v), its curvature, and its term in the dual.

Constraint k requires sign_k (v_k − b_k) ≤ 0. A slack maps values v to a penalty with slope s_k = sign_k λ_k, λ ≥ 0;
`dual` is the constraint's term in the dual objective at s, so that for every v and admissible s

    penalty(v) ≥ s v + dual(s),   with equality at s = slope(v).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from .._core.slacks import log_curvatures, log_duals, log_slopes, log_values


class Slack(Protocol):
    """Protocol of a slack penalty, for all constraints at once, as solvers and certificate use it."""

    def value(self, v: np.ndarray) -> np.ndarray: ...
    def slope(self, v: np.ndarray) -> np.ndarray: ...
    def curvature(self, v: np.ndarray, s: np.ndarray) -> np.ndarray: ...
    def dual(self, s: np.ndarray) -> np.ndarray: ...
    def dual_slope(self, s: np.ndarray) -> np.ndarray: ...
    def dual_curvature(self, s: np.ndarray) -> np.ndarray:
        """Return −dual″(s) ≥ 0."""


@dataclass(frozen=True)
class LogSlack:
    """Slack of the paper: γ h(v/b) on the violated side, h(t) = t − ln t − 1 (ξ eliminated)."""

    sign: np.ndarray
    bound: np.ndarray
    gamma: np.ndarray

    def value(self, v: np.ndarray) -> np.ndarray:
        return log_values(v, self.sign, self.bound, self.gamma)

    def slope(self, v: np.ndarray) -> np.ndarray:
        return log_slopes(v, self.sign, self.bound, self.gamma)

    def curvature(self, v: np.ndarray, s: np.ndarray) -> np.ndarray:
        # From v (γ/b − s) = γ rather than s = γ/b − γ/v: the same where s = slope(v), better behaved elsewhere.
        return log_curvatures(v, s, self.sign, self.bound, self.gamma)

    def dual(self, s: np.ndarray) -> np.ndarray:
        return log_duals(s, self.bound, self.gamma)

    def dual_slope(self, s: np.ndarray) -> np.ndarray:
        # −ξ; at the end of the domain ξ → ∞, up to rounding.
        return -self.bound / np.maximum(1.0 - s * self.bound / self.gamma, 1e-15)

    def dual_curvature(self, s: np.ndarray) -> np.ndarray:
        return self.dual_slope(s) ** 2 / self.gamma


@dataclass(frozen=True)
class HingeSlack:
    """Squared-hinge slack: γ/2 times the squared relative violation, max(0, sign (v − b)/scale)²."""

    sign: np.ndarray
    bound: np.ndarray
    scale: np.ndarray
    gamma: np.ndarray

    @cached_property
    def _root(self) -> np.ndarray:
        """Factor sign √γ / scale, whose square may overflow where its products do not."""
        return self.sign * (np.sqrt(self.gamma) / self.scale)

    @cached_property
    def _stiffness(self) -> np.ndarray:
        return self._root**2

    @cached_property
    def _softness(self) -> np.ndarray:
        return self._root**-2.0

    def _excess(self, v: np.ndarray) -> np.ndarray:
        return np.maximum(self._root * (v - self.bound), 0.0)

    def value(self, v: np.ndarray) -> np.ndarray:
        return 0.5 * self._excess(v) ** 2

    def slope(self, v: np.ndarray) -> np.ndarray:
        return self._root * self._excess(v)

    def curvature(self, v: np.ndarray, s: np.ndarray) -> np.ndarray:
        return np.where(self.sign * (v - self.bound) > 0, self._stiffness, 0.0)

    def dual(self, s: np.ndarray) -> np.ndarray:
        return -s * self.bound - 0.5 * (s / self._root) ** 2

    def dual_slope(self, s: np.ndarray) -> np.ndarray:
        return -self.bound - s / self._root / self._root

    def dual_curvature(self, s: np.ndarray) -> np.ndarray:
        return self._softness


@dataclass(frozen=True)
class HardSlack:
    """Slack of hard constraints, γ = ∞: the penalty is 0, and the certificate reports violations separately."""

    sign: np.ndarray
    bound: np.ndarray

    def value(self, v: np.ndarray) -> np.ndarray:
        return np.zeros_like(v)

    def dual(self, s: np.ndarray) -> np.ndarray:
        return -s * self.bound

    def dual_slope(self, s: np.ndarray) -> np.ndarray:
        return -self.bound

    def dual_curvature(self, s: np.ndarray) -> np.ndarray:
        return np.zeros_like(s)


@dataclass(frozen=True)
class SlackStack:
    """Slack of mixed constraints: `first` for the first `n_first` of them, `rest` for the others."""

    first: LogSlack
    rest: HingeSlack
    n_first: int

    def _stack(self, name: str, *arrays: np.ndarray) -> np.ndarray:
        k = self.n_first
        first = getattr(self.first, name)(*(x[:k] for x in arrays))
        return np.concatenate([first, getattr(self.rest, name)(*(x[k:] for x in arrays))])

    def value(self, v: np.ndarray) -> np.ndarray:
        return self._stack("value", v)

    def slope(self, v: np.ndarray) -> np.ndarray:
        return self._stack("slope", v)

    def curvature(self, v: np.ndarray, s: np.ndarray) -> np.ndarray:
        return self._stack("curvature", v, s)

    def dual(self, s: np.ndarray) -> np.ndarray:
        return self._stack("dual", s)

    def dual_slope(self, s: np.ndarray) -> np.ndarray:
        return self._stack("dual_slope", s)

    def dual_curvature(self, s: np.ndarray) -> np.ndarray:
        return self._stack("dual_curvature", s)
