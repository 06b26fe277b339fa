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


class Preconditioner(NamedTuple):
    """Preconditioner that divides the entries of a matrix, or multiplies its diagonal by `block` if there is one."""

    divisor: np.ndarray
    block: np.ndarray | None = None

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
) -> SystemSolution:
    """Solve until the residual ρ has ρ · precondition(ρ) ≤ `small`, or ‖ρ‖ ≤ `inexact` ‖X‖."""
    n_edges = len(forms.tail) * np.count_nonzero(E) / max(1, len(E))  # of forms with weight, approximately
    if n_edges * R.size > _SMALL or n_edges > max(_FEW_EDGES, _EDGES_A_ROW * len(Y)):
        return _iterate(forms, Y, E, R, precondition, root, small, inexact, max_products)
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
) -> SystemSolution:
    (weighted, Y_weighted), E_weighted = forms.part(E != 0.0, Y), E[E != 0.0]
    X, residual = np.zeros_like(R), R.copy()
    direction = precondition(residual)
    rz, n_products = float(np.vdot(residual, direction)), 0
    while rz > small and n_products < max_products:
        if np.vdot(residual, residual) <= inexact**2 * np.vdot(X, X):
            break
        n_products += 1
        q = weighted.apply(Y_weighted @ (root * direction), Y_weighted)
        H_direction = root * weighted.adjoint(Y_weighted, E_weighted * q)
        H_direction += direction
        curvature = float(np.vdot(direction, H_direction))
        if not 0.0 < curvature < np.inf:
            break
        alpha = rz / curvature
        X += alpha * direction
        residual -= alpha * H_direction
        z = precondition(residual)
        rz, previous = float(np.vdot(residual, z)), rz
        direction *= rz / previous
        direction += z
    return SystemSolution(X, forms.apply(Y @ (root * X), Y), n_products)
