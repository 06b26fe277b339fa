"""Protocol of spectral losses: scalar functions of the eigenvalues of the core matrix."""

from __future__ import annotations

from typing import Protocol

import numpy as np


class Loss(Protocol):
    """Convex function f on w ≥ 0 with f ≥ 0 = f(η), and its conjugate f*(s) = sup_{w ≥ 0} (s w − f(w)).

    All functions work elementwise on arrays; outside their domain values are ∞. A loss may state η as `eta`.
    """

    def value(self, w: np.ndarray) -> np.ndarray: ...
    def conjugate(self, s: np.ndarray) -> np.ndarray: ...
    def conjugate_slope(self, s: np.ndarray) -> np.ndarray:
        """Return the w at which the supremum is attained; maps eigenvalues of S to those of F."""

    def conjugate_curvature(self, s: np.ndarray) -> np.ndarray: ...


def resting_point(loss: Loss) -> float:
    """Return η: `eta` of the loss or, if it has none, ∇f*(0), the minimum of f."""
    eta = getattr(loss, "eta", None)
    return float(loss.conjugate_slope(np.zeros(1))[0] if eta is None else eta)


def divided_differences(loss: Loss, s: np.ndarray) -> np.ndarray:
    """Return Ω_ij = (g(s_i) − g(s_j)) / (s_i − s_j) for g = ∇f*, or g′ where g(s_i) ≈ g(s_j).

    In the eigenbasis of S the derivative of ∇f*(S) is the elementwise product with Ω (Löwner).
    """
    g = loss.conjugate_slope(s)
    change, step = np.subtract.outer(g, g), np.subtract.outer(s, s)
    # Compare g, not s: only the digits left in g(s_i) − g(s_j) matter, whatever the units of s.
    close = np.abs(change) <= 1e-8 * np.maximum.outer(g, g)
    step[close] = 1.0
    change /= step
    change[close] = loss.conjugate_curvature(0.5 * np.add.outer(s, s)[close])
    return change
