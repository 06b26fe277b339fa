"""Newton systems, solved by preconditioned conjugate gradients.

For forms (A X)_k = tr(X Yᵀ C_k Y), their adjoint A*, weights E ≥ 0, a symmetric R and a symmetric `root` ≥ 0, entry by
entry:

    X + root ∘ A* E A (root ∘ X) = R

Unknowns are r × r matrices whatever the number of forms, and the operator is identity plus positive semidefinite.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._core.systems import solve_small
from ..constraints.forms import EdgeForms

_SMALL = 2_000_000  # multiply-adds of a product over edges, up to which the compiled loop pays
_FEW_EDGES, _EDGES_A_ROW = 800, 3  # beyond the larger limit, products through the rows of Y are cheaper
_SINGLE_RANGE = 1e-6, 1e6  # of the largest entry of Y, in which single precision neither underflows nor overflows


class Preconditioner(NamedTuple):
    """Preconditioner that divides the entries of a matrix, or multiplies its diagonal by `block` if there is one."""

    divisor: np.ndarray
    block: np.ndarray | None = None

    @property
    def largest(self) -> float:
        """Largest divisor, an estimate of the largest eigenvalue of the system."""
        return float(self.divisor.max(initial=0.0))

    def __call__(self, R: np.ndarray) -> np.ndarray:
        Z = R / self.divisor
        if self.block is not None:
            np.einsum("ii->i", Z)[:] = self.block @ np.diagonal(R)
        return Z


class SystemSolution(NamedTuple):
    """Solution X, the values q = A (root ∘ X) of all forms (also of weight 0), and the number of products."""

    X: np.ndarray
    q: np.ndarray
    n_products: int


def solve_system(
    forms: EdgeForms,
    Y: np.ndarray,
    E: np.ndarray,
    R: np.ndarray,
    precondition: Preconditioner,
    *,
    root: np.ndarray | float = 1.0,
    small: float = 0.0,
    inexact: float = 0.0,
    max_products: int,
    single: bool = False,
) -> SystemSolution:
    """Solve until the residual ρ has ρ · precondition(ρ) ≤ `small`, or ‖ρ‖ ≤ `inexact` ‖X‖.

    `single` says that products with Y may be formed in single precision, at half the cost where Y is large. It is
    ignored where entries of Y are so small or large that single precision would lose them.
    """
    n_edges = len(forms.tail) * np.count_nonzero(E) / max(1, len(E))  # of forms with weight, approximately
    if n_edges * R.size > _SMALL or n_edges > max(_FEW_EDGES, _EDGES_A_ROW * len(Y)):
        return _iterate(forms, Y, E, R, precondition, root, small, inexact, max_products, single)
    edges = forms.tail, forms.head, forms.combine_rows
    if not isinstance(root, np.ndarray):
        root = np.full(R.shape, root)
    return SystemSolution(*solve_small(Y, *edges, E, R, root, *precondition, small, inexact, max_products))


# `solve_small` is the same loop, compiled.
def _iterate(
    forms: EdgeForms,
    Y: np.ndarray,
    E: np.ndarray,
    R: np.ndarray,
    precondition: Preconditioner,
    root: np.ndarray | float,
    small: float,
    inexact: float,
    max_products: int,
    single: bool = False,
) -> SystemSolution:
    has_weight = E != 0.0
    (weighted, Y_weighted), E_weighted = forms.part(has_weight, Y), E[has_weight]
    single = single and _SINGLE_RANGE[0] <= float(np.abs(Y_weighted).max(initial=0.0)) <= _SINGLE_RANGE[1]
    rows = Y_weighted.astype(np.float32) if single else Y_weighted
    X, residual, q = np.zeros_like(R), R.copy(), np.zeros(len(E_weighted))
    direction = precondition(residual)
    rz, n_products = float(np.vdot(residual, direction)), 0
    while rz > small and n_products < max_products:
        if np.vdot(residual, residual) <= inexact**2 * np.vdot(X, X):
            break
        n_products += 1
        along = rows @ (root * direction).astype(rows.dtype, copy=False)
        q_direction = weighted.apply(along.astype(np.float64, copy=False), Y_weighted)
        H_direction = root * weighted.adjoint(Y_weighted, E_weighted * q_direction, rows)
        H_direction += direction
        curvature = float(np.vdot(direction, H_direction))
        if not 0.0 < curvature < np.inf:
            break
        alpha = rz / curvature
        X += alpha * direction
        q += alpha * q_direction
        residual -= alpha * H_direction
        z = precondition(residual)
        rz, previous = float(np.vdot(residual, z)), rz
        direction *= rz / previous
        direction += z
    if len(q) < len(E):
        q = forms.apply(Y @ (root * X), Y)
    return SystemSolution(X, q, n_products)
