"""The feature space of a kernel seen through its coordinates: a linear space like any other, with priors and bases."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..constraints import EdgeForms, VectorGeometry
from ..rows import InMemoryRows, per_class_limit
from ..validation import len_of, warn
from .kernel import KernelCoordinates, KernelSpace
from .linear import LinearCoordinates, LinearSpace

__all__ = ["EmbeddedCoordinates", "EmbeddedSpace", "embedding"]

MOST_ROWS = 5_000  # whose span the coordinates are


def embedding(space: KernelSpace, rng: np.random.Generator, codes: np.ndarray | None = None) -> KernelCoordinates:
    """Orthonormal coordinates of the span of the rows, or of as many as can be held."""
    n = len_of(space.X)
    if n <= MOST_ROWS:
        return space.span(np.arange(n))
    rows = np.sort(_drawn(np.full(n, -1) if codes is None else codes, rng))
    warn(
        f"a prior over the coordinates of a kernel looks at the span of {len(rows):,} of {n:,} rows, drawn at random, "
        "labelled ones first."
    )
    return space.span(rows)


def _drawn(codes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Of every class at most the same number of rows, and of rows without one what is then left to draw."""
    members = [np.flatnonzero(codes == c) for c in range(codes.max() + 1)]
    each = per_class_limit([len(rows) for rows in members], MOST_ROWS) if members else 0
    drawn = [rows if len(rows) <= each else rng.choice(rows, each, replace=False) for rows in members]
    others = np.flatnonzero(codes < 0)
    n_others = min(len(others), max(0, MOST_ROWS - sum(map(len, drawn))))
    return np.concatenate([*drawn, rng.choice(others, n_others, replace=False)])


@dataclass(frozen=True)
class EmbeddedCoordinates:
    """Linear coordinates over those of a kernel."""

    outer: KernelCoordinates
    inner: LinearCoordinates

    @property
    def rank(self) -> int:
        return self.inner.rank

    @property
    def residual(self) -> float:
        return self.inner.residual

    def settled(self, F: np.ndarray, weight: float) -> tuple[KernelCoordinates, np.ndarray]:
        """The same metric in one step: κ = φᵀ F φ over coordinates φ = Tk, and nothing outside them.

        Without a residual φ = (W0^½ Q)ᵀ of the kernel's coordinates. With one, F is written out over all of them:
        w (I − QQᵀ) + Q F Qᵀ.
        """
        c, Q = self.inner, self.inner.basis
        if Q is None:
            M, core = c.prior.compose(np.eye(c.n_features)), F
        elif weight == 0.0:
            M, core = c.projection, F
        else:
            M = c.prior.compose(np.eye(c.n_features))
            core = weight * np.eye(c.n_features) + Q @ (F - weight * np.eye(len(F))) @ Q.T
        outer = self.outer
        return KernelCoordinates(outer.kernel, outer.support, M.T @ outer.T, outer.n_features, 0.0), core


@dataclass
class EmbeddedSpace:
    """Objects under a kernel, by their coordinates in the span of the training rows, under a prior.

    What of a new object lies outside that span is left out of distances.
    """

    outer: KernelCoordinates
    inner: LinearSpace

    @classmethod
    def of(cls, outer: KernelCoordinates, X: Any, make: Callable[[InMemoryRows], LinearSpace]) -> EmbeddedSpace:
        """`make` puts a prior, and a basis if there is one, over rows of coordinates."""
        return cls(outer, make(InMemoryRows(np.asarray(outer.map(X), dtype=np.float64))))

    @property
    def geometry(self) -> VectorGeometry:
        return self.inner.geometry

    @property
    def coordinates(self) -> EmbeddedCoordinates:
        return EmbeddedCoordinates(self.outer, self.inner.coordinates)

    def pose(self, forms: EdgeForms, rows: np.ndarray) -> tuple[EmbeddedCoordinates, np.ndarray, np.ndarray]:
        coordinates, points, left = self.inner.pose(forms, rows)
        return EmbeddedCoordinates(self.outer, coordinates), points, left
