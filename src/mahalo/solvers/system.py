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
_MOST = 0.5  # share of forms with weight from which the others are not left out


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
) -> SystemSolution:
    """Solve until the residual ρ has ρ · precondition(ρ) ≤ `small`, or ‖ρ‖ ≤ `inexact` ‖X‖.

    Products with a large Y are formed in its precision, single or double.
    """
    n_edges = len(forms.tail) * np.count_nonzero(E) / max(1, len(E))  # of forms with weight, approximately
    if n_edges * R.size > _SMALL or n_edges > max(_FEW_EDGES, _EDGES_A_ROW * len(Y)):
        return _iterate(forms, Y, E, R, precondition, root, small, inexact, max_products)
    Y = Y.astype(np.float64, copy=False)
    edges = forms.tail, forms.head, forms.combine_rows
    if not isinstance(root, np.ndarray):
        root = np.full(R.shape, root)
    return SystemSolution(*solve_small(Y, *edges, E, R, root, *precondition, small, inexact, max_products))


def weighted_part(
    forms: EdgeForms, weight: np.ndarray, Y: np.ndarray
) -> tuple[np.ndarray | slice, EdgeForms, np.ndarray]:
    """Return which forms have weight, these forms, and the rows of Y they touch; all of them where most have weight."""
    which = weight != 0.0
    if np.count_nonzero(which) > _MOST * len(which):
        return slice(None), forms, Y
    return which, *forms.part(which, Y)


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
    which, weighted, rows = weighted_part(forms, E, Y)
    E_weighted = E[which]
    X, residual, q = np.zeros_like(R), R.copy(), np.zeros(len(E_weighted))
    direction = precondition(residual)
    rz, n_products = float(np.vdot(residual, direction)), 0
    while rz > small and n_products < max_products:
        if np.vdot(residual, residual) <= inexact**2 * np.vdot(X, X):
            break
        n_products += 1
        q_direction = weighted.apply(_times(rows, root * direction), rows)
        H_direction = root * weighted.adjoint(rows, E_weighted * q_direction)
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
        q = forms.apply(_times(Y, root * X), Y)
    return SystemSolution(X, q, n_products)


def _times(Y: np.ndarray, X: np.ndarray) -> np.ndarray:
    """Return Y X in the precision of Y."""
    return Y @ X.astype(Y.dtype, copy=False)
