"""Spectrum of a learned metric relative to its prior."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..metric import Metric

_MOST_DRAWN = 400


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Eigenvalues of W0^-½ W W0^-½, largest first.

    Attributes
    ----------
    directions : ndarray of int
        Numbers of the directions drawn, from 1: all of them, or 400 spread evenly.
    values : ndarray
        Their eigenvalues; those below 10⁻⁹ of the largest are raised to that, as the axis is logarithmic.
    n_directions, n_stretched, n_shrunk : int
        Numbers of all directions, of those with an eigenvalue above 1.05, and of those below 0.95.
    """

    directions: np.ndarray
    values: np.ndarray
    n_directions: int
    n_stretched: int
    n_shrunk: int


def learned_spectrum(metric: Metric) -> Spectrum:
    """Return the spectrum of a metric, with the weight it has outside its basis in all directions there."""
    inside = np.linalg.eigvalsh(metric.F)
    outside = np.full(max(0, metric.n_outputs - len(inside)), metric.eta * metric.coordinates.residual)
    values = np.sort(np.concatenate([inside, outside]))[::-1]
    n = len(values)
    drawn = np.unique(np.linspace(0, n - 1, min(n, _MOST_DRAWN)).round().astype(np.intp))
    floor = max(values.max(initial=0.0) * 1e-9, 1e-12)
    return Spectrum(
        directions=drawn + 1,
        values=np.maximum(values[drawn], floor),
        n_directions=n,
        n_stretched=int((values > 1.05).sum()),
        n_shrunk=int((values < 0.95).sum()),
    )
